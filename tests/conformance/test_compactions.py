"""Compactions in every database: commits, refusals, undoing, and reading only the active context."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import msgspec
import pytest

from openclaw.domain.context import rebuild_context
from openclaw.domain.transcript import encode, text_of
from openclaw.engine.compaction_context import records_of
from openclaw.errors import InvalidRequest, SessionNotFound, VersionConflict
from openclaw.store import compactions as units
from openclaw.store import transcript
from openclaw.store.compactions import (
    CompactionDraft,
    CompactionKept,
    Compactions,
    ContextRows,
    ContextStart,
    UndoDraft,
)
from openclaw.store.database import Database, Row, Transaction
from openclaw.store.records import EntryDraft, SessionRow
from openclaw.store.runs import RunLost
from openclaw.store.store import Store
from openclaw.store.transcript import entry_id_of
from tests.conformance.making import MAIN, NOON, begin, create, execute, note, present, select

KEY = MAIN.session_key


def compaction(row: SessionRow, base: int, kept: int, **fields: Any) -> CompactionDraft:
    known: dict[str, Any] = {
        "session_key": row.session_key,
        "window_no": row.window_no,
        "base_seq": base,
        "first_kept_seq": kept,
        "summary": "the summary",
        "tokens_before": 900,
        "tokens_after": 90,
    }
    return CompactionDraft(**known | fields)


async def filled(store: Store, count: int) -> SessionRow:
    await create(store, MAIN)
    await store.append(KEY, tuple(note(f"m{n}") for n in range(1, count + 1)), now_ms=NOON)
    return await present(store)


def shown(rows: ContextRows) -> list[str]:
    """The context as a model would see it."""
    records = records_of(rows.entries)
    return [text_of(message).rpartition("\n")[2] for message in rebuild_context(records, records[-1].id)]


async def whole(store: Store, row: SessionRow) -> ContextRows:
    return ContextRows(ContextStart(1), await store.context(row.window_no))


# -- committing ------------------------------------------------------------------------------------


@pytest.mark.spec("COMP-3", "COMP-9", "TRX-5")
async def test_a_compaction_is_an_entry_with_a_pointer(database: Database, store: Store) -> None:
    row = await filled(store, 5)
    verbs = Compactions(database)
    draft = compaction(row, 5, 4, details={"strategy": "summary"}, run_id="run-1")
    kept = await verbs.commit(draft, now_ms=NOON + 5)
    assert (kept.entry.seq, kept.entry.type, kept.entry.audience) == (6, "compaction", "model")
    assert kept.entry.run_id == "run-1"
    assert msgspec.json.decode(kept.entry.body) == {
        "summary": "the summary",
        "firstKeptEntryId": entry_id_of(row.id_salt, 4),
        "tokensBefore": 900,
        "details": {"strategy": "summary"},
    }
    entry = kept.session.entry
    assert (entry.compaction_count, entry.total_tokens, entry.total_tokens_fresh) == (1, 90, False)
    assert entry.session_id == row.entry.session_id
    assert kept.session == await present(store)
    assert kept.session.message_count == 5
    assert [stored.seq for stored in await store.context(row.window_no)] == [1, 2, 3, 4, 5, 6]
    assert shown(await verbs.context(row.window_no)) == ["the summary", "m4", "m5"]
    await store.append(KEY, (note("m6"),), now_ms=NOON + 6)
    again = await verbs.commit(compaction(row, 7, 7), now_ms=NOON + 7)
    assert again.session.entry.compaction_count == 2
    assert shown(await verbs.context(row.window_no)) == ["the summary", "m6"]


@pytest.mark.spec("COMP-10")
async def test_what_comes_meanwhile_stays_also_when_nothing_is_kept(database: Database, store: Store) -> None:
    row = await filled(store, 3)
    verbs = Compactions(database)
    await store.append(KEY, (note("meanwhile"),), now_ms=NOON)
    await verbs.commit(compaction(row, 3, 4), now_ms=NOON)
    assert shown(await verbs.context(row.window_no)) == ["the summary", "meanwhile"]
    kept = await verbs.commit(compaction(row, 5, 6, summary="all of it"), now_ms=NOON)
    assert msgspec.json.decode(kept.entry.body)["firstKeptEntryId"] == kept.entry.entry_id
    assert shown(await verbs.context(row.window_no)) == ["all of it"]
    await store.append(KEY, (note("next"),), now_ms=NOON)
    assert shown(await verbs.context(row.window_no)) == ["all of it", "next"]


@pytest.mark.spec("COMP-3")
@pytest.mark.parametrize("changed", [True, False])
async def test_nothing_is_kept_in_an_imported_window_too(
    database: Database, store: Store, changed: bool
) -> None:
    row = await filled(store, 2)
    # Ids that came with a file may be taken: such a window has other ids set aside for entries to come.
    await execute(database, "UPDATE sessions SET id_salt = id_salt + ?", transcript.FOREIGN_IDS)
    if changed:
        sql = "INSERT INTO id_changes (window_no, seq, entry_id) VALUES (?, ?, ?)"
        await execute(database, sql, row.window_no, 3, "0000beef")
    kept = await Compactions(database).commit(compaction(row, 2, 3), now_ms=NOON)
    assert kept.entry.entry_id == ("0000beef" if changed else entry_id_of(row.id_salt, 3))
    assert msgspec.json.decode(kept.entry.body)["firstKeptEntryId"] == kept.entry.entry_id
    assert shown(await Compactions(database).context(row.window_no)) == ["the summary"]


@pytest.mark.spec("COMP-10")
async def test_a_compaction_that_was_overtaken_is_refused(database: Database, store: Store) -> None:
    row = await filled(store, 5)
    verbs = Compactions(database)
    first = await verbs.commit(compaction(row, 5, 4), now_ms=NOON)
    with pytest.raises(VersionConflict, match="compacted in the meantime"):
        await verbs.commit(compaction(row, 5, 5), now_ms=NOON)
    undo = undo_of(row, first, base=6)
    await verbs.undo(undo, now_ms=NOON)
    with pytest.raises(VersionConflict, match="compacted in the meantime"):
        await verbs.commit(compaction(row, 6, 5), now_ms=NOON)
    assert (await present(store)).entry.compaction_count == 1
    await store.reset_session(KEY, "new", session_id="next-window", now_ms=NOON)
    with pytest.raises(VersionConflict, match="reset in the meantime"):
        await verbs.commit(compaction(row, 7, 5), now_ms=NOON)
    assert await select(database, "SELECT count(*) FROM entries WHERE type = ?", "compaction") == [(1,)]
    nobody = compaction(row, 1, 1, session_key="agent:main:nobody")
    with pytest.raises(SessionNotFound):
        await verbs.commit(nobody, now_ms=NOON)


@pytest.mark.spec("COMP-10")
async def test_a_compaction_of_a_run_needs_its_fence(database: Database, store: Store) -> None:
    claimed = await begin(store, "run-1")
    verbs = Compactions(database)
    row = claimed.session
    draft = compaction(row, row.last_seq, row.last_seq)
    kept = await verbs.commit(draft, now_ms=NOON + 9, run=claimed.run)
    assert kept.session.entry.status == "running"
    held = await store.run("run-1")
    assert held is not None
    assert held.last_progress == NOON + 9
    taken = await store.take_over("run-1", "owner-2", now_ms=NOON)
    assert taken is not None
    late = compaction(row, kept.session.last_seq, row.last_seq)
    with pytest.raises(RunLost):
        await verbs.commit(late, now_ms=NOON, run=claimed.run)
    assert (await present(store)).last_seq == kept.session.last_seq
    assert (await verbs.commit(late, now_ms=NOON, run=taken)).session.entry.compaction_count == 2


# -- undoing ---------------------------------------------------------------------------------------


def undo_of(row: SessionRow, kept: CompactionKept, *, base: int) -> UndoDraft:
    return UndoDraft(
        session_key=row.session_key,
        window_no=row.window_no,
        base_seq=base,
        compaction_id=kept.entry.entry_id,
        tokens_after=777,
    )


@pytest.mark.spec("TRX-1", "TRX-9")
async def test_an_undone_compaction_gives_the_context_back(database: Database, store: Store) -> None:
    row = await filled(store, 4)
    verbs = Compactions(database)
    kept = await verbs.commit(compaction(row, 4, 4), now_ms=NOON)
    await store.append(KEY, (note("m5"),), now_ms=NOON)
    wider = await verbs.context(row.window_no, undone=(kept.entry.entry_id,))
    assert [entry.seq for entry in wider.entries] == [1, 2, 3, 4, 5, 6]
    undone = await verbs.undo(undo_of(row, kept, base=6), now_ms=NOON + 1)
    assert (undone.entry.type, undone.entry.audience) == ("custom", "internal")
    assert msgspec.json.decode(undone.entry.body) == {
        "customType": "compaction_undone",
        "data": {"targetId": kept.entry.entry_id},
    }
    entry = undone.session.entry
    assert (entry.compaction_count, entry.total_tokens, entry.total_tokens_fresh) == (1, 777, False)
    assert shown(await verbs.context(row.window_no)) == ["m1", "m2", "m3", "m4", "m5"]
    with pytest.raises(InvalidRequest, match="only the last one"):
        await verbs.undo(undo_of(row, kept, base=7), now_ms=NOON)


@pytest.mark.spec("TRX-9")
async def test_only_the_compaction_in_force_can_be_undone(database: Database, store: Store) -> None:
    row = await filled(store, 4)
    verbs = Compactions(database)
    first = await verbs.commit(compaction(row, 4, 3, summary="first"), now_ms=NOON)
    second = await verbs.commit(compaction(row, 5, 4, summary="second"), now_ms=NOON)
    with pytest.raises(VersionConflict):
        await verbs.undo(undo_of(row, first, base=5), now_ms=NOON)
    with pytest.raises(InvalidRequest):
        await verbs.undo(undo_of(row, first, base=6), now_ms=NOON)
    await verbs.undo(undo_of(row, second, base=6), now_ms=NOON)
    assert shown(await verbs.context(row.window_no)) == ["first", "m3", "m4"]
    await verbs.undo(undo_of(row, first, base=7), now_ms=NOON)
    assert shown(await verbs.context(row.window_no)) == ["m1", "m2", "m3", "m4"]


@pytest.mark.spec("FLUSH-4")
async def test_a_flush_is_noted_with_the_session(database: Database, store: Store) -> None:
    await create(store, MAIN)
    row = await Compactions(database).note_flush(KEY, 3, now_ms=NOON + 4)
    assert (row.entry.memory_flush_at, row.entry.memory_flush_compaction_count) == (NOON + 4, 3)
    assert row == await present(store)


# -- reading ---------------------------------------------------------------------------------------


class Counting:
    """A transaction that counts what passes through it."""

    def __init__(self, inner: Transaction) -> None:
        self.inner = inner
        self.statements = 0
        self.returned = 0

    def rows(self, sql: str, params: Row = ()) -> list[Row]:
        self.statements += 1
        found = self.inner.rows(sql, params)
        self.returned += len(found)
        return found

    def row(self, sql: str, params: Row = ()) -> Row | None:
        self.statements += 1
        found = self.inner.row(sql, params)
        self.returned += found is not None
        return found

    def run(self, sql: str, params: Row = ()) -> None:
        raise AssertionError("reading writes nothing")


async def counted(
    database: Database, query: Callable[[Transaction], ContextRows]
) -> tuple[ContextRows, Counting]:
    counters: list[Counting] = []

    def read(tx: Transaction) -> ContextRows:
        counters.append(Counting(tx))
        return query(counters[-1])

    return await database.read(read), counters[-1]


@pytest.mark.spec("COMP-3", "TRX-9")
async def test_a_long_transcript_is_not_read_beyond_its_compaction(database: Database, store: Store) -> None:
    await create(store, MAIN)
    for start in range(0, 10_000, 1000):
        drafts = tuple(note(f"m{number}") for number in range(start + 1, start + 1001))
        await store.append(KEY, tuple(msgspec.structs.replace(d, words="") for d in drafts), now_ms=NOON)
    row = await present(store)
    await Compactions(database).commit(compaction(row, 10_000, 9_990), now_ms=NOON)
    await store.append(KEY, (note("after"),), now_ms=NOON)
    rows, counter = await counted(database, lambda tx: units.read_context(tx, row.window_no))
    assert rows.start.first_seq == 9_990
    assert [entry.seq for entry in rows.entries] == list(range(9_990, 10_003))
    assert counter.statements <= 8
    assert counter.returned <= len(rows.entries) + 4
    assert shown(rows) == shown(await whole(store, row))


@pytest.mark.spec("TRX-9")
async def test_a_window_without_compaction_begins_at_its_beginning(database: Database, store: Store) -> None:
    row = await filled(store, 3)
    other = EntryDraft(
        "custom", encode({"customType": "other", "data": {"targetId": "x"}}), audience="internal"
    )
    strange = EntryDraft("custom", b'{"customType":"compaction_undone"}', audience="internal")
    await store.append(KEY, (other, strange), now_ms=NOON)
    rows = await Compactions(database).context(row.window_no)
    assert rows.start == ContextStart(1)
    assert len(rows.entries) == 5
    kept = await Compactions(database).commit(compaction(row, 5, 3), now_ms=NOON)
    await store.append(KEY, (other, strange), now_ms=NOON)
    rows = await Compactions(database).context(row.window_no)
    assert rows.start == ContextStart(3, 6, kept.entry.entry_id)
    forged = EntryDraft(
        "custom", encode({"customType": "x", "data": {"targetId": kept.entry.entry_id}}), audience="internal"
    )
    await store.append(KEY, (forged,), now_ms=NOON)
    assert (await Compactions(database).context(row.window_no)).start.first_seq == 3
