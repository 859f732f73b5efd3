"""Chat commands in the store: taken once, answered once, never part of a model's context.

A command is an input that no turn consumes. Its inbox row, its effect on the session,
what history shows of it, an ended run for those who wait, and the delivery of the
answer are one commit. A command that takes longer is taken first (its row is consumed
by nobody yet) and answered later; one that a crash cut off is found and settled.

The answer is kept in the inbox row, so that the same message again gets the same
answer. Send policy is not asked here: commands work in a session that may not be sent
to (SEND-9). Commands neither rotate a session nor count as activity (LIFE-12).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import msgspec
from msgspec import Struct

from openclaw.domain import lifecycle
from openclaw.domain.entry import SessionEntry
from openclaw.errors import IdempotencyConflict
from openclaw.store import inbox, outbox, runs, sessions, transcript, undoing
from openclaw.store.database import Database, Row, Transaction
from openclaw.store.inbox import NewInput
from openclaw.store.records import (
    DeliveryDraft,
    EntryDraft,
    RunRow,
    SessionRow,
    StoredEntry,
    UserInput,
    session_from_columns,
)
from openclaw.store.statements import load_statements

SQL = load_statements("commands.sql")
UNANSWERED = ""  # in `consumed_by`: taken, and being carried out
MOST_CHILDREN = 200
MOST_SESSIONS = 1000

Edit = Callable[[SessionEntry], SessionEntry]
Also = Callable[[Transaction], None]


class AnsweredInput(UserInput, frozen=True, rename="camel", omit_defaults=True):
    """The body of a command's inbox row: the input as it came, and the answer that was given."""

    answer: str | None = None


_encode = msgspec.json.Encoder().encode
_decode: Any = msgspec.json.Decoder(AnsweredInput).decode


class CommandAnswer(Struct, frozen=True):
    """What is kept of an answer. Without `entries` history shows nothing of the command."""

    text: str
    entries: tuple[EntryDraft, ...] = ()
    delivery: DeliveryDraft | None = None
    interrupted: bool = False


class SeenCommand(Struct, frozen=True):
    """The message was taken before. `answer` is None while it is carried out, or if it was no command."""

    run_id: str
    session_key: str
    answer: str | None


class AnsweredCommand(Struct, frozen=True):
    """The answer is on disk, and with it everything that the command did to the session."""

    run_id: str
    session: SessionRow
    answer: str
    entries: tuple[StoredEntry, ...]
    created: bool = False


class TakenCommand(Struct, frozen=True):
    """The command is on disk. `cancelled` are inputs that waited; `active` are runs still to be aborted."""

    session: SessionRow
    cancelled: tuple[tuple[SessionRow, str], ...] = ()
    active: tuple[RunRow, ...] = ()
    created: bool = False


class UsageTotals(Struct, frozen=True):
    """What the calls of a session used. `cost_usd` is None when no call has a price."""

    calls: int
    input: int
    output: int
    cost_usd: float | None
    unpriced: int


class CommandStore:
    """The durable verbs of chat commands, each one transaction."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def seen(self, new: NewInput) -> SeenCommand | None:
        """Whether this message was taken before; the key with other content raises IdempotencyConflict."""
        return await self._database.read(lambda tx: _find_seen(tx, new))

    async def handle(
        self,
        new: NewInput,
        answer: CommandAnswer,
        *,
        session_id: str,
        now_ms: int,
        edit: Edit | None = None,
        undo_reset: bool = False,
        also: Also | None = None,
    ) -> AnsweredCommand | SeenCommand:
        """Take a command, do what it does to the session and answer it, all in one commit.

        A message that was taken before changes nothing. The session is created if it is missing.
        """

        def unit(tx: Transaction) -> AnsweredCommand | SeenCommand:
            seen = _find_seen(tx, new)
            if seen is not None:
                return seen
            row, created = _place(tx, new, session_id, now_ms)
            if undo_reset:
                row = undoing.restore_previous(tx, row, now_ms)
            if edit is not None:
                row = sessions.modify(tx, row, edit, now_ms)
            if also is not None:
                also(tx)
            _insert(tx, new, row, new.run_id, answer.text, now_ms)
            return _answer(tx, new.run_id, row.session_key, answer, now_ms, now_ms, created)

        return await self._database.write(unit)

    async def take(
        self,
        new: NewInput,
        *,
        session_id: str,
        now_ms: int,
        edit: Edit | None = None,
        cancel: bool = False,
    ) -> TakenCommand | SeenCommand:
        """Take a command that is answered later.

        With `cancel`, what waits in the session and in everything that it spawned is cancelled in the
        same commit, so that no message from before it runs afterwards (CMD-6, QUE-7).
        """

        def unit(tx: Transaction) -> TakenCommand | SeenCommand:
            seen = _find_seen(tx, new)
            if seen is not None:
                return seen
            row, created = _place(tx, new, session_id, now_ms)
            if edit is not None:
                row = sessions.modify(tx, row, edit, now_ms)
            _insert(tx, new, row, UNANSWERED, None, now_ms)
            if not cancel:
                return TakenCommand(row, created=created)
            cancelled, active = _cancel_tree(tx, row)
            return TakenCommand(row, cancelled, active, created)

        return await self._database.write(unit)

    async def answer(
        self, run_id: str, answer: CommandAnswer, *, now_ms: int, edit: Edit | None = None
    ) -> AnsweredCommand | None:
        """Answer a command that was taken. None when it was answered before or its session is gone."""

        def unit(tx: Transaction) -> AnsweredCommand | None:
            found = tx.row(SQL["known_by_run_id"], (run_id,))
            if found is None or found[3] != UNANSWERED:
                return None
            row = sessions.find(tx, found[1])
            if row is None:
                return None
            if edit is not None:
                sessions.modify(tx, row, edit, now_ms)
            body = msgspec.structs.replace(_decode(found[4]), answer=answer.text)
            settled = tx.row(SQL["settle_input"], (_encode(body), run_id, run_id))
            assert settled is not None
            return _answer(tx, run_id, row.session_key, answer, settled[0], now_ms, False)

        return await self._database.write(unit)

    async def note(
        self, new: NewInput, answer: CommandAnswer, *, session_id: str, now_ms: int
    ) -> AnsweredCommand | None:
        """Keep the answer to a shortcut inside a message that goes on as a turn of its own.

        None when the message was taken before: the shortcut was answered then.
        """

        def unit(tx: Transaction) -> AnsweredCommand | None:
            if _find_seen(tx, new) is not None:
                return None
            row, created = _place(tx, new, session_id, now_ms)
            entries = transcript.append(tx, row.session_key, answer.entries, now_ms) if answer.entries else ()
            if answer.delivery is not None:
                outbox.prepare(tx, answer.delivery, row.session_key, new.run_id, now_ms)
            session = sessions.get(tx, row.session_key)
            return AnsweredCommand(new.run_id, session, answer.text, entries, created)

        return await self._database.write(unit)

    # -- looking -------------------------------------------------------------------------------

    async def answer_of(self, run_id: str) -> str | None:
        """What was answered to a command."""

        def query(tx: Transaction) -> str | None:
            found = tx.row(SQL["known_by_run_id"], (run_id,))
            answer: str | None = None if found is None else _decode(found[4]).answer
            return answer

        return await self._database.read(query)

    async def unanswered(self, limit: int = 1000) -> tuple[tuple[str, str, UserInput], ...]:
        """Commands that nobody answered, oldest first: (run id, session key, input)."""

        def query(tx: Transaction) -> tuple[tuple[str, str, UserInput], ...]:
            return tuple((row[0], row[1], _decode(row[4])) for row in tx.rows(SQL["unanswered"], (limit,)))

        return await self._database.read(query)

    async def children(self, session_key: str) -> tuple[SessionRow, ...]:
        """The sessions that a session spawned, oldest first."""
        return await self._database.read(lambda tx: _children(tx, session_key))

    async def descendants(self, session_key: str) -> tuple[tuple[SessionRow, RunRow | None], ...]:
        """Everything that a session spawned, at any depth, each with its active run; bounded."""
        return await self._database.read(
            lambda tx: tuple(
                (row, runs.active_of(tx, row.session_key)) for row in _descendants(tx, session_key)
            )
        )

    async def usage(self, session_key: str) -> UsageTotals:
        """What the session used so far, resets included."""
        found = await self._database.read(lambda tx: tx.row(SQL["usage_totals"], (session_key,)))
        assert found is not None
        return UsageTotals(*found)


def _find_seen(tx: Transaction, new: NewInput) -> SeenCommand | None:
    found = tx.row(SQL["known_by_run_id"], (new.run_id,))
    if found is not None and found[2] != inbox.fingerprint(new):
        raise IdempotencyConflict()
    external = new.external
    if found is None and external is not None:
        place = (external.channel, external.account_id, external.peer_id, external.message_id)
        found = tx.row(SQL["known_by_external_id"], place)
    return None if found is None else SeenCommand(found[0], found[1], _decode(found[4]).answer)


def _place(tx: Transaction, new: NewInput, session_id: str, now_ms: int) -> tuple[SessionRow, bool]:
    """The session of a command, created if missing, with origin and route as the surface told (ORG-3)."""
    row, created = sessions.find_or_create(tx, new.seed, session_id, now_ms)
    inbound = new.inbound
    return (row if inbound is None else inbox.note_route(tx, row, inbound, now_ms)), created


def _insert(
    tx: Transaction, new: NewInput, row: SessionRow, consumed_by: str, answer: str | None, now_ms: int
) -> None:
    external = new.external
    body = AnsweredInput(**msgspec.structs.asdict(new.body), answer=answer)
    inserted = tx.row(
        inbox.SQL["insert_input"],
        (
            new.run_id, row.session_key, inbox.fingerprint(new), new.source, new.principal,
            int(lifecycle.counts_as_interaction(new.source)),
            external.channel if external else None, external.account_id if external else None,
            external.peer_id if external else None, external.message_id if external else None,
            _encode(body), "consumed", consumed_by, now_ms, new.expires_at,
        ),
    )  # fmt: skip
    assert inserted is not None


def _answer(
    tx: Transaction,
    run_id: str,
    session_key: str,
    answer: CommandAnswer,
    taken_ms: int,
    now_ms: int,
    created: bool,
) -> AnsweredCommand:
    """The rest of an answered command: history, an ended run for those who wait, and the delivery."""
    entries = transcript.append(tx, session_key, answer.entries, now_ms) if answer.entries else ()
    session = sessions.get(tx, session_key)
    tx.run(
        SQL["insert_ended_run"],
        (
            run_id, session_key, session.agent_id, session.window_no,
            "interrupted" if answer.interrupted else "ok", "error" if answer.interrupted else "stop",
            answer.text if answer.interrupted else None, taken_ms, now_ms, now_ms,
        ),
    )  # fmt: skip
    if answer.delivery is not None:
        outbox.prepare(tx, answer.delivery, session_key, run_id, now_ms)
    return AnsweredCommand(run_id, session, answer.text, entries, created)


def _cancel_tree(
    tx: Transaction, root: SessionRow
) -> tuple[tuple[tuple[SessionRow, str], ...], tuple[RunRow, ...]]:
    cancelled: list[tuple[SessionRow, str]] = []
    active: list[RunRow] = []
    for row in (root, *_descendants(tx, root.session_key)):
        # What helpers have finished is owed to the one who asked; what is stopped below it is owed nothing.
        stop = inbox.cancel if row is root else inbox.discard
        cancelled += [(row, run_id) for run_id in stop(tx, row.session_key)]
        run = runs.active_of(tx, row.session_key)
        if run is not None:
            active.append(run)
    return tuple(cancelled), tuple(active)


def _children(tx: Transaction, session_key: str) -> tuple[SessionRow, ...]:
    found: list[Row] = tx.rows(SQL["spawned_by"], (session_key, MOST_CHILDREN))
    return tuple(session_from_columns(row) for row in found)


def _descendants(tx: Transaction, session_key: str) -> list[SessionRow]:
    """Breadth first; a session that is its own ancestor is met once."""
    seen = {session_key}
    found: list[SessionRow] = []
    to_visit = [session_key]
    while to_visit and len(found) < MOST_SESSIONS:
        for child in _children(tx, to_visit.pop(0)):
            if child.session_key not in seen:
                seen.add(child.session_key)
                found.append(child)
                to_visit.append(child.session_key)
    return found[:MOST_SESSIONS]
