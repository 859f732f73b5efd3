"""The Store: every durable verb, each one transaction; the docstring is the contract.

Engine and gateway talk to this class only. It composes the units of `sessions`,
`transcript`, `inbox`, `runs` and `outbox`; it holds no state of its own.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from openclaw.domain.entry import SessionEntry
from openclaw.domain.visibility import VisibilityScope
from openclaw.errors import VersionConflict
from openclaw.store import conversations, inbox, outbox, runs, search, sessions, transcript, undoing
from openclaw.store.conversations import ConversationRef
from openclaw.store.database import Database, Transaction
from openclaw.store.inbox import Admission, Inbound, Known, NewInput, ResetRulesAt
from openclaw.store.records import (
    DeliveryDraft,
    EntryDraft,
    QueuedInput,
    RunRow,
    SessionRow,
    SessionSeed,
    StoredEntry,
    UsageRow,
    Window,
)
from openclaw.store.runs import Claimed, DraftInputs, Effects, Finished, RunEnd, RunPlan
from openclaw.store.search import Hit, Judge, Terms
from openclaw.store.sessions import ListQuery, Rotation, RotationReason, SessionPage


class Accepted(Struct, frozen=True):
    """An input is on disk. `claimed` is set when its run began in the same commit."""

    admission: Admission
    claimed: Claimed | None


class HistoryPage(Struct, frozen=True):
    """A page of a session's transcript, oldest first, with what still waits."""

    session: SessionRow
    entries: tuple[StoredEntry, ...]
    pending: tuple[QueuedInput, ...]
    active_run: RunRow | None


class Unfinished(Struct, frozen=True):
    """What the rows say is not done: recovery is asking this (docs/topics/design.md)."""

    runs: tuple[RunRow, ...]
    waiting: tuple[str, ...]


class Store:
    def __init__(self, database: Database) -> None:
        self._database = database

    async def close(self) -> None:
        """Finish what waits and release the files."""
        await self._database.close()

    # -- messages in ---------------------------------------------------------------------------

    async def accept(
        self,
        new: NewInput,
        resets: ResetRulesAt,
        *,
        session_id: str,
        now_ms: int,
        start: RunPlan | None = None,
        draft_inputs: DraftInputs | None = None,
    ) -> Accepted | Known:
        """Take an input in; with `start`, and if the session is idle, begin its run in the same commit.

        When this returns the input is on disk. The same idempotency key or platform message id
        stores nothing and returns Known; the key with other content raises IdempotencyConflict.
        """

        def unit(tx: Transaction) -> Accepted | Known:
            taken = inbox.accept(tx, new, resets, session_id, now_ms)
            if isinstance(taken, Known) or start is None or draft_inputs is None:
                return taken if isinstance(taken, Known) else Accepted(taken, None)
            key = taken.session.session_key
            if taken.others_wait:
                return Accepted(taken, None)
            # What else came with the input may have changed the row.
            row = taken.session if new.also is None else None
            claimed = runs.claim(tx, key, (taken.admission,), start, draft_inputs, now_ms, session=row)
            # The session is told as this commit leaves it.
            return Accepted(taken if claimed is None else replace(taken, session=claimed.session), claimed)

        return await self._database.write(unit)

    async def record_inbound(
        self,
        seed: SessionSeed,
        inbound: Inbound,
        *,
        session_id: str,
        now_ms: int,
        update_only: bool = False,
    ) -> SessionRow | None:
        """Keep origin and route of a message that starts no turn (ORG-3, ORG-4).

        With `update_only` observing a message never creates a session (ORG-9); None then.
        """

        def unit(tx: Transaction) -> SessionRow | None:
            row = sessions.find(tx, seed.session_key)
            if row is None:
                if update_only:
                    return None
                row = sessions.create(tx, seed, session_id, now_ms)
            return inbox.note_route(tx, row, inbound, now_ms)

        return await self._database.write(unit)

    async def conversations_of(self, session_key: str) -> tuple[ConversationRef, ...]:
        """The places that a session was reached from, the latest first (DB-9)."""
        return await self._database.read(lambda tx: conversations.of_session(tx, session_key))

    async def queued(self, session_key: str) -> tuple[QueuedInput, ...]:
        """What waits in a session, in the order of admission."""
        return await self._database.read(lambda tx: inbox.queued(tx, session_key))

    async def cancel(self, session_key: str, run_id: str | None = None) -> tuple[str, ...]:
        """Cancel one queued input or all of a session; returns the run ids that were cancelled."""
        return await self._database.write(lambda tx: inbox.cancel(tx, session_key, run_id))

    async def input(self, run_id: str) -> QueuedInput | None:
        """An input as it was accepted, whatever became of it."""
        return await self._database.read(lambda tx: inbox.get(tx, run_id))

    async def input_state(self, run_id: str) -> Known | None:
        return await self._database.read(lambda tx: inbox.known(tx, run_id))

    # -- runs ----------------------------------------------------------------------------------

    async def claim(
        self,
        session_key: str,
        admissions: tuple[int, ...],
        plan: RunPlan,
        draft_inputs: DraftInputs,
        *,
        now_ms: int,
    ) -> Claimed | None:
        """Begin a run on queued inputs. None when one is active or nothing of them waits any more."""
        return await self._database.write(
            lambda tx: runs.claim(tx, session_key, admissions, plan, draft_inputs, now_ms)
        )

    async def absorb(
        self, run: RunRow, admissions: tuple[int, ...], draft_inputs: DraftInputs, *, now_ms: int
    ) -> tuple[StoredEntry, ...]:
        """Steer queued inputs into a running turn. Raises RunLost when the run is not ours any more."""
        return await self._database.write(lambda tx: runs.absorb(tx, run, admissions, draft_inputs, now_ms))

    async def step(
        self,
        run: RunRow,
        drafts: tuple[EntryDraft, ...],
        usage: tuple[UsageRow, ...],
        *,
        now_ms: int,
        effects: Effects | None = None,
    ) -> tuple[StoredEntry, ...]:
        """Commit messages of a running turn, what the call used and what tools did here. Raises RunLost."""
        return await self._database.write(lambda tx: runs.step(tx, run, drafts, usage, now_ms, effects))

    async def finish(
        self,
        run: RunRow,
        drafts: tuple[EntryDraft, ...],
        end: RunEnd,
        usage: tuple[UsageRow, ...] = (),
        deliveries: tuple[DeliveryDraft, ...] = (),
        *,
        now_ms: int,
        also: Callable[[Transaction], None] | None = None,
    ) -> Finished:
        """End a run in one commit. Raises RunLost when somebody else ended it."""
        return await self._database.write(
            lambda tx: runs.finish(tx, run, drafts, end, usage, deliveries, now_ms, also)
        )

    async def run(self, run_id: str) -> RunRow | None:
        return await self._database.read(lambda tx: runs.get(tx, run_id))

    async def active_run(self, session_key: str) -> RunRow | None:
        """The run of a session that has not ended."""
        return await self._database.read(lambda tx: runs.active_of(tx, session_key))

    async def take_over(self, run_id: str, owner: str, *, now_ms: int) -> RunRow | None:
        """Become the owner of an active run. None when it has ended."""
        return await self._database.write(lambda tx: runs.take_over(tx, run_id, owner, now_ms))

    async def unfinished(self) -> Unfinished:
        """Active runs, and sessions whose inputs wait."""
        return await self._database.read(lambda tx: Unfinished(runs.active(tx), inbox.sessions_waiting(tx)))

    # -- transcript ----------------------------------------------------------------------------

    async def append(
        self, session_key: str, drafts: tuple[EntryDraft, ...], *, now_ms: int
    ) -> tuple[StoredEntry, ...]:
        """Append entries outside a run, such as an injected note. The session must exist."""
        return await self._database.write(lambda tx: transcript.append(tx, session_key, drafts, now_ms))

    async def history(
        self,
        session_key: str,
        limit: int,
        *,
        before_seq: int = transcript.LAST,
        people_only: bool = True,
    ) -> HistoryPage | None:
        """The newest page of the current window. None when there is no such session."""

        def query(tx: Transaction) -> HistoryPage | None:
            session = sessions.find(tx, session_key)
            if session is None:
                return None
            return HistoryPage(
                session,
                transcript.tail(tx, session.window_no, limit, before_seq=before_seq, people_only=people_only),
                inbox.queued(tx, session_key, 100),
                runs.active_of(tx, session_key),
            )

        return await self._database.read(query)

    async def context(self, window_no: int, *, after_seq: int = 0) -> tuple[StoredEntry, ...]:
        """The entries that a model may see: from the last compaction's reach on, or after `after_seq`."""
        return await self._database.read(
            lambda tx: transcript.span(tx, window_no, after_seq + 1, transcript.LAST)
        )

    async def entry(self, window_no: int, seq: int) -> StoredEntry | None:
        return await self._database.read(lambda tx: transcript.entry_at(tx, window_no, seq))

    async def search(
        self,
        terms: Terms,
        *,
        agent_id: str | None = None,
        session_key: str | None = None,
        limit: int = 20,
        scope: VisibilityScope | None = None,
        judge: Judge | None = None,
    ) -> tuple[Hit, ...]:
        """Entries in which every term occurs, newest first. `terms` come from `searchtext.query_terms`.

        Only sessions that `judge` allows count, before the limit does; `scope` saves looking at the others.
        """
        return await self._database.read(
            lambda tx: search.find(
                tx, terms, agent_id=agent_id, session_key=session_key, limit=limit, scope=scope, judge=judge
            )
        )

    # -- sessions ------------------------------------------------------------------------------

    async def session(self, session_key: str) -> SessionRow | None:
        return await self._database.read(lambda tx: sessions.find(tx, session_key))

    async def session_by_id(self, session_id: str) -> SessionRow | None:
        """By the id of its current or an earlier window."""
        return await self._database.read(lambda tx: sessions.find_by_session_id(tx, session_id))

    async def session_by_label(self, label: str, agent_id: str | None = None) -> SessionRow | None:
        return await self._database.read(lambda tx: sessions.find_by_label(tx, label, agent_id))

    async def list_sessions(self, query: ListQuery) -> SessionPage:
        """A page, newest first, with the total. Never opens a transcript."""
        return await self._database.read(lambda tx: sessions.list_page(tx, query))

    async def children_of(self, session_key: str) -> tuple[str, ...]:
        return await self._database.read(lambda tx: sessions.children_of(tx, session_key))

    async def window_reason(self, window_no: int) -> str:
        """Why a window was opened."""
        return await self._database.read(lambda tx: sessions.window_by_no(tx, window_no).reason)

    async def windows_of(self, session_key: str) -> tuple[Window, ...]:
        """The trail of resets of a key, newest first."""
        return await self._database.read(lambda tx: sessions.windows_of(tx, session_key))

    async def edit_session(
        self,
        seed: SessionSeed,
        edit: Callable[[SessionEntry], SessionEntry],
        *,
        session_id: str,
        now_ms: int,
        expected_session_id: str | None = None,
    ) -> tuple[SessionRow, bool]:
        """Apply a pure edit to an entry, creating the session if it is missing; (row, created).

        Read and write are one unit, so no concurrent edit is lost. With `expected_session_id`, an
        edit of a session that was reset in the meantime raises VersionConflict.
        """

        def unit(tx: Transaction) -> tuple[SessionRow, bool]:
            row, created = sessions.find_or_create(tx, seed, session_id, now_ms)
            if expected_session_id is not None and row.entry.session_id != expected_session_id:
                raise VersionConflict(f"Session {row.session_key} changed. Retry.")
            return sessions.modify(tx, row, edit, now_ms), created

        return await self._database.write(unit)

    async def reset_session(
        self, session_key: str, reason: RotationReason, *, session_id: str, now_ms: int
    ) -> tuple[SessionRow, Rotation]:
        """Start a new window behind the key; queued inputs of the old one are cancelled."""

        def unit(tx: Transaction) -> tuple[SessionRow, Rotation]:
            row = sessions.get(tx, session_key)
            inbox.cancel(tx, session_key)
            return sessions.rotate(tx, row, session_id, reason, now_ms)

        return await self._database.write(unit)

    async def undo_reset(self, session_key: str, *, now_ms: int) -> SessionRow:
        """Point the key back at its previous window; the session is as it was before the reset."""
        return await self._database.write(
            lambda tx: undoing.restore_previous(tx, sessions.get(tx, session_key), now_ms)
        )

    async def delete_session(self, session_key: str, *, now_ms: int) -> bool:
        """Remove one key; others are untouched (LIFE-24). False when it was not there.

        What waits in it is cancelled and its run is ended in the same commit.
        """

        def unit(tx: Transaction) -> bool:
            row = sessions.find(tx, session_key)
            if row is None:
                return False
            inbox.discard(tx, session_key)
            runs.abandon(tx, session_key, now_ms)
            sessions.delete(tx, row, now_ms)
            return True

        return await self._database.write(unit)

    async def mark_read(self, session_key: str, seq: int) -> None:
        await self._database.write(lambda tx: tx.run(transcript.SQL["mark_read"], (seq, session_key)))

    # -- deliveries ----------------------------------------------------------------------------

    async def deliveries_due(self, channel: str, *, now_ms: int) -> tuple[outbox.Delivery, ...]:
        """What waits to be sent on a channel and has not expired, oldest first."""
        return await self._database.read(lambda tx: outbox.due(tx, channel, now_ms))

    async def start_delivery(self, delivery_no: int, *, now_ms: int) -> bool:
        return await self._database.write(lambda tx: outbox.start(tx, delivery_no, now_ms))

    async def settle_delivery(
        self, delivery_no: int, state: Any, *, error: str | None = None, now_ms: int
    ) -> bool:
        return await self._database.write(lambda tx: outbox.settle(tx, delivery_no, state, error, now_ms))

    async def retry_delivery(self, delivery_no: int, *, now_ms: int, expires_at: int) -> bool:
        return await self._database.write(lambda tx: outbox.retry(tx, delivery_no, now_ms, expires_at))

    async def recover_deliveries(self, *, now_ms: int) -> tuple[int, int]:
        """At start-up: cut-off sendings become `unknown`, old ones `failed`; (unknown, failed)."""
        return await self._database.write(
            lambda tx: (outbox.forget_sending(tx, now_ms), outbox.expire(tx, now_ms))
        )

    async def delivery_states(self) -> dict[str, int]:
        return await self._database.read(outbox.states)
