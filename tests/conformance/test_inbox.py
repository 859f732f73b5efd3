"""The inbox: accepted means durable, once, in order, and nothing leaves silently."""

from __future__ import annotations

import asyncio

import msgspec
import pytest

from openclaw.domain.lifecycle import ResetRule, ResetRules
from openclaw.domain.policy import SendMatch, SendPolicy, SendRule
from openclaw.errors import IdempotencyConflict, Overloaded, SendDenied
from openclaw.store import inbox
from openclaw.store.inbox import ExternalId, Known, ResetRulesAt
from openclaw.store.records import QueuedInput, UserInput
from openclaw.store.runs import RunEnd
from openclaw.store.store import Accepted, Store
from tests.conformance.making import (
    DAY,
    MAIN,
    NOON,
    PLAN,
    RESETS,
    begin,
    draft_inputs,
    queue,
    say,
    seed,
    texts,
)

DONE = RunEnd("ok", "stop")


@pytest.mark.spec("DB-15", "ENT-1")
async def test_an_accepted_input_is_there_for_everybody(store: Store) -> None:
    taken = await queue(store, "run-1", "first words")
    assert taken.admission.created
    assert taken.claimed is None
    (waiting,) = await store.queued(MAIN.session_key)
    assert (waiting.run_id, waiting.body.content, waiting.human) == ("run-1", "first words", True)
    row = await store.session(MAIN.session_key)
    assert row is not None
    assert row.entry.session_id == "run-1-window"
    assert row.entry.updated_at == NOON
    assert row.entry.last_interaction_at == NOON


@pytest.mark.spec("DB-15", "QUE-8")
async def test_accept_and_claim_are_one_commit_on_an_idle_session(store: Store) -> None:
    claimed = await begin(store, "run-1", "hello")
    assert claimed.run.run_id == "run-1"
    assert texts(claimed.entries) == ["hello"]
    assert await store.queued(MAIN.session_key) == ()
    known = await store.input_state("run-1")
    assert known == Known("run-1", MAIN.session_key, "consumed", "run-1")


async def test_a_busy_session_queues(store: Store) -> None:
    await begin(store, "run-1")
    second = await store.accept(
        say("run-2", "later"), RESETS, session_id="x", now_ms=NOON + 1, start=PLAN, draft_inputs=draft_inputs
    )
    assert isinstance(second, Accepted)
    assert second.claimed is None
    assert [item.run_id for item in await store.queued(MAIN.session_key)] == ["run-2"]


async def test_what_waited_first_is_not_overtaken(store: Store) -> None:
    await queue(store, "run-1")
    second = await store.accept(
        say("run-2"), RESETS, session_id="x", now_ms=NOON, start=PLAN, draft_inputs=draft_inputs
    )
    assert isinstance(second, Accepted)
    assert second.claimed is None
    assert [item.run_id for item in await store.queued(MAIN.session_key)] == ["run-1", "run-2"]


async def test_the_same_key_again_stores_nothing(store: Store) -> None:
    await begin(store, "run-1", "hello")
    again = await store.accept(say("run-1", "hello"), RESETS, session_id="other", now_ms=NOON + 5)
    assert again == Known("run-1", MAIN.session_key, "consumed", "run-1")
    page = await store.history(MAIN.session_key, 10)
    assert page is not None
    assert texts(page.entries) == ["hello"]
    assert page.session.entry.session_id == "run-1-window"


@pytest.mark.parametrize("other", [say("run-1", "other words"), say("run-1", "hello", to=seed("elsewhere"))])
async def test_the_same_key_for_something_else_is_refused(store: Store, other: inbox.NewInput) -> None:
    await queue(store, "run-1", "hello")
    with pytest.raises(IdempotencyConflict, match="idempotency key already used"):
        await store.accept(other, RESETS, session_id="x", now_ms=NOON)
    assert await store.session("agent:main:elsewhere") is None


@pytest.mark.spec("ROUTE-4")
async def test_a_platform_message_is_taken_once(store: Store) -> None:
    external = ExternalId("telegram", "bot", "chat-1", "77")
    first = await store.accept(say("run-1", external=external), RESETS, session_id="a", now_ms=NOON)
    assert isinstance(first, Accepted)
    again = await store.accept(say("run-2", external=external), RESETS, session_id="b", now_ms=NOON)
    assert again == Known("run-1", MAIN.session_key, "queued", None)
    for other in (
        ExternalId("telegram", "bot", "chat-2", "77"),
        ExternalId("telegram", "bot", "chat-1", "78"),
        ExternalId("telegram", "other", "chat-1", "77"),
        ExternalId("signal", "bot", "chat-1", "77"),
    ):
        taken = await store.accept(say(f"run-{other}", external=other), RESETS, session_id="c", now_ms=NOON)
        assert isinstance(taken, Accepted)
    assert len(await store.queued(MAIN.session_key)) == 5


async def test_many_callers_keep_the_order_of_admission(store: Store) -> None:
    await asyncio.gather(*(queue(store, f"run-{n:03d}") for n in range(60)))
    waiting = await store.queued(MAIN.session_key)
    assert len(waiting) == 60
    admissions = [item.admission for item in waiting]
    assert admissions == sorted(admissions)
    assert len(set(admissions)) == 60


@pytest.mark.spec("QUE-6")
async def test_cancel_one(store: Store) -> None:
    await queue(store, "run-1")
    await queue(store, "run-2")
    assert await store.cancel(MAIN.session_key, "run-1") == ("run-1",)
    assert await store.cancel(MAIN.session_key, "run-1") == ()
    assert await store.cancel("agent:main:other", "run-2") == ()
    assert [item.run_id for item in await store.queued(MAIN.session_key)] == ["run-2"]
    assert (await store.input_state("run-1")) == Known("run-1", MAIN.session_key, "cancelled", None)


@pytest.mark.spec("QUE-7")
async def test_cancel_all_clears_one_session_only(store: Store) -> None:
    await queue(store, "run-1")
    await queue(store, "run-2")
    await queue(store, "run-3", to=seed("other"))
    assert sorted(await store.cancel(MAIN.session_key)) == ["run-1", "run-2"]
    assert await store.queued(MAIN.session_key) == ()
    assert [item.run_id for item in await store.queued("agent:main:other")] == ["run-3"]


async def test_a_full_queue_refuses_and_stores_nothing(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(inbox, "MAX_QUEUED", 3)
    for n in range(3):
        await queue(store, f"run-{n}")
    with pytest.raises(Overloaded, match="3 inputs already wait"):
        await queue(store, "run-4")
    assert await store.input_state("run-4") is None
    assert len(await store.queued(MAIN.session_key)) == 3


@pytest.mark.spec("SEND-5", "SEND-8")
async def test_a_denied_session_stores_nothing(store: Store) -> None:
    policy = SendPolicy((SendRule("deny", SendMatch(key_prefix="cron:")),))
    cron = seed("cron:job", kind="cron")
    with pytest.raises(SendDenied, match="send blocked by session policy"):
        await store.accept(say("run-1", to=cron, send_policy=policy), RESETS, session_id="a", now_ms=NOON)
    assert await store.session(cron.session_key) is None
    assert await store.input_state("run-1") is None
    allowed = await store.accept(say("run-2", send_policy=policy), RESETS, session_id="a", now_ms=NOON)
    assert isinstance(allowed, Accepted)


@pytest.mark.spec("SEND-4")
async def test_the_override_of_a_session_decides_first(store: Store) -> None:
    await queue(store, "run-1")
    await store.edit_session(
        MAIN, lambda entry: msgspec.structs.replace(entry, send_policy="deny"), session_id="x", now_ms=NOON
    )
    with pytest.raises(SendDenied):
        await queue(store, "run-2")
    await store.edit_session(
        MAIN, lambda entry: msgspec.structs.replace(entry, send_policy=None), session_id="x", now_ms=NOON
    )
    await queue(store, "run-3")


@pytest.mark.spec("LIFE-1", "LIFE-2", "LIFE-5")
async def test_the_daily_boundary_rotates_on_the_next_message(store: Store) -> None:
    first = await begin(store, "run-1", at=NOON)
    await store.finish(first.run, (), DONE, now_ms=NOON)
    same_day = await queue(store, "run-2", at=NOON + 3600_000)
    assert same_day.admission.rotation is None
    await store.cancel(MAIN.session_key)
    next_day = await queue(store, "run-3", "good morning", at=NOON + DAY)
    rotation = next_day.admission.rotation
    assert rotation is not None
    assert (rotation.reason, rotation.previous_session_id, rotation.session_id) == (
        "daily",
        "run-1-window",
        "run-3-window",
    )
    page = await store.history(MAIN.session_key, 10)
    assert page is not None
    assert page.entries == ()
    assert [item.run_id for item in page.pending] == ["run-3"]
    assert [window.end_reason for window in await store.windows_of(MAIN.session_key)] == [None, "daily"]


@pytest.mark.spec("LIFE-3", "LIFE-8")
async def test_reset_rules_come_from_the_columns(store: Store) -> None:
    rules = ResetRules(by_channel={"discord": ResetRule(mode="idle", idle_minutes=30)})
    resets = ResetRulesAt(rules, RESETS.zone)
    group = seed("discord:group:g", session_type="group", channel="discord", chat_type="group")
    first = await store.accept(say("run-1", to=group), resets, session_id="a", now_ms=NOON)
    assert isinstance(first, Accepted)
    await store.cancel(group.session_key)
    late = await store.accept(say("run-2", to=group), resets, session_id="b", now_ms=NOON + 30 * 60_000 + 1)
    assert isinstance(late, Accepted)
    assert late.admission.rotation is not None
    assert late.admission.rotation.reason == "idle"


@pytest.mark.spec("LIFE-12")
async def test_a_session_with_work_is_not_rotated(store: Store) -> None:
    running = await begin(store, "run-1", at=NOON)
    while_running = await queue(store, "run-2", at=NOON + 3 * DAY)
    assert while_running.admission.rotation is None
    await store.finish(running.run, (), DONE, now_ms=NOON + 3 * DAY)
    while_waiting = await queue(store, "run-3", at=NOON + 9 * DAY)
    assert while_waiting.admission.rotation is None


@pytest.mark.spec("LIFE-12")
async def test_only_people_refresh_a_session(store: Store) -> None:
    await queue(store, "run-1", at=NOON)
    await store.cancel(MAIN.session_key)
    heartbeat = await store.accept(
        say("run-2", source="heartbeat"), RESETS, session_id="b", now_ms=NOON + 2 * DAY
    )
    assert isinstance(heartbeat, Accepted)
    assert heartbeat.admission.rotation is None
    row = await store.session(MAIN.session_key)
    assert row is not None
    assert row.entry.last_interaction_at == NOON
    assert row.entry.updated_at == NOON + 2 * DAY


@pytest.mark.spec("LIFE-13", "LIFE-22")
async def test_an_explicit_reset_takes_its_own_message_and_no_queue(store: Store) -> None:
    await queue(store, "run-1", "old words")
    taken = await store.accept(
        say("run-2", "first of the new one", reset="new"),
        RESETS,
        session_id="new-window",
        now_ms=NOON + 1,
        start=PLAN,
        draft_inputs=draft_inputs,
    )
    assert isinstance(taken, Accepted)
    assert taken.admission.rotation is not None
    assert taken.admission.rotation.reason == "new"
    assert taken.claimed is not None
    assert texts(taken.claimed.entries) == ["first of the new one"]
    assert taken.claimed.session.entry.session_id == "new-window"
    assert (await store.input_state("run-1")) == Known("run-1", MAIN.session_key, "cancelled", None)


async def test_the_body_comes_back_as_it_went_in(store: Store) -> None:
    body = UserInput(
        "täxt \u0e44\u0e17\u0e22 \U0001f600", NOON, thinking="low", queue_mode="collect", deliver=True
    )
    await store.accept(msgspec.structs.replace(say("run-1"), body=body), RESETS, session_id="a", now_ms=NOON)
    (waiting,) = await store.queued(MAIN.session_key)
    assert waiting.body == body


@pytest.mark.spec("QUE-8")
async def test_a_waiting_input_comes_back_whole(store: Store) -> None:
    new = msgspec.structs.replace(say("run-1", source="heartbeat"), principal="someone", expires_at=NOON + 9)
    taken = await store.accept(new, RESETS, session_id="a", now_ms=NOON + 3)
    assert isinstance(taken, Accepted)
    (waiting,) = await store.queued(MAIN.session_key)
    assert waiting == QueuedInput(
        taken.admission.admission,
        "run-1",
        MAIN.session_key,
        "heartbeat",
        "someone",
        False,
        NOON + 3,
        NOON + 9,
        new.body,
    )


@pytest.mark.spec("QUE-8", "REST-2")
async def test_waking_is_a_query_oldest_first(store: Store) -> None:
    for number, name in enumerate(("b", "a", "b", "c")):
        await queue(store, f"run-{number}", to=seed(name))
    await store.cancel("agent:main:c")
    assert (await store.unfinished()).waiting == ("agent:main:b", "agent:main:a")


async def test_fingerprints_tell_key_and_text_apart() -> None:
    same = inbox.fingerprint(say("run-1", "hello"))
    assert same == inbox.fingerprint(say("run-2", "hello"))
    assert len(same) == 32
    others = [say("r", "hello "), say("r", "Hello"), say("r", "hello", to=seed("x"))]
    assert len({same, *map(inbox.fingerprint, others)}) == 4
