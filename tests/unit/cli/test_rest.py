"""agents, usage, outbox, explain, system event, security audit: what they ask and what they print."""

from __future__ import annotations

import io
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from openclaw.errors import InvalidRequest
from tests.unit.cli.conftest import Command
from tests.unit.cli.fake_gateway import FakeGateway, running

Json = dict[str, Any]
PointAt = Callable[[FakeGateway], Path]


@pytest.fixture
def against(point_at: PointAt, command: Command) -> Callable[..., Any]:
    """Run one command against a gateway with these answers; the outcome and the gateway."""

    def run(answers: Json, *arguments: str) -> Any:
        with running(FakeGateway({name: _giving(value) for name, value in answers.items()})) as gateway:
            point_at(gateway)
            return command(*arguments), gateway

    return run


def _giving(value: Any) -> Callable[[Json], object]:
    def answer(_params: Json) -> object:
        if isinstance(value, Exception):
            raise value
        return value

    return answer


# -- agents --------------------------------------------------------------------------------------------

AGENTS: Json = {
    "agents.list": {
        "defaultId": "main",
        "agents": [
            {"id": "main", "name": "Main", "workspace": "/w", "model": {"primary": "p/one"}},
            {"id": "bob", "model": "p/two"},
        ],
    },
    "health": {"agents": [{"agentId": "main", "sessions": {"count": 3}}]},
    "config.get": {
        "config": {
            "bindings": [
                {"agentId": "Bob", "match": {"channel": "irc", "peer": {"kind": "group", "id": "#x"}}},
                {"agentId": "main", "match": {"channel": "irc", "guildId": "g", "roles": ["r"]}},
            ]
        }
    },
}


def test_agents_are_listed_with_what_leads_to_them(against: Callable[..., Any]) -> None:
    done, _ = against(AGENTS, "agents", "list")
    assert (done.code, done.err) == (0, "")
    lines = [line.split() for line in done.out.splitlines()]
    assert lines[1:] == [["main*", "p/one", "3", "1", "/w"], ["bob", "p/two", "-", "1", "-"]]
    body = against(AGENTS, "agents", "list", "--json")[0].json()
    assert body["defaultId"] == "main" and body["agents"][0]["bindings"][0]["index"] == 1
    shown, _ = against(AGENTS, "agents", "show", "BOB")
    assert "bindings[0]: irc, group #x" in shown.out and "(the default)" not in shown.out
    main, _ = against(AGENTS, "agents", "show", "main")
    assert "bindings[1]: irc, guildId g, roles r" in main.out and "3 sessions" in main.out
    missing, _ = against(AGENTS, "agents", "show", "carol")
    assert missing.code == 1 and "there are: main, bob" in missing.err


def test_a_gateway_that_hides_its_config_still_lists_agents(against: Callable[..., Any]) -> None:
    answers = AGENTS | {"config.get": InvalidRequest("unknown method: config.get")}
    done, _ = against(answers, "agents", "list")
    assert [line.split()[3] for line in done.out.splitlines()[1:]] == ["-", "-"]
    assert "bindings" not in against(answers, "agents", "show", "main")[0].out


@pytest.mark.spec("OWN-4")
def test_without_a_gateway_the_config_tells_who_there_is(
    command: Command, write_config: Callable[[str], Path]
) -> None:
    write_config(
        '{ gateway: { port: 1 }, agents: { list: [{ id: "bob", model: "offline/offline" }] },'
        ' bindings: [{ agentId: "bob", match: { channel: "irc" } }] }'
    )
    done = command("agents", "list", "--json")
    assert done.code == 0 and "No gateway runs" in done.err
    (row,) = done.json()["agents"]
    assert (row["id"], row["model"], row["sessions"], row["isDefault"]) == (
        "bob",
        "offline/offline",
        None,
        True,
    )
    assert row["bindings"][0]["match"]["channel"] == "irc"


# -- usage ---------------------------------------------------------------------------------------------

DAY: Json = {"date": "2026-11-15", "input": 1500, "output": 20, "cacheRead": 7, "cacheWrite": 1,
             "totalTokens": 1528, "totalCost": 0.5, "missingCostEntries": 0}  # fmt: skip
USAGE: Json = {
    "usage.cost": {
        "daily": [DAY, DAY | {"date": "2026-11-16", "totalCost": 2}],
        "totals": DAY | {"totalCost": 2.5, "missingCostEntries": 2},
    },
    "sessions.usage": {
        "sessions": [
            {"key": "agent:main:a", "usage": {"input": 1, "output": 1, "totalCost": 0}},
            {"key": "agent:main:b", "usage": {"input": 5, "output": 1, "totalCost": 0.25}},
            {"key": "agent:main:c", "usage": None},
        ],
        "totals": {"input": 6, "totalCost": 0.25},
        "aggregates": {
            "byAgent": [{"agentId": "main", "totals": {"input": 6, "totalCost": 0.25}}],
            "byModel": [{"provider": "p", "model": "m", "totals": {"input": 6}}],
        },
    },
}


def test_usage_by_day_has_a_total_and_says_what_has_no_price(against: Callable[..., Any]) -> None:
    done, gateway = against(USAGE, "usage", "--days", "2")
    assert done.code == 0 and gateway.called("usage.cost") == [{"days": 2}]
    lines = [line.split() for line in done.out.splitlines()]
    assert lines[1] == ["2026-11-15", "1.5k", "20", "7", "1.5k", "$0.5000"]
    assert lines[-1] == ["total", "1.5k", "20", "7", "1.5k", "$2.50"]
    assert "2 calls had no known price" in done.err
    body = against(USAGE, "usage", "--json")[0].json()
    assert (body["days"], body["by"], body["rows"][1]["costUsd"]) == (7, "day", 2.0)


def test_usage_by_session_agent_and_model(against: Callable[..., Any]) -> None:
    done, gateway = against(USAGE, "usage", "--by", "session", "--agent", "main", "--json")
    assert [row["name"] for row in done.json()["rows"]] == ["agent:main:b", "agent:main:a"]
    assert gateway.called("sessions.usage") == [
        {"limit": 1000, "startDate": "2026-11-15", "endDate": "2026-11-16", "agentId": "main"}
    ]
    by_model = against(USAGE, "usage", "--by", "model", "--json")[0].json()
    assert [(row["name"], row["totalTokens"]) for row in by_model["rows"]] == [("p/m", 6)]
    assert against(USAGE, "usage", "--by", "agent")[0].out.splitlines()[1].split()[0] == "main"
    assert against(USAGE, "usage", "--agent", "main")[0].code == 2


# -- outbox --------------------------------------------------------------------------------------------

ITEM: Json = {"deliveryNo": 17, "state": "failed", "channel": "irc", "target": "#x\x1b[2J", "sessionKey": "k",
              "createdAt": 1000, "error": "no route", "text": "two\nlines", "attempts": 1}  # fmt: skip


def test_the_outbox_is_listed_and_one_delivery_shown(against: Callable[..., Any]) -> None:
    listed = {"ts": 61_000, "deliveries": [ITEM], "states": {"failed": 1, "sent": 4}, "before": 17}
    done, gateway = against(
        {"outbox.list": listed},
        "outbox",
        "list",
        "--state",
        "failed",
        "--session-key",
        "main",
        "--limit",
        "1",
    )
    assert gateway.called("outbox.list") == [{"limit": 1, "state": "failed", "sessionKey": "main"}]
    assert done.out.splitlines()[1].split() == [
        "17",
        "failed",
        "1m",
        "irc",
        "#x\ufffd[2J",
        "k",
        "no",
        "route",
    ]
    assert done.err == "In the outbox: 4 sent, 1 failed.\nThere are more; raise --limit to see them.\n"
    shown, _ = against({"outbox.get": {"ok": True, "delivery": ITEM}}, "outbox", "show", "17")
    assert "error:    no route" in shown.out and shown.out.endswith("\n\ntwo\nlines\n")
    empty = {"ts": 1, "deliveries": [], "states": {}}
    assert against({"outbox.list": empty}, "outbox", "list")[0].out == "No deliveries.\n"


def test_retry_and_drop_ask_for_one_delivery(
    against: Callable[..., Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sys.stdin", io.StringIO(""))
    answer = {"ok": True, "delivery": ITEM}
    done, gateway = against({"outbox.retry": answer}, "outbox", "retry", "17")
    assert done.out == "Delivery 17 waits to be sent again.\n"
    assert gateway.called("outbox.retry") == [{"deliveryNo": 17}]
    dropped, gateway = against({"outbox.drop": answer}, "outbox", "drop", "17", "--yes")
    assert dropped.out == "Delivery 17 is gone.\n" and gateway.called("outbox.drop") == [{"deliveryNo": 17}]
    unasked, gateway = against({"outbox.drop": answer}, "outbox", "drop", "17")
    assert unasked.code == 130 and gateway.called("outbox.drop") == [], "nobody answers, nothing is dropped"
    as_json, _ = against({"outbox.drop": answer}, "outbox", "drop", "17", "--json")
    assert as_json.json()["delivery"]["deliveryNo"] == 17
    refused, _ = against({"outbox.retry": InvalidRequest("no delivery 9")}, "outbox", "retry", "9")
    assert refused.code == 1 and "no delivery 9" in refused.err


# -- explain, system event, security audit -----------------------------------------------------------------

TOLD: Json = {
    "kind": "route", "answer": "It goes there.", "facts": {},
    "steps": [
        {"question": "bindings[0]", "outcome": "matches", "setting": "bindings[0]", "decided": True},
        {"question": "key", "outcome": "x"},
    ],
    "fix": "change it",
}  # fmt: skip


def test_an_explanation_is_a_short_story(against: Callable[..., Any]) -> None:
    done, gateway = against(
        {"explain": TOLD}, "explain", "route", "--channel", "irc", "--peer", "group:a:b", "--role", "r",
        "--role", "s", "--mentioned", "--thread", "7", "--agent", "bob",
    )  # fmt: skip
    assert gateway.called("explain") == [
        {"kind": "route", "channel": "irc", "peerKind": "group", "peerId": "a:b", "roles": ["r", "s"],
         "mentioned": True, "threadId": "7", "agentId": "bob"}
    ]  # fmt: skip
    assert done.out == (
        "It goes there.\n\n> bindings[0]  matches  [bindings[0]]\n  key          x\n\n"
        "To change it: change it\n"
    )
    for arguments, params in (
        (("reset", "main", "--agent", "bob"), {"kind": "reset", "key": "main", "agentId": "bob"}),
        (("send", "k", "--channel", "irc"), {"kind": "send", "key": "k", "channel": "irc"}),
        (("visibility", "--from", "a", "--to", "b"), {"kind": "visibility", "fromKey": "a", "toKey": "b"}),
    ):
        outcome, gateway = against({"explain": TOLD}, "explain", *arguments, "--json")
        assert outcome.json() == TOLD and gateway.called("explain") == [params]


@pytest.mark.parametrize("peer", ["42", "person:1", "direct:", ""])
def test_a_peer_has_a_kind_and_an_id(command: Command, peer: str) -> None:
    done = command("explain", "route", "--channel", "irc", "--peer", peer)
    assert done.code == 1 and "--peer is KIND:ID" in done.err


@pytest.mark.spec("OWN-4")
def test_without_a_gateway_config_and_store_explain(
    command: Command, write_config: Callable[[str], Path], home: Path
) -> None:
    write_config('{ gateway: { port: 1 }, session: { sendPolicy: { default: "deny" } } }')
    done = command("explain", "send", "main", "--json")
    assert done.code == 0 and done.json()["decidedBy"] == "session.sendPolicy.default"
    assert "No gateway runs" in done.err
    assert not (home / ".openclaw" / "openclaw.sqlite").exists(), "looking makes no file"
    assert command("explain", "reset", "x" * 600).code == 1


@pytest.mark.spec("CLI-7")
def test_a_system_event_names_its_session(against: Callable[..., Any]) -> None:
    done, gateway = against(
        {"wake": {"ok": True}}, "system", "event", "--text", "ping", "--mode", "now", "--session-key",
        "agent:bob:main", "--agent", "bob",
    )  # fmt: skip
    assert done.out == "The agent is told now.\n"
    assert gateway.called("wake") == [
        {"mode": "now", "text": "ping", "sessionKey": "agent:bob:main", "agentId": "bob"}
    ]
    later, gateway = against({"wake": {"ok": True}}, "system", "event", "--text", "ping")
    assert later.out == "The agent is told with its next turn.\n"
    assert gateway.called("wake") == [{"mode": "next-heartbeat", "text": "ping"}]
    blank, gateway = against({"wake": {"ok": True}}, "system", "event", "--text", "  ")
    assert blank.code == 1 and gateway.called("wake") == []


AUDITED: Json = {
    "ok": False, "deep": False, "counts": {"critical": 1, "warn": 0, "info": 0},
    "findings": [
        {"check": "files.mode", "severity": "critical", "detail": "open", "fix": "chmod", "path": "/x"},
        {"check": "files.mode", "severity": "warn", "detail": "closed", "fix": "-", "fixed": True},
    ],
}  # fmt: skip


def test_an_audit_exits_by_what_is_critical(against: Callable[..., Any]) -> None:
    done, gateway = against({"security.audit": AUDITED}, "security", "audit", "--deep")
    assert done.code == 1 and gateway.called("security.audit") == [{"deep": True, "fix": False}]
    assert done.out == (
        "critical  open\n          fix: chmod\nfixed     closed\n\n1 critical.\n"
        "openclaw security audit --fix closes the files.\n"
    )
    well = AUDITED | {"ok": True, "findings": [], "counts": {"critical": 0, "warn": 0, "info": 0}}
    assert against({"security.audit": well}, "security", "audit")[0].out == "Nothing to put right.\n"
    assert against({"security.audit": well}, "security", "audit", "--json")[0].json() == well
