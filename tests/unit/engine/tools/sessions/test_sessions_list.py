"""sessions_list: which rows, in which order, with which fields."""

from __future__ import annotations

import json
from typing import Any

import pytest
from msgspec.structs import replace

from openclaw.domain.entry import DeliveryContext, Origin
from openclaw.engine.tools.sessions.sessions_list import (
    DEFAULT_LIMIT,
    MOST_ROWS,
    ListParameters,
    read_wanted,
)
from tests.unit.engine.tools.sessions.room import (
    NOW,
    OWN,
    Json,
    Room,
    keys_of,
)

MINUTE = 60_000


@pytest.fixture(autouse=True)
def _see_the_agent(room: Room) -> None:
    room.configure(tools={"sessions": {"visibility": "agent"}})


@pytest.mark.spec("LIST-3", "LIST-4", "LIST-6", "KEY-2")
async def test_a_row_has_the_specified_fields(room: Room) -> None:
    route = DeliveryContext("telegram", "@ann", "acc", "7")
    await room.add(
        "agent:main:telegram:group:g1", kind="group", at=NOW + 5, session_id="sid-1", channel="telegram",
        chat_type="group", label="team", display_name="telegram:g-team", delivery_context=route,
        origin=Origin(label="secret name", provider="telegram", account_id="acc", to="hidden"),
        model="two", context_tokens=1000, total_tokens=10, thinking_level="high", verbose_level="on",
        system_sent=True, aborted_last_run=True, send_policy="deny", spawned_by="agent:main:main",
        parent_session_key="agent:main:x", status="done", started_at=1, ended_at=2, runtime_ms=1,
        estimated_cost_usd=0.5, fast_mode=False, reasoning_level="on", elevated_level="ask",
        response_usage="full",
    )  # fmt: skip
    answer = await room.ask("sessions_list", kinds=["group"])
    assert answer == {
        "count": 1,
        "sessions": [
            {
                "key": "agent:main:telegram:group:g1", "agentId": "main", "kind": "group",
                "channel": "telegram", "label": "team", "displayName": "telegram:g-team",
                "updatedAt": NOW + 5, "sessionId": "sid-1", "model": "two", "contextTokens": 1000,
                "totalTokens": 10, "thinkingLevel": "high", "verboseLevel": "on", "systemSent": True,
                "abortedLastRun": True, "sendPolicy": "deny", "lastChannel": "telegram", "lastTo": "@ann",
                "lastAccountId": "acc",
                "deliveryContext": {"channel": "telegram", "to": "@ann", "accountId": "acc", "threadId": "7"},
                "transcriptPath": str(room.home / "state" / "agents" / "main" / "sessions" / "sid-1.jsonl"),
                "spawnedBy": "main", "parentSessionKey": "agent:main:x", "status": "done", "startedAt": 1,
                "endedAt": 2, "runtimeMs": 1, "estimatedCostUsd": 0.5, "fastMode": False,
                "reasoningLevel": "on", "elevatedLevel": "ask", "responseUsage": "full",
                "origin": {"provider": "telegram", "accountId": "acc"},
            }
        ],
    }  # fmt: skip


@pytest.mark.spec("LIST-3")
async def test_an_empty_row_has_the_fields_that_are_always_there(room: Room) -> None:
    # Its id cannot be the name of a file, so it has no path either.
    (row,) = (await room.ask("sessions_list"))["sessions"]
    assert row == {
        "key": OWN, "agentId": "main", "kind": "other", "channel": "unknown", "updatedAt": NOW,
        "sessionId": f"id-of-{OWN}", "model": "one", "contextTokens": 32000, "totalTokens": None,
        "thinkingLevel": None, "verboseLevel": None, "systemSent": False, "abortedLastRun": False,
        "lastChannel": None, "lastTo": None,
    }  # fmt: skip


@pytest.mark.spec("LIST-6", "LIST-7")
@pytest.mark.parametrize(
    ("key", "kind", "fields", "shown"),
    [
        (
            "agent:main:main",
            "main",
            {"delivery_context": DeliveryContext("signal", "+1")},
            ("main", "signal"),
        ),
        ("agent:main:main", "main", {"channel": "webchat"}, ("main", "webchat")),
        (
            "agent:main:discord:group:1",
            "group",
            {"channel": "discord", "delivery_context": DeliveryContext("signal", "+1")},
            ("group", "discord"),
        ),
        ("agent:main:cron:j", "cron", {"channel": "telegram"}, ("cron", "internal")),
        ("agent:main:hook:h", "hook", {"channel": "telegram"}, ("hook", "internal")),
        ("agent:main:node-n", "node", {"channel": "telegram"}, ("node", "internal")),
        ("agent:main:proj", "other", {}, ("other", "unknown")),
        ("agent:main:odd", "something-new", {"channel": "x-connector"}, ("other", "x-connector")),
    ],
)
async def test_kind_and_channel(
    room: Room, key: str, kind: str, fields: Json, shown: tuple[str, str]
) -> None:
    await room.add(key, kind=kind, at=NOW + 1, **fields)
    row = (await room.ask("sessions_list"))["sessions"][0]
    assert (row["kind"], row["channel"]) == shown
    only = await room.ask("sessions_list", kinds=[shown[0]])
    assert row["key"] in keys_of(only)
    others = {"main", "group", "cron", "hook", "node", "other"} - {shown[0]}
    assert row["key"] not in keys_of(await room.ask("sessions_list", kinds=sorted(others)))


@pytest.mark.spec("LIST-1", "LIST-2", "SRCH-1")
async def test_filters(room: Room) -> None:
    await room.add("agent:main:old", at=NOW - 10 * MINUTE, label="Old One")
    await room.add("agent:main:thai", at=NOW - MINUTE, subject="โครงการลับ")
    await room.add("agent:main:es", at=NOW - 2 * MINUTE, display_name="Reunión ÁGIL")

    async def found(**asked: Any) -> list[str]:
        return sorted(keys_of(await room.ask("sessions_list", **asked)))

    everything = await found()
    assert len(everything) == 4
    assert await found(label="Old One") == ["agent:main:old"]
    assert await found(label="old one") == []
    assert await found(activeMinutes=5) == ["agent:main:es", "agent:main:thai", OWN]
    assert await found(activeMinutes=10) == everything
    assert await found(activeMinutes=9) == ["agent:main:es", "agent:main:thai", OWN]
    assert await found(activeMinutes=-3) == ["agent:main:thai", OWN]
    assert await found(activeMinutes=10**30) == everything
    assert await found(search="ลับ") == ["agent:main:thai"]
    assert await found(search="ágil") == ["agent:main:es"]
    assert await found(search="  OLD ") == ["agent:main:old"]
    assert await found(search="id-of-agent:main:es") == ["agent:main:es"]
    assert await found(search="100%") == []
    assert await found(agentId="MAIN") == everything
    assert await found(agentId="bob") == []
    assert await found(kinds=["dragon"]) == everything
    assert await found(kinds=["dragon", "cron"]) == []
    assert await found(label="", search=" ", agentId="") == everything


@pytest.mark.spec("LIST-1")
async def test_filters_hold_in_the_tree_of_other_agents_too(room: Room) -> None:
    room.configure(tools={"sessions": {"visibility": "tree"}})
    await room.add("agent:bob:kid", at=NOW - 9 * MINUTE, spawned_by=OWN, label="Kid", subject="Ägypten")

    async def found(**asked: Any) -> list[str]:
        return sorted(keys_of(await room.ask("sessions_list", **asked)))

    both = ["agent:bob:kid", OWN]
    assert await found() == both
    assert await found(search="ägypt") == await found(label="Kid") == await found(agentId="bob") == both[:1]
    assert await found(search="agent:") == await found(activeMinutes=9) == both
    assert await found(activeMinutes=8) == await found(agentId="main") == [OWN]
    assert await found(kinds=["cron"]) == await found(label="kid") == []


@pytest.mark.spec("LIST-1", "VIS-6")
async def test_newest_first_and_the_limit_counts_visible_rows(room: Room) -> None:
    for number in range(30):
        await room.add(f"agent:main:s{number:02}", at=NOW + number * 2)
        await room.add(f"agent:bob:s{number:02}", at=NOW + number * 2 + 1)
    answer = await room.ask("sessions_list", limit=3)
    assert keys_of(answer) == ["agent:main:s29", "agent:main:s28", "agent:main:s27"]
    assert answer["count"] == 3
    assert len(keys_of(await room.ask("sessions_list", limit=0))) == 1
    assert len(keys_of(await room.ask("sessions_list", limit=500))) == 31
    assert "truncated" not in answer


def test_limits_are_clamped() -> None:
    def limit(value: int) -> int:
        return read_wanted(ListParameters(limit=value), NOW).limit

    assert read_wanted(ListParameters(), NOW).limit == DEFAULT_LIMIT == 100
    assert [limit(value) for value in (-1, 0, 1, 199, 200, 201)] == [1, 1, 1, 199, 200, 200]
    assert MOST_ROWS == 200


@pytest.mark.spec("LIST-8", "KEY-15", "KEY-16")
async def test_reserved_rows_are_hidden_and_global_is_main_where_it_is(room: Room) -> None:
    await room.add("unknown", kind="unknown", at=NOW + 3)
    await room.add("global", kind="global", at=NOW + 2)
    await room.add("agent:main:cron:j:run:x", kind="cron-run", at=NOW + 1)
    await room.add("agent:main:gone", at=NOW + 1, archived_at=NOW)
    assert keys_of(await room.ask("sessions_list")) == [OWN]
    room.configure(session={"scope": "global"}, tools={"sessions": {"visibility": "agent"}})
    answer = await room.ask("sessions_list", "global")
    assert keys_of(answer)[0] == "main"
    assert "global" not in json.dumps([row["key"] for row in answer["sessions"]])
    assert answer["sessions"][0]["kind"] == "main"
    assert len(answer["sessions"]) == 2


@pytest.mark.spec("LIST-4", "VIS-6")
async def test_children_are_named_only_if_they_may_be_seen(room: Room) -> None:
    room.configure(tools={"sessions": {"visibility": "tree"}})
    await room.add("agent:main:kid", spawned_by=OWN, at=NOW + 1)
    await room.add("agent:main:thread", parent_session_key=OWN, at=NOW + 2)
    await room.add("agent:main:grandkid", spawned_by="agent:main:kid", at=NOW + 3)
    await room.add("agent:main:archived", spawned_by=OWN, archived_at=NOW)
    answer = await room.ask("sessions_list")
    assert keys_of(answer) == ["agent:main:thread", "agent:main:kid", OWN]
    assert answer["sessions"][2]["childSessions"] == ["agent:main:thread", "agent:main:kid"]
    assert "childSessions" not in answer["sessions"][1]
    assert "grandkid" not in json.dumps(answer)
    room.configure(tools={"sessions": {"visibility": "agent"}})
    wider = {row["key"]: row for row in (await room.ask("sessions_list"))["sessions"]}
    assert wider["agent:main:kid"]["childSessions"] == ["agent:main:grandkid"]


async def test_a_sandboxed_caller_is_told_no_path_of_the_host(room: Room) -> None:
    (row,) = (await room.ask("sessions_list", sandboxed=True))["sessions"]
    assert "transcriptPath" not in row
    assert str(room.home) not in json.dumps(row)


@pytest.mark.spec("VIS-6")
async def test_an_old_child_is_found_among_thousands_of_newer_rows(
    room: Room, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("openclaw.engine.tools.sessions.sessions_list.PAGE", 5)
    monkeypatch.setattr("openclaw.engine.tools.sessions.sessions_list.MOST_PAGES", 3)
    room.configure(tools={"sessions": {"visibility": "tree"}})
    await room.add("agent:main:kid", at=1, spawned_by=OWN)
    for number in range(40):
        await room.add(f"agent:main:s{number}", at=NOW + number)
    assert keys_of(await room.ask("sessions_list")) == [OWN, "agent:main:kid"]
    for number in range(20):
        await room.add(f"agent:main:kid{number}", at=2 + number, spawned_by=OWN)
    assert await room.ask("sessions_list", label="none") == {"count": 0, "truncated": True, "sessions": []}
    room.configure(tools={"sessions": {"visibility": "agent"}})
    rare = await room.ask("sessions_list", kinds=["cron"])
    assert rare == {"count": 0, "truncated": True, "sessions": []}
    some = await room.ask("sessions_list", limit=12)
    assert keys_of(some)[0] == "agent:main:s39"
    assert (some["count"], "truncated" in some) == (12, False)


def test_wanted_reads_what_was_asked() -> None:
    asked = ListParameters(kinds=(" Cron ", "x"), active_minutes=2, label="l", agent_id=" Bob ", search=" s ")
    wanted = read_wanted(asked, NOW)
    assert (wanted.kinds, wanted.since_ms) == (frozenset({"cron"}), NOW - 2 * MINUTE)
    assert (wanted.label, wanted.agent_id, wanted.search) == ("l", "bob", "s")
    assert replace(wanted, label=None).label is None
