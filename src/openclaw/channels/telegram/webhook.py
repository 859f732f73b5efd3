"""Updates that Telegram posts: admitted by their secret, and put back into the order of their numbers.

Several posts are under way at once and may overtake one another. One whose forerunner is
missing waits a moment for it. Numbers can jump, so the wait is short and never a condition.
"""

from __future__ import annotations

import asyncio
import hmac
from collections.abc import Awaitable, Callable, Mapping

from openclaw.channels.telegram.reading import number_of
from openclaw.engine.ports import Clock
from openclaw.errors import Unavailable

SECRET_HEADER = "X-Telegram-Bot-Api-Secret-Token"
GAP_S = 2.0
JUMP = 1000  # a number so far ahead is a new beginning, not a gap
MOST_WAITING = 64


class Turnstile:
    """One at a time, in the order of the numbers as far as they come close to one another."""

    def __init__(self, expected: int | None, clock: Clock) -> None:
        self.expected = expected
        self._clock = clock
        self._changed = asyncio.Condition()
        self._waiting: list[int] = []
        self._busy = False

    async def go_through(self, number: int, work: Callable[[], Awaitable[None]]) -> None:
        """Do the work in turn. When it fails, the number is still expected."""
        if len(self._waiting) >= MOST_WAITING:
            raise Unavailable("too many updates wait; send this one again later")
        await self._wait_for_turn(number)
        try:
            await work()
            self.expected = self.after(number)
        finally:
            async with self._changed:
                self._busy = False
                self._changed.notify_all()

    def after(self, number: int) -> int:
        """What is expected once this number is done; an old one that comes again changes nothing."""
        return max(number + 1, self.expected or 0)

    async def _wait_for_turn(self, number: int) -> None:
        patience_until_s = self._clock.monotonic() + GAP_S
        async with self._changed:
            self._waiting.append(number)
            try:
                while not self._may_go(number, patience_until_s):
                    left_s = max(0.01, patience_until_s - self._clock.monotonic())
                    try:
                        async with asyncio.timeout(left_s):
                            await self._changed.wait()
                    except TimeoutError:
                        pass
                self._busy = True
            finally:
                self._waiting.remove(number)

    def _may_go(self, number: int, patience_until_s: float) -> bool:
        if self._busy:
            return False
        if self.expected is None or number <= self.expected or self._is_jump(number):
            return True
        return number == min(self._waiting) and self._clock.monotonic() >= patience_until_s

    def _is_jump(self, number: int) -> bool:
        return self.expected is not None and number > self.expected + JUMP


class Posts:
    """The taker of one bot's address. `take` keeps one update; `note` remembers the next number."""

    def __init__(
        self,
        secret: str,
        turnstile: Turnstile,
        take: Callable[[bytes], Awaitable[None]],
        note: Callable[[int], Awaitable[None]],
    ) -> None:
        self._secret = secret.encode()
        self._turnstile = turnstile
        self._take = take
        self._note = note

    def admits(self, headers: Mapping[str, str]) -> bool:
        offered = headers.get(SECRET_HEADER, "").encode("utf-8", "surrogateescape")
        return hmac.compare_digest(offered, self._secret)

    async def take(self, body: bytes) -> None:
        number = number_of(body)
        if number is None:
            await self._take(body)  # says in the log that it is of no use
            return

        async def keep() -> None:
            await self._take(body)
            await self._note(self._turnstile.after(number))

        await self._turnstile.go_through(number, keep)
