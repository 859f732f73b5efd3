"""What the account must not forget across a restart: where to go on, its login, drafts, open invitations."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

import msgspec

from openclaw.channels.matrix.rooms import Invitation, decode_invitations, encode_invitations
from openclaw.channels.matrix.wire import LoggedIn
from openclaw.engine.ports import Clock
from openclaw.store.connectors import ConnectorNotes

T = TypeVar("T")
MOST_DRAFTS = 200
MOST_INVITATIONS = 200
_decode_drafts = msgspec.json.Decoder(dict[str, str]).decode
_decode_login = msgspec.json.Decoder(LoggedIn).decode


class Memory:
    """The notes of one account, read once at its start. They live in the store (GROW-6)."""

    def __init__(self, notes: ConnectorNotes, clock: Clock) -> None:
        self._notes = notes
        self._clock = clock
        self._drafts: dict[str, str] = {}
        self.token: str | None = None
        self.login: LoggedIn | None = None
        self.invitations: dict[str, Invitation] = {}

    async def recall(self) -> None:
        token = await self._notes.recall("next_batch")
        self.token = None if not token else token.decode("utf-8", "replace")
        self._drafts = _read(_decode_drafts, await self._notes.recall("drafts")) or {}
        self.login = _read(_decode_login, await self._notes.recall("login"))
        waiting = _read(decode_invitations, await self._notes.recall("invitations")) or ()
        self.invitations = {one.room_id: one for one in waiting}

    async def _note(self, name: str, value: bytes) -> None:
        await self._notes.note(name, value, now_ms=self._clock.now_ms())

    async def go_on_from(self, token: str | None) -> None:
        """Everything before this token is safe."""
        if token != self.token:
            await self._note("next_batch", (token or "").encode())
            self.token = token

    async def note_login(self, login: LoggedIn | None) -> None:
        await self._note("login", msgspec.json.encode(login))
        self.login = login

    # -- drafts --------------------------------------------------------------------------------

    def draft(self, reply: str) -> str | None:
        """The event that shows the beginning of a reply; empty when one may stand there unknown."""
        return self._drafts.get(reply)

    async def note_draft(self, reply: str, event_id: str) -> None:
        self._drafts[reply] = event_id
        while len(self._drafts) > MOST_DRAFTS:
            del self._drafts[next(iter(self._drafts))]
        await self._note("drafts", msgspec.json.encode(self._drafts))

    async def drop_draft(self, reply: str) -> None:
        if self._drafts.pop(reply, None) is not None:
            await self._note("drafts", msgspec.json.encode(self._drafts))

    # -- invitations ---------------------------------------------------------------------------

    async def note_invitations(self, waiting: dict[str, Invitation]) -> None:
        """The invitations that were not taken up yet; the newest ones where there are many."""
        kept = dict(list(waiting.items())[-MOST_INVITATIONS:])
        if kept != self.invitations:
            await self._note("invitations", encode_invitations(tuple(kept.values())))
            self.invitations = kept


def _read(decode: Callable[[bytes], T], data: bytes | None) -> T | None:
    """A note, or None for one that is not there or cannot be read any more."""
    try:
        return decode(data) if data else None
    except msgspec.MsgspecError:
        return None
