"""The engine's cache of contexts: what is dropped while rows are read is read again, whole."""

from __future__ import annotations

import asyncio
import tracemalloc
from collections.abc import AsyncIterator

import pytest

from openclaw.domain.transcript import AssistantMessage, TextBlock, Usage, UserMessage, encode, text_of
from openclaw.engine.contexts import ENTRY_BYTES, WINDOW_BYTES, ContextCache
from openclaw.engine.drafts import draft_message
from openclaw.store.compactions import Compactions
from openclaw.store.records import StoredEntry
from openclaw.store.sqlite import SqliteDatabase
from openclaw.store.store import Store
from tests.conformance.making import MAIN, NOON, create, unique_name


class SlowStore(Store):
    """A store whose next reading of a context waits until the test lets it go on."""

    def __init__(self, database: SqliteDatabase) -> None:
        super().__init__(database)
        self.database = database
        self.reading = asyncio.Event()
        self.go_on = asyncio.Event()
        self.slow = False

    async def context(self, window_no: int, *, after_seq: int = 0) -> tuple[StoredEntry, ...]:
        found = await super().context(window_no, after_seq=after_seq)
        if self.slow:
            self.slow = False
            self.reading.set()
            await self.go_on.wait()
        return found


@pytest.fixture
async def store() -> AsyncIterator[SlowStore]:
    database = await SqliteDatabase.open_memory(unique_name())
    yield SlowStore(database)
    await database.close()


async def say(store: Store, *words: str) -> tuple[StoredEntry, ...]:
    drafts = tuple(draft_message(UserMessage(word, NOON), "run-1") for word in words)
    return await store.append(MAIN.session_key, drafts, now_ms=NOON)


@pytest.mark.parametrize("how", ["clear", "forget"])
async def test_a_window_that_is_dropped_while_it_is_read_is_read_again(store: SlowStore, how: str) -> None:
    window_no = (await create(store, MAIN)).window_no
    contexts = ContextCache(store, Compactions(store._database))
    await say(store, "one", "two")
    assert [text_of(one) for one in await contexts.messages(window_no, 2)] == ["one", "two"]
    await say(store, "three")
    store.slow = True
    task = asyncio.create_task(contexts.messages(window_no, 3))
    await store.reading.wait()
    if how == "clear":
        contexts.clear()
    else:
        contexts.forget(window_no)
    store.go_on.set()
    assert [text_of(one) for one in await task] == ["one", "two", "three"]
    assert [text_of(one) for one in await contexts.messages(window_no, 3)] == ["one", "two", "three"]


async def test_what_holds_a_message_counts_beside_its_text(store: SlowStore) -> None:
    """A thousand short messages weigh more than their letters: the bound is one of memory."""
    first, second = (await create(store, MAIN)).window_no, 4711
    entries = await say(store, "one", "two")
    bodies = sum(len(entry.body) for entry in entries)
    both = 2 * (WINDOW_BYTES + bodies + 2 * ENTRY_BYTES)
    roomy = ContextCache(store, Compactions(store._database), limit_bytes=both)
    narrow = ContextCache(store, Compactions(store._database), limit_bytes=both - 1)
    for contexts in (roomy, narrow):
        for window_no in (first, second):
            contexts.extend(window_no, entries)
        assert contexts.size_of(second) == bodies
    assert roomy.size_of(first) == bodies
    assert narrow.size_of(first) is None
    # Dropped and filled again, it weighs what it weighed before.
    for contexts in (roomy, narrow):
        for window_no in (first, second, first):
            contexts.forget(window_no)
        assert contexts._weight == 0
        contexts.extend(first, entries)
        assert contexts._weight == both // 2


async def test_a_context_takes_no_more_memory_than_it_weighs(store: SlowStore) -> None:
    entries = [_said(number) for number in range(1, 301)]
    contexts = ContextCache(store, Compactions(store._database))
    contexts.extend(1, entries)  # what is made once for all of them
    before = contexts._weight
    tracemalloc.start()
    for window_no in range(2, 12):
        contexts.extend(window_no, [_said(number) for number in range(1, 301)])
        await contexts.messages(window_no, len(entries))
    taken = tracemalloc.get_traced_memory()[0]
    tracemalloc.stop()
    assert 0.7 < taken / (contexts._weight - before) < 1.1


def _said(number: int) -> StoredEntry:
    """A question or an answer; answers are the heavier half."""
    text, now_ms = f"number {number} of the many short things that are said", 1_700_000_000_000 + number
    usage = Usage(input=1000 + number, output=30 + number)
    message: UserMessage | AssistantMessage = UserMessage(text, now_ms)
    if number % 2 == 0:
        message = AssistantMessage(
            (TextBlock(text),), now_ms, "openai-completions", "acme", "one", usage, "stop"
        )
    return StoredEntry(
        number, f"entry-{number}", number - 1 or None, "message", "assistant", None, "people",
        f"run-{number}", number, encode(message),
    )  # fmt: skip


async def test_after_a_clear_nothing_is_known_and_what_follows_is_not_taken_for_the_beginning(
    store: SlowStore,
) -> None:
    window_no = (await create(store, MAIN)).window_no
    contexts = ContextCache(store, Compactions(store._database))
    await say(store, "one")
    await contexts.messages(window_no, 1)
    contexts.clear()
    contexts.extend(window_no, await say(store, "two"))
    assert [text_of(one) for one in await contexts.messages(window_no, 2)] == ["one", "two"]
