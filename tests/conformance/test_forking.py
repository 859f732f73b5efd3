"""Forks: a session goes on from another one's transcript by a pointer; nothing is copied, nothing is lost."""

from __future__ import annotations

from functools import partial
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from openclaw.domain.resets import StartEmpty
from openclaw.domain.searchtext import query_terms
from openclaw.errors import InvalidRequest, SessionNotFound
from openclaw.store import transcript
from openclaw.store.export import Export
from openclaw.store.forking import MAX_BASES, Forked
from openclaw.store.records import SessionRow, SessionSeed
from openclaw.store.runs import RunEnd
from openclaw.store.sqlite import SqliteDatabase
from openclaw.store.store import Accepted, Store
from tests.conformance.forks import KEY, THREAD, context, fork, is_one_line, talk
from tests.conformance.making import (
    DONE,
    MAIN,
    NOON,
    PLAN,
    RESETS,
    begin,
    create,
    draft_inputs,
    in_memory,
    note,
    present,
    say,
    seed,
    select,
    texts,
    turn,
)


async def accept(
    store: Store, run_id: str, to: SessionSeed, fork_from: str | None, **fields: Any
) -> Accepted:
    new = replace(say(run_id, f"said by {run_id}", to=to), fork_from=fork_from, **fields)
    taken = await store.accept(
        new, RESETS, session_id=f"{run_id}-window", now_ms=NOON + 5, start=PLAN, draft_inputs=draft_inputs
    )
    assert isinstance(taken, Accepted)
    return taken


# -- a thread --------------------------------------------------------------------------------------


@pytest.mark.spec("LIFE-23")
async def test_the_first_turn_of_a_thread_goes_on_from_its_parent_once(
    store: Store, database: SqliteDatabase
) -> None:
    await turn(store, "run-1", "before")
    copies = await select(database, "SELECT count(*) FROM entries")
    taken = await accept(store, "run-2", THREAD, KEY)
    assert isinstance(taken.admission.fork, Forked) and taken.claimed is not None
    assert (taken.admission.fork.base_seq, taken.admission.fork.whole) == (2, True)
    assert taken.admission.session == taken.claimed.session == await present(store, THREAD.session_key)
    assert taken.claimed.session.entry.forked_from_parent is True
    await store.finish(taken.claimed.run, (note("answer", "assistant"),), DONE, now_ms=NOON + 6)
    seen = await context(store, THREAD.session_key)
    assert texts(seen) == ["before", "re: before", "said by run-2", "answer"]
    assert is_one_line(seen)
    # Two entries more, and not four: nothing was copied.
    assert copies == [(2,)] and await select(database, "SELECT count(*) FROM entries") == [(4,)]
    await turn(store, "run-3", "later", at=NOON + 7)
    assert texts(await context(store, THREAD.session_key)) == texts(seen)
    again = await accept(store, "run-4", THREAD, KEY)
    assert again.admission.fork == StartEmpty("already_forked")
    row, _ = await store.reset_session(THREAD.session_key, "reset", session_id="w9", now_ms=NOON + 8)
    assert await context(store, THREAD.session_key) == ()
    assert row.entry.forked_from_parent is True
    fresh = await accept(store, "run-5", THREAD, KEY)
    assert fresh.admission.fork == StartEmpty("already_forked")


@pytest.mark.spec("LIFE-23")
@pytest.mark.parametrize(
    ("tokens", "forks"), [(100_000, True), (100_001, False), (None, True)], ids=["just", "over", "unknown"]
)
async def test_a_parent_that_is_too_large_is_left_behind(
    store: Store, tokens: int | None, forks: bool
) -> None:
    active = await begin(store, "run-1", "before")
    await store.finish(active.run, (), RunEnd("ok", "stop", input_tokens=tokens), now_ms=NOON)
    taken = await accept(store, "run-2", THREAD, KEY)
    assert isinstance(taken.admission.fork, Forked) is forks
    if not forks:
        assert taken.admission.fork == StartEmpty("parent_too_large")
        assert texts(await context(store, THREAD.session_key)) == ["said by run-2"]
        # It began without its parent, and stays so when the parent gets smaller, also after a reset.
        await store.edit_session(
            MAIN, lambda entry: replace(entry, total_tokens=5), session_id="x", now_ms=NOON
        )
        await store.reset_session(THREAD.session_key, "reset", session_id="w9", now_ms=NOON + 8)
        later = await accept(store, "run-3", THREAD, KEY)
        assert later.admission.fork == StartEmpty("already_forked")


@pytest.mark.spec("LIFE-23")
async def test_a_parent_whose_size_nobody_told_is_measured(store: Store, database: SqliteDatabase) -> None:
    await create(store, MAIN)
    size = len(note("x").body)
    pad = 4 * 100_000 - size - len(note("").body)
    await talk(store, KEY, "x", "y" * (pad + 3))
    other = seed("main:thread:2", session_type="thread")
    fits = await accept(store, "run-1", THREAD, KEY)
    assert isinstance(fits.admission.fork, Forked)
    # A window that was just opened says 0: that is no measure of what came into it without a run.
    await store.edit_session(MAIN, lambda entry: replace(entry, total_tokens=0), session_id="x", now_ms=NOON)
    await talk(store, KEY, "")
    too_large = await accept(store, "run-2", other, KEY)
    assert too_large.admission.fork == StartEmpty("parent_too_large")


@pytest.mark.spec("LIFE-23")
@pytest.mark.parametrize("parent", [None, "agent:main:nobody", "agent:other:main"])
async def test_without_a_parent_of_its_own_agent_a_thread_starts_empty(
    store: Store, parent: str | None
) -> None:
    await turn(store, "run-1", "not yours", to=seed("main", agent_id="other"))
    taken = await accept(store, "run-2", THREAD, parent)
    assert taken.admission.fork == (None if parent is None else StartEmpty("parent_unknown"))
    assert taken.admission.session.entry.forked_from_parent is not True
    assert texts(await context(store, THREAD.session_key)) == ["said by run-2"]


@pytest.mark.spec("LIFE-23")
async def test_a_thread_that_was_only_observed_still_has_its_first_turn(store: Store) -> None:
    await turn(store, "run-1", "before")
    await create(store, THREAD)
    taken = await accept(store, "run-2", THREAD, KEY)
    assert isinstance(taken.admission.fork, Forked) and not taken.admission.created
    assert texts(await context(store, THREAD.session_key)) == ["before", "re: before", "said by run-2"]


# -- what is shown where ---------------------------------------------------------------------------


@pytest.mark.spec("LIFE-23", "TRX-4")
async def test_history_search_and_export_show_what_was_said_in_the_fork(
    store: Store, database: SqliteDatabase
) -> None:
    await turn(store, "run-1", "shared words")
    made = await fork(store, database, KEY, THREAD)
    assert (made.session.last_seq, made.session.message_count, made.session.read_seq) == (2, 0, 2)
    await turn(store, "run-2", "own words", to=THREAD)
    page = await store.history(THREAD.session_key, 10)
    assert page is not None
    assert texts(page.entries) == ["own words", "re: own words"]
    assert [entry.seq for entry in page.entries] == [3, 4]
    assert (page.session.message_count, page.session.first_text) == (2, "own words")
    hits = await store.search(query_terms("words"), session_key=THREAD.session_key)
    assert [hit.seq for hit in hits] == [4, 3]
    assert {hit.session_key for hit in await store.search(query_terms("shared"))} == {KEY}
    export = Export(database)
    window = await export.window_of(THREAD.session_key)
    assert window is not None
    lines = b"".join([piece async for piece in export.lines(window, cwd="/")]).splitlines()
    assert len(lines) == 3
    assert b'"parentId":null' in lines[1] and b"own words" in lines[1]
    window_no = made.session.window_no
    first = await store.entry(window_no, 1)
    assert first is not None and texts([first]) == ["shared words"]
    last = await store.entry(window_no, 4)
    assert last is not None and texts([last]) == ["re: own words"]
    assert await store.entry(window_no, 5) is None


async def test_a_fork_is_read_in_any_piece(store: Store, database: SqliteDatabase) -> None:
    await create(store, MAIN)
    await talk(store, KEY, "1", "2", "3")
    middle = seed("middle")
    await fork(store, database, KEY, middle)
    await talk(store, middle.session_key, "4", "5")
    made = await fork(store, database, middle.session_key, THREAD)
    await talk(store, THREAD.session_key, "6", "7")
    window_no = made.session.window_no
    whole = [str(number) for number in range(1, 8)]
    for after in range(9):
        assert texts(await store.context(window_no, after_seq=after)) == whole[after:]
    for first in range(-1, 9):
        for last in range(9):
            for limit in (1, 2, 3, 99):
                found = await database.read(
                    partial(transcript.span, window_no=window_no, first_seq=first, last_seq=last, limit=limit)
                )
                assert texts(found) == whole[max(first, 1) - 1 : last][:limit]
    assert await database.read(lambda tx: transcript.span(tx, 999, 1, 9)) == ()
    for seq, holder in ((1, 1), (3, 1), (4, 2), (5, 2), (6, 3), (7, 3), (8, 3)):
        assert await database.read(partial(transcript.holder_of, window_no=window_no, seq=seq)) == holder


# -- which forks can be ----------------------------------------------------------------------------


async def test_only_an_empty_session_becomes_a_fork_and_only_of_what_is_there(
    store: Store, database: SqliteDatabase
) -> None:
    await turn(store, "run-1", "before")
    with pytest.raises(SessionNotFound):
        await fork(store, database, "agent:main:nobody", seed("a"))
    for wrong in (-1, 3):
        with pytest.raises(InvalidRequest, match=f"has no entry {wrong} to fork at"):
            await fork(store, database, KEY, seed("a"), at_seq=wrong)
    await turn(store, "run-2", to=seed("b"))
    with pytest.raises(InvalidRequest, match="has begun already"):
        await fork(store, database, KEY, seed("b"))
    made = await fork(store, database, KEY, seed("c"), at_seq=0)
    assert (made.base_no, made.base_seq, made.session.last_seq) == (None, 0, 0)
    assert made.session.entry.forked_from_parent is True
    await fork(store, database, KEY, seed("d"), at_seq=1)
    assert texts(await context(store, "agent:main:d")) == ["before"]
    with pytest.raises(InvalidRequest, match="has begun already"):
        await fork(store, database, KEY, seed("d"))


async def test_a_parent_without_words_of_its_own_is_passed_over(
    store: Store, database: SqliteDatabase
) -> None:
    await turn(store, "run-1", "root")
    root = (await present(store)).window_no
    for name in ("a", "b", "c"):
        made = await fork(store, database, KEY, seed(name))
        assert (made.base_no, made.base_seq, made.whole) == (root, 2, True)
    await talk(store, "agent:main:c", "own")
    below = await fork(store, database, "agent:main:c", seed("d"), at_seq=1)
    assert (below.base_no, below.base_seq) == (root, 1)


async def test_a_chain_that_is_too_long_is_cut_at_its_near_end(
    store: Store, database: SqliteDatabase
) -> None:
    await create(store, MAIN)
    await talk(store, KEY, "0")
    parent = KEY
    for level in range(1, MAX_BASES + 3):
        child = seed(f"level-{level}")
        made = await fork(store, database, parent, child)
        assert made.whole is (level <= MAX_BASES)
        await talk(store, child.session_key, str(level))
        seen = texts(await context(store, child.session_key))
        kept = [str(number) for number in range(min(level, MAX_BASES))]
        assert seen == [*kept, str(level)]
        assert is_one_line(await context(store, child.session_key))
        parent = child.session_key


# -- any tree of forks -----------------------------------------------------------------------------

ACTS = st.lists(
    st.tuples(st.sampled_from(["say", "say", "fork", "reset", "undo"]), st.integers(0, 9), st.integers(0, 6)),
    max_size=25,
)


@pytest.mark.spec("LIFE-23")
@settings(max_examples=80, deadline=None)
@given(ACTS)
def test_every_session_reads_what_it_should_in_any_tree(acts: list[tuple[str, int, int]]) -> None:
    async def play(store: Store, database: SqliteDatabase) -> None:
        await create(store, MAIN)
        wanted: dict[str, list[str]] = {KEY: []}
        before: dict[str, list[list[str]]] = {KEY: []}
        for number, (act, who, where) in enumerate(acts):
            key = list(wanted)[who % len(wanted)]
            if act == "say":
                await talk(store, key, f"said {number}")
                wanted[key].append(f"said {number}")
            elif act == "reset":
                await store.reset_session(key, "reset", session_id=f"w{number}", now_ms=NOON)
                before[key].append(wanted[key])
                wanted[key] = []
            elif act == "undo" and before[key]:
                await store.undo_reset(key, now_ms=NOON)
                wanted[key] = before[key].pop()
            elif act == "fork":
                at = min(where, len(wanted[key]))
                child = seed(f"c{number}")
                made = await fork(store, database, key, child, at_seq=at)
                if made.whole:
                    wanted[child.session_key] = wanted[key][:at]
                    before[child.session_key] = []
        for key, said in wanted.items():
            seen = await context(store, key)
            assert texts(seen) == said
            assert is_one_line(seen)
            row: SessionRow = await present(store, key)
            assert row.last_seq == len(said)

    in_memory(play)
