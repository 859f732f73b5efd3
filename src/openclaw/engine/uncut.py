"""A commit that nobody walks away from: who is stopped meanwhile still learns what it kept.

A write that was handed to the store is carried out, whatever becomes of its caller.
A run that is aborted at that moment must know of it before it ends, or it would
close calls that are closed already (PITFALLS B1).
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from contextlib import suppress
from typing import Any, TypeVar

_Kept = TypeVar("_Kept")


async def uncut(write: Coroutine[Any, Any, _Kept], note: Callable[[_Kept], None]) -> _Kept:
    """Wait for a write to its end and tell `note` what it kept; a cancellation passes on after that."""
    task = asyncio.ensure_future(write)
    try:
        await asyncio.shield(task)
    finally:
        while not task.done():
            with suppress(asyncio.CancelledError):
                await asyncio.wait({task})
        if not task.cancelled() and task.exception() is None:
            note(task.result())
    return task.result()
