"""A fake server in a thread of its own, for tests of commands that run an event loop themselves."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Protocol, TypeVar


class Served(Protocol):
    """Something that serves between its two ends."""

    async def __aenter__(self) -> Any: ...

    async def __aexit__(self, kind: None, error: None, trace: None, /) -> None: ...


Server = TypeVar("Server", bound=Served)


@contextmanager
def served(server: Server) -> Iterator[Server]:
    """Serve until the block ends."""
    loop = asyncio.new_event_loop()
    thread = threading.Thread(target=loop.run_forever)
    thread.start()
    try:
        asyncio.run_coroutine_threadsafe(server.__aenter__(), loop).result(60)
        try:
            yield server
        finally:
            asyncio.run_coroutine_threadsafe(server.__aexit__(None, None, None), loop).result(60)
    finally:
        loop.call_soon_threadsafe(loop.stop)
        thread.join(60)
        loop.close()
