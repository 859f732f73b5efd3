"""Starts `store_child` and talks to it, with a deadline on every wait."""

from __future__ import annotations

import asyncio
import json
import signal
import sys
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

PATIENCE_S = 60
ROOT = Path(__file__).resolve().parents[2]
COMMAND = (sys.executable, "-m", "tests.integration.store_child")


class Child:
    """One process. What it tells are dictionaries, in order."""

    def __init__(self, process: asyncio.subprocess.Process) -> None:
        self.process = process
        self.pid = process.pid

    async def told(self) -> dict[str, Any]:
        """The next thing it tells; {} at its end."""
        assert self.process.stdout is not None
        line = await asyncio.wait_for(self.process.stdout.readline(), PATIENCE_S)
        told: dict[str, Any] = json.loads(line) if line.endswith(b"\n") else {}
        return told

    async def rest(self) -> list[dict[str, Any]]:
        """Everything it still tells until its end. A line that was cut off is no line."""
        told = []
        while fact := await self.told():
            told.append(fact)
        return told

    async def say(self, line: str) -> None:
        assert self.process.stdin is not None
        self.process.stdin.write(line.encode() + b"\n")
        await self.process.stdin.drain()

    def kill(self) -> None:
        self.process.send_signal(signal.SIGKILL)

    async def ended(self) -> int:
        return await asyncio.wait_for(self.process.wait(), PATIENCE_S)


@asynccontextmanager
async def started(*arguments: str, before: Sequence[str] = ()) -> AsyncIterator[Child]:
    """A child for the length of the block; it does not outlive it."""
    process = await asyncio.create_subprocess_exec(
        *before,
        *COMMAND,
        *arguments,
        cwd=ROOT,
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        limit=1 << 22,
    )
    child = Child(process)
    try:
        yield child
    finally:
        if process.returncode is None:
            assert process.stdin is not None
            process.stdin.close()
            try:
                await asyncio.wait_for(process.wait(), PATIENCE_S)
            except TimeoutError:
                child.kill()
                await child.ended()
