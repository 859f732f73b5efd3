"""`openclaw sessions`: everything of everybody as JSON, a page of it as a table."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from openclaw.protocol.scopes import READ
from tests.fakes.ports import free_port
from tests.unit.cli.conftest import Command
from tests.unit.cli.fake_gateway import FakeGateway, Json, listing_of, running, session

MINUTE = 60_000


@pytest.fixture
def gateway(point_at: Callable[[FakeGateway], Path]) -> Iterator[FakeGateway]:
    with running(FakeGateway({"sessions.list": listing_of([])})) as fake:
        point_at(fake)
        yield fake


def many(count: int) -> list[Json]:
    return [session(f"agent:a{number % 3}:s{number}", number * 1000) for number in range(count)]


@pytest.mark.spec("CLI-2", "OWN-1")
def test_json_holds_every_entry_of_every_agent_without_a_cap(gateway: FakeGateway, command: Command) -> None:
    rows = many(2345)
    gateway.answers["sessions.list"] = listing_of(rows)
    outcome = command("sessions", "--json")
    assert outcome.code == 0 and outcome.err == ""
    body = outcome.json()
    assert [row["key"] for row in body["sessions"]] == [row["key"] for row in rows]
    assert (body["count"], body["totalCount"], body["hasMore"]) == (2345, 2345, False)
    assert (body["limitApplied"], body["activeMinutes"]) == (None, None)
    asked = gateway.called("sessions.list")
    assert [(params["limit"], params["offset"]) for params in asked] == [
        (1000, 0),
        (1000, 1000),
        (1000, 2000),
    ]
    for params in asked:
        assert "agentId" not in params and "activeMinutes" not in params
        assert params["includeGlobal"] and params["includeUnknown"] and params["archived"] is False
    assert gateway.connects[0].scopes == (READ,)


@pytest.mark.spec("CLI-3", "OWN-3")
def test_json_has_stable_keys_and_the_counts_of_the_entry(gateway: FakeGateway, command: Command) -> None:
    bare: Json = {"key": "global", "kind": "global", "agentId": "main"}
    rows = [session("agent:main:main", 90 * MINUTE, label="Plans", thinkingLevel="low"), bare]
    gateway.answers["sessions.list"] = listing_of(rows)
    body = command("sessions", "--json").json()
    assert list(body) == [
        "path",
        "count",
        "totalCount",
        "limitApplied",
        "hasMore",
        "activeMinutes",
        "sessions",
    ]
    assert body["path"] == "/state/openclaw.sqlite"
    first, second = body["sessions"]
    promised = [
        "key",
        "agentId",
        "kind",
        "updatedAt",
        "ageMs",
        "sessionId",
        "model",
        "modelProvider",
        "inputTokens",
        "outputTokens",
        "totalTokens",
        "contextTokens",
        "thinkingLevel",
    ]
    assert list(first)[: len(promised)] == promised
    assert list(second) == promised
    assert (first["ageMs"], first["thinkingLevel"], first["label"]) == (90 * MINUTE, "low", "Plans")
    assert (first["inputTokens"], first["outputTokens"]) == (6_000, 400)
    assert (first["totalTokens"], first["contextTokens"]) == (6_400, 64_000)
    assert [second[name] for name in ("updatedAt", "ageMs", "sessionId", "totalTokens")] == [None] * 4


@pytest.mark.spec("CLI-3")
def test_filters_go_to_the_gateway(gateway: FakeGateway, command: Command) -> None:
    gateway.answers["sessions.list"] = listing_of(many(3))
    arguments = ("--active", "15", "--agent", "work", "--search", "plan", "--limit", "2")
    body = command("sessions", "--json", *arguments).json()
    (asked,) = gateway.called("sessions.list")
    assert (asked["activeMinutes"], asked["agentId"], asked["search"], asked["limit"]) == (
        15,
        "work",
        "plan",
        2,
    )
    assert (body["activeMinutes"], body["limitApplied"], body["count"]) == (15, 2, 2)
    assert (body["totalCount"], body["hasMore"]) == (3, True)
    assert command("sessions", "--json", "--all-agents").json()["allAgents"] is True


@pytest.mark.spec("CLI-3")
@pytest.mark.parametrize("active", ["0", "-5", "1.5", "abc", "", "٣", "9" * 400])
def test_active_must_be_a_positive_whole_number(active: str, command: Command) -> None:
    outcome = command("sessions", f"--active={active}")
    assert (outcome.code, outcome.out) == (1, "")
    assert "--active takes a positive whole number of minutes" in outcome.err
    as_json = command("sessions", "--json", f"--active={active}")
    assert as_json.code == 1 and as_json.json()["error"]["type"] == "usage"


@pytest.mark.spec("CLI-3")
def test_other_impossible_wishes_are_refused(command: Command) -> None:
    for limit in ("0", "-1", "some"):
        outcome = command("sessions", f"--limit={limit}")
        assert outcome.code == 1 and "--limit" in outcome.err
    both = command("sessions", "--agent", "main", "--all-agents")
    assert both.code == 1 and "--all-agents" in both.err


@pytest.mark.spec("CLI-2", "CLI-3")
def test_the_table_pages_at_a_hundred_and_says_so(gateway: FakeGateway, command: Command) -> None:
    gateway.answers["sessions.list"] = listing_of(many(250))
    lines = command("sessions").out.splitlines()
    assert lines[0].split() == ["Kind", "Key", "Age", "Model", "Tokens", "(ctx", "%)", "Flags"]
    assert len([line for line in lines if " agent:a" in line]) == 100
    assert lines[-1] == "100 sessions of 250, newest first. See more with --limit N or --limit all."
    everything = command("sessions", "--limit", "all").out
    assert everything.count(" agent:a") == 250
    assert everything.endswith("250 sessions in /state/openclaw.sqlite\n")
    assert command("sessions", "--limit", "120").out.count(" agent:a") == 120


@pytest.mark.spec("CLI-3", "OWN-3")
def test_a_row_of_the_table(gateway: FakeGateway, command: Command) -> None:
    rows = [
        session("agent:main:main", 3 * MINUTE, hasActiveRun=True, pinned=True, thinkingLevel="high"),
        session(
            "agent:main:" + "x" * 150,
            125 * MINUTE,
            totalTokensFresh=False,
            kind="group",
            abortedLastRun=True,
            sendPolicy="deny",
            verboseLevel="on",
            modelProvider=None,
        ),
        {"key": "unknown"},
    ]
    gateway.answers["sessions.list"] = listing_of(rows)
    _, main, group, unknown, *_ = command("sessions").out.splitlines()
    assert main.split() == [
        "direct",
        "agent:main:main",
        "3m",
        "offline/rules",
        "6.4k/64k",
        "(10%)",
        "running",
        "pinned",
        "think:high",
    ]
    assert group.split()[:5] == ["group", "agent:main:" + "x" * 150, "2h", "rules", "~6.4k/64k"]
    assert group.endswith("aborted deny-send verbose:on")
    assert unknown.split() == ["-", "unknown", "-", "-", "-"]


@pytest.mark.spec("CLI-3")
def test_verbose_adds_titles_and_ids_and_hostile_text_stays_in_its_cell(
    gateway: FakeGateway, command: Command
) -> None:
    row = session("agent:main:main", derivedTitle="[bold]two\nlines\x1b[31m")
    gateway.answers["sessions.list"] = listing_of([row])
    out = command("sessions", "--verbose").out
    assert "[bold]two lines�[31m  id-of-agent:main:main" in out
    assert "\x1b" not in out
    assert gateway.called("sessions.list")[0]["includeDerivedTitles"] is True


@pytest.mark.spec("CLI-3")
def test_an_empty_list_says_what_to_do(gateway: FakeGateway, command: Command) -> None:
    assert "openclaw agent -m" in command("sessions").out
    assert command("sessions", "--search", "nothing").out == "No session matches.\n"
    assert command("sessions", "--json").json()["sessions"] == []


@pytest.mark.spec("CLI-2")
def test_a_session_that_moves_up_between_two_pages_is_not_missed(
    gateway: FakeGateway, command: Command
) -> None:
    rows = many(1500)
    late = rows[1400]["key"]

    def answer(params: Json) -> Json:
        page = listing_of(rows)(params)
        if params["offset"] == 0 and rows[0]["key"] != late:
            rows.insert(0, rows.pop(1400) | {"updatedAt": rows[0]["updatedAt"] + 5})
        return page

    gateway.answers["sessions.list"] = answer
    body = command("sessions", "--json").json()
    keys = [row["key"] for row in body["sessions"]]
    assert len(keys) == len(set(keys)) == 1500
    assert keys[0] == late


@pytest.mark.spec("CLI-2")
def test_a_count_that_is_never_reached_does_not_read_for_ever(gateway: FakeGateway, command: Command) -> None:
    def answer(params: Json) -> Json:
        page = listing_of(many(2))(params)
        return page | {"totalCount": 5, "hasMore": False}

    gateway.answers["sessions.list"] = answer
    body = command("sessions", "--json").json()
    assert (body["count"], body["totalCount"], body["hasMore"]) == (2, 5, True)
    assert len(gateway.called("sessions.list")) == 3


@pytest.mark.spec("OWN-1")
def test_without_a_gateway_nothing_is_listed_from_files(
    command: Command, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    port = free_port()
    monkeypatch.setenv("OPENCLAW_GATEWAY_PORT", str(port))
    state = home / ".openclaw"
    state.mkdir()
    (state / "openclaw.sqlite").write_bytes(b"not to be read")
    outcome = command("sessions")
    assert (outcome.code, outcome.out) == (1, "")
    assert f"no gateway at ws://127.0.0.1:{port} — start one with `openclaw gateway run`" in outcome.err
