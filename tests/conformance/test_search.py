"""Search: what is stored is found at once, by the same rules before and after it is folded into the index."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from openclaw.domain.searchtext import index_text, matches, query_terms
from openclaw.store import search
from openclaw.store.database import ConstraintViolated
from openclaw.store.records import EntryDraft
from openclaw.store.search import FOLD_EVERY, Hit
from openclaw.store.sqlite import SqliteDatabase
from openclaw.store.store import Store
from tests.conformance.making import MAIN, NOON, create, in_memory, note, present, seed, select, texts, turn

KEY = MAIN.session_key
WORDS = (
    "alpha", "Beta", "gamma-ray", "naïve", "Straße", "x1", "don't", "สวัสดีครับ", "ไทย", "漢字変換", "漢字",
    "пример", "안녕하세요", "OR", "NOT", "NEAR", "AND", "*", '"', "(", "a", "…",
)  # fmt: skip
SESSIONS = (("a", "one"), ("a", "two"), ("b", "one"))


def said(hits: tuple[Hit, ...]) -> list[str]:
    return [msgspec.json.decode(hit.body)["content"] for hit in hits]


async def find(store: Store, text: str) -> list[str]:
    return said(await store.search(query_terms(text)))


# -- by example ------------------------------------------------------------------------------------


@pytest.mark.spec("SRCH-2", "SRCH-3", "DB-15")
async def test_a_message_is_found_right_after_its_commit(store: Store) -> None:
    finished = await turn(store, "run-1", "the quick brown fox")
    hits = await store.search(query_terms("QUICK fox"))
    assert said(hits) == ["re: the quick brown fox", "the quick brown fox"]
    (reply, question) = hits
    assert (reply.session_key, reply.session_id, reply.seq, reply.role) == (
        KEY, "run-1-window", 2, "assistant",
    )  # fmt: skip
    assert (question.seq, question.role, question.created_at) == (1, "user", NOON)
    assert reply.entry_id == finished.entries[0].entry_id
    assert await store.search(()) == ()
    assert await store.search(query_terms("...")) == ()
    assert await find(store, "quick dog") == []


@pytest.mark.spec("SRCH-3")
async def test_folding_changes_nothing_that_is_found(store: Store, database: SqliteDatabase) -> None:
    await create(store, MAIN)
    for n in range(FOLD_EVERY * 2 + 5):
        await store.append(KEY, (note(f"common word{n}"),), now_ms=NOON + n)
        if n % 16 == 0 or n in (FOLD_EVERY - 2, FOLD_EVERY - 1, FOLD_EVERY):
            assert await find(store, f"word{n}") == [f"common word{n}"]
            assert await find(store, "word0") == ["common word0"]
            everything = await store.search(query_terms("common"), limit=1000)
            assert [hit.seq for hit in everything] == list(range(n + 1, 0, -1))
    assert await select(database, "SELECT count(*) FROM search_pending") == [(5,)]
    assert await select(database, "SELECT count(*) FROM search_rows") == [(FOLD_EVERY * 2,)]
    assert FOLD_EVERY == 64


@pytest.mark.spec("SRCH-2")
async def test_the_newest_come_first_over_the_border_and_the_limit_holds(
    store: Store, database: SqliteDatabase
) -> None:
    await create(store, MAIN)
    await store.append(KEY, tuple(note(f"word {n}") for n in range(4)), now_ms=NOON)
    await database.write(search.fold)
    await store.append(KEY, tuple(note(f"word {n}") for n in range(4, 7)), now_ms=NOON)
    newest_first = [f"word {n}" for n in range(6, -1, -1)]
    for limit in range(1, 9):
        hits = await store.search(query_terms("word"), limit=limit)
        assert said(hits) == newest_first[:limit]
    await store.append(KEY, tuple(note(f"word {n}") for n in range(7, 30)), now_ms=NOON)
    assert len(await store.search(query_terms("word"))) == 20


@pytest.mark.spec("SRCH-2")
async def test_a_search_can_be_narrowed(store: Store, database: SqliteDatabase) -> None:
    for agent_id, name in SESSIONS:
        await turn(store, f"run-{agent_id}-{name}", f"word from {agent_id} {name}", to=seed(name, agent_id))
    for _ in range(2):
        hits = await store.search(query_terms("word"), agent_id="a")
        assert {hit.session_key for hit in hits} == {"agent:a:one", "agent:a:two"}
        hits = await store.search(query_terms("word"), session_key="agent:a:one")
        assert {hit.session_key for hit in hits} == {"agent:a:one"}
        assert await store.search(query_terms("word"), agent_id="b", session_key="agent:a:one") == ()
        assert await store.search(query_terms("word"), agent_id="c") == ()
        assert len(await store.search(query_terms("word"))) == 6
        await database.write(search.fold)


@pytest.mark.spec("SRCH-3")
async def test_only_what_has_words_is_found(store: Store, database: SqliteDatabase) -> None:
    await create(store, MAIN)
    body = note("visible words").body
    drafts = (EntryDraft("message", body, "toolResult", text="visible words"), note("visible words"))
    await store.append(KEY, drafts, now_ms=NOON)
    for _ in range(2):
        assert [hit.seq for hit in await store.search(query_terms("visible"))] == [2]
        await database.write(search.fold)


@pytest.mark.spec("SRCH-3")
async def test_case_and_diacritics_do_not_matter(store: Store, database: SqliteDatabase) -> None:
    await create(store, MAIN)
    await store.append(KEY, (note("Crème Brûlée in der STRASSE"), note("ภาษาไทย")), now_ms=NOON)
    for _ in range(2):
        for text in ("creme", "BRULEE", "brûlée", "straße", "crème strasse"):
            assert len(await store.search(query_terms(text))) == 1, text
        assert await find(store, "ไทย") == ["ภาษาไทย"]
        assert await find(store, "brule") == []
        await database.write(search.fold)


@pytest.mark.spec("SRCH-2")
@pytest.mark.parametrize(
    "text",
    ['"', '""', "a OR b", "NOT a", "a NEAR b", "a*", "words:a", "(", "a)", "^a", "- a", "a + b", "{a b}",
     "';--", "search : a", "\x00", "a\x00b"],
)  # fmt: skip
async def test_query_syntax_is_harmless(store: Store, database: SqliteDatabase, text: str) -> None:
    await create(store, MAIN)
    await store.append(KEY, (note("a b or not near words search"), note("unrelated")), now_ms=NOON)
    before = await find(store, text)
    await database.write(search.fold)
    assert await find(store, text) == before
    assert "unrelated" not in before
    # Words that no folding made: still one quoted phrase, nothing to inject.
    injected = text.replace("\x00", "") + '" OR "unrelated'
    assert await store.search(((injected,),)) == ()
    assert await select(database, "SELECT count(*) FROM entries") == [(2,)]


@pytest.mark.spec("SRCH-3")
async def test_earlier_windows_are_found_under_their_own_id(store: Store) -> None:
    await turn(store, "run-1", "before the reset")
    await store.reset_session(KEY, "reset", session_id="second", now_ms=NOON)
    await turn(store, "run-2", "after the reset")
    hits = await store.search(query_terms("reset"))
    assert [hit.session_id for hit in hits] == ["second", "second", "run-1-window", "run-1-window"]
    assert {hit.session_key for hit in hits} == {KEY}
    assert texts(await store.context((await present(store)).window_no))[0] == "after the reset"


async def test_a_message_that_was_not_committed_is_not_found(store: Store, database: SqliteDatabase) -> None:
    await create(store, MAIN)
    bad = msgspec.structs.replace(note("phantom limb"), audience="nobody")
    with pytest.raises(ConstraintViolated, match="CHECK constraint failed: audience"):
        await store.append(KEY, (note("phantom pain"), bad), now_ms=NOON)
    assert await find(store, "phantom") == []
    assert await select(database, "SELECT count(*) FROM search_pending") == [(0,)]


# -- against brute force ---------------------------------------------------------------------------

SENTENCES = st.lists(st.sampled_from(WORDS), min_size=1, max_size=5).map(" ".join)
PARTS = st.builds(
    lambda word, start, end: word[start:end] or word,
    st.sampled_from(WORDS),
    st.integers(0, 3),
    st.integers(1, 5),
)
QUERIES = st.lists(st.sampled_from(WORDS) | PARTS, min_size=1, max_size=3).map(" ".join)


@pytest.mark.spec("SRCH-2", "SRCH-3")
@settings(max_examples=150, deadline=None)
@given(
    messages=st.lists(st.tuples(st.integers(0, 2), SENTENCES), max_size=20),
    queries=st.lists(QUERIES, min_size=1, max_size=6),
    narrow=st.sampled_from([{}, {"agent_id": "a"}, {"session_key": "agent:a:one"}]),
    limit=st.integers(1, 25),
)
def test_search_equals_brute_force(
    messages: list[tuple[int, str]], queries: list[str], narrow: dict[str, Any], limit: int
) -> None:
    async def scenario(store: Store, _: SqliteDatabase) -> None:
        for agent_id, name in SESSIONS:
            await create(store, seed(name, agent_id))
        for which, text in messages:
            agent_id, name = SESSIONS[which]
            await store.append(f"agent:{agent_id}:{name}", (note(text),), now_ms=NOON)
        for text in queries:
            terms = query_terms(text)
            expected = [
                words
                for which, words in reversed(messages)
                if matches(index_text(words), terms)
                and narrow.get("agent_id") in (None, SESSIONS[which][0])
                and narrow.get("session_key") in (None, "agent:{}:{}".format(*SESSIONS[which]))
            ]
            assert said(await store.search(terms, limit=limit, **narrow)) == expected[:limit]

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(search, "FOLD_EVERY", 4)
        in_memory(scenario)
