"""Forks: a session that goes on from the transcript of another one, without a copy (LIFE-23, SPAWN-8).

A fork is a pointer on a window: its base, and the last entry of the base that it
sees. Its own entries count on from there, so that a model reads one dense transcript
while history, search and export show what was said in the fork itself. The base is
a window and not a session: a reset of the parent changes nothing for its forks.

Whether a thread forks is decided in `domain.resets`; here it is asked, and done.
"""

from __future__ import annotations

from msgspec import Struct
from msgspec.structs import replace

from openclaw.domain.resets import Fork, StartEmpty, decide_thread_fork
from openclaw.errors import InvalidRequest
from openclaw.store import sessions, transcript
from openclaw.store.database import Transaction
from openclaw.store.records import SessionRow
from openclaw.store.statements import load_statements

MAX_BASES = 8  # windows that one transcript is read from, besides its own
BYTES_PER_TOKEN = 4
_COPY_CHANGES = load_statements("imports.sql")["copy_changes"]


class Forked(Struct, frozen=True):
    """A session that goes on from its parent. Not `whole`: of too long a chain the near end is missing."""

    session: SessionRow
    base_no: int | None
    base_seq: int
    whole: bool = True


class _Base(Struct, frozen=True):
    window_no: int
    seq: int
    salt: int


def fork_window(
    tx: Transaction, parent_key: str, child: SessionRow, now_ms: int, *, at_seq: int | None = None
) -> Forked:
    """Let a session that has said nothing yet go on from its parent's transcript, up to `at_seq`.

    Without `at_seq` it sees everything that the parent's window holds now. A base without entries of its
    own is passed over. A chain of more than eight bases is cut at its near end: the fork then goes on
    from the nearest window that can carry one more.
    """
    parent = sessions.get(tx, parent_key)
    if child.last_seq or sessions.window_by_no(tx, child.window_no).base_no is not None:
        raise InvalidRequest(f"{child.session_key} has begun already; only an empty session can be a fork")
    wanted = parent.last_seq if at_seq is None else at_seq
    if not 0 <= wanted <= parent.last_seq:
        raise InvalidRequest(f"{parent_key} has no entry {wanted} to fork at")
    chain = _chain(tx, parent.window_no, wanted)
    kept = chain[-MAX_BASES:]
    base = kept[0] if kept else None
    if base is not None:
        tx.run(sessions.SQL["base_window"], (base.window_no, base.seq, base.salt, child.window_no))
        if base.salt >= transcript.FOREIGN_IDS:
            # Ids that an import has taken must not come again in what follows it.
            tx.run(_COPY_CHANGES, (child.window_no, base.window_no, base.seq))
    seq = base.seq if base else 0
    session = sessions.change(
        tx, child, replace(child.entry, forked_from_parent=True), now_ms=now_ms, last_seq=seq, read_seq=seq,
        id_salt=base.salt if base else child.id_salt,
    )  # fmt: skip
    return Forked(session, base.window_no if base else None, seq, len(kept) == len(chain))


def _chain(tx: Transaction, window_no: int, seq: int) -> list[_Base]:
    """The windows that hold the entries up to `seq`, nearest first, each with its last entry seen."""
    chain: list[_Base] = []
    for number, _, base_seq, salt in tx.rows(transcript.SQL["bases"], (window_no,)):
        if seq > base_seq:
            chain.append(_Base(number, seq, salt))
        seq = min(seq, base_seq)
    return chain


def fork_thread(
    tx: Transaction, parent_key: str | None, child: SessionRow, now_ms: int
) -> Forked | StartEmpty:
    """Fork a thread off the session that it hangs on, if this is its first turn (LIFE-23).

    A session of another agent is no parent: its transcript is not this agent's to read.
    """
    parent = sessions.find(tx, parent_key) if parent_key else None
    if parent is not None and parent.agent_id != child.agent_id:
        parent = None
    begun = child.entry.forked_from_parent or child.last_seq > 0
    first = sessions.window_by_no(tx, child.window_no).previous_no is None
    decided = decide_thread_fork(
        parent_key=parent_key,
        parent_has_entry=parent is not None,
        already_forked=begun or not first,
        parent_tokens=0 if parent is None else _tokens_of(tx, parent),
    )
    return fork_window(tx, decided.parent_key, child, now_ms) if isinstance(decided, Fork) else decided


def _tokens_of(tx: Transaction, parent: SessionRow) -> int:
    """What the parent's transcript takes in a model's context: as its last run told, else by its length."""
    if parent.entry.total_tokens:
        return parent.entry.total_tokens
    size = 0
    for number, *_ in tx.rows(transcript.SQL["bases"], (parent.window_no,)):
        counted = tx.row(transcript.SQL["size_of_window"], transcript.entry_range(number))
        size += counted[0] if counted else 0
    return size // BYTES_PER_TOKEN
