"""Reading the active context alone gives what reading the whole window gives, for any transcript."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from openclaw.domain.compaction import CompactionSettings
from openclaw.domain.context import rebuild_context
from openclaw.domain.transcript import Message, encode
from openclaw.engine.compaction_context import read_for_compaction, records_of
from openclaw.store.compactions import Compactions
from openclaw.store.records import EntryDraft, StoredEntry
from openclaw.store.sqlite import SqliteDatabase
from openclaw.store.store import Store
from openclaw.store.transcript import entry_id_of, entry_no_of
from tests.conformance.making import MAIN, NOON, create, execute, in_memory, note

KINDS = ("say", "say", "say", "compaction", "undo", "reset", "custom", "jump")
MOVES = st.lists(st.tuples(st.sampled_from(KINDS), st.integers(0, 40)), min_size=1, max_size=25)


def draft_of(kind: str, number: int, target_id: str) -> EntryDraft:
    if kind == "compaction":
        body = {"summary": f"sum {number}", "firstKeptEntryId": target_id, "tokensBefore": 1}
        return EntryDraft("compaction", encode(body), audience="model")
    if kind == "undo":
        data = {"customType": "compaction_undone", "data": {"targetId": target_id}}
        return EntryDraft("custom", encode(data), audience="internal")
    if kind == "reset":
        kept = {"firstKeptEntryId": target_id} if number % 2 else {}
        return EntryDraft("reset", encode(kept), audience="internal")
    if kind == "custom":
        return EntryDraft("custom", encode({"customType": "x", "data": number}), audience="internal")
    return note(f"m{number}")


def context_of(entries: tuple[StoredEntry, ...]) -> tuple[Message, ...]:
    records = records_of(entries)
    return rebuild_context(records, records[-1].id)


@pytest.mark.spec("TRX-9")
@settings(max_examples=150, deadline=None)
@given(MOVES)
def test_the_tail_gives_what_the_whole_window_gives(moves: list[tuple[str, int]]) -> None:
    async def scenario(store: Store, database: SqliteDatabase) -> None:
        row = await create(store, MAIN)
        for number, (kind, pick) in enumerate(moves, 1):
            # Now and then the target does not exist yet, or is the entry itself.
            target_id = entry_id_of(row.id_salt, pick % (number + 2))
            await store.append(MAIN.session_key, (draft_of(kind, number, target_id),), now_ms=NOON)
            if kind == "jump" and pick < number:
                entry_no = entry_no_of(row.window_no, number)
                await execute(
                    database, "UPDATE entries SET parent_seq = ? WHERE entry_no = ?", pick or None, entry_no
                )
        rows = await Compactions(database).context(row.window_no)
        everything = await store.context(row.window_no)
        assert rows.entries == everything[rows.start.first_seq - 1 :]
        assert context_of(rows.entries) == context_of(everything)
        read = read_for_compaction(rows, 1000, "manual", CompactionSettings(), 0)
        messages = tuple(item.message for item in read.task.items)
        known = (read.task.previous, *messages) if read.task.previous else messages
        assert known == context_of(everything)
        assert read.base_seq == len(moves)

    in_memory(scenario)
