"""A gateway as a program of its own: it runs until it is told to stop by a signal."""

from __future__ import annotations

import asyncio
import ctypes
import os
import signal
from collections.abc import Callable, Coroutine, Mapping
from contextlib import suppress
from typing import Any

from openclaw.app.gateway import Announcement, Gateway
from openclaw.config.load import config_path
from openclaw.config.write import ensure_token

_M_ARENA_MAX = -8


def run_gateway(
    *,
    port: int | None,
    env: Mapping[str, str] | None = None,
    announce: Callable[[Announcement], None] = lambda _announcement: None,
) -> int:
    """Run a gateway until SIGINT or SIGTERM. Returns the exit code; raises what prevents a start."""
    environment = dict(os.environ) if env is None else env
    os.umask(0o077)
    share_heaps()
    ensured = ensure_token(config_path(environment), environment)

    async def main() -> None:
        stop = asyncio.Event()
        loop = asyncio.get_running_loop()
        for number in (signal.SIGINT, signal.SIGTERM):
            loop.add_signal_handler(number, stop.set)
        async with Gateway(ensured.loaded, environment, port=port) as gateway:
            announce(gateway.announcement(ensured.generated))
            await stop.wait()

    _run_fast(main())
    return 0


def share_heaps() -> None:
    """Let all threads take memory from two heaps instead of one each, before there are threads.

    What a thread frees goes back to its own heap, and a heap shrinks only from its end: with one for
    each thread a gateway grew by 100 bytes a turn for as long as it ran. Nothing where there is no glibc.
    """
    with suppress(OSError, AttributeError):
        ctypes.CDLL(None).mallopt(_M_ARENA_MAX, 2)


def _run_fast(main: Coroutine[Any, Any, None]) -> None:
    """On uvloop where there is one: a third of the CPU per frame."""
    try:
        import uvloop
    except ImportError:
        asyncio.run(main)
    else:
        uvloop.run(main)
