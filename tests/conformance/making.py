"""Inputs, drafts and plans for store tests: short, and explicit where a test cares."""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import Awaitable, Callable, Iterable
from typing import Any, TypeVar
from zoneinfo import ZoneInfo

import msgspec

from openclaw.domain.lifecycle import ResetRules, TurnSource
from openclaw.domain.policy import SendPolicy
from openclaw.domain.searchtext import index_text
from openclaw.domain.transcript import UserMessage, encode
from openclaw.store.database import Database, Row
from openclaw.store.inbox import ExternalId, NewInput, ResetRulesAt
from openclaw.store.records import EntryDraft, QueuedInput, SessionRow, SessionSeed, StoredEntry, UserInput
from openclaw.store.runs import Claimed, Finished, RunEnd, RunPlan
from openclaw.store.sqlite import SqliteDatabase
from openclaw.store.store import Accepted, Store

DAY = 24 * 3600 * 1000
NOON = 1_794_744_000_000  # 2026-11-15 12:00 UTC
RESETS = ResetRulesAt(ResetRules(), ZoneInfo("UTC"))
PLAN = RunPlan("turn", "main", "owner-1")
MAIN = SessionSeed("agent:main:main", "main", "main", chat_type="direct")
DONE = RunEnd("ok", "stop")

_numbers = itertools.count(1)
_Outcome = TypeVar("_Outcome")


def unique_name() -> str:
    return f"memory-{next(_numbers)}"


def in_memory(scenario: Callable[[Store, SqliteDatabase], Awaitable[_Outcome]]) -> _Outcome:
    """Play a scenario on a fresh store: for property tests, where every example starts from nothing."""

    async def play() -> _Outcome:
        database = await SqliteDatabase.open_memory(unique_name(), readers=1)
        try:
            return await scenario(Store(database), database)
        finally:
            await database.close()

    return asyncio.run(play())


def seed(name: str, agent_id: str = "main", **fields: object) -> SessionSeed:
    made = SessionSeed(f"agent:{agent_id}:{name}", agent_id)
    return msgspec.structs.replace(made, **fields)


def say(
    run_id: str,
    text: str = "hello",
    *,
    to: SessionSeed = MAIN,
    source: TurnSource = "cli",
    external: ExternalId | None = None,
    reset: str | None = None,
    send_policy: SendPolicy | None = None,
) -> NewInput:
    made = NewInput(
        run_id, to, source, "operator", UserInput(text, NOON), external=external, send_policy=send_policy
    )
    return msgspec.structs.replace(made, reset=reset)


def note(text: str, role: str = "user", run_id: str | None = None) -> EntryDraft:
    body = encode({"role": role, "content": text, "timestamp": NOON})
    return EntryDraft("message", body, role, run_id=run_id, text=text, words=index_text(text))


def draft_inputs(_session: SessionRow | None, inputs: tuple[QueuedInput, ...]) -> list[EntryDraft]:
    return [draft_one(queued) for queued in inputs]


def draft_one(queued: QueuedInput) -> EntryDraft:
    content = queued.body.content
    assert isinstance(content, str)
    body = encode(UserMessage(content, queued.body.timestamp))
    return EntryDraft("message", body, "user", run_id=queued.run_id, text=content, words=index_text(content))


async def begin(
    store: Store, run_id: str, text: str = "hello", *, to: SessionSeed = MAIN, at: int = NOON
) -> Claimed:
    """Accept an input and start its run in one commit."""
    taken = await store.accept(
        say(run_id, text, to=to),
        RESETS,
        session_id=f"{run_id}-window",
        now_ms=at,
        start=PLAN,
        draft_inputs=draft_inputs,
    )
    assert isinstance(taken, Accepted)
    assert taken.claimed is not None
    return taken.claimed


async def queue(
    store: Store, run_id: str, text: str = "hello", *, to: SessionSeed = MAIN, at: int = NOON
) -> Accepted:
    """Accept an input without starting anything."""
    taken = await store.accept(say(run_id, text, to=to), RESETS, session_id=f"{run_id}-window", now_ms=at)
    assert isinstance(taken, Accepted)
    return taken


async def turn(
    store: Store, run_id: str, text: str = "hello", *, to: SessionSeed = MAIN, at: int = NOON
) -> Finished:
    """A whole turn: the input, its run, and the reply `re: <text>`."""
    claimed = await begin(store, run_id, text, to=to, at=at)
    reply = note(f"re: {text}", "assistant", run_id)
    return await store.finish(claimed.run, (reply,), DONE, now_ms=at)


async def create(store: Store, made: SessionSeed, *, at: int = NOON, **fields: Any) -> SessionRow:
    """A session with these entry fields."""
    row, _ = await store.edit_session(
        made,
        lambda entry: msgspec.structs.replace(entry, **fields),
        session_id=f"{made.session_key}-window",
        now_ms=at,
    )
    return row


async def present(store: Store, session_key: str = MAIN.session_key) -> SessionRow:
    """The session that must be there."""
    row = await store.session(session_key)
    assert row is not None
    return row


def numbered(sql: str) -> str:
    """The statement with `$1`, `$2`, … in the places of `?`, which not every database knows."""
    first, *rest = sql.split("?")
    return first + "".join(f"${number}{part}" for number, part in enumerate(rest, 1))


async def select(database: Database, sql: str, *params: Any) -> list[Row]:
    """Rows of a plain query, for looking behind the verbs."""
    return await database.read(lambda tx: tx.rows(numbered(sql), params))


async def execute(database: Database, sql: str, *params: Any) -> None:
    """A plain statement, for breaking what the verbs would never break."""
    await database.write(lambda tx: tx.run(numbered(sql), params))


def texts(entries: Iterable[StoredEntry]) -> list[str]:
    """What was said, from stored entries."""
    return [msgspec.json.decode(entry.body)["content"] for entry in entries]
