"""Chat threads of helpers: a port to whoever can open one on a platform (BIND-1).

The channels stand on the engine, so they say last how a thread is opened; until then,
and on every platform that cannot, no helper gets one.
"""

from __future__ import annotations

from typing import Protocol

from openclaw.domain.entry import DeliveryContext


class ThreadOpener(Protocol):
    def can_open(self, route: DeliveryContext) -> bool:
        """Whether the platform behind a route has threads that can be opened for a helper."""
        ...

    async def open(self, route: DeliveryContext, title: str) -> str:
        """Open a thread in the place that the route names; its id. Raises OpenClawError with the reason."""
        ...


class Threads:
    """Where the engine asks for a thread."""

    def __init__(self) -> None:
        self.opener: ThreadOpener | None = None

    def opener_for(self, route: DeliveryContext | None) -> ThreadOpener | None:
        """Who opens a thread there; None where nobody can."""
        if route is None or self.opener is None or not self.opener.can_open(route):
            return None
        return self.opener
