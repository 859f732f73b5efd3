"""Keys of model providers arrive by `doctor`: in the configuration, private, and never on a screen (DB-3)."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest

from tests.integration.conftest import Said
from tests.integration.importing import Place

Json = dict[str, Any]


def put(place: Place, agent_id: str | None, profiles: Json | str) -> str:
    folder = place.state / "agent" if agent_id is None else place.state / "agents" / agent_id / "agent"
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / "auth-profiles.json"
    text = profiles if isinstance(profiles, str) else json.dumps({"version": 1, "profiles": profiles})
    path.write_text(text, encoding="utf-8")
    return str(path)


def key(value: str, provider: str = "anthropic") -> Json:
    return {"type": "api_key", "provider": provider, "key": value}


@pytest.mark.spec("DB-3")
class TestImporting:
    def test_where_there_is_none_yet(self, place: Place, openclaw: Callable[..., Said]) -> None:
        place.state.mkdir(parents=True)
        config = place.state / "openclaw.json"
        config.write_text('{ // mine\n  models: { providers: { openai: { apiKey: "sk-mine" } } } }\n')
        config.chmod(0o644)
        path = put(
            place, "main", {"anthropic:default": key("sk-one"), "openai:default": key("sk-two", "openai")}
        )
        before = (place.state / "agents" / "main" / "agent" / "auth-profiles.json").read_bytes()
        code, out, err = openclaw("doctor", "--import-auth")
        assert code == 0, err
        assert out.splitlines()[0] == "Keys imported: anthropic; there already: 1."
        assert f"{path} was only read" in out and "sk-" not in out + err
        providers = place.loaded.config.models.providers
        assert (providers["anthropic"].api_key, providers["openai"].api_key) == ("sk-one", "sk-mine")
        assert config.stat().st_mode & 0o777 == 0o600 and "// mine" in config.read_text()
        assert (place.state / "agents" / "main" / "agent" / "auth-profiles.json").read_bytes() == before
        again = openclaw("doctor", "--import-auth", "--json")
        assert again[0] == 0
        assert {"imported": [], "already": ["anthropic", "openai"]}.items() <= json.loads(again[1]).items()

    def test_the_default_agents_file_goes_first(self, place: Place, openclaw: Callable[..., Said]) -> None:
        place.state.mkdir(parents=True)
        (place.state / "openclaw.json").write_text('{ agents: { list: [{ id: "zoe", default: true }] } }')
        put(place, "adam", {"a:default": key("sk-adam")})
        put(place, "zoe", {"a:default": key("sk-zoe")})
        put(place, None, {"o:default": key("sk-old", "openai")})
        code, out, err = openclaw("doctor", "--import-auth")
        assert code == 1 and "Keys imported: anthropic, openai" in out
        assert "another file has another key for anthropic" in err and "sk-" not in out + err
        providers = place.loaded.config.models.providers
        assert (providers["anthropic"].api_key, providers["openai"].api_key) == ("sk-zoe", "sk-old")

    def test_what_is_left_out_and_why(self, place: Place, openclaw: Callable[..., Said]) -> None:
        code, _, err = openclaw("doctor", "--import-auth")
        assert code != 0 and "there are no keys to import" in err
        put(place, "main", {"o:1": {"type": "oauth", "provider": "openai"}, "q:1": key("sk-q", "qwen")})
        put(place, "other", "{}")
        code, out, err = openclaw("doctor", "--import-auth")
        assert code == 1 and out.startswith("Keys imported: none")
        assert "a sign-in cannot be carried over" in err and "no provider 'qwen' is configured" in err
        assert "no list of auth profiles" in err and "sk-q" not in out + err
        assert not (place.state / "openclaw.json").exists(), "nothing to write, nothing written"

    def test_several_kinds_in_one_go(self, place: Place, openclaw: Callable[..., Said]) -> None:
        put(place, "main", {"a:1": key("sk-one")})
        (place.state / "cron").mkdir()
        job = {"id": "j", "schedule": {"kind": "every", "everyMs": 60_000},
               "payload": {"kind": "agentTurn", "message": "x"}}  # fmt: skip
        (place.state / "cron" / "jobs.json").write_text(json.dumps([job]))
        (place.state / "tui").mkdir()
        (place.state / "tui" / "last-session.json").write_text("{}")
        code, out, err = openclaw("doctor", "--import-auth", "--import-cron", "--import-tui")
        assert code == 0, err
        assert (
            "Keys imported: anthropic" in out
            and "1 job imported" in out
            and "0 last sessions imported" in out
        )
