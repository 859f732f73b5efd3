"""Installed hooks: order, limits, and that nothing they do reaches anybody else."""

from __future__ import annotations

import asyncio
import logging
import threading
import time
from collections.abc import AsyncIterator, Callable
from functools import partial
from typing import Any, cast

import pytest

from openclaw.domain.hookevents import HOOK_NAMES, HookEvent, HookName
from openclaw.engine import events, hooks
from openclaw.engine.hooks import Hook, Hooks


def told(name: HookName = "session:patch", key: str | None = "k", **facts: Any) -> HookEvent:
    return HookEvent(name=name, at_ms=7, session_key=key, **facts)


@pytest.fixture
async def desk() -> AsyncIterator[Hooks]:
    made = Hooks(lambda: 7, lambda _scope: True, limit_s=60)
    yield made
    await made.stop()


def note_name(into: list[str], event: HookEvent) -> None:
    into.append(event.name)


async def until(true: Callable[[], bool]) -> None:
    for _ in range(6000):
        if true():
            return
        await asyncio.sleep(0.01)
    pytest.fail("it did not come to that")


@pytest.mark.spec("AUTO-10")
class TestTelling:
    async def test_a_session_is_told_in_order_to_each_hook_that_wants_it(self, desk: Hooks) -> None:
        heard: list[tuple[str, str | None]] = []

        async def slow(event: HookEvent) -> None:
            await asyncio.sleep(0.01 if event.text == "0" else 0)
            heard.append(("slow", event.text))

        def plain(event: HookEvent) -> None:
            heard.append(("plain", event.text))

        desk.use([Hook("a", slow), Hook("b", plain, frozenset({"session:patch"}))])
        for number in range(5):
            desk.tell(told(text=str(number)))
        desk.tell(told("command:stop", text="x"))
        await until(lambda: len(heard) == 11)
        assert heard == [
            *((who, str(number)) for number in range(5) for who in ("slow", "plain")),
            ("slow", "x"),
        ]

    async def test_sessions_do_not_wait_for_one_another(self, desk: Hooks) -> None:
        free, heard = threading.Event(), list[str | None]()

        async def handle(event: HookEvent) -> None:
            if event.session_key == "one":
                await asyncio.to_thread(free.wait, 60)
            heard.append(event.session_key)

        desk.use([Hook("a", handle)])
        desk.tell(told(key="one"))
        desk.tell(told(key="two"))
        await until(lambda: heard == ["two"])
        free.set()
        await until(lambda: heard == ["two", "one"])

    async def test_one_that_fails_or_is_late_does_not_matter_to_the_next(
        self, caplog: pytest.LogCaptureFixture
    ) -> None:
        desk = Hooks(lambda: 7, lambda _scope: True, limit_s=0.2)
        heard: list[str | None] = []

        async def bad(event: HookEvent) -> None:
            if event.text == "late":
                await asyncio.sleep(3600)
            raise KeyError(event.text)

        desk.use([Hook("bad", bad), Hook("good", lambda event: heard.append(event.text))])
        with caplog.at_level(logging.ERROR, "openclaw.hooks"):
            for text in ("fails", "late", "ok"):
                desk.tell(told(text=text))
            await until(lambda: heard == ["fails", "late", "ok"])
            await desk.stop()
        lines = [record.getMessage() for record in caplog.records]
        assert "hook bad failed on session:patch" in lines
        assert "hook bad: session:patch took longer than 0.2 s" in lines

    async def test_one_that_blocks_stops_neither_the_loop_nor_the_gateway(
        self, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(hooks, "STOP_WITHIN_S", 0.05)
        monkeypatch.setattr(hooks, "LAST_WORD_S", 0.05)
        monkeypatch.setattr(hooks, "MOST_WAITING", 3)
        free, began, heard = threading.Event(), threading.Event(), list[str | None]()

        def block(event: HookEvent) -> None:
            began.set()
            free.wait(60)
            time.sleep(0.01)
            heard.append(event.text)

        desk = Hooks(lambda: 7, lambda _scope: True, limit_s=0.001)
        desk.use([Hook("a", block)])
        with caplog.at_level(logging.ERROR, "openclaw.hooks"):
            for number in range(6):
                desk.tell(told(text=str(number)))
            assert began.wait(60)
            assert [one.getMessage() for one in caplog.records] == [
                "hooks are too slow: 3 events wait, and newer ones are not told"
            ]
            free.set()
            await until(lambda: len(heard) == 3)
            await until(lambda: desk._line is not None and desk._line._waiting == 0)
            desk.tell(told(text="again"))
            await until(lambda: heard == ["0", "1", "2", "again"])
            assert "3 events were not told to hooks" in caplog.text
            assert "hook a: session:patch took longer than 0.001 s" in caplog.text
            free.clear()
            began.clear()
            desk.tell(told(text="stuck"))
            assert began.wait(60)
            thread = desk._line._thread if desk._line else None
            await desk.stop()
            assert "a hook does not return; the gateway stops without it" in caplog.text
        free.set()
        assert thread is not None
        await asyncio.to_thread(thread.join, 60)

    async def test_the_end_is_told_last_and_only_if_the_beginning_was(self) -> None:
        for is_up in (True, False):
            heard: list[str] = []
            desk = Hooks(lambda: 7, lambda _scope: True)
            desk.use([Hook("a", partial(note_name, heard))])
            if is_up:
                desk.tell_startup()
            for _ in range(20):
                desk.tell(told())
            await desk.stop()
            desk.tell(told())
            await desk.stop()
            assert heard.count("session:patch") == 20
            if is_up:
                assert sorted(heard[:-1]) == sorted(["gateway:startup", *["session:patch"] * 20])
                assert heard[-1] == "gateway:shutdown"
            else:
                assert heard == ["session:patch"] * 20

    async def test_without_hooks_there_is_no_thread(self) -> None:
        before = threading.active_count()
        desk = Hooks(lambda: 7, lambda _scope: pytest.fail("nobody asks"))
        desk.use([])
        desk.tell_startup()
        desk.observe(events.InputCancelled("r", "k", "main"))
        desk.note_sent("agent:main:main", None, "c", "t", "x")
        assert threading.active_count() == before
        await desk.stop()

    async def test_what_cannot_be_read_is_logged_and_never_raised(
        self, desk: Hooks, caplog: pytest.LogCaptureFixture
    ) -> None:
        desk.use([Hook("a", lambda _event: None)])
        with caplog.at_level(logging.ERROR, "openclaw.hooks"):
            desk.observe(events.CompactionTold(cast(Any, None), None, "manual", False))
        assert "an event of kind CompactionTold could not be told to hooks" in caplog.text

    async def test_a_delivery_names_the_agent_of_its_session(self, desk: Hooks) -> None:
        heard: list[HookEvent] = []
        desk.use([Hook("a", heard.append, frozenset({"message:sent"}))])
        for key in ("agent:bob:main", "global"):
            desk.note_sent(key, "run-1", "pigeon", "101", "hello")
        await until(lambda: len(heard) == 2)
        assert {(one.session_key, one.agent_id) for one in heard} == {
            ("agent:bob:main", "bob"),
            ("global", None),
        }
        assert all(
            (one.run_id, one.channel, one.to, one.text) == ("run-1", "pigeon", "101", "hello")
            for one in heard
        )


@pytest.mark.spec("AUTO-10")
def test_the_names_are_those_of_the_requirement() -> None:
    assert {
        "command:new", "command:reset", "command:stop", "session:compact:before", "session:compact:after",
        "session:patch", "message:received", "message:sent", "gateway:startup", "gateway:shutdown",
        "session_start", "session_end",
    } == HOOK_NAMES  # fmt: skip
