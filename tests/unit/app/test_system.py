"""The tasks of a process: one that fails is told, and takes nobody with it."""

from __future__ import annotations

import asyncio
import logging

import pytest

from openclaw.app.system import Tasks


async def test_a_task_that_fails_is_logged_and_the_others_go_on(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.ERROR, "openclaw.gateway")
    went_on = asyncio.Event()

    async def fail() -> None:
        raise LookupError("nobody expected this")

    async def go_on() -> None:
        went_on.set()

    async def stay() -> None:
        await asyncio.Event().wait()

    async with asyncio.timeout(60), Tasks() as tasks:
        failed = tasks.spawn(fail())
        staying = tasks.spawn(stay())
        await asyncio.wait({failed})
        await asyncio.sleep(0)
        assert "nobody expected this" in caplog.text
        tasks.spawn(go_on())
        await went_on.wait()
        assert not staying.done()
    assert staying.cancelled()
