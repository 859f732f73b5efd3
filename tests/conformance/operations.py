"""Operations on a store as values, and the choosing of the next one.

The same values drive the reference model and a real store. `choose` picks an operation that makes sense, or
just does not, in the present state; where its choices come from (a seed or a generator of examples) is the
caller's business.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Literal, TypeVar, cast

from msgspec import Struct

from openclaw.domain.entry import DropPolicy
from openclaw.domain.lifecycle import TurnSource
from openclaw.domain.searchtext import index_text
from openclaw.domain.transcript import encode
from openclaw.store.records import Audience, EntryDraft, SessionSeed
from openclaw.store.runs import RunEnd
from tests.conformance.making import NOON

if TYPE_CHECKING:
    from tests.conformance.model import Model

WORDS = ("alpha", "beta", "gamma delta", "épsilon", "ประเทศไทย", "漢字", "o'neil", "zeta")
KEYS = ("agent:main:main", "agent:main:one", "agent:main:two", "agent:ops:main", "agent:ops:three")
LABELS = ("red", "blue")
QUEUE_CAP = 2
DELIVERY_LIFE_MS = 600_000
DELIVERY_MOVES: dict[str, tuple[tuple[str, ...], str]] = {
    "start": (("prepared",), "sending"),
    "sent": (("sending",), "sent"),
    "unknown": (("sending",), "unknown"),
    "failed": (("sending",), "failed"),
    "retry": (("unknown", "failed"), "prepared"),
}
Outcomes = Literal["ok", "error", "aborted", "timeout", "interrupted"]
Pick = Callable[[int], int]
_Item = TypeVar("_Item")


class Note(Struct, frozen=True):
    """An entry to be. `size` blows the body up: above 64 KiB it is kept apart."""

    text: str
    role: str = "user"
    audience: Audience = "people"
    size: int = 0


class Call(Struct, frozen=True):
    call_id: str
    cost_usd: float | None


class Operation(Struct, frozen=True):
    """One verb with everything it needs."""


class Accept(Operation, frozen=True):
    run_id: str
    key: str
    text: str
    session_id: str
    at: int
    source: TurnSource = "cli"
    reset: Literal["new", "reset"] | None = None
    start: bool = False
    message_id: str | None = None
    full: DropPolicy | None = None  # what happens when QUEUE_CAP inputs wait; None is no cap


class Cancel(Operation, frozen=True):
    key: str
    run_id: str | None


class Claim(Operation, frozen=True):
    key: str
    run_ids: tuple[str, ...]
    at: int


class Absorb(Operation, frozen=True):
    run_id: str
    fence: int
    run_ids: tuple[str, ...]
    at: int


class Step(Operation, frozen=True):
    run_id: str
    fence: int
    notes: tuple[Note, ...]
    usage: tuple[Call, ...]
    at: int


class Finish(Operation, frozen=True):
    run_id: str
    fence: int
    notes: tuple[Note, ...]
    outcome: Outcomes
    usage: tuple[Call, ...]
    deliveries: tuple[str, ...]
    tokens: int | None
    at: int


class TakeOver(Operation, frozen=True):
    run_id: str
    owner: str
    at: int


class Append(Operation, frozen=True):
    key: str
    notes: tuple[Note, ...]
    at: int


class Edit(Operation, frozen=True):
    key: str
    field: str
    value: Any
    session_id: str
    at: int
    expected: str | None = None


class Stale(Operation, frozen=True):
    """Two edits made from the same reading: the second must be refused."""

    key: str
    subject: str
    at: int


class Reset(Operation, frozen=True):
    key: str
    reason: Literal["new", "reset"]
    session_id: str
    at: int


class Undo(Operation, frozen=True):
    key: str
    at: int


class Delete(Operation, frozen=True):
    key: str
    at: int


class MarkRead(Operation, frozen=True):
    key: str
    seq: int


class Deliver(Operation, frozen=True):
    name: str
    move: str
    at: int


class Recover(Operation, frozen=True):
    at: int


@lru_cache(maxsize=4096)
def seed_of(key: str) -> SessionSeed:
    agent_id = key.split(":")[1]
    return SessionSeed(key, agent_id, "main" if key.endswith(":main") else "other")


@lru_cache(maxsize=512)
def drafted(note: Note, run_id: str | None = None) -> EntryDraft:
    """The entry of a note. What only the machine sees is not found by a search."""
    body = encode({"role": note.role, "content": note.text, "timestamp": NOON, "pad": "x" * note.size})
    words = index_text(note.text) if note.audience == "people" else ""
    return EntryDraft("message", body, note.role, None, note.audience, run_id, note.text or None, words)


def run_end(op: Finish) -> RunEnd:
    tokens = op.tokens
    return RunEnd(op.outcome, "stop", input_tokens=tokens, output_tokens=tokens)


# -- choosing ------------------------------------------------------------------------------------------


class Chooser:
    """Makes the next operation of a kind from a model's state. Ids count up; the clock moves on."""

    def __init__(self, model: Model, pick: Pick, prefix: str = "") -> None:
        self.model = model
        self.pick = pick
        self.now = NOON
        self._prefix = prefix
        self._number = 0

    def make(self, kind: str) -> Operation | None:
        """An operation of this kind, or None when there is nothing that it could be about."""
        self.now += 1000 * (1 + self.pick(3))
        made: Operation | None = getattr(self, "_" + kind)()
        return made

    def _fresh(self, kind: str) -> str:
        self._number += 1
        return f"{self._prefix}{kind}-{self._number}"

    def _one(self, items: Sequence[_Item]) -> _Item:
        return items[self.pick(len(items))]

    def _chance(self, of: int) -> bool:
        return self.pick(of) == 0

    def _key(self) -> str:
        return self._one(KEYS)

    def _text(self) -> str:
        return " ".join(self._one(WORDS) for _ in range(1 + self.pick(3)))

    def _note(self, role: str) -> Note:
        sort = self.pick(12)
        audience: Audience = "internal" if sort == 0 else "people"
        return Note(self._text(), role, audience, 70_000 if sort == 1 else 0)

    def _notes(self, role: str) -> tuple[Note, ...]:
        return tuple(self._note(role) for _ in range(1 + self.pick(2)))

    def _usage(self) -> tuple[Call, ...]:
        known = list(self.model.usage)
        if known and self._chance(4):
            return (Call(self._one(known[-3:]), 0.25),)
        return (Call(self._fresh("call"), self._one((None, 0.25, 0.5))),)

    def _run(self) -> tuple[str, int] | None:
        """A run and a fence: mostly an active one with the right fence."""
        runs = list(self.model.runs.values())[-12:]
        running = [run for run in self.model.runs.values() if run.state == "active"]
        if not runs:
            return None
        run = self._one(running) if running and not self._chance(6) else self._one(runs)
        return run.run_id, run.fence - self._chance(8)

    def _accept(self) -> Operation:
        if self.model.inbox and self._chance(10):
            return self._accept_again()
        sources: tuple[TurnSource, ...] = ("cli", "channel", "heartbeat")
        sort, source = self.pick(12), self._one(sources)
        name = self._fresh("run")
        return Accept(
            name, self._key(), self._text(), f"{name}-window", self.now, source,
            "new" if sort == 0 else None, sort > 5, f"m-{name}" if source == "channel" else None,
            self._one((None, None, "old", "new", "summarize")),
        )  # fmt: skip

    def _accept_again(self) -> Operation:
        """The same input once more: word for word, with other words, or under another handle."""
        item, sort, name = self._one(list(self.model.inbox.values())[-8:]), self.pick(3), self._fresh("again")
        if sort == 0 and item.message_id is not None:
            return Accept(name, item.key, item.text, f"{name}-window", self.now, message_id=item.message_id)
        text = item.text if sort == 1 else item.text + " other"
        return Accept(item.run_id, item.key, text, f"{name}-window", self.now)

    def _cancel(self) -> Operation:
        queued = [item for item in self.model.inbox.values() if item.state == "queued"]
        if not queued or self._chance(4):
            return Cancel(self._key(), None)
        item = self._one(queued)
        return Cancel(item.key if self.pick(8) else self._key(), item.run_id)

    def _claim(self) -> Operation | None:
        names = self._waiting()
        if names is None:
            return None
        return Claim(self.model.inbox[names[0]].key, names, self.now)

    def _waiting(self) -> tuple[str, ...] | None:
        """Inputs of one session to take up: mostly those that wait."""
        if not self.model.inbox:
            return None
        queued = [item for item in self.model.inbox.values() if item.state == "queued"]
        item = self._one(queued or list(self.model.inbox.values())[-5:])
        of_session = [other.run_id for other in queued if other.key == item.key]
        return tuple(of_session[: 1 + self.pick(3)]) or (item.run_id,)

    def _absorb(self) -> Operation | None:
        run = self._run()
        if run is None:
            return None
        key = self.model.runs[run[0]].key
        names = tuple(item.run_id for item in self.model.queued(key)[: 1 + self.pick(2)])
        return Absorb(*run, names, self.now)

    def _step(self) -> Operation | None:
        run = self._run()
        return None if run is None else Step(*run, self._notes("assistant"), self._usage(), self.now)

    def _finish(self) -> Operation | None:
        run = self._run()
        if run is None:
            return None
        ends: tuple[Outcomes, ...] = ("ok", "ok", "ok", "error", "aborted", "timeout", "interrupted")
        deliveries = tuple(self._fresh("out") for _ in range(self.pick(3)))
        if self.model.outbox and self._chance(6):
            deliveries += (self._one(list(self.model.outbox)),)
        notes = self._notes("assistant") if self.pick(6) else ()
        tokens = self._one((None, 10, 20))
        return Finish(*run, notes, self._one(ends), self._usage(), deliveries, tokens, self.now)

    def _takeover(self) -> Operation | None:
        run = self._run()
        return None if run is None else TakeOver(run[0], self._fresh("owner"), self.now)

    def _append(self) -> Operation:
        return Append(self._key(), self._notes("user"), self.now)

    def _edit(self) -> Operation:
        key, sort, name = self._key(), self.pick(8), self._fresh("edit")
        field, value = "subject", cast("Any", name)
        if sort < 4:
            field, value = "label", self._one(LABELS)
        elif sort == 4:
            field, value = "label", None
        elif sort == 5:
            session = self.model.sessions.get(key)
            archived = session is not None and session.entry.archived_at is not None
            field, value = "archived_at", None if archived else self.now
        expected = None
        if sort == 6:
            expected = self._one(list(self.model.windows) or ["nowhere"])
        return Edit(key, field, value, f"{name}-window", self.now, expected)

    def _stale(self) -> Operation | None:
        keys = list(self.model.sessions)
        return Stale(self._one(keys), self._fresh("subject"), self.now) if keys else None

    def _reset(self) -> Operation:
        reason: Literal["new", "reset"] = "new" if self._chance(2) else "reset"
        return Reset(self._key(), reason, self._fresh("window"), self.now)

    def _undo(self) -> Operation:
        return Undo(self._key(), self.now)

    def _delete(self) -> Operation:
        return Delete(self._key(), self.now)

    def _markread(self) -> Operation:
        return MarkRead(self._key(), self.pick(20))

    def _deliver(self) -> Operation | None:
        names = list(self.model.outbox)[-10:]
        return Deliver(self._one(names), self._one(list(DELIVERY_MOVES)), self.now) if names else None

    def _recover(self) -> Operation:
        return Recover(self.now)


# How often each kind is chosen: a busy store, now and then reset and deleted.
WEIGHTS = {
    "accept": 24, "cancel": 2, "claim": 10, "absorb": 5, "step": 12, "finish": 10, "takeover": 3,
    "append": 12, "edit": 8, "stale": 2, "reset": 3, "undo": 2, "delete": 2, "markread": 2, "deliver": 7,
    "recover": 1,
}  # fmt: skip


def about(op: Operation, model: Model) -> str | None:
    """The session that an operation is about; None when it is about more than one."""
    if isinstance(op, Absorb | Step | Finish | TakeOver):
        return model.runs[op.run_id].key
    if isinstance(op, Deliver):
        return model.outbox[op.name].key
    key: str | None = None if isinstance(op, Stale) else getattr(op, "key", None)
    return key
