"""A person's traces in sessions that others share: find them, and put tombstones in their places.

A tombstone keeps the number, the id and the parent of an entry, so that the transcript
stays dense and its pointers hold; what was said is gone. `erasing` decides what becomes
a tombstone and what goes as a whole.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from openclaw.domain.display import text_of_content
from openclaw.domain.entry import SessionEntry, entry_from_stored
from openclaw.store import purging, sessions
from openclaw.store.database import Transaction
from openclaw.store.statements import load_statements
from openclaw.store.transcript import PREVIEW_CHARS, entry_range

SQL = load_statements("erasing.sql")
ERASED = "[erased]"
SHORTEST_MARK = 3  # a shorter name would be found in words that have nothing to do with the person

_decode: Any = msgspec.json.Decoder().decode
_encode = msgspec.json.Encoder().encode


class Person(Struct, frozen=True):
    """Who it is: a principal, or a peer on a platform, narrowed by channel and account if given; or both."""

    principal: str | None = None
    peer_id: str | None = None
    channel: str | None = None
    account_id: str | None = None


def known_as(channel: str, peer_id: str, account_id: str | None = None) -> Person:
    """A person as a channel knows them: by their peer id, and by the principal that it makes."""
    return Person(f"{channel}:{peer_id}", peer_id, channel, account_id)


class Traces(Struct, frozen=True):
    """Where a person was: inputs by their handles, places, sessions, and the texts that name them."""

    run_ids: frozenset[str]
    places: tuple[int, ...]
    session_keys: frozenset[str]
    marks: tuple[str, ...]


class InShared(Struct, frozen=True):
    """What of a person is in one shared session: entries to bury, `said` of them their own messages."""

    entries: tuple[int, ...]
    said: int
    indexed: tuple[int, ...]


# -- finding ---------------------------------------------------------------------------------------


def find_traces(tx: Transaction, person: Person) -> Traces:
    """Everything that leads to the person. `search.fold` goes before, so that the index knows all words."""
    inputs = tx.rows(
        SQL["inputs_of_person"], (person.principal, person.peer_id, person.channel, person.account_id)
    )
    places = tx.rows(SQL["places_of_person"], (person.peer_id, person.channel, person.account_id))
    keys = {key for _, key in inputs}
    for number, _, _ in places:
        keys.update(key for (key,) in tx.rows(SQL["sessions_at_place"], (number,)))
    names = {person.principal, person.peer_id, *(name for _, *both in places for name in both)}
    marks = sorted(name for name in names if name and len(name) >= SHORTEST_MARK)
    return Traces(
        frozenset(run_id for run_id, _ in inputs),
        tuple(number for number, _, _ in places),
        frozenset(keys),
        tuple(marks),
    )


def only_theirs(tx: Transaction, session_key: str, theirs: Traces, started: bool = False) -> bool:
    """Whether nobody else is known to have used a session.

    What a machine put in counts for nobody. A user message whose author is not known counts for
    somebody else, unless the session was only ever reached from the person's own place, or was
    `started` by a session of theirs.
    """
    places = {number for (number,) in tx.rows(SQL["places_of_session"], (session_key,))}
    waiting = {run_id for (run_id,) in tx.rows(SQL["waiting_inputs"], (session_key,))}
    if waiting - theirs.run_ids:
        return False
    known_ground = started or (bool(places) and places <= set(theirs.places))
    for _, _, _, run_id, human in tx.rows(SQL["user_entries"], (session_key,)):
        if run_id in theirs.run_ids or human == 0:
            continue
        if human or not known_ground:
            return False
    return True


def find_in_shared(tx: Transaction, session_key: str, theirs: Traces) -> InShared:
    """Their messages, and the summaries after the first of them in each window."""
    said: list[int] = []
    first: dict[int, int] = {}
    for entry_no, window_no, seq, run_id, _ in tx.rows(SQL["user_entries"], (session_key,)):
        if run_id in theirs.run_ids:
            said.append(entry_no)
            first[window_no] = min(seq, first.get(window_no, seq))
    summaries = [
        entry_no
        for entry_no, window_no, seq in tx.rows(SQL["summaries"], (session_key,))
        if window_no in first and seq > first[window_no]
    ]
    buried = set(said)
    indexed = [
        search_no
        for search_no, window_no, seq in tx.rows(SQL["indexed_of_session"], (session_key,))
        if (window_no << 32) + seq in buried
    ]
    return InShared((*said, *summaries), len(said), tuple(indexed))


def deliveries_of(tx: Transaction, person: Person, theirs: Traces) -> list[int]:
    """Messages that were sent to the person, or in answer to them."""
    found = {
        number for run_id in theirs.run_ids for (number,) in tx.rows(SQL["deliveries_of_run"], (run_id,))
    }
    if person.peer_id:
        for mark in theirs.marks:
            params = (mark, person.channel, person.account_id)
            found.update(number for (number,) in tx.rows(SQL["deliveries_to"], params))
    return sorted(found)


# -- burying ---------------------------------------------------------------------------------------


def bury(tx: Transaction, entries: Sequence[int]) -> int:
    """Put a tombstone in the place of each entry; how many large bodies are gone with them."""
    blobs = 0
    for entry_no in entries:
        found = tx.row(SQL["full_entry"], (entry_no,))
        if found is None:
            continue
        *columns, blob_hash, body = found
        tx.run(purging.SQL["remove_entry"], (entry_no,))
        blobs += purging.release_blob(tx, blob_hash)
        tx.run(SQL["put_tombstone"], (*columns, _tombstone(body)))
    return blobs


def _tombstone(body: bytes) -> bytes:
    """The body with what was said taken out, and everything else that a reader of records needs kept."""
    try:
        stored = _decode(body)
    except msgspec.DecodeError:
        stored = {}
    if not isinstance(stored, dict) or "summary" not in stored:
        stamp = stored.get("timestamp") if isinstance(stored, dict) else None
        return _encode(
            {"role": "user", "content": ERASED, "timestamp": stamp if isinstance(stamp, int) else 0}
        )
    stored.pop("details", None)
    return _encode(stored | {"summary": ERASED})


def clean_session(tx: Transaction, session_key: str, marks: Sequence[str], now_ms: int) -> None:
    """Take the person out of the session's row: previews, names, origin and route."""
    sessions.forget_saved(tx, session_key)
    row = sessions.find(tx, session_key)
    if row is None:
        return
    bounds = entry_range(row.window_no)
    first, last = tx.row(SQL["first_said"], bounds), tx.row(SQL["last_said"], bounds)
    entry = _without(row.entry, marks)
    sessions.change(
        tx, row, entry, now_ms=min(now_ms, row.entry.updated_at), first_text=_preview(first),
        last_text=_preview(last),
    )  # fmt: skip


def _preview(found: tuple[Any, ...] | None) -> str | None:
    text = text_of_content(_decode(found[0])) if found is not None else ""
    return text[:PREVIEW_CHARS] or None


def _without(entry: SessionEntry, marks: Sequence[str]) -> SessionEntry:
    """The entry without the values that name the person; a route without its target is no route."""
    stored: dict[str, Any] = msgspec.to_builtins(entry)
    kept = _drop(stored, marks)
    for name in ("origin", "deliveryContext", "pendingFinalDelivery"):
        if kept.get(name) != stored.get(name):
            kept.pop(name, None)
    cleaned = entry_from_stored(kept | {"sessionId": entry.session_id, "updatedAt": entry.updated_at})
    return replace(cleaned, last_run_id=None)


def _drop(value: Any, marks: Sequence[str]) -> Any:
    if isinstance(value, dict):
        return {name: _drop(item, marks) for name, item in value.items() if not _names(item, marks)}
    if isinstance(value, list | tuple):
        return [_drop(item, marks) for item in value if not _names(item, marks)]
    return value


def _names(value: Any, marks: Sequence[str]) -> bool:
    return isinstance(value, str) and any(mark in value for mark in marks)
