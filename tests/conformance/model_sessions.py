"""The half of the reference model that knows sessions, windows and what was said in them.

Plain dictionaries and the rules over them; no SQL, no transaction, no thread. `model` adds inputs, runs and
deliveries.
"""

from __future__ import annotations

from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from openclaw.domain.entry import SessionEntry
from openclaw.domain.resets import KEPT_ON_EXPIRY, carry_over
from openclaw.domain.searchtext import matches, query_terms
from tests.conformance import operations as ops
from tests.conformance.operations import Note, drafted, seed_of

Outcome = tuple[Any, ...]
STATUS: dict[str, Any] = {
    "ok": "done", "error": "failed", "aborted": "killed", "timeout": "timeout", "interrupted": "failed",
}  # fmt: skip


class Refused(Exception):
    """The store must raise the error of this name and change nothing."""

    def __init__(self, name: str) -> None:
        super().__init__(name)
        self.name = name


class Session(Struct):
    key: str
    agent_id: str
    kind: str
    born: int
    entry: SessionEntry
    version: int = 1
    last_seq: int = 0
    message_count: int = 0
    read_seq: int = 0
    first_text: str | None = None
    last_text: str | None = None


class Window(Struct):
    key: str
    previous: str | None
    reason: str
    started_at: int
    end_reason: str | None = None
    deleted: bool = False
    saved: Session | None = None  # the session as it was when this window was left


class Entry(Struct, frozen=True):
    seq: int
    note: Note
    run_id: str | None
    at: int


class Input(Struct):
    run_id: str
    key: str
    text: str
    human: bool
    message_id: str | None
    state: str = "queued"
    consumed_by: str | None = None


class Run(Struct):
    run_id: str
    key: str
    window: str
    started_at: int
    last_progress: int
    owner: str = "owner-1"
    fence: int = 1
    resumes: int = 0
    state: str = "active"
    outcome: str | None = None
    stop_reason: str | None = None
    ended_at: int | None = None
    reply_seq: int | None = None


class Delivery(Struct):
    key: str
    run_id: str
    expires_at: int
    state: str = "prepared"
    attempts: int = 0


class SessionModel:
    def __init__(self) -> None:
        self.sessions: dict[str, Session] = {}
        self.windows: dict[str, Window] = {}
        self.entries: dict[str, list[Entry]] = {}
        self.inbox: dict[str, Input] = {}  # in the order of admission
        self.runs: dict[str, Run] = {}
        self.usage: dict[str, tuple[str, str, float | None]] = {}
        self.outbox: dict[str, Delivery] = {}
        self.said: list[tuple[str, int, str]] = []  # (session id, seq, words) in the order of arrival
        self._born = 0

    # -- looking ---------------------------------------------------------------------------------

    def queued(self, key: str) -> list[Input]:
        return [item for item in self.inbox.values() if item.key == key and item.state == "queued"]

    def active_run(self, key: str) -> Run | None:
        return next((run for run in self.runs.values() if run.key == key and run.state == "active"), None)

    def find(self, text: str) -> list[tuple[str, int]]:
        """Search by reading everything: newest first, nothing of deleted sessions."""
        terms = query_terms(text)
        return [
            (window, seq)
            for window, seq, words in reversed(self.said)
            if matches(words, terms) and not self.windows[window].deleted
        ]

    def newest_first(self, agent_id: str, archived: bool | None) -> list[str]:
        rows = [
            row
            for row in self.sessions.values()
            if row.agent_id == agent_id and archived in (None, row.entry.archived_at is not None)
        ]
        return [row.key for row in sorted(rows, key=lambda row: (row.entry.updated_at, row.born))][::-1]

    def _get(self, key: str) -> Session:
        if key not in self.sessions:
            raise Refused("SessionNotFound")
        return self.sessions[key]

    def _cancel_all(self, key: str) -> tuple[str, ...]:
        cancelled = self.queued(key)
        for item in cancelled:
            item.state = "cancelled"
        return tuple(item.run_id for item in cancelled)

    # -- transcript ------------------------------------------------------------------------------

    def _append(self, op: ops.Append) -> Outcome:
        return self._add(self._get(op.key), [(note, None) for note in op.notes], op.at)

    def _add(self, session: Session, notes: list[tuple[Note, str | None]], at: int) -> Outcome:
        window, seqs = session.entry.session_id, []
        for note, run_id in notes:
            session.last_seq += 1
            seqs.append(session.last_seq)
            self.entries[window].append(Entry(session.last_seq, note, run_id, at))
            if drafted(note).words:
                self.said.append((window, session.last_seq, drafted(note).words))
            if note.audience == "people":
                session.message_count += 1
                if note.role == "user" and note.text:
                    session.first_text = session.first_text or note.text[:300]
                if note.role in ("user", "assistant"):
                    session.last_text = note.text[:300] or session.last_text
        session.version += 1
        session.entry = replace(session.entry, updated_at=max(session.entry.updated_at, at))
        return tuple(seqs)

    def _touch(self, session: Session, human: bool, at: int) -> None:
        session.version += 1
        session.entry = replace(session.entry, updated_at=max(session.entry.updated_at, at))
        if human:
            session.entry = replace(session.entry, last_interaction_at=at)

    # -- sessions --------------------------------------------------------------------------------

    def _create(self, key: str, session_id: str, at: int) -> Session:
        made = seed_of(key)
        entry = SessionEntry(session_id=session_id, updated_at=at, created_at=at, session_started_at=at)
        self._born += 1
        self.sessions[key] = Session(key, made.agent_id, made.kind, self._born, entry)
        self.windows[session_id] = Window(key, None, "created", at)
        self.entries[session_id] = []
        return self.sessions[key]

    def _edit(self, op: ops.Edit) -> Outcome:
        session = self.sessions.get(op.key)
        current = session.entry.session_id if session else op.session_id
        if op.expected not in (None, current):
            raise Refused("VersionConflict")
        entry = session.entry if session else None
        taken = op.field == "label" and (entry is None or entry.label != op.value)
        if taken and any(other.entry.label == op.value for other in self._of_agent(op.key)):
            raise Refused("LabelInUse")
        if session is None:
            session = self._create(op.key, op.session_id, op.at)
        changed = replace(session.entry, **{op.field: op.value})
        if changed != session.entry:
            self._change(session, changed, op.at)
        return (entry is None, session.version)

    def _of_agent(self, key: str) -> list[Session]:
        agent_id = seed_of(key).agent_id
        rows = [row for row in self.sessions.values() if row.agent_id == agent_id]
        return [row for row in rows if row.entry.label is not None]

    def _change(self, session: Session, entry: SessionEntry, at: int) -> None:
        session.version += 1
        session.entry = replace(entry, updated_at=max(session.entry.updated_at, at))

    def _stale(self, op: ops.Stale) -> Outcome:
        session = self._get(op.key)
        self._change(session, replace(session.entry, subject=op.subject), op.at)
        return ("VersionConflict",)

    def _rotate(self, session: Session, session_id: str, reason: str, at: int) -> None:
        old = session.entry.session_id
        self.windows[old].end_reason, self.windows[old].saved = reason, replace(session)
        self.windows[session_id] = Window(session.key, old, reason, at)
        self.entries[session_id] = []
        explicit = reason in ("new", "reset")
        entry = carry_over(session.entry, session_id=session_id, now_ms=at, explicit=explicit)
        self._change(session, entry, at)
        session.last_seq = session.message_count = session.read_seq = 0
        session.first_text = session.last_text = None

    def _reset(self, op: ops.Reset) -> Outcome:
        session = self._get(op.key)
        self._cancel_all(op.key)
        self._rotate(session, op.session_id, op.reason, op.at)
        return (session.version,)

    def _undo(self, op: ops.Undo) -> Outcome:
        session = self._get(op.key)
        left = session.entry.session_id
        current = self.windows[left]
        if current.previous is None:
            raise Refused("InvalidRequest")
        earlier = self.windows[current.previous]
        before = earlier.saved
        assert before is not None
        # What lasts longer than a window was carried over; if it is another now, somebody said so since.
        explicit = current.reason in ("new", "reset")
        given = carry_over(before.entry, session_id=left, now_ms=current.started_at, explicit=explicit)
        said = {
            name: getattr(session.entry, name)
            for name in KEPT_ON_EXPIRY
            if getattr(session.entry, name) != getattr(given, name)
        }
        entry = replace(before.entry, **said, last_interaction_at=op.at)
        entry = replace(entry, usage_family_session_ids=session.entry.usage_family_session_ids)
        current.end_reason, earlier.end_reason, earlier.saved = "undone", None, None
        self._change(session, self._with_end_of_run(entry, current.previous), op.at)
        for name in ("last_seq", "message_count", "read_seq", "first_text", "last_text"):
            setattr(session, name, getattr(before, name))
        return (session.version, session.last_seq)

    def _with_end_of_run(self, entry: SessionEntry, window: str) -> SessionEntry:
        """The run that was active when the window ended may have ended since."""
        run = self.runs.get(entry.last_run_id or "")
        if entry.status != "running" or run is None or run.state == "active":
            return entry
        assert run.window == window
        assert run.ended_at is not None
        assert run.outcome is not None
        return replace(
            entry, status=STATUS[run.outcome], ended_at=run.ended_at, system_sent=True,
            runtime_ms=run.ended_at - run.started_at, aborted_last_run=run.outcome == "aborted",
        )  # fmt: skip

    def _delete(self, op: ops.Delete) -> Outcome:
        session = self.sessions.pop(op.key, None)
        if session is None:
            return (False,)
        self._cancel_all(op.key)
        run = self.active_run(op.key)
        if run is not None:
            run.state, run.outcome, run.stop_reason = "ended", "aborted", "deleted"
            run.ended_at = run.last_progress = op.at
        self.windows[session.entry.session_id].end_reason = "deleted"
        for window in self.windows.values():
            window.deleted = window.deleted or window.key == op.key
        return (True,)

    def _markread(self, op: ops.MarkRead) -> Outcome:
        if op.key in self.sessions:
            self.sessions[op.key].version += 1
            self.sessions[op.key].read_seq = op.seq
        return ("nothing",)
