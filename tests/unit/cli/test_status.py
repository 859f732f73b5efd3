"""`status`, `health`, `gateway status`: what runs and where it is, also when nothing runs or is valid."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from openclaw import __version__
from openclaw.cli.status import sum_usage
from openclaw.protocol.scopes import READ
from tests.fakes.ports import free_port
from tests.unit.cli.conftest import Command
from tests.unit.cli.fake_gateway import TOKEN, FakeGateway, Json, listing_of, running, session

STORE = "/state/openclaw.sqlite"
HEALTH: Json = {
    "ok": True,
    "durationMs": 3,
    "agents": [{"agentId": "main"}, {"agentId": "work"}],
    "sessions": {"path": STORE, "count": 12},
}
STATUS: Json = {
    "runtimeVersion": "9.9.9",
    "heartbeat": {"defaultAgentId": "main", "agents": []},
    "sessions": {
        "paths": [STORE],
        "count": 12,
        "byAgent": [
            {"agentId": "main", "path": STORE, "count": 11},
            {"agentId": "work", "path": "/state/work.sqlite", "count": 1},
        ],
    },
}
ROWS = [session(f"agent:main:s{number}", number * 60_000) for number in range(12)]


@pytest.fixture
def gateway(point_at: Callable[[FakeGateway], Path]) -> Iterator[FakeGateway]:
    answers = {
        "status": lambda _params: STATUS,
        "health": lambda _params: HEALTH,
        "sessions.list": listing_of(ROWS),
    }
    with running(FakeGateway(answers)) as fake:
        point_at(fake)
        yield fake


@pytest.fixture
def nobody(monkeypatch: pytest.MonkeyPatch) -> str:
    """The URL of a gateway that does not run."""
    port = free_port()
    monkeypatch.setenv("OPENCLAW_GATEWAY_PORT", str(port))
    return f"ws://127.0.0.1:{port}"


@pytest.mark.spec("CLI-1", "OWN-1", "OWN-3")
def test_status_shows_the_store_and_the_recent_sessions(gateway: FakeGateway, command: Command) -> None:
    outcome = command("status")
    assert outcome.code == 0 and outcome.err == ""
    assert f"gateway: running at {gateway.url} (version 9.9.9, up for 3m)" in outcome.out
    assert f"store:   {STORE}\n" in outcome.out
    assert "model:   offline/rules (64k context)" in outcome.out
    listed = [line for line in outcome.out.splitlines() if line.startswith("direct")]
    assert [line.split()[1] for line in listed] == [f"agent:main:s{number}" for number in range(10)]
    assert "6.4k/64k (10%)" in listed[0]
    assert "10 of 12 sessions" in outcome.out
    assert gateway.connects[0].scopes == (READ,)


@pytest.mark.spec("CLI-9")
def test_status_lists_each_agents_store(gateway: FakeGateway, command: Command) -> None:
    out = command("status").out
    assert f"agents:  main, default: 11 sessions in {STORE}" in out
    assert "work: 1 session in /state/work.sqlite" in out


@pytest.mark.spec("CLI-9")
def test_all_shows_more_and_deep_probes_and_usage_sums(
    gateway: FakeGateway, command: Command, write_config: Callable[[str], Path]
) -> None:
    write_config(
        f'{{ gateway: {{ port: {gateway.port}, auth: {{ token: "{TOKEN}" }} }}, plugins: {{ a: 1 }} }}'
    )
    plain = command("status").out
    assert "health:" not in plain and "warning:" not in plain and "Input" not in plain
    everything = command("status", "--all", "--deep", "--usage").out
    assert everything.count("\ndirect ") == 12
    assert "health:  ok (checked in 3 ms)" in everything
    assert "warning:" in everything and "plugins" in everything
    usage = next(line for line in everything.splitlines() if line.startswith("main "))
    assert usage.split() == ["main", "offline/rules", "12", "72k", "4.8k"]
    assert gateway.called("health") == [{"probe": True}]


@pytest.mark.spec("CLI-9", "CLI-1")
def test_status_as_json(gateway: FakeGateway, command: Command) -> None:
    body = command("status", "--json", "--deep", "--usage").json()
    assert body["ok"] is True and body["version"] == __version__
    assert body["gateway"] == {
        "url": gateway.url,
        "reachable": True,
        "version": "9.9.9",
        "uptimeMs": 200_000,
        "error": None,
    }
    assert body["store"] == {"path": STORE}
    assert body["agents"][1] == {
        "agentId": "work",
        "isDefault": False,
        "path": "/state/work.sqlite",
        "count": 1,
    }
    assert body["agents"][0]["isDefault"] is True
    assert body["sessions"]["count"] == 12 and len(body["sessions"]["recent"]) == 10
    assert body["sessions"]["recent"][1]["ageMs"] == 60_000
    assert (body["config"]["valid"], body["health"], body["defaults"]["model"]) == (True, HEALTH, "rules")
    assert body["usage"][0]["sessions"] == 12
    assert "health" not in command("status", "--json").json()


@pytest.mark.spec("CLI-1")
def test_without_a_gateway_status_says_how_to_start_one_and_succeeds(
    nobody: str, command: Command, home: Path
) -> None:
    outcome = command("status")
    assert outcome.code == 0 and outcome.err == ""
    assert "gateway: not running\n" in outcome.out
    assert f"no gateway at {nobody} — start one with `openclaw gateway run`" in outcome.out
    assert f"store:   {home}/.openclaw/openclaw.sqlite" in outcome.out
    assert "not there, defaults apply" in outcome.out
    as_json = command("status", "--json")
    assert as_json.code == 0
    body = as_json.json()
    assert (body["ok"], body["gateway"]["reachable"]) == (False, False)
    assert body["gateway"]["error"]["type"] == "unreachable"
    assert body["sessions"] == {"count": None, "recent": []}
    assert body["store"]["path"] == f"{home}/.openclaw/openclaw.sqlite"


@pytest.mark.spec("OWN-2")
def test_for_a_gateway_elsewhere_no_local_store_is_shown(
    write_config: Callable[[str], Path], command: Command
) -> None:
    write_config('{ gateway: { mode: "remote", remote: { url: "ws://no-such-host.invalid" } } }')
    body = command("status", "--json").json()
    assert body["store"] == {"path": None}
    assert "store:" not in command("status").out
    assert command("status", "--json", "--url", "ws://no-such-host.invalid").json()["store"]["path"] is None


@pytest.mark.spec("CFG-3")
def test_an_invalid_config_is_shown_by_diagnostic_commands_which_still_work(
    gateway: FakeGateway, command: Command, write_config: Callable[[str], Path]
) -> None:
    path = write_config(
        f'{{\n gateway: {{ port: {gateway.port}, auth: {{ token: "{TOKEN}" }} }},\n'
        " nonsense: 1,\n session: { scope: 7 },\n}"
    )
    outcome = command("status")
    assert outcome.code == 0
    assert "gateway: running" in outcome.out
    assert "NOT VALID, 2 problems" in outcome.out
    assert f"{path}:3 — nonsense:" in outcome.out and f"{path}:4 — session.scope:" in outcome.out
    body = command("status", "--json").json()
    assert (body["ok"], body["gateway"]["reachable"], body["config"]["valid"]) == (False, True, False)
    assert [problem["line"] for problem in body["config"]["problems"]] == [3, 4]
    assert command("health").code == 0
    assert command("gateway", "status").code == 0


@pytest.mark.spec("CLI-1")
def test_a_gateway_that_refuses_is_not_called_absent(gateway: FakeGateway, command: Command) -> None:
    outcome = command("status", "--token", "wrong")
    assert outcome.code == 0
    assert "gateway: cannot be asked" in outcome.out
    assert "--token is not its gateway.auth.token" in outcome.out


@pytest.mark.spec("CLI-1")
def test_a_broken_address_is_told_by_status_too(command: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENCLAW_GATEWAY_URL", "nowhere")
    body = command("status", "--json").json()
    assert (body["gateway"]["url"], body["gateway"]["error"]["type"]) == (None, "usage")
    assert "OPENCLAW_GATEWAY_URL" in command("status").out


@pytest.mark.spec("CLI-9")
def test_usage_is_summed_by_agent_and_model_with_the_heaviest_first() -> None:
    rows: list[Json] = [
        {"agentId": "a", "modelProvider": "p", "model": "m", "inputTokens": 1, "outputTokens": 2},
        {"agentId": "b", "modelProvider": "p", "model": "m", "inputTokens": 50},
        {"agentId": "a", "modelProvider": "p", "model": "m", "inputTokens": None, "outputTokens": 4},
        {},
    ]
    assert sum_usage(rows) == [
        {"agentId": "b", "model": "p/m", "sessions": 1, "inputTokens": 50, "outputTokens": 0},
        {"agentId": "a", "model": "p/m", "sessions": 2, "inputTokens": 1, "outputTokens": 6},
        {"agentId": "-", "model": "-/-", "sessions": 1, "inputTokens": 0, "outputTokens": 0},
    ]


@pytest.mark.spec("CLI-1")
def test_a_fresh_gateway_says_how_to_begin(gateway: FakeGateway, command: Command) -> None:
    gateway.answers["sessions.list"] = listing_of([])
    assert 'No sessions yet. Start one with: openclaw agent -m "hello"' in command("status").out


@pytest.mark.spec("CFG-3")
def test_health_prints_the_gateways_own_word(gateway: FakeGateway, command: Command, nobody: str) -> None:
    flags = ("--url", gateway.url, "--token", TOKEN)
    assert command("health", *flags, "--json").json() == HEALTH
    out = command("health", *flags).out
    assert "health:   ok (checked in 3 ms)" in out
    assert "agents:   main, work" in out and "sessions: 12 sessions" in out and STORE in out
    refused = command("health")
    assert refused.code == 1 and nobody in refused.err
    assert command("health", "--json").json()["error"]["type"] == "unreachable"


@pytest.mark.spec("CLI-4")
def test_gateway_status_exits_with_1_when_nobody_answers(
    gateway: FakeGateway, command: Command, nobody: str
) -> None:
    flags = ("--url", gateway.url, "--token", TOKEN)
    body = command("gateway", "status", *flags, "--json").json()
    assert body == {
        "ok": True,
        "url": gateway.url,
        "reachable": True,
        "version": "9.9.9",
        "uptimeMs": 200_000,
        "health": HEALTH,
    }
    out = command("gateway", "status", *flags).out
    assert f"gateway:  running at {gateway.url}" in out and "up for:   3m" in out
    refused = command("gateway", "status")
    assert refused.code == 1 and "openclaw gateway run" in refused.err
    as_json = command("gateway", "status", "--json")
    assert as_json.code == 1
    assert (as_json.json()["reachable"], as_json.json()["url"]) == (False, nobody)
