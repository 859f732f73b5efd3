"""The files of a message, fetched from their platform: a few at a time, and tried again for a while.

What did not come is told in the message instead, which is never lost for a file. Nothing here knows a
platform.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Sequence
from typing import Generic, Protocol, TypeVar

from openclaw.channels.base import NOT_LET_IN, Attachment, Door
from openclaw.domain.attachments import sniff
from openclaw.domain.routing import Envelope
from openclaw.engine.ports import Clock
from openclaw.errors import OpenClawError

log = logging.getLogger("openclaw.channels")
AT_ONCE = 2
PAUSES_S = (1.0, 3.0)  # between the tries
LONGEST_PAUSE_S = 60.0
OFF_LOOP_BYTES = 65_536


class FileRef(Protocol):
    """A file that a platform keeps; `problem` says why it is not worth fetching."""

    @property
    def name(self) -> str: ...
    @property
    def mime(self) -> str: ...
    @property
    def problem(self) -> str | None: ...


Ref = TypeVar("Ref", bound=FileRef)


class UnfetchedError(OpenClawError):
    """A file did not come. `final`: it never will. `retry_after_s` is the platform's own hint."""

    def __init__(self, message: str, *, final: bool = False, retry_after_s: float | None = None) -> None:
        super().__init__(message)
        self.final = final
        self.retry_after_s = retry_after_s


class Fetching(Generic[Ref]):
    """For one account, which logs call `account`. `fetch` gives the bytes or raises UnfetchedError."""

    def __init__(
        self, fetch: Callable[[Ref], Awaitable[bytes]], door: Door, clock: Clock, account: str
    ) -> None:
        self._fetch = fetch
        self._door = door
        self._clock = clock
        self._account = account
        self._places = asyncio.Semaphore(AT_ONCE)

    async def attachments(self, envelope: Envelope, files: Sequence[Ref]) -> tuple[Attachment, ...]:
        """The files of a message in their order, each with its bytes or with what is wrong."""
        if not files:
            return ()
        wanted = await self._door.wants_files(envelope)
        return tuple([await self._attachment(file, wanted) for file in files])

    async def _attachment(self, file: Ref, wanted: bool) -> Attachment:
        problem = file.problem if wanted else NOT_LET_IN
        if problem is not None:
            return Attachment(name=file.name, mime=file.mime, problem=problem)
        try:
            async with self._places:
                data = await self._patiently(file)
        except UnfetchedError as error:
            log.warning("%s: a file could not be fetched: %s", self._account, error.message)
            problem = f"it could not be fetched: {error.message}"
            return Attachment(name=file.name, mime=file.mime, problem=problem)
        return Attachment(name=file.name, mime=await _kind(data) or file.mime, data=data)

    async def _patiently(self, file: Ref) -> bytes:
        for pause_s in PAUSES_S:
            try:
                return await self._fetch(file)
            except UnfetchedError as error:
                if error.final:
                    raise
                wait_s = pause_s if error.retry_after_s is None else error.retry_after_s
                await self._clock.sleep(min(wait_s, LONGEST_PAUSE_S))
        return await self._fetch(file)


async def _kind(data: bytes) -> str | None:
    """What the bytes are. Platforms guess by the name, and take code in TypeScript for a film."""
    if len(data) > OFF_LOOP_BYTES:
        return await asyncio.to_thread(sniff, data)
    return sniff(data)
