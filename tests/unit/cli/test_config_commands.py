"""`openclaw config`: all mistakes at once, safe reading, and changes that keep what a person wrote."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import msgspec
import pytest

from tests.unit.cli.conftest import Command

WriteConfig = Callable[[str], Path]

SIX_MISTAKES = """{
  // a comment
  gateway: { prot: 18789, bind: "everywhere" },
  session: { scope: "per-planet", resetTriggers: 5 },
  agents: { list: [{ id: "" }] },
  colour: "blue",
}
"""
SECRET = "tok-0123456789abcdef0123456789abcdef"


@pytest.mark.spec("CFG-3")
def test_every_mistake_is_one_line_with_file_line_and_setting(
    command: Command, write_config: WriteConfig
) -> None:
    path = write_config(SIX_MISTAKES)
    outcome = command("config", "validate")
    assert outcome.code == 1
    lines = outcome.out.splitlines()
    places = [line.split(": ", 1)[0] for line in lines]
    assert places == [
        f"{path}:3 — gateway.prot",
        f"{path}:3 — gateway.bind",
        f"{path}:4 — session.scope",
        f"{path}:4 — session.resetTriggers",
        f"{path}:5 — agents.list[0].id",
        f"{path}:6 — colour",
    ]
    assert '"per-sender"' in lines[2] and "per-planet" in lines[2]
    assert "6 problems" in outcome.err


@pytest.mark.spec("CFG-3")
def test_mistakes_as_json(command: Command, write_config: WriteConfig) -> None:
    path = write_config(SIX_MISTAKES)
    outcome = command("config", "validate", "--json")
    assert (outcome.code, outcome.err) == (1, "")
    body = outcome.json()
    assert (body["ok"], body["valid"], body["exists"], body["path"]) == (False, False, True, str(path))
    assert len(body["problems"]) == 6
    first = body["problems"][0]
    assert (first["file"], first["line"], first["path"]) == (str(path), 3, "gateway.prot")
    assert first["reason"]


@pytest.mark.spec("CFG-3")
def test_a_valid_file_and_a_missing_one_are_valid_and_warnings_are_told(
    command: Command, write_config: WriteConfig, home: Path
) -> None:
    missing = command("config", "validate")
    assert missing.code == 0 and "does not exist" in missing.out
    path = write_config("{ plugins: { x: 1 }, gateway: { port: 19000 } }")
    outcome = command("config", "validate")
    assert (outcome.code, outcome.out) == (0, f"{path} is valid.\n")
    assert outcome.err.startswith("warning: ") and "plugins" in outcome.err
    other = home / "candidate.json5"
    other.write_text("{ gateway: { port: -1 } }")
    assert command("config", "validate", str(other)).code == 1
    nowhere = command("config", "validate", str(home / "nowhere.json"))
    assert nowhere.code == 1 and "no such file" in nowhere.err


@pytest.mark.spec("CFG-2")
def test_path_follows_the_environment(command: Command, home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert command("config", "path").out == f"{home}/.openclaw/openclaw.json\n"
    monkeypatch.setenv("OPENCLAW_STATE_DIR", "~/state")
    assert command("config", "path").out == f"{home}/state/openclaw.json\n"
    monkeypatch.setenv("OPENCLAW_CONFIG_PATH", "/etc/openclaw.json5")
    assert command("config", "path").out == "/etc/openclaw.json5\n"


@pytest.mark.spec("CFG-3")
def test_the_schema_is_closed(command: Command) -> None:
    body = command("config", "schema").json()
    assert body["additionalProperties"] is False
    assert "gateway" in body["properties"]


@pytest.mark.spec("CFG-1")
def test_get_reads_the_file_with_its_defaults_and_masks_secrets(
    command: Command, write_config: WriteConfig
) -> None:
    path = write_config(
        f"{{ gateway: {{ auth: {{ token: '{SECRET}' }}, bind: 'loopback' }},"
        " agents: { list: [{ id: 'main' }, { id: 'work' }] }, }"
    )
    assert command("config", "get", "gateway.bind").out == "loopback\n"
    assert command("config", "get", "gateway.bind", "--json").out == '"loopback"\n'
    for asked in ("gateway.auth.token", "gateway.auth", "gateway"):
        outcome = command("config", "get", asked)
        assert outcome.code == 0 and SECRET not in outcome.out and "__OPENCLAW_REDACTED__" in outcome.out
    assert command("config", "get", "agents.list[1].id").out == "work\n"
    assert command("config", "get", "agents.list.1.id").out == "work\n"
    default = command("config", "get", "gateway.port")
    assert (default.out, "default" in default.err) == ("18789\n", True)
    for absent in (
        "gateway.nope",
        "agents.list[7]",
        "agents.list.x",
        "gateway.port.deeper",
        "agents.list." + "9" * 5000,
    ):
        outcome = command("config", "get", absent)
        assert (outcome.code, outcome.out) == (1, "") and f"is not set in {path}" in outcome.err
    broken = command("config", "get", "gateway..port")
    assert broken.code == 1 and "cannot read the path" in broken.err


@pytest.mark.spec("CFG-6")
def test_set_changes_one_value_and_keeps_comments(command: Command, write_config: WriteConfig) -> None:
    path = write_config("{\n  // my port\n  gateway: { port: 19000 }, // here\n}\n")
    outcome = command("config", "set", "gateway.port", "19001")
    assert outcome.code == 0 and "Restart the gateway" in outcome.out
    assert path.read_text() == "{\n  // my port\n  gateway: { port: 19001 }, // here\n}\n"
    hot = command("config", "set", "session.mainKey", "home")
    assert hot.code == 0 and "next turn" in hot.out
    assert command("config", "get", "session.mainKey").out == "home\n"
    assert "// my port" in path.read_text()
    body = command("config", "set", "session.reset", "{mode: 'idle', idleMinutes: 60}", "--json").json()
    assert (body["ok"], body["restartRequired"]) == (True, False)
    assert command("config", "get", "session.reset.idleMinutes").out == "60\n"


@pytest.mark.spec("CFG-6")
@pytest.mark.parametrize(
    ("setting", "value", "words"),
    [
        ("gateway.port", "many", "gateway.port"),
        ("gateway.prot", "1", "gateway.prot"),
        ("gateway.port.deeper", "1", "is not an object"),
        ("agents.list.x", "1", "is a list"),
        ("", "1", "path"),
        ("session.reset", "{mode:", "not JSON5"),
    ],
)
def test_set_refuses_what_would_make_the_file_invalid(
    command: Command, write_config: WriteConfig, setting: str, value: str, words: str
) -> None:
    text = "{ gateway: { port: 19000 }, agents: { list: [] } } // kept"
    path = write_config(text)
    outcome = command("config", "set", setting, value)
    assert (outcome.code, outcome.out) == (1, "") and words in outcome.err
    assert path.read_text() == text


@pytest.mark.spec("CFG-6")
def test_a_first_setting_creates_a_private_file(command: Command, home: Path) -> None:
    assert command("config", "set", "gateway.port", "19000").code == 0
    path = home / ".openclaw" / "openclaw.json"
    assert path.stat().st_mode & 0o777 == 0o600
    assert msgspec.json.decode(command("config", "get", "gateway").out) == {"port": 19000}


@pytest.mark.spec("CFG-6")
def test_a_file_that_cannot_be_read_is_not_replaced(command: Command, write_config: WriteConfig) -> None:
    path = write_config("{}")
    path.write_bytes(b"{ gateway: { port: 19000 } } // caf\xe9")
    before = path.read_bytes()
    for arguments in (("set", "gateway.port", "19001"), ("get", "gateway.port")):
        outcome = command("config", *arguments)
        assert outcome.code == 1 and "UTF-8" in outcome.err
    assert path.read_bytes() == before
    path.write_text("{ oops")
    for arguments in (("set", "gateway.port", "19001"), ("get", "gateway.port")):
        assert command("config", *arguments).code == 1
    assert path.read_text() == "{ oops"
