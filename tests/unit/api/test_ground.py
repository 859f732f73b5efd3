"""What a program passes as configuration, and what a gateway starts on."""

from __future__ import annotations

import json
import stat
from pathlib import Path
from typing import Any

import pytest

from openclaw.api.ground import environment, load_config, own_address
from openclaw.errors import ConfigInvalid


def env_of(tmp_path: Path) -> dict[str, str]:
    return {"HOME": str(tmp_path), "OPENCLAW_STATE_DIR": str(tmp_path / "state")}


def test_places_are_absolute_and_win_over_the_environment(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("OPENCLAW_STATE_DIR", "/elsewhere")
    chosen = environment("conf/mine.json", "data", None)
    assert chosen["OPENCLAW_STATE_DIR"] == str(tmp_path / "data")
    assert chosen["OPENCLAW_CONFIG_PATH"] == str(tmp_path / "conf/mine.json")
    assert environment(None, None, None)["OPENCLAW_STATE_DIR"] == "/elsewhere"
    assert environment({}, None, {"A": "b"}) == {"A": "b"}
    assert environment(tmp_path / "x.json", None, {}) == {"OPENCLAW_CONFIG_PATH": str(tmp_path / "x.json")}


@pytest.mark.spec("CFG-1")
def test_a_mapping_stays_in_memory_and_gets_a_credential(tmp_path: Path) -> None:
    given: dict[str, Any] = {
        "gateway": {"port": 19999, "auth": {"mode": "token"}},
        "session": {"scope": "per-sender"},
    }
    loaded = load_config(given, env_of(tmp_path))
    other = load_config(given, env_of(tmp_path))
    token = loaded.config.gateway.auth.token
    assert token is not None
    assert len(token) >= 43
    assert token != other.config.gateway.auth.token
    assert (loaded.config.gateway.port, loaded.exists, loaded.problems) == (19999, False, ())
    assert given["gateway"]["auth"] == {"mode": "token"}
    assert not (tmp_path / "state").exists()


@pytest.mark.parametrize(
    "auth", [{"token": "a-token-of-one-s-own"}, {"password": "a password"}, {"mode": "none"}]
)
def test_a_given_credential_is_kept(tmp_path: Path, auth: dict[str, str]) -> None:
    kept = load_config({"gateway": {"auth": auth}}, env_of(tmp_path)).config.gateway.auth
    assert {"mode": kept.mode, "token": kept.token, "password": kept.password} == {
        "mode": None,
        "token": None,
        "password": None,
    } | auth


@pytest.mark.spec("CFG-3")
@pytest.mark.parametrize(
    ("config", "told"),
    [
        ({"agents": {"lisst": []}}, "lisst"),
        ({"gateway": []}, "gateway"),
        ({"gateway": {"auth": "x"}}, "auth"),
        ({"gateway": {"port": "many"}}, "port"),
    ],
)
def test_what_is_wrong_is_named(tmp_path: Path, config: dict[str, Any], told: str) -> None:
    with pytest.raises(ConfigInvalid, match=told) as refused:
        load_config(config, env_of(tmp_path))
    assert refused.value.fields["problems"]


def test_a_value_that_is_not_json_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ConfigInvalid, match="not made of JSON values"):
        load_config({"agents": {"list": [object()]}}, env_of(tmp_path))


@pytest.mark.spec("CFG-1")
def test_without_a_mapping_it_is_the_file_of_the_command_line(tmp_path: Path) -> None:
    env = env_of(tmp_path)
    first = load_config(None, env)
    path = tmp_path / "state" / "openclaw.json"
    assert (first.path, first.exists) == (path, True)
    assert json.loads(path.read_text())["gateway"]["auth"]["token"] == first.config.gateway.auth.token
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert load_config(None, env).config.gateway.auth.token == first.config.gateway.auth.token


def test_variables_are_taken_from_the_given_environment(tmp_path: Path) -> None:
    env = env_of(tmp_path) | {"SECRET_TOKEN": "from-the-environment"}
    loaded = load_config({"gateway": {"auth": {"token": "${SECRET_TOKEN}"}}}, env)
    assert loaded.config.gateway.auth.token == "from-the-environment"
    assert loaded.referenced_secrets == frozenset({"from-the-environment"})


def test_the_own_address(tmp_path: Path) -> None:
    def address(**gateway: Any) -> tuple[str, str | None, str | None, str | None]:
        found = own_address(load_config({"gateway": gateway}, env_of(tmp_path)).config, 4321)
        return found.url, found.token, found.password, found.dial_host

    url = "ws://127.0.0.1:4321"
    assert address(auth={"token": "tok"}) == (url, "tok", None, None)
    assert address(auth={"password": "pw"}) == (url, None, "pw", None)
    assert address(auth={"mode": "none", "token": "tok"}) == (url, None, None, None)
    bound = address(bind="custom", customBindHost="127.0.0.9", auth={"token": "tok"})
    assert bound == (url, "tok", None, "127.0.0.9")
    shown = repr(own_address(load_config({}, env_of(tmp_path)).config, 4321))
    assert shown == "Address('ws://127.0.0.1:4321')"
