"""Search and who may see what: asked before the limit, once for a session, never a hit too many or few."""

from __future__ import annotations

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from openclaw.domain.searchtext import query_terms
from openclaw.domain.visibility import (
    EveryRow,
    SessionCaller,
    SomeRows,
    TargetFacts,
    VisibilityLevel,
    VisibilityPolicy,
    Visible,
    decide_visibility,
    visibility_scope,
)
from openclaw.store import purging, search
from openclaw.store.records import SessionSeed
from openclaw.store.search import Hit
from openclaw.store.sqlite import SqliteDatabase
from openclaw.store.store import Store
from tests.conformance.making import NOON, create, execute, in_memory, note, seed, select

WORD = query_terms("word")
ROOT = seed("root", "a")
SEEDS = (
    ROOT,
    seed("child", "a", spawned_by=ROOT.session_key),
    seed("thread", "a", parent_session_key=ROOT.session_key),
    seed("other", "a"),
    seed("root", "b"),
    seed("child", "b", spawned_by=ROOT.session_key),
)
LEVELS: tuple[VisibilityLevel, ...] = ("self", "tree", "agent", "all")


class Sight:
    """What a session sees, and how often it was asked."""

    def __init__(self, level: VisibilityLevel, caller: SessionSeed = ROOT) -> None:
        self._policy = VisibilityPolicy(level=level, agent_to_agent_enabled=True)
        self._caller = SessionCaller(session_key=caller.session_key, agent_id=caller.agent_id)
        self.scope = visibility_scope(self._policy, self._caller)
        self.asked: list[str] = []

    def judge(self, facts: TargetFacts) -> bool:
        self.asked.append(facts.session_key)
        return self.sees(facts)

    def sees(self, facts: TargetFacts) -> bool:
        return isinstance(decide_visibility(self._policy, self._caller, facts), Visible)


def facts_of(made: SessionSeed) -> TargetFacts:
    return TargetFacts(
        session_key=made.session_key,
        agent_id=made.agent_id,
        spawned_by=made.spawned_by,
        parent_session_key=made.parent_session_key,
    )


def said(hits: tuple[Hit, ...]) -> list[str]:
    return [msgspec.json.decode(hit.body)["content"] for hit in hits]


async def speak(store: Store, made: SessionSeed, count: int, text: str = "word") -> None:
    drafts = tuple(note(f"{text} {made.session_key} {number}") for number in range(count))
    await store.append(made.session_key, drafts, now_ms=NOON)


@pytest.mark.spec("SRCH-2", "VIS-6")
@pytest.mark.parametrize("level", LEVELS)
async def test_what_may_not_be_seen_takes_no_place_of_what_may(
    store: Store, database: SqliteDatabase, level: VisibilityLevel
) -> None:
    """The few messages of the caller are the oldest of many."""
    for made in SEEDS:
        await create(store, made)
        await speak(store, made, 3)
    for made in (SEEDS[3], SEEDS[4]):
        await speak(store, made, 600)
    for _ in range(2):
        sight = Sight(level)
        allowed = {made.session_key for made in SEEDS if sight.sees(facts_of(made))}
        for limit in (1, 7, 2000):
            hits = await store.search(WORD, limit=limit, scope=sight.scope, judge=sight.judge)
            blind = await store.search(WORD, limit=limit, judge=sight.judge)
            assert hits == blind
            assert {hit.session_key for hit in hits} <= allowed
        assert {hit.session_key for hit in hits} == allowed
        assert len(hits) == 3 * len(allowed) + 600 * (SEEDS[3].session_key in allowed) + 600 * (
            SEEDS[4].session_key in allowed
        )
        await database.write(search.fold)


@pytest.mark.spec("VIS-6")
async def test_each_session_is_asked_about_once_in_a_search(store: Store) -> None:
    for made in SEEDS:
        await create(store, made)
        await speak(store, made, 200)
    sight = Sight("all")
    await store.search(WORD, limit=2000, judge=sight.judge)
    assert sorted(sight.asked) == sorted(made.session_key for made in SEEDS)


@pytest.mark.spec("SRCH-2")
async def test_one_session_among_many_is_searched_by_its_own_windows(
    store: Store, database: SqliteDatabase
) -> None:
    for made in SEEDS:
        await create(store, made)
        await speak(store, made, 100)
    await store.reset_session(ROOT.session_key, "reset", session_id="second", now_ms=NOON)
    await speak(store, ROOT, 2, "word again")
    await database.write(search.fold)
    plans: list[int] = []

    def counting(facts: TargetFacts) -> bool:
        plans.append(1)
        return True

    hits = await store.search(WORD, session_key=ROOT.session_key, limit=500, judge=counting)
    assert len(hits) == 102 and len(plans) == 1
    assert {hit.session_id for hit in hits} == {"second", f"{ROOT.session_key}-window"}
    assert await store.search(WORD, session_key="agent:a:nobody", limit=500) == ()
    assert await store.search(WORD, session_key=ROOT.session_key, agent_id="b", limit=500) == ()
    await store.delete_session(ROOT.session_key, now_ms=NOON)
    assert await store.search(WORD, session_key=ROOT.session_key, limit=500) == ()
    assert {hit.session_key for hit in await store.search(WORD, agent_id="a", limit=900)} == {
        made.session_key for made in SEEDS[1:4]
    }


async def test_a_helper_that_the_registry_knows_is_of_the_tree(
    store: Store, database: SqliteDatabase
) -> None:
    await create(store, ROOT)
    await create(store, SEEDS[3])
    await speak(store, SEEDS[3], 100)
    await database.write(search.fold)
    seen: list[TargetFacts] = []

    def judge(facts: TargetFacts) -> bool:
        seen.append(facts)
        return facts.registry_owner == ROOT.session_key

    scope = SomeRows(own_key=ROOT.session_key, tree_of=ROOT.session_key)
    assert await store.search(WORD, judge=judge, scope=scope) == ()
    await execute(
        database,
        "INSERT INTO spawns VALUES ('r', ?, ?, 'p', 't', 'active', ?, 1, NULL)",
        ROOT.session_key,
        SEEDS[3].session_key,
        b"{}",
    )
    assert len(await store.search(WORD, judge=judge, scope=scope, limit=500)) == 100
    assert seen[-1] == msgspec.structs.replace(facts_of(SEEDS[3]), registry_owner=ROOT.session_key)


@pytest.mark.spec("SRCH-3")
async def test_a_text_cannot_pretend_to_stand_in_another_window(
    store: Store, database: SqliteDatabase
) -> None:
    await create(store, ROOT)
    await create(store, SEEDS[4])
    ((window_no,),) = await select(database, "SELECT window_no FROM sessions WHERE agent_id = 'a'")
    await speak(store, SEEDS[4], 1, f"word \ue000{window_no} x")
    for _ in range(2):
        assert await store.search(WORD, session_key=ROOT.session_key) == ()
        assert len(await store.search(WORD)) == 1
        assert await store.search(query_terms(f"\ue000{window_no + 7}")) == ()
        await database.write(search.fold)


@pytest.mark.spec("SRCH-3")
async def test_what_leaves_the_index_leaves_it_whole(store: Store, database: SqliteDatabase) -> None:
    """Also the word of its window: nothing of it is left to be found or counted."""
    await create(store, ROOT)
    await speak(store, ROOT, 3)
    await database.write(search.fold)
    numbers = await select(database, "SELECT search_no, window_no FROM search_rows ORDER BY search_no")
    await database.write(lambda tx: purging.unindex_one(tx, numbers[0][0]))
    assert len(await store.search(WORD)) == 2
    place = f'"\ue000{numbers[0][1]}"'
    left = await database.read(lambda tx: tx.rows(search.SQL["find"], (place, None, 1 << 62, 10)))
    assert [row[0] for row in left] == [numbers[2][0], numbers[1][0]]


async def test_a_large_agent_is_not_listed_window_by_window(
    store: Store, database: SqliteDatabase, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(search, "MOST_PLACES", 2)
    monkeypatch.setattr(search, "FIRST_PAGE", 4)
    for made in SEEDS:
        await create(store, made)
        await speak(store, made, 5)
    await database.write(search.fold)
    for agent_id, sessions in (("a", 4), ("b", 2), ("c", 0)):
        assert len(await store.search(WORD, agent_id=agent_id, limit=99)) == 5 * sessions


# -- against brute force ---------------------------------------------------------------------------


@pytest.mark.spec("SRCH-2", "VIS-6")
@settings(max_examples=120, deadline=None)
@given(
    messages=st.lists(
        st.tuples(st.integers(0, 5), st.sampled_from(["word", "word two", "two"])), max_size=40
    ),
    level=st.sampled_from(LEVELS),
    hinted=st.booleans(),
    agent_id=st.sampled_from([None, None, "a", "b"]),
    limit=st.integers(1, 30),
    first_page=st.integers(1, 5),
    most_places=st.integers(0, 6),
)
def test_search_equals_brute_force(
    messages: list[tuple[int, str]],
    level: VisibilityLevel,
    hinted: bool,
    agent_id: str | None,
    limit: int,
    first_page: int,
    most_places: int,
) -> None:
    async def scenario(store: Store, _: SqliteDatabase) -> None:
        for made in SEEDS:
            await create(store, made)
        for which, text in messages:
            await store.append(SEEDS[which].session_key, (note(text),), now_ms=NOON)
        sight = Sight(level)
        scope = sight.scope if hinted else EveryRow()
        for asked in ("word", "two", "word two"):
            expected = [
                text
                for which, text in reversed(messages)
                if set(asked.split()) <= set(text.split())
                and sight.sees(facts_of(SEEDS[which]))
                and agent_id in (None, SEEDS[which].agent_id)
            ]
            hits = await store.search(
                query_terms(asked), agent_id=agent_id, limit=limit, scope=scope, judge=sight.judge
            )
            assert said(hits) == expected[:limit]

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(search, "FOLD_EVERY", 4)
        patch.setattr(search, "FIRST_PAGE", first_page)
        patch.setattr(search, "LARGEST_PAGE", 8)
        patch.setattr(search, "MOST_PLACES", most_places)
        in_memory(scenario)
