"""A choice of model in the config file: one change, comments kept, private, or nothing at all."""

from __future__ import annotations

import stat
from pathlib import Path

import pytest

from openclaw.app.model_setup import ModelSetup, load_for_change, write_agent_model, write_setup
from openclaw.config.load import LoadedConfig, load_or_raise
from openclaw.errors import ConfigInvalid, InvalidRequest, StoreReadOnly, VersionConflict

FRESH = ModelSetup(
    provider="anthropic",
    model="claude-sonnet-5-5",
    api="anthropic-messages",
    base_url="https://api.anthropic.com",
    api_key="${MY_KEY}",
)
OWN_FILE = """{
  // mine
  agents: {
    defaults: { model: { primary: "offline/offline", fallbacks: ["offline/offline"] } },
    list: [{ id: "main" }, { id: "Bob", model: "offline/offline" }, { id: "eve", model: { primary: "a/b" } }],
  },
  models: { providers: { a: { baseUrl: "http://a", models: [{ id: "b" } /* the only one */] } } },
}
"""


@pytest.fixture
def env(tmp_path: Path) -> dict[str, str]:
    return {"OPENCLAW_STATE_DIR": str(tmp_path / "state"), "MY_KEY": "sk-ant-0123456789abcdef"}


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "state" / "openclaw.json"


def given(path: Path, text: str, env: dict[str, str]) -> LoadedConfig:
    path.parent.mkdir(exist_ok=True)
    path.write_text(text)
    return load_for_change(env)


def test_a_first_setup_makes_a_private_file(env: dict[str, str], path: Path) -> None:
    written = write_setup(load_for_change(env), FRESH, env)
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert stat.S_IMODE(path.parent.stat().st_mode) == 0o700
    assert [file.name for file in path.parent.iterdir()] == ["openclaw.json"]
    assert written == load_or_raise(path, env)
    assert written.config.agents.defaults.model == "anthropic/claude-sonnet-5-5"
    provider = written.config.models.providers["anthropic"]
    assert (provider.api, provider.base_url) == ("anthropic-messages", "https://api.anthropic.com")
    assert (provider.api_key, provider.models) == ("sk-ant-0123456789abcdef", ())
    # Only the reference is written.
    assert "${MY_KEY}" in path.read_text() and "sk-ant" not in path.read_text()
    assert "${MY_KEY}" not in repr(FRESH)


def test_what_stands_in_the_file_stays(env: dict[str, str], path: Path) -> None:
    setup = ModelSetup(provider="a", model="c", listed={"id": "c", "contextWindow": 9})
    written = write_setup(given(path, OWN_FILE, env), setup, env)
    text = path.read_text()
    assert "// mine" in text and "/* the only one */" in text
    choice = written.config.agents.defaults.model
    assert not isinstance(choice, str | None)
    assert (choice.primary, choice.fallbacks) == ("a/c", ("offline/offline",))
    provider = written.config.models.providers["a"]
    assert [(model.id, model.context_window) for model in provider.models] == [("b", None), ("c", 9)]
    assert provider.base_url == "http://a"
    assert path.with_name("openclaw.json.bak").read_text() == OWN_FILE


def test_a_model_is_listed_once_and_only_where_there_is_a_list(env: dict[str, str], path: Path) -> None:
    loaded = given(path, OWN_FILE, env)
    again = write_setup(loaded, ModelSetup(provider="a", model="b", listed={"id": "b"}), env)
    assert [model.id for model in again.config.models.providers["a"].models] == ["b"]
    unlisted = write_setup(again, ModelSetup(provider="a", model="d"), env)
    assert [model.id for model in unlisted.config.models.providers["a"].models] == ["b", "d"]


@pytest.mark.parametrize(
    ("agent_id", "place"),
    [("BOB", 1), ("eve", 2), ("main", 0)],
)
def test_one_agent(env: dict[str, str], path: Path, agent_id: str, place: int) -> None:
    before = given(path, OWN_FILE, env).config
    written = write_agent_model(load_for_change(env), "a/b", agent_id, env).config
    model = written.agents.list[place].model
    assert (model if isinstance(model, str) else model and model.primary) == "a/b"
    for other in {0, 1, 2} - {place}:
        assert written.agents.list[other] == before.agents.list[other]
    assert written.agents.defaults == before.agents.defaults


def test_every_agent(env: dict[str, str], path: Path) -> None:
    loaded = given(path, "{}", env)
    assert write_agent_model(loaded, "offline/offline", None, env).config.agents.defaults.model == (
        "offline/offline"
    )
    with pytest.raises(InvalidRequest, match="leave --agent out"):
        write_agent_model(load_for_change(env), "offline/offline", "bob", env)
    with pytest.raises(InvalidRequest, match="there are: main, bob, eve"):
        write_agent_model(given(path, OWN_FILE, env), "a/b", "nobody", env)


def test_what_cannot_be_written_leaves_the_file_as_it_was(env: dict[str, str], path: Path) -> None:
    loaded = given(path, OWN_FILE, env)
    with pytest.raises(ConfigInvalid, match="nope"):
        write_agent_model(loaded, "nope/model", None, env)
    assert path.read_text() == OWN_FILE
    with pytest.raises(InvalidRequest, match="surrogate"):
        write_setup(loaded, ModelSetup(provider="a", model="b", api_key="\ud800"), env)
    path.write_text(OWN_FILE + "// changed by somebody\n")
    with pytest.raises(VersionConflict):
        write_agent_model(loaded, "a/b", None, env)
    assert path.read_text().endswith("// changed by somebody\n")
    path.write_text("{ agents: 5 }")
    with pytest.raises(ConfigInvalid):
        load_for_change(env)


def test_a_directory_that_cannot_be_made_is_told(env: dict[str, str], tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    blocked = {**env, "OPENCLAW_STATE_DIR": str(tmp_path / "file" / "state")}
    loaded = LoadedConfig(load_for_change(env).config, (), (), "", "", Path(tmp_path / "file/state/c"), False)
    with pytest.raises(StoreReadOnly, match="OPENCLAW_STATE_DIR"):
        write_setup(loaded, FRESH, blocked)
