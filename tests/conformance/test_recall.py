"""What session tools read: sessions as another one meets them, trees, and bounded pages of messages."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from openclaw.domain.visibility import TargetFacts
from openclaw.store import recall as recall_module
from openclaw.store.database import Database
from openclaw.store.recall import MOST_CHILDREN, Met, Recall
from openclaw.store.store import Store
from tests.conformance.making import NOON, create, execute, note, seed, texts

ROOT = seed("root")
KID = seed("kid", "bob", spawned_by=ROOT.session_key)


@pytest.fixture
def recall(database: Database) -> Recall:
    return Recall(database)


async def own(database: Database, parent: str, child: str) -> None:
    await execute(
        database,
        "INSERT INTO spawns (child_run_id, parent_key, child_key, parent_run_id, tool_call_id, state, body, "
        "created_at) VALUES ($1, $2, $3, 'run', $4, 'active', $5, 0)",
        f"run-{child}",
        parent,
        child,
        f"call-{child}",
        b"",
    )


def keys(met: tuple[Met, ...]) -> list[str]:
    return [one.row.session_key for one in met]


@pytest.mark.spec("VIS-5", "TOOL-6")
async def test_a_session_is_met_by_key_and_by_the_id_of_any_window(
    store: Store, database: Database, recall: Recall
) -> None:
    first = await create(store, KID)
    await own(database, ROOT.session_key, KID.session_key)
    second, _ = await store.reset_session(KID.session_key, "new", session_id="second", now_ms=NOON)
    by_key = await recall.by_key(KID.session_key, ROOT.session_key)
    earlier = await recall.by_session_id(first.entry.session_id, ROOT.session_key)
    now = await recall.by_session_id("second", "somebody")
    assert by_key is not None
    assert earlier is not None
    assert now is not None
    assert by_key.row == earlier.row == now.row == second
    assert (by_key.window_no, earlier.window_no) == (second.window_no, first.window_no)
    assert (by_key.owner, earlier.owner, now.owner) == (ROOT.session_key, ROOT.session_key, None)
    assert by_key.facts == TargetFacts(
        session_key=KID.session_key, agent_id="bob", spawned_by=ROOT.session_key,
        registry_owner=ROOT.session_key,
    )  # fmt: skip
    assert await recall.by_key("agent:main:nobody", "x") is None
    assert await recall.by_session_id("nobody", "x") is None
    await store.delete_session(KID.session_key, now_ms=NOON)
    assert await recall.by_session_id("second", ROOT.session_key) is None


@pytest.mark.spec("VIS-5")
async def test_a_tree_is_the_session_and_its_children(
    store: Store, database: Database, recall: Recall
) -> None:
    await create(store, ROOT)
    for number, made in enumerate(
        (
            KID,
            seed("thread", parent_session_key=ROOT.session_key),
            seed("owned"),
            seed("grandkid", spawned_by=KID.session_key),
            seed("run", spawned_by=ROOT.session_key, kind="cron-run"),
            seed("stranger"),
        )
    ):
        await store.edit_session(
            made, lambda entry: entry, session_id=f"id-{number}", now_ms=NOON + 10 + number
        )
    await own(database, ROOT.session_key, "agent:main:owned")
    gone = seed("archived", spawned_by=ROOT.session_key)
    await store.edit_session(
        gone, lambda entry: replace(entry, archived_at=1), session_id="id-gone", now_ms=NOON
    )
    tree = await recall.tree(ROOT.session_key, 10)
    assert keys(tree) == ["agent:main:owned", "agent:main:thread", KID.session_key, ROOT.session_key]
    assert [one.owner for one in tree] == [ROOT.session_key, None, None, None]
    assert keys(await recall.tree(ROOT.session_key, 2, 1)) == ["agent:main:thread", KID.session_key]
    of_root, of_kid, of_nobody = await recall.children([ROOT.session_key, KID.session_key, "agent:main:x"])
    assert keys(of_root) == ["agent:main:owned", "agent:main:thread", KID.session_key]
    assert keys(of_kid) == ["agent:main:grandkid"]
    assert of_nobody == ()


async def test_a_session_with_many_children_shows_the_newest(store: Store, recall: Recall) -> None:
    await create(store, ROOT)
    for number in range(MOST_CHILDREN + 3):
        made = seed(f"k{number}", spawned_by=ROOT.session_key)
        await store.edit_session(made, lambda entry: entry, session_id=f"i{number}", now_ms=NOON + 1 + number)
    (children,) = await recall.children([ROOT.session_key])
    assert len(children) == MOST_CHILDREN
    assert children[0].row.session_key == f"agent:main:k{MOST_CHILDREN + 2}"


async def test_the_newest_messages_for_people(store: Store, recall: Recall) -> None:
    row = await create(store, ROOT)
    drafts = [
        note("one"),
        replace(note("hidden"), audience="model"),
        note("result", "toolResult"),
        replace(note("custom"), type="custom"),
        note("old result", "tool"),
        note("two", "assistant"),
        note("three"),
    ]
    await store.append(ROOT.session_key, tuple(drafts), now_ms=NOON)
    number = row.window_no
    everything = await recall.newest(number, 10, max_bytes=10_000)
    assert texts(everything.entries) == ["one", "two", "three"]
    assert (everything.more, everything.cut) == (False, False)
    tools = await recall.newest(number, 10, max_bytes=10_000, include_tools=True)
    assert texts(tools.entries) == ["one", "result", "old result", "two", "three"]
    two = await recall.newest(number, 2, max_bytes=10_000)
    assert (texts(two.entries), two.more, two.cut) == (["two", "three"], True, False)
    exact = await recall.newest(number, 3, max_bytes=10_000)
    assert (len(exact.entries), exact.more, exact.cut) == (3, False, False)
    rest = await recall.newest(number, 2, max_bytes=10_000, offset=2)
    assert (texts(rest.entries), rest.more) == (["one"], False)
    nothing = await recall.newest(number, 2, max_bytes=10_000, offset=3)
    assert (nothing.entries, nothing.more, nothing.cut) == ((), False, False)
    before = await recall.newest(number, 9, max_bytes=10_000, before_seq=7)
    assert texts(before.entries) == ["one", "two"]
    empty = await recall.newest(number + 99, 2, max_bytes=10_000)
    assert (empty.entries, empty.more, empty.cut) == ((), False, False)


async def test_bytes_end_a_page_but_one_message_always_comes(store: Store, recall: Recall) -> None:
    row = await create(store, ROOT)
    await store.append(ROOT.session_key, (note("a" * 100), note("b" * 100_000), note("c" * 500)), now_ms=NOON)
    number = row.window_no
    size = len(note("c" * 500).body)
    large = len(note("b" * 100_000).body)
    for max_bytes, count in ((1, 1), (size + large - 1, 1), (size + large, 2), (10**6, 3)):
        page = await recall.newest(number, 5, max_bytes=max_bytes)
        assert len(page.entries) == count
        assert page.more is page.cut is (count < 3)
    within = await recall.newest(number, 1, max_bytes=1)
    assert (within.more, within.cut) == (True, False)


async def test_a_page_looks_at_a_bounded_number_of_entries(
    store: Store, recall: Recall, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(recall_module, "SCAN_ENTRIES", 5)
    row = await create(store, ROOT)
    results = tuple(note(f"r{number}", "toolResult") for number in range(5))
    await store.append(ROOT.session_key, (note("far"), *results), now_ms=NOON)
    page = await recall.newest(row.window_no, 3, max_bytes=10_000)
    assert (page.entries, page.more, page.cut) == ((), True, True)
    await store.append(ROOT.session_key, (note("near"),), now_ms=NOON)
    page = await recall.newest(row.window_no, 3, max_bytes=10_000)
    assert (texts(page.entries), page.more, page.cut) == (["near"], True, True)
    one = await recall.newest(row.window_no, 1, max_bytes=10_000)
    assert (one.more, one.cut) == (True, False)
    all_scanned = await recall.newest(row.window_no, 9, max_bytes=10_000, before_seq=6, include_tools=True)
    assert (len(all_scanned.entries), all_scanned.more) == (5, False)


@pytest.mark.spec("HIST-14")
async def test_the_place_behind_a_message_and_what_follows_it(
    store: Store, recall: Recall, monkeypatch: pytest.MonkeyPatch
) -> None:
    row = await create(store, ROOT)
    drafts = (note("a"), note("b"), note("r", "toolResult"), note("c"), note("d"))
    stored = await store.append(ROOT.session_key, drafts, now_ms=NOON)
    number, second = row.window_no, stored[1].entry_id

    async def after(following: int, include_tools: bool = False) -> int | None:
        return await recall.just_after(number, second, following=following, include_tools=include_tools)

    assert [await after(count) for count in (0, 1, 2, 9)] == [3, 5, 6, 6]
    assert [await after(count, True) for count in (1, 2)] == [4, 5]
    assert await recall.just_after(number, "none", following=1) is None
    assert await recall.just_after(number + 1, second, following=1) is None
    monkeypatch.setattr(recall_module, "FIND_ENTRIES", 3)
    assert await after(1) is None
