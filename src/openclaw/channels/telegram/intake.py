"""Updates on their way to the door: in order within a chat, several chats at once, files fetched.

An update is done when the door has answered. When the door cannot keep a message, nothing of the
batch counts as done: it comes again, and what was kept is recognised there.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Sequence

import msgspec

from openclaw.channels.base import Door, Message
from openclaw.channels.fetching import Fetching, UnfetchedError
from openclaw.channels.telegram.api import BotApi, Refused, TelegramError
from openclaw.channels.telegram.reading import FileRef, Ignored, Me, Moved, Said, number_of, read_update
from openclaw.channels.telegram.wire import FilePath
from openclaw.engine.ports import Clock

log = logging.getLogger("openclaw.channels")
CHATS_AT_ONCE = 8
FETCH_WITHIN_S = 60.0
OFF_LOOP_BYTES = 65_536

_decode_path = msgspec.json.Decoder(FilePath).decode


class Intake:
    """The way in of one bot. `moved` hears of groups that got a new id and knows the old ones."""

    def __init__(
        self,
        api: BotApi,
        me: Me,
        door: Door,
        clock: Clock,
        *,
        largest_file: int,
        moved: Callable[[Moved], Awaitable[None]],
        old_id: Callable[[str], str | None],
    ) -> None:
        self._api = api
        self._me = me
        self._door = door
        self._largest = largest_file
        self._moved = moved
        self._old_id = old_id
        self._chats = asyncio.Semaphore(CHATS_AT_ONCE)
        self._files = Fetching(self._fetch, door, clock, self._name)

    async def take(self, batch: Sequence[bytes]) -> int | None:
        """Hand in a batch; the number to go on from, None when no update had one."""
        numbers = [(number_of(raw), raw) for raw in batch]
        numbered = sorted((number, at) for at, (number, _) in enumerate(numbers) if number is not None)
        for number, raw in numbers:
            if number is None:
                log.warning("%s: an update without a number was ignored (%d bytes)", self._name, len(raw))
        by_chat: dict[str, list[Said]] = {}
        for number, at in numbered:
            said = await self._read(number, numbers[at][1])
            if said is not None:
                by_chat.setdefault(said.envelope.peer_id, []).append(said)
        try:
            async with asyncio.TaskGroup() as group:
                for chat in by_chat.values():
                    group.create_task(self._hand_in(chat))
        except ExceptionGroup as failed:
            raise failed.exceptions[0] from None
        return numbered[-1][0] + 1 if numbered else None

    @property
    def _name(self) -> str:
        return f"{self._me.channel} ({self._me.account_id})"

    async def _read(self, number: int, raw: bytes) -> Said | None:
        if len(raw) > OFF_LOOP_BYTES:
            reading = await asyncio.to_thread(read_update, raw, self._me, largest_file=self._largest)
        else:
            reading = read_update(raw, self._me, largest_file=self._largest)
        if isinstance(reading, Moved):
            await self._moved(reading)
            return None
        if isinstance(reading, Ignored):
            level = logging.WARNING if reading.reason == "malformed" else logging.DEBUG
            log.log(level, "%s: update %d was ignored: %s", self._name, number, reading.reason)
            return None
        return reading

    async def _hand_in(self, chat: Sequence[Said]) -> None:
        async with self._chats:
            for said in chat:
                old = self._old_id(said.envelope.peer_id)
                envelope = msgspec.structs.replace(said.envelope, parent_peer_id=old)
                await self._door.accept(
                    Message(
                        envelope=envelope,
                        attachments=await self._files.attachments(envelope, said.files),
                        quoted=said.quoted,
                        quoted_sender=said.quoted_sender,
                    )
                )

    async def _fetch(self, file: FileRef) -> bytes:
        try:
            found = _decode_path(await self._api.call("getFile", {"file_id": file.file_id}))
            return await self._api.fetch(found.file_path, self._largest, within_s=FETCH_WITHIN_S)
        except Refused as refused:
            wait_s = refused.retry_after_s
            raise UnfetchedError(refused.words, final=wait_s is None, retry_after_s=wait_s) from None
        except TelegramError as error:
            raise UnfetchedError(error.message) from None
