"""`openclaw models`: list, set, test; with keys, local servers and neither."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.fakes.anthropic_server import FakeAnswer, FakeAnthropicServer, Said
from tests.fakes.in_thread import served
from tests.fakes.openai_server import FakeOpenAIServer, FakeReply
from tests.unit.cli.conftest import Command, Outcome

WriteConfig = Callable[[str], Path]
KEY = "sk-ant-api03-0123456789abcdef"
NAMES = ("ANTHROPIC_API_KEY", "ANTHROPIC_OAUTH_TOKEN", "OPENAI_API_KEY", "OPENROUTER_API_KEY", "OLLAMA_HOST")
USAGE = {"prompt_tokens": 12, "completion_tokens": 3, "total_tokens": 15}


@pytest.fixture(autouse=True)
def no_keys(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in NAMES:
        monkeypatch.delenv(name, raising=False)


@pytest.fixture
def ollama(monkeypatch: pytest.MonkeyPatch) -> Iterator[FakeOpenAIServer]:
    """A local server with one model, found through its own variable."""
    with served(FakeOpenAIServer(then=FakeReply(texts=("ok",), usage=USAGE))) as server:
        server.models = {"object": "list", "data": [{"id": "qwen3", "max_model_len": 8192}]}
        monkeypatch.setenv("OLLAMA_HOST", server.base_url)
        yield server


def acme(base_url: str, api: str = "openai-completions") -> str:
    return json.dumps(
        {
            "agents": {"defaults": {"model": "acme/big", "models": {"acme/big": {"alias": "best"}}}},
            "models": {
                "providers": {
                    "acme": {
                        "baseUrl": base_url,
                        "apiKey": KEY,
                        "api": api,
                        "models": [
                            {"id": "big", "contextWindow": 64000, "cost": {"input": 2, "output": 8}},
                            {"id": "small"},
                        ],
                    }
                }
            },
        }
    )


def refused(outcome: Outcome) -> str:
    assert (outcome.code, outcome.out) == (1, "")
    return outcome.err


# -- list ------------------------------------------------------------------------------------------


def test_the_list_names_the_model_in_use_and_whose_money_it_is(
    command: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ANTHROPIC_API_KEY", KEY)
    outcome = command("models", "list", "--no-probe")
    assert outcome.code == 0
    used = [line for line in outcome.out.splitlines() if line.endswith("in use")]
    assert len(used) == 1
    assert used[0].split()[:5] == ["anthropic/claude-sonnet-5-5", "1m", "2", "10", "ANTHROPIC_API_KEY"]
    assert "paid by: the Anthropic account behind ANTHROPIC_API_KEY pays" in outcome.out
    assert "offline/offline" in outcome.out
    assert KEY not in outcome.out + outcome.err


def test_the_list_as_json(command: Command, write_config: WriteConfig, ollama: FakeOpenAIServer) -> None:
    write_config(acme("https://acme.example/v1"))
    outcome = command("models", "list", "--json")
    assert (outcome.code, outcome.err) == (0, "")
    body = outcome.json()
    assert body["ok"] is True
    assert body["default"] == {
        "ref": "acme/big",
        "reason": "configured",
        "payer": "the acme account behind your key pays",
    }
    rows = {row["ref"]: row for row in body["models"]}
    assert list(rows)[:2] == ["acme/big", "acme/small"]
    assert rows["acme/big"] == {
        "ref": "acme/big",
        "provider": "acme",
        "model": "big",
        "alias": "best",
        "api": "openai-completions",
        "contextWindow": 64000,
        "maxTokens": 8192,
        "reasoning": False,
        "images": False,
        "price": {"input": 2.0, "output": 8.0},
        "source": "config",
        "inUse": True,
    }
    assert rows["acme/small"]["price"] == {"input": None, "output": None}
    found = rows["ollama/qwen3"]
    assert (found["source"], found["contextWindow"]) == (ollama.base_url, 8192)
    assert (found["price"]["input"], found["inUse"]) == (0.0, False)
    assert rows["offline/offline"]["source"] == "built in"
    assert KEY not in outcome.out
    assert "ollama/qwen3" not in command("models", "list", "--json", "--no-probe").out


def test_a_local_server_is_used_when_there_is_nothing_else(
    command: Command, ollama: FakeOpenAIServer
) -> None:
    body = command("models", "list", "--json").json()
    # Another server may run on this machine at its usual port; ours comes first.
    assert body["default"]["ref"] == "ollama/qwen3"
    row = next(row for row in body["models"] if row["inUse"])
    assert (row["ref"], row["source"]) == ("ollama/qwen3", ollama.base_url)
    assert ollama.requests == []


def test_a_configured_model_that_nothing_lists_has_a_row_too(
    command: Command, write_config: WriteConfig
) -> None:
    write_config('{ agents: { defaults: { model: "openai/gpt-x", models: { "vllm/y": { alias: "y" } } } } }')
    rows = {row["ref"]: row for row in command("models", "list", "--no-probe", "--json").json()["models"]}
    assert list(rows) == ["vllm/y", "openai/gpt-x", "offline/offline"]
    assert (rows["openai/gpt-x"]["source"], rows["openai/gpt-x"]["inUse"]) == ("config", True)
    write_config('{ agents: { defaults: { model: "offline/offline" } } }')
    (row,) = command("models", "list", "--no-probe", "--json").json()["models"]
    assert (row["source"], row["inUse"]) == ("built in", True)


@pytest.mark.spec("CFG-3")
def test_a_broken_config_is_told_first(command: Command, write_config: WriteConfig) -> None:
    write_config("{ agents: 5 }")
    for arguments in (("list", "--no-probe"), ("set", "offline/offline"), ("test",)):
        assert "agents" in refused(command("models", *arguments))
    assert command("models", "list", "--json").json()["error"]["type"] == "config"


# -- set -------------------------------------------------------------------------------------------


def test_setting_the_model(command: Command, home: Path) -> None:
    outcome = command("models", "set", "anthropic/claude-opus-5-5")
    assert outcome.code == 0
    assert "anthropic/claude-opus-5-5 is now the model of every agent" in outcome.out
    assert "set ANTHROPIC_API_KEY" in outcome.out
    path = home / ".openclaw" / "openclaw.json"
    assert '"anthropic/claude-opus-5-5"' in path.read_text()
    assert path.stat().st_mode & 0o777 == 0o600
    assert command("config", "get", "agents.defaults.model").out == "anthropic/claude-opus-5-5\n"


def test_setting_by_alias_for_one_agent_as_json(command: Command, write_config: WriteConfig) -> None:
    text = acme("https://acme.example/v1").replace('"defaults"', '"list": [{"id": "bob"}], "defaults"')
    path = write_config(text)
    outcome = command("models", "set", "BEST", "--agent", "bob", "--json")
    assert outcome.json() == {"ok": True, "model": "acme/big", "agent": "bob", "path": str(path)}
    assert command("config", "get", "agents.list[0].model").out == "acme/big\n"


@pytest.mark.parametrize(
    ("model", "words"),
    [
        ("gpt", "provider/model"),
        ("nobody/gpt", "unknown model provider 'nobody'"),
        ("acme/none", "configured: big, small"),
        ("acme/\ud800", "not of the form"),
        ("a" * 10_000, "longer than"),
        ("", "not of the form"),
    ],
)
def test_a_model_that_is_not_there_changes_nothing(
    command: Command, write_config: WriteConfig, model: str, words: str
) -> None:
    path = write_config(acme("https://acme.example/v1"))
    before = path.read_text()
    assert words in refused(command("models", "set", model))
    assert command("models", "set", model, "--json").json()["ok"] is False
    assert path.read_text() == before


# -- test ------------------------------------------------------------------------------------------


def test_one_call_tells_time_tokens_and_cost(command: Command, write_config: WriteConfig) -> None:
    with served(FakeOpenAIServer(then=FakeReply(texts=("o", "k"), usage=USAGE))) as server:
        write_config(acme(server.base_url))
        outcome = command("models", "test")
        named = command("models", "test", "best", "--json")
    assert outcome.code == 0
    assert outcome.out.startswith("acme/big answers: ok\n")
    assert "12 in, 3 out" in outcome.out
    assert "$0.000048" in outcome.out
    assert "first word after" in outcome.out
    body = named.json()
    assert (body["ok"], body["model"], body["said"], body["error"]) == (True, "acme/big", "ok", None)
    assert body["usage"]["input"] == 12 and body["usage"]["costUsd"] == pytest.approx(0.000048)
    assert body["tookMs"] >= body["firstMs"] >= 0
    sent = server.requests[0].body
    assert (sent["max_tokens"], len(sent["messages"])) == (1024, 1)


def test_the_other_wire_and_a_server_without_figures(command: Command, write_config: WriteConfig) -> None:
    with served(FakeAnthropicServer(then=FakeAnswer(blocks=(Said(("ok",)),)))) as server:
        write_config(acme(server.base_url, "anthropic-messages"))
        assert "25 in, 15 out" in command("models", "test").out
        assert server.requests[0].headers["x-api-key"] == KEY
    with served(FakeOpenAIServer(then=FakeReply(texts=("ok",)))) as silent:
        write_config(acme(silent.base_url))
        assert "the server does not say" in command("models", "test").out


def test_a_failure_names_the_fix_and_exits_with_1(command: Command, write_config: WriteConfig) -> None:
    body = {"error": {"message": f"Incorrect API key provided: {KEY}"}}
    with served(FakeOpenAIServer(then=FakeReply(status=401, body=body))) as server:
        write_config(acme(server.base_url))
        outcome = command("models", "test")
        as_json = command("models", "test", "--json")
    assert "acme/big: refused the API key" in refused(outcome)
    assert "models.providers.acme.apiKey" in outcome.err
    assert as_json.code == 1
    error = as_json.json()["error"]
    assert (error["type"], error["retryable"]) == ("auth", False)
    assert KEY not in outcome.err + as_json.out


def test_a_server_that_does_not_answer_is_given_up(command: Command, write_config: WriteConfig) -> None:
    with served(FakeOpenAIServer(then=FakeReply(hang_after=-1))) as server:
        write_config(acme(server.base_url))
        outcome = command("models", "test", "--timeout", "300")
        server.release()
    assert "no answer within 0.3 s" in refused(outcome)
    assert "--timeout" in outcome.err


def test_the_built_in_model_can_be_tested_too(command: Command) -> None:
    outcome = command("models", "test", "offline")
    assert outcome.code == 0
    assert outcome.out.startswith("offline/offline answers: ")
