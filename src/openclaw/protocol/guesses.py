"""How many wrong guesses one address has left: a bounded table in memory, without a clock of its own.

Only wrong secrets are counted, never missing ones, so that a client which forgot its
token does not lock its owner out (PITFALLS H4). A restart forgets the table; what it
protects has 256 bits, or is a password that someone chose to accept.
"""

from __future__ import annotations

import ipaddress
from collections import OrderedDict, deque
from typing import Final

from msgspec import Struct

MAX_ADDRESSES: Final = 4096
# A household of IPv6 holds at least this much of its address.
_IPV6_PREFIX: Final = 64


class GuessLimits(Struct, frozen=True):
    """So many wrong guesses in a window of time shut an address out for a while."""

    max_attempts: int = 10
    window_ms: int = 60_000
    lockout_ms: int = 300_000
    exempt_loopback: bool = True


class _Record:
    __slots__ = ("guesses", "locked_until_ms")

    def __init__(self) -> None:
        self.guesses: deque[int] = deque()
        self.locked_until_ms: int | None = None


class GuessLimiter:
    """`now_ms` comes from a clock that only goes forward."""

    def __init__(self, limits: GuessLimits, max_addresses: int = MAX_ADDRESSES) -> None:
        self._limits = limits
        self._max_addresses = max_addresses
        # Those that guessed last stand last; the first one is forgotten when there is no room.
        self._records: OrderedDict[str, _Record] = OrderedDict()

    def wait_ms(self, source: str, now_ms: int) -> int | None:
        """How long `source` is still shut out; None when it may try."""
        record = self._records.get(source)
        if record is None or record.locked_until_ms is None:
            return None
        if now_ms >= record.locked_until_ms:
            del self._records[source]
            return None
        return record.locked_until_ms - now_ms

    def count(self, source: str, now_ms: int) -> bool:
        """A wrong guess came from `source`; whether that shuts it out from now on."""
        record = self._records.pop(source, None) or _Record()
        self._records[source] = record
        while len(self._records) > self._max_addresses:
            self._records.popitem(last=False)
        guesses = record.guesses
        guesses.append(now_ms)
        while guesses and guesses[0] <= now_ms - self._limits.window_ms:
            guesses.popleft()
        if len(guesses) < self._limits.max_attempts:
            return False
        record.locked_until_ms = now_ms + self._limits.lockout_ms
        guesses.clear()
        return True

    def __len__(self) -> int:
        return len(self._records)


def guess_source(address: str, *, browser: bool, loopback: bool, limits: GuessLimits) -> str | None:
    """Under which name guesses from an address are counted; None when they are not.

    A program on this machine may fail as often as it likes: it could read the config.
    A web page on this machine could not, and is counted apart, so that it cannot shut
    the owner's own programs out (PITFALLS H4).
    """
    if loopback:
        if browser:
            return "page on this machine"
        if limits.exempt_loopback:
            return None
    return _network_of(address)


def _network_of(address: str) -> str:
    try:
        parsed = ipaddress.ip_address(address.partition("%")[0])
    except ValueError:
        return address[:64]
    if isinstance(parsed, ipaddress.IPv4Address):
        return str(parsed)
    if parsed.ipv4_mapped is not None:
        return str(parsed.ipv4_mapped)
    return str(ipaddress.IPv6Network((parsed, _IPV6_PREFIX), strict=False))
