"""What the bot must not forget across a restart: where to go on, groups that moved, drafts that stand."""

from __future__ import annotations

import hashlib

import msgspec

from openclaw.engine.ports import Clock
from openclaw.store.connectors import ConnectorNotes

MOST_MOVED = 1000
MOST_DRAFTS = 200
_Names = dict[str, str]
_decode_names = msgspec.json.Decoder(_Names).decode


class Memory:
    """The notes of one bot, read once at its start."""

    def __init__(self, notes: ConnectorNotes, clock: Clock) -> None:
        self._notes = notes
        self._clock = clock
        self._moved: _Names = {}
        self._drafts: _Names = {}
        self._menu = b""
        self.offset: int | None = None

    async def recall(self) -> None:
        self.offset = _number(await self._notes.recall("offset"))
        self._moved = _names(await self._notes.recall("moved"))
        self._drafts = _names(await self._notes.recall("drafts"))
        self._menu = await self._notes.recall("menu") or b""

    async def _note(self, name: str, value: bytes) -> None:
        await self._notes.note(name, value, now_ms=self._clock.now_ms())

    async def go_on_from(self, offset: int) -> None:
        """Everything before this number is safe."""
        self.offset = offset
        await self._note("offset", str(offset).encode())

    # -- groups that got a new id --------------------------------------------------------------

    def now_called(self, chat_id: str) -> str:
        """The id under which a group can be reached."""
        return self._moved.get(chat_id, chat_id)

    def once_called(self, chat_id: str) -> str | None:
        return next((old for old, new in self._moved.items() if new == chat_id), None)

    async def note_move(self, old: str, new: str) -> None:
        if self._moved.get(old) == new:
            return
        self._moved[old] = new
        _trim(self._moved, MOST_MOVED)
        await self._note("moved", msgspec.json.encode(self._moved))

    # -- drafts --------------------------------------------------------------------------------

    def draft(self, reply: str) -> str | None:
        """The message that shows the beginning of a reply; empty when it is not known which one does."""
        return self._drafts.get(reply)

    async def note_draft(self, reply: str, message_id: str) -> None:
        self._drafts[reply] = message_id
        _trim(self._drafts, MOST_DRAFTS)
        await self._note("drafts", msgspec.json.encode(self._drafts))

    async def drop_draft(self, reply: str) -> None:
        if self._drafts.pop(reply, None) is not None:
            await self._note("drafts", msgspec.json.encode(self._drafts))

    # -- the menu ------------------------------------------------------------------------------

    def menu_is(self, shown: bytes) -> bool:
        return self._menu == _digest(shown)

    async def note_menu(self, shown: bytes) -> None:
        self._menu = _digest(shown)
        await self._note("menu", self._menu)


def _digest(data: bytes) -> bytes:
    return hashlib.sha256(data).hexdigest().encode()


def _number(data: bytes | None) -> int | None:
    try:
        return None if data is None else int(data)
    except ValueError:
        return None


def _names(data: bytes | None) -> _Names:
    try:
        return {} if data is None else _decode_names(data)
    except msgspec.MsgspecError:
        return {}


def _trim(names: _Names, most: int) -> None:
    while len(names) > most:
        del names[next(iter(names))]
