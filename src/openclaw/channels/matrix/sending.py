"""Carries replies into rooms: pieces, files, drafts that grow.

Every part of a reply has a transaction id of its own that never changes, so a homeserver shows it
once however often it is tried: whatever goes wrong on the way, the whole reply may be sent again.
"""

from __future__ import annotations

import asyncio
import contextlib
import re

from openclaw.channels.base import Attachment, NotSent, Outgoing, Sent
from openclaw.channels.matrix.api import NO_TOKEN, Homeserver, MatrixError, Refused
from openclaw.channels.matrix.memory import Memory
from openclaw.channels.matrix.rooms import RoomTable
from openclaw.channels.matrix.writing import (
    Piece,
    edit_content,
    file_content,
    pieces_of,
    text_content,
    transaction_id,
)

WAIT_S = 5.0  # after a connection that failed, or before there is one
CREDENTIAL_WAIT_S = 60.0
TYPING_S = 8.0
MOST_PIECES = 12
OFF_LOOP_CHARS = 4000
_ROOM = re.compile(r"![^\s\x00-\x1f]{1,254}")
_EVENT = re.compile(r"\$[^\s\x00-\x1f]{1,254}")


class Sender:
    """Sends for one account."""

    def __init__(self, server: Homeserver, memory: Memory, rooms: RoomTable, own_id: str) -> None:
        self._server = server
        self._memory = memory
        self._rooms = rooms
        self._own_id = own_id
        self._typing: set[str] = set()

    # -- a whole reply -------------------------------------------------------------------------

    async def send(self, outgoing: Outgoing) -> Sent:
        room_id, thread_id = self.place_of(outgoing)
        pieces, files = await _parts(outgoing)
        reply = reply_name(outgoing.key)
        try:
            standing = await self._standing(outgoing, room_id, thread_id)
            event_ids = []
            for number, piece in enumerate(pieces):
                transaction = transaction_id(outgoing.key, f"text {number}")
                if number == 0 and standing:
                    await self._server.put(room_id, edit_content(piece, standing), transaction)
                    event_ids.append(standing)
                else:
                    content = text_content(piece, thread_id)
                    event_ids.append(await self._server.put(room_id, content, transaction))
            for number, file in enumerate(files):
                transaction = transaction_id(outgoing.key, f"file {number}")
                event_ids.append(await self._put_file(room_id, thread_id, file, transaction))
        except MatrixError as error:
            raise _not_sent(error) from None
        await self._memory.drop_draft(reply)
        await self._stop_typing(room_id)
        return Sent(tuple(event_ids))

    def place_of(self, outgoing: Outgoing) -> tuple[str, str | None]:
        """Room and thread; NotSent when the address is not one of Matrix."""
        to = outgoing.to
        for prefix in ("matrix:", "room:", "user:", "channel:"):
            to = to.removeprefix(prefix)
        if to.startswith("@"):
            room = self._rooms.direct_room(to)
            if room is None and not self._rooms.complete:
                raise NotSent("the rooms of this account are not known yet", retry_after_s=WAIT_S)
            if room is None:
                raise NotSent(f"there is no room with {to[:80]} alone: the person must write first")
            to = room
        if _ROOM.fullmatch(to) is None:
            raise NotSent(f"{outgoing.to[:80]!r} is not a room of Matrix; use its id, like !abc:example.org")
        thread = outgoing.thread_id
        if thread is not None and _EVENT.fullmatch(thread) is None:
            raise NotSent(f"{thread[:80]!r} is not a thread of Matrix; use the id of its first event")
        return to, thread

    async def _standing(self, outgoing: Outgoing, room_id: str, thread_id: str | None) -> str | None:
        """The event that shows the beginning of this reply.

        When it is not known whether one does, it is put once more: the same transaction
        gives the id of the one that is there.
        """
        reply = reply_name(outgoing.key)
        standing = outgoing.draft_id or self._memory.draft(reply)
        if standing != "":
            return standing
        pieces = pieces_of(outgoing.text)
        return await self._begin_draft(reply, room_id, thread_id, pieces[0]) if pieces else None

    async def _begin_draft(self, reply: str, room_id: str, thread_id: str | None, piece: Piece) -> str:
        await self._memory.note_draft(reply, "")
        transaction = transaction_id(reply, "draft")
        event_id = await self._server.put(room_id, text_content(piece, thread_id), transaction)
        await self._memory.note_draft(reply, event_id)
        return event_id

    async def _put_file(self, room_id: str, thread_id: str | None, file: Attachment, transaction: str) -> str:
        uri = await self._server.upload(file.name, file.mime, file.data)
        content = file_content(file.name, file.mime, len(file.data), uri, thread_id)
        return await self._server.put(room_id, content, transaction)

    # -- while it is written -------------------------------------------------------------------

    async def draft(self, outgoing: Outgoing) -> str | None:
        """Show the beginning of a reply, or more of it. Errors are the caller's to overlook."""
        room_id, thread_id = self.place_of(outgoing)
        pieces = pieces_of(outgoing.text)
        if not pieces:
            return None
        reply = reply_name(outgoing.key)
        standing = outgoing.draft_id or self._memory.draft(reply)
        if not standing:
            return await self._begin_draft(reply, room_id, thread_id, pieces[0])
        transaction = transaction_id(outgoing.key, pieces[0].plain)
        await self._server.put(room_id, edit_content(pieces[0], standing), transaction)
        return standing

    async def show_typing(self, to: str, thread_id: str | None) -> None:
        room_id, _ = self.place_of(Outgoing(key="", to=to, thread_id=thread_id))
        self._typing.add(room_id)
        await self._server.typing(room_id, self._own_id, TYPING_S)

    async def open_thread(self, to: str, title: str, transaction: str) -> str:
        """Begin a thread below a message of our own; the id of that message."""
        room_id, _ = self.place_of(Outgoing(key="", to=to))
        pieces = pieces_of(title or "A new thread")
        try:
            return await self._server.put(room_id, text_content(pieces[0], None), transaction)
        except MatrixError as error:
            raise _not_sent(error) from None

    async def _stop_typing(self, room_id: str) -> None:
        if room_id in self._typing:
            self._typing.discard(room_id)
            with contextlib.suppress(MatrixError):
                await self._server.typing(room_id, self._own_id, 0.0)


def reply_name(key: str) -> str:
    """What a draft and the reply that it becomes have in common."""
    return key.rpartition(":")[0] or key


async def _parts(outgoing: Outgoing) -> tuple[list[Piece], tuple[Attachment, ...]]:
    """The messages of a reply. One that would flood a room comes as its beginning and a file."""
    if len(outgoing.text) > OFF_LOOP_CHARS:
        pieces = await asyncio.to_thread(pieces_of, outgoing.text)
    else:
        pieces = pieces_of(outgoing.text)
    files = tuple(file for file in outgoing.media if file.data)
    if len(pieces) <= MOST_PIECES:
        return pieces, files
    whole = Attachment(name="reply.md", mime="text/markdown", data=outgoing.text.encode("utf-8", "replace"))
    return pieces[:1], (whole, *files)


def _not_sent(error: MatrixError) -> NotSent:
    """What a failure means for the reply: when to try again, or why that is useless."""
    if not isinstance(error, Refused):
        return NotSent(error.message, retry_after_s=WAIT_S)
    if error.retry_after_s is not None:
        return NotSent(error.message, retry_after_s=error.retry_after_s)
    if error.errcode == NO_TOKEN or error.status == 401:
        return NotSent("the homeserver does not accept the access token", retry_after_s=CREDENTIAL_WAIT_S)
    if error.status == 403:
        return NotSent(f"the account may not write there ({error.words})")
    return NotSent(error.message)
