"""Who takes what platforms post to this gateway's port, by channel and account.

The HTTP door asks here and knows no platform. A taker first judges the headers, so that a
stranger's body is never read.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol


class Taker(Protocol):
    """The receiving side of one account."""

    def admits(self, headers: Mapping[str, str]) -> bool:
        """Whether these headers prove that the platform sent this. Compares in constant time."""
        ...

    async def take(self, body: bytes) -> None:
        """Keep what was posted. Whatever it raises, the platform is told to post it again."""
        ...


class Webhooks:
    """The open addresses: `/channels/<channel>/<account>`."""

    def __init__(self) -> None:
        self._takers: dict[tuple[str, str], Taker] = {}

    def open(self, channel: str, account_id: str, taker: Taker) -> None:
        self._takers[channel, account_id] = taker

    def close(self, channel: str, account_id: str, taker: Taker) -> None:
        """Close the address, unless another taker has it meanwhile."""
        if self._takers.get((channel, account_id)) is taker:
            del self._takers[channel, account_id]

    def taker(self, channel: str, account_id: str) -> Taker | None:
        return self._takers.get((channel, account_id))


def webhook_path(channel: str, account_id: str) -> str:
    """The path of an account's address on this gateway."""
    return f"/channels/{channel}/{account_id}"
