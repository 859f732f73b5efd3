"""The registry of sub-agents as units of work: begin a child, see it through, settle it once.

Beginning a child is one commit with the tool result that tells of it; settling it is
one commit with the completion in the requester's inbox. So no child is lost, none is
announced twice, and waking a requester is a query (ANN-8, REST-4).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal

import msgspec
from msgspec import Struct

from openclaw.domain.announce import OutcomeWord
from openclaw.domain.entry import DeliveryContext, SessionEntry
from openclaw.domain.spawnfiles import SpawnFile
from openclaw.errors import OpenClawError
from openclaw.store import attachments, forking, inbox, sessions, transcript
from openclaw.store.database import Database, Row, Transaction
from openclaw.store.inbox import NewInput
from openclaw.store.records import SessionRow, SessionSeed
from openclaw.store.statements import load_statements

SQL = load_statements("spawns.sql")
_LOOKED_BACK = 50
SpawnState = Literal["active", "settled", "archived"]


class SpawnBody(Struct, frozen=True, rename="camel", omit_defaults=True):
    """What a spawn was asked to be, and how it ended once it has."""

    task: str
    label: str | None = None
    task_name: str | None = None
    cleanup: str = "keep"
    announce_timeout_ms: int = 120_000
    route: DeliveryContext | None = None
    # Files that came with the task stay until the child is archived.
    retain_files: bool = False
    # A thread that was opened for the task alone is free again when it is done.
    unbind_when_done: bool = False
    # How the task itself ended, and what it said, while the announce turn is under way.
    status: OutcomeWord | None = None
    error: str | None = None
    result: str = ""


class SpawnRow(Struct, frozen=True):
    child_run_id: str
    parent_key: str
    child_key: str
    parent_run_id: str
    tool_call_id: str
    state: SpawnState
    body: SpawnBody
    created_at: int
    settled_at: int | None


class NewChild(Struct, frozen=True):
    """A child to begin: its session, its first input, and what is remembered about it."""

    seed: SessionSeed
    session_id: str
    entry: SessionEntry  # only the fields that a new session does not get by itself are taken over
    first: NewInput
    parent_key: str
    parent_run_id: str
    tool_call_id: str
    body: SpawnBody
    most_children: int
    fork: bool = False
    files: tuple[SpawnFile, ...] = ()


class NotBegun(Struct, frozen=True):
    """A child that could not be begun; nothing of it was kept (SPAWN-16)."""

    error: str


class TooMany(Struct, frozen=True):
    """The requester has as many active children as it may have; counted in this transaction (SPAWN-12)."""

    active: int
    most: int


_encode = msgspec.json.Encoder().encode
_decode = msgspec.json.Decoder(SpawnBody).decode
_CHILD_FIELDS = (
    "spawned_by", "parent_session_key", "spawn_depth", "spawn_root", "subagent_role",
    "subagent_control_scope", "provider_override", "model_override", "model_override_source",
    "thinking_level", "display_name", "spawned_workspace_dir",
)  # fmt: skip


def begin(tx: Transaction, new: NewChild, now_ms: int) -> SpawnRow | TooMany | NotBegun:
    """Create the child's session, its first input and its row; the same tool call again finds them done."""
    known = by_call(tx, new.parent_run_id, new.tool_call_id)
    if known is not None:
        return known
    active = count_active(tx, new.parent_key)
    if active >= new.most_children:
        return TooMany(active, new.most_children)
    tx.run(SQL["mark"])
    try:
        begun = _begin(tx, new, now_ms)
    except OpenClawError as error:
        tx.run(SQL["undo"])
        begun = NotBegun(error.message)
    tx.run(SQL["forget_mark"])
    return begun


def _begin(tx: Transaction, new: NewChild, now_ms: int) -> SpawnRow | NotBegun:
    row = sessions.create(tx, new.seed, new.session_id, now_ms)
    fields = {name: getattr(new.entry, name) for name in _CHILD_FIELDS}
    row = sessions.change(tx, row, msgspec.structs.replace(row.entry, **fields), now_ms=now_ms)
    if new.fork:
        forking.fork_window(tx, new.parent_key, row, now_ms, at_seq=_before_call(tx, new))
    attachments.keep(tx, new.seed.session_key, new.files, now_ms)
    inbox.enqueue(tx, new.first, now_ms)
    tx.run(
        SQL["insert"],
        (
            new.first.run_id, new.parent_key, new.seed.session_key, new.parent_run_id, new.tool_call_id,
            _encode(new.body), now_ms,
        ),
    )  # fmt: skip
    return SpawnRow(
        new.first.run_id, new.parent_key, new.seed.session_key, new.parent_run_id, new.tool_call_id, "active",
        new.body, now_ms, None,
    )  # fmt: skip


def _before_call(tx: Transaction, new: NewChild) -> int | None:
    """Where a fork ends: before the message that calls for it, whose calls have no results yet.

    A child that saw them open would take them for its own, and do them again after a crash.
    """
    parent = sessions.get(tx, new.parent_key)
    for entry in reversed(transcript.tail(tx, parent.window_no, _LOOKED_BACK)):
        if entry.role == "assistant" and entry.run_id == new.parent_run_id:
            return entry.seq - 1
    return None


def settle(
    tx: Transaction, child_key: str, body: SpawnBody, completion: NewInput | None, now_ms: int
) -> bool:
    """Close a child and put its completion into the requester's inbox; False when it was closed before."""
    spawn = by_child(tx, child_key)
    if spawn is None or tx.row(SQL["settle"], (now_ms, _encode(body), child_key)) is None:
        return False
    tx.run(SQL["end_wait"], (spawn.parent_key, spawn.child_run_id))
    if completion is not None and sessions.find(tx, completion.seed.session_key) is not None:
        inbox.enqueue(tx, completion, now_ms)
    return True


def note(tx: Transaction, child_key: str, body: SpawnBody) -> None:
    """Keep what is known of a child that is not settled yet."""
    tx.run(SQL["note"], (_encode(body), child_key))


def usage_of(tx: Transaction, child_key: str) -> tuple[int | None, int | None, float | None]:
    """Tokens in, tokens out and cost of all calls of a child; None where nothing is known."""
    row = tx.row(SQL["usage"], (child_key,))
    return (None, None, None) if row is None or not row[0] else (row[1], row[2], row[3])


def by_call(tx: Transaction, parent_run_id: str, tool_call_id: str) -> SpawnRow | None:
    """The child that a tool call began, if it did."""
    return _one(tx.row(SQL["by_call"], (parent_run_id, tool_call_id)))


def by_child(tx: Transaction, child_key: str) -> SpawnRow | None:
    return _one(tx.row(SQL["by_child"], (child_key,)))


def of_parent(tx: Transaction, parent_key: str, settled_since: int, limit: int = 200) -> tuple[SpawnRow, ...]:
    """The children of a session: all that are active, and those that settled lately; newest first."""
    return tuple(_spawn(row) for row in tx.rows(SQL["of_parent"], (parent_key, settled_since, limit)))


def count_active(tx: Transaction, parent_key: str) -> int:
    counted = tx.row(SQL["count_active"], (parent_key,))
    assert counted is not None
    return int(counted[0])


def wait_for_children(tx: Transaction, session_key: str, now_ms: int) -> int:
    """Remember that a session waits for its active children; how many there are (YIELD-2)."""
    waiting = [row for row in of_parent(tx, session_key, now_ms + 1) if row.state == "active"]
    for child in waiting:
        tx.run(SQL["wait_for"], (session_key, child.child_run_id, now_ms))
    return len(waiting)


def waits_for(tx: Transaction, session_key: str, child_run_id: str) -> bool:
    return tx.row(SQL["waits_for"], (session_key, child_run_id)) is not None


class Spawns:
    """What is asked about children outside a run's own commits."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def of_child(self, child_key: str) -> SpawnRow | None:
        return await self._database.read(lambda tx: by_child(tx, child_key))

    async def of_call(self, parent_run_id: str, tool_call_id: str) -> SpawnRow | None:
        return await self._database.read(lambda tx: by_call(tx, parent_run_id, tool_call_id))

    async def of_parent(self, parent_key: str, *, settled_since: int) -> tuple[SpawnRow, ...]:
        return await self._database.read(lambda tx: of_parent(tx, parent_key, settled_since))

    async def children_with_rows(
        self, parent_key: str, *, settled_since: int
    ) -> tuple[tuple[SpawnRow, SessionRow | None], ...]:
        """The children of a session, each with its session row; None for one that was deleted."""

        def query(tx: Transaction) -> tuple[tuple[SpawnRow, SessionRow | None], ...]:
            found = of_parent(tx, parent_key, settled_since)
            return tuple((spawn, sessions.find(tx, spawn.child_key)) for spawn in found)

        return await self._database.read(query)

    async def count_active(self, parent_key: str) -> int:
        return await self._database.read(lambda tx: count_active(tx, parent_key))

    async def write(self, unit: Callable[[Transaction], None]) -> None:
        """Settle or archive children in one commit."""
        await self._database.write(unit)

    async def to_archive(self, agent_id: str, settled_before: int, limit: int = 100) -> tuple[str, ...]:
        """Children of an agent that were done by then and still stand in the lists, oldest first (ANN-11)."""
        params = (settled_before, f"agent:{agent_id}:", limit)
        return await self._database.read(
            lambda tx: tuple(row[0] for row in tx.rows(SQL["to_archive"], params))
        )

    async def unfinished(self, limit: int = 10_000) -> tuple[str, ...]:
        """Children that nobody has closed, oldest first: recovery asks this (REST-4)."""
        return await self._database.read(
            lambda tx: tuple(row[0] for row in tx.rows(SQL["unfinished"], (limit,)))
        )


def _one(row: Row | None) -> SpawnRow | None:
    return None if row is None else _spawn(row)


def _spawn(row: Row) -> SpawnRow:
    return SpawnRow(row[0], row[1], row[2], row[3], row[4], row[5], _decode(row[6]), row[7], row[8])
