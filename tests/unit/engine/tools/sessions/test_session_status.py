"""session_status: the card, counters filled from the transcript, and the model of a session."""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable

import pytest

from openclaw.engine.events import SessionChanged
from openclaw.engine.ports import ToolContext, ToolOutcome
from openclaw.engine.tools.sessions.reach import Reach, Reached, Refused
from openclaw.engine.tools.sessions.session_status import Powers, SessionStatusTool
from openclaw.errors import VersionConflict
from tests.unit.engine.tools.sessions.room import NOW, OWN, Json, Room, assistant, text_of, tool_result, user

KID = "agent:bob:kid"
USAGE = {"input": 900, "output": 80, "cacheRead": 60, "cacheWrite": 40, "totalTokens": 1080}


def lines_of(outcome: ToolOutcome) -> dict[str, str]:
    lines = text_of(outcome).splitlines()
    return {"head": lines[0]} | dict(line.split(": ", 1) for line in lines[1:])


async def card(room: Room, **arguments: object) -> dict[str, str]:
    return lines_of(await room.outcome("session_status", dict(arguments)))


@pytest.mark.spec("STAT-1", "STAT-4", "STAT-5")
async def test_the_card_of_the_own_session(room: Room) -> None:
    await room.add(
        OWN, session_started_at=NOW - 125_000, status="running", started_at=NOW - 2000, input_tokens=1200,
        output_tokens=34, total_tokens=8000, total_tokens_fresh=True, context_tokens=32000, cache_read=5,
        cache_write=0, estimated_cost_usd=0.0123, compaction_count=2, thinking_level="high",
    )  # fmt: skip
    await room.say(OWN, user("hello"))
    await room.add(KID, spawned_by=OWN, status="running", label="research")
    await room.add("agent:main:done", parent_session_key=OWN, status="done")
    outcome = await room.outcome("session_status", {})
    shown = lines_of(outcome)
    assert shown["head"].startswith("OpenClaw ")
    assert shown == shown | {
        "Time": "2026-11-15 12:00 UTC",
        "Session": f"{OWN}, started 2 min 5 s ago, 1 messages",
        "Agent": "main; working for 2 s",
        "Model": "fake/one (the default)",
        "Tokens of the last turn": "1,200 in, 34 out",
        "Cache": "5 read, 0 written",
        "Cost of this session": "$0.0123",
        "Context": "8,000/32,000 (25 %); compactions: 2",
        "Thinking": "high, verbose: default; direct",
        "Sub-agents": "1 active of 2: agent:main:done, research",
        "Queue": "0 waiting",
    }
    assert outcome.details == {
        "ok": True, "sessionKey": OWN, "changedModel": False, "model": "one", "modelProvider": "fake",
    }  # fmt: skip
    assert lines_of(await room.outcome("session_status", {"sessionKey": "current"})) == shown


@pytest.mark.spec("STAT-1", "VIS-6")
async def test_another_session_shows_no_children_that_the_caller_may_not_see(room: Room) -> None:
    await room.add(KID, spawned_by=OWN, aborted_last_run=True)
    await room.add("agent:bob:grandkid", spawned_by=KID, label="secret plan")
    outcome = await room.outcome("session_status", {"sessionKey": KID})
    shown = lines_of(outcome)
    assert shown["Sub-agents"] == "none"
    assert shown["Agent"] == "Bob; last run was stopped"
    assert shown["Context"] == "not known of 32,000; compactions: 0"
    assert shown["Cost of this session"] == "not known"
    assert "secret plan" not in text_of(outcome)
    assert outcome.details is not None
    assert outcome.details["sessionKey"] == KID


@pytest.mark.spec("STAT-5", "VIS-4")
async def test_what_is_not_there_or_hidden_is_told(room: Room) -> None:
    await room.add("agent:main:other")
    missing = json.loads(text_of(await room.outcome("session_status", {"sessionKey": "nobody"})))
    assert missing["status"] == "error"
    assert "'nobody'" in missing["error"]
    hidden = json.loads(text_of(await room.outcome("session_status", {"sessionKey": "agent:main:other"})))
    assert hidden["status"] == "forbidden"
    assert "tools.sessions.visibility" in hidden["error"]


# -- counters ----------------------------------------------------------------------------------


@pytest.mark.spec("STAT-2")
async def test_missing_counters_come_from_the_latest_usage_in_the_transcript(room: Room) -> None:
    await room.say(
        OWN,
        assistant("older", usage={**USAGE, "input": 1}),
        assistant("latest", usage=USAGE),
        tool_result("no usage"),
        assistant("empty", usage={"input": 0, "output": 0}),
        assistant("odd", usage="none"),
        user("next"),
    )
    shown = await card(room)
    assert shown["Tokens of the last turn"] == "900 in, 80 out"
    assert shown["Cache"] == "60 read, 40 written"
    assert shown["Context"].startswith("1,000/32,000 (3 %)")


@pytest.mark.spec("STAT-2")
@pytest.mark.parametrize(
    ("live", "tokens", "cache", "context"),
    [
        ({"input_tokens": 7}, "7 in, 80 out", "60 read, 40 written", "1,000/"),
        ({"output_tokens": 7}, "900 in, 7 out", "60 read, 40 written", "1,000/"),
        ({"input_tokens": 0, "output_tokens": 0}, "900 in, 80 out", "60 read, 40 written", "1,000/"),
        ({"cache_read": 3, "cache_write": 4}, "900 in, 80 out", "3 read, 4 written", "1,000/"),
        ({"total_tokens": 9}, "900 in, 80 out", "60 read, 40 written", "9/"),
        ({"total_tokens": 9, "total_tokens_fresh": False}, "900 in, 80 out", "60 read, 40", "not known of"),
        (
            {"input_tokens": 7, "output_tokens": 8, "total_tokens": 9},
            "7 in, 8 out",
            "not known read, not known written",
            "9/",
        ),
    ],
)
async def test_live_values_that_are_not_zero_win(
    room: Room, live: Json, tokens: str, cache: str, context: str
) -> None:
    await room.say(OWN, assistant("latest", usage=USAGE))
    await room.add(OWN, **live)
    shown = await card(room)
    assert shown["Tokens of the last turn"] == tokens
    assert shown["Cache"].startswith(cache)
    assert shown["Context"].startswith(context)


@pytest.mark.spec("STAT-2")
async def test_without_any_usage_nothing_is_made_up(room: Room) -> None:
    await room.say(OWN, user("hello"))
    shown = await card(room)
    assert shown["Tokens of the last turn"] == "not known in, not known out"
    assert shown["Context"] == "not known of 32,000; compactions: 0"


# -- the model ---------------------------------------------------------------------------------


@pytest.mark.spec("STAT-3", "STAT-5")
async def test_a_model_is_set_and_cleared(room: Room) -> None:
    outcome = await room.outcome("session_status", {"model": "fake/two"})
    assert lines_of(outcome)["Model"] == "fake/two (chosen for this session; the default is fake/one)"
    assert outcome.details == {
        "ok": True, "sessionKey": OWN, "changedModel": True, "model": "two", "modelProvider": "fake",
        "modelOverride": "fake/two",
    }  # fmt: skip
    row = await room.store.session(OWN)
    assert row is not None
    assert (row.entry.provider_override, row.entry.model_override) == ("fake", "two")
    assert row.entry.model_override_source == "user"
    assert [type(event) for event in room.events] == [SessionChanged]
    again = await room.outcome("session_status", {"model": "fake/two"})
    assert again.details is not None
    assert again.details["changedModel"] is False
    assert len(room.events) == 1
    cleared = await room.outcome("session_status", {"model": " Default "})
    assert cleared.details == {
        "ok": True, "sessionKey": OWN, "changedModel": True, "model": "one", "modelProvider": "fake",
    }  # fmt: skip
    row = await room.store.session(OWN)
    assert row is not None
    assert (row.entry.provider_override, row.entry.model_override) == (None, None)
    assert row.entry.model_override_source is None
    assert row.entry.live_model_switch_pending is None


@pytest.mark.spec("STAT-3")
async def test_another_session_that_may_be_seen_gets_the_model_and_a_running_one_later(room: Room) -> None:
    await room.add(KID, spawned_by=OWN, status="running", auth_profile_override="p")
    await room.outcome("session_status", {"sessionKey": KID, "model": "fake/two"})
    row = await room.store.session(KID)
    own = await room.store.session(OWN)
    assert row is not None
    assert own is not None
    assert row.entry.model_override == "two"
    assert row.entry.live_model_switch_pending is True
    assert row.entry.auth_profile_override is None
    assert own.entry.model_override is None


@pytest.mark.spec("STAT-5", "TOOL-7")
@pytest.mark.parametrize("model", ["no-such-model", "nobody/x", "fake/", "", "two and a poem"])
async def test_a_model_that_is_not_there_is_an_error_and_changes_nothing(room: Room, model: str) -> None:
    outcome = await room.outcome("session_status", {"model": model})
    answer = json.loads(text_of(outcome))
    assert (outcome.is_error, answer["status"]) == (True, "error")
    assert "model" in answer["error"].lower()
    row = await room.store.session(OWN)
    assert row is not None
    assert row.entry.model_override is None
    assert room.events == []


async def test_a_model_that_is_in_no_list_but_there_can_be_chosen(room: Room) -> None:
    outcome = await room.outcome("session_status", {"model": "offline"})
    assert outcome.details is not None
    assert outcome.details["modelOverride"] == "offline/offline"


class SlowReach(Reach):
    """Between finding a session and changing it, something else happens to it."""

    def __init__(self, room: Room, happens: Callable[[], Awaitable[object]]) -> None:
        super().__init__(room.recall, lambda: room.source.current().keys, room.source.visibility)
        self._happens = happens

    async def resolve(self, reference: str, context: ToolContext) -> Reached | Refused:
        reached = await super().resolve(reference, context)
        await self._happens()
        return reached


@pytest.mark.parametrize("deleted", [True, False])
async def test_a_session_that_was_deleted_or_reset_meanwhile_is_not_touched(
    room: Room, deleted: bool
) -> None:
    async def happens() -> None:
        if deleted:
            await room.store.delete_session(OWN, now_ms=NOW)
        else:
            await room.store.reset_session(OWN, "new", session_id="later", now_ms=NOW)

    powers = Powers(room.source.current, room.source.check_model, room.events.append, "1")
    tool = SessionStatusTool(room.store, room.recall, SlowReach(room, happens), powers)
    with pytest.raises(VersionConflict):
        await tool.call({"model": "fake/two"}, room.context())
    row = await room.store.session(OWN)
    assert (row is None) is deleted
    assert row is None or row.entry.model_override is None
    assert room.events == []


@pytest.mark.spec("VIS-4", "STAT-3")
@pytest.mark.parametrize("sandboxed", [False, True])
async def test_no_model_is_set_where_the_caller_may_not_look(room: Room, sandboxed: bool) -> None:
    await room.add("agent:main:other")
    arguments = {"sessionKey": "agent:main:other", "model": "fake/two"}
    refused = await room.outcome("session_status", arguments, sandboxed=sandboxed)
    assert json.loads(text_of(refused))["status"] == "forbidden"
    row = await room.store.session("agent:main:other")
    assert row is not None
    assert row.entry.model_override is None


async def test_it_runs_alone_because_it_may_change_something(room: Room) -> None:
    assert room.registry.may_run_beside_others("session_status") is False
    for name in ("sessions_list", "sessions_history", "sessions_search", "agents_list"):
        assert room.registry.may_run_beside_others(name) is True
