"""Lanes: how many runs may be active at once, per kind of work (QUE-1).

One run per session is the store's law; a lane caps the whole gateway. Waiting is
first come, first served. A run that waits for something else gives its place
back and returns to the head of the line.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

DEFAULT_CAPS = {"main": 4, "subagent": 8, "cron": 1}


class Lane:
    """A counted gate with a first-in-first-out line."""

    def __init__(self, cap: int) -> None:
        self.cap = cap
        self.active = 0
        self._line: deque[asyncio.Future[None]] = deque()

    def try_enter(self) -> bool:
        """Enter if there is room and nobody waits."""
        if self.active >= self.cap or self._line:
            return False
        self.active += 1
        return True

    async def enter(self, *, first: bool = False) -> None:
        """Wait for a place; `first` goes to the head of the line."""
        if self.try_enter():
            return
        place: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        if first:
            self._line.appendleft(place)
        else:
            self._line.append(place)
        try:
            await place
        except asyncio.CancelledError:
            if place.done() and not place.cancelled():
                self.leave()  # the place was given to us while we were being cancelled
            elif place in self._line:
                self._line.remove(place)  # nobody stands here any more: who comes next need not wait
            raise

    def take(self) -> None:
        """Take a place whether or not there is room, for somebody who is about to leave it."""
        self.active += 1

    def leave(self) -> None:
        self.active -= 1
        self._admit()

    def resize(self, cap: int) -> None:
        """Take a new cap at once; a smaller one lets running work finish."""
        self.cap = cap
        self._admit()

    def _admit(self) -> None:
        while self._line and self.active < self.cap:
            place = self._line.popleft()
            if not place.done():
                self.active += 1
                place.set_result(None)


class Lanes:
    """All lanes by name; an unknown name is the main lane."""

    def __init__(self, caps: dict[str, int]) -> None:
        self._lanes = {name: Lane(cap) for name, cap in (DEFAULT_CAPS | caps).items()}
        self._absent: dict[str, int] = {}

    def lane(self, name: str) -> Lane:
        return self._lanes.get(name, self._lanes["main"])

    def resize(self, caps: dict[str, int]) -> None:
        for name, cap in caps.items():
            self._lanes[name].resize(cap)

    @asynccontextmanager
    async def outside(self, name: str, who: str) -> AsyncIterator[None]:
        """Give the place of `who` back while it waits for something, and return first in line.

        Several waits of one run are one absence: the first gives the place back, the last returns. A
        wait that is cut off does not stand in line again: its run ends, and leaves as if it had.
        """
        lane = self.lane(name)
        self._absent[who] = self._absent.get(who, 0) + 1
        if self._absent[who] == 1:
            lane.leave()
        returning = False
        try:
            yield
            returning = True
        finally:
            self._absent[who] -= 1
            if not self._absent[who]:
                del self._absent[who]
                await _come_back(lane, in_line=returning)


async def _come_back(lane: Lane, *, in_line: bool) -> None:
    if not in_line:
        lane.take()
        return
    try:
        await lane.enter(first=True)
    except asyncio.CancelledError:
        lane.take()
        raise
