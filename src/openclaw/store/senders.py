"""People on platforms as rows: who asked to be let in, who was, and what a group said meanwhile.

Codes live for an hour and are few; a stranger cannot fill a table. What was overheard
is bounded per place and leaves in the commit of the turn that is told about it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

from msgspec import Struct

from openclaw.domain.admission import Standing
from openclaw.store.database import Database, Transaction
from openclaw.store.statements import load_statements

SQL = load_statements("senders.sql")
CODE_LIVES_MS = 60 * 60 * 1000
MAX_ASKING = 50  # per account; a flood of strangers gets no codes
MAX_OVERHEARD = 50  # per place
MAX_SAID_CHARS = 2000


class SenderRef(Struct, frozen=True):
    """One person as a platform names them, byte-exact."""

    channel: str
    account_id: str
    sender_id: str


class SenderRow(Struct, frozen=True):
    channel: str
    account_id: str
    sender_id: str
    name: str | None
    state: Literal["asking", "admitted"]
    code: str | None
    is_owner: int
    asked_at: int
    decided_at: int | None
    expires_at: int | None


class Asked(Struct, frozen=True):
    """A stranger's code. `new` is false when they hold one already and were told before."""

    code: str
    new: bool


class Place(Struct, frozen=True):
    """One group, or one thread of it."""

    channel: str
    account_id: str
    peer_id: str
    thread_id: str = ""


class Heard(Struct, frozen=True):
    overheard_no: int
    sender: str
    said: str
    heard_at: int


class NewlyHeard(Struct, frozen=True):
    """A message that called nobody."""

    place: Place
    message_id: str
    sender_id: str
    sender: str
    said: str


# -- units of work -------------------------------------------------------------------------------


def standing(tx: Transaction, who: SenderRef) -> Standing:
    row = tx.row(SQL["standing"], (who.channel, who.account_id, who.sender_id))
    admitted = row is not None and row[0] == "admitted"
    return Standing(admitted, admitted and row is not None and bool(row[1]))


def ask(tx: Transaction, who: SenderRef, name: str | None, code: str, now_ms: int) -> Asked | None:
    """Keep a stranger's wish under a fresh code; None when too many wait already."""
    tx.run(SQL["forget_late"], (now_ms,))
    known = tx.row(SQL["asking"], (who.channel, who.account_id, who.sender_id))
    if known is not None:
        return Asked(str(known[0]), new=False)
    waiting = tx.row(SQL["count_asking"], (who.channel, who.account_id))
    if waiting is not None and int(waiting[0]) >= MAX_ASKING:
        return None
    made = tx.row(
        SQL["ask"],
        (who.channel, who.account_id, who.sender_id, name, code, now_ms, now_ms + CODE_LIVES_MS),
    )
    return Asked(str(made[0]), new=True) if made is not None else None


def approve(tx: Transaction, channel: str, code: str, owner: bool, now_ms: int) -> SenderRow | None:
    """Let in whoever holds this code; None when nobody does or it has expired."""
    row = tx.row(SQL["by_code"], (channel, code, now_ms))
    if row is None:
        return None
    found = SenderRow(*row)
    admit(tx, SenderRef(found.channel, found.account_id, found.sender_id), found.name, owner, now_ms)
    return found


def admit(tx: Transaction, who: SenderRef, name: str | None, owner: bool, now_ms: int) -> None:
    tx.run(SQL["admit"], (who.channel, who.account_id, who.sender_id, name, int(owner), now_ms, now_ms))


def hear(tx: Transaction, said: NewlyHeard, now_ms: int) -> bool:
    """Keep what was said without calling the agent; the oldest make room. False for a known message."""
    where = (said.place.channel, said.place.account_id, said.place.peer_id, said.place.thread_id)
    made = tx.row(
        SQL["hear"],
        (*where, said.message_id, said.sender_id, said.sender, said.said[:MAX_SAID_CHARS], now_ms),
    )
    if made is None:
        return False
    oldest = tx.row(SQL["oldest_kept"], (*where, MAX_OVERHEARD))
    if oldest is not None:
        tx.run(SQL["forget_until"], (*where, oldest[0]))
    return True


def forget_heard(tx: Transaction, place: Place, until_no: int) -> None:
    """Part of the commit that takes a turn in which all this was told."""
    tx.run(SQL["forget_until"], (place.channel, place.account_id, place.peer_id, place.thread_id, until_no))


# -- the verbs -----------------------------------------------------------------------------------


class Senders:
    """Admission and overhearing over a database."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def standing(self, who: SenderRef) -> Standing:
        return await self._database.read(lambda tx: standing(tx, who))

    async def ask(self, who: SenderRef, name: str | None, code: str, *, now_ms: int) -> Asked | None:
        return await self._database.write(lambda tx: ask(tx, who, name, code, now_ms))

    async def approve(self, channel: str, code: str, *, owner: bool, now_ms: int) -> SenderRow | None:
        return await self._database.write(lambda tx: approve(tx, channel, code, owner, now_ms))

    async def admit(self, who: SenderRef, name: str | None, *, owner: bool, now_ms: int) -> None:
        await self._database.write(lambda tx: admit(tx, who, name, owner, now_ms))

    async def remove(self, channel: str, sender_id: str, account_id: str = "") -> int:
        """Show somebody out, or forget that they asked; how many rows went."""
        gone = await self._database.write(lambda tx: tx.rows(SQL["remove"], (channel, account_id, sender_id)))
        return len(gone)

    async def list(self, channel: str = "", *, now_ms: int, limit: int = 500) -> tuple[SenderRow, ...]:
        rows = await self._database.read(lambda tx: tx.rows(SQL["list"], (channel, now_ms, limit)))
        return tuple(SenderRow(*row) for row in rows)

    async def owners(self, limit: int = 100) -> tuple[SenderRef, ...]:
        rows = await self._database.read(lambda tx: tx.rows(SQL["owners"], (limit,)))
        return tuple(SenderRef(*row) for row in rows)

    async def hear(self, said: NewlyHeard, *, now_ms: int) -> bool:
        return await self._database.write(lambda tx: hear(tx, said, now_ms))

    async def heard(self, place: Place) -> Sequence[Heard]:
        where = (place.channel, place.account_id, place.peer_id, place.thread_id)
        rows = await self._database.read(lambda tx: tx.rows(SQL["heard"], where))
        return [Heard(*row) for row in rows]

    async def other_people(self, session_key: str, channel: str, peer_id: str) -> int:
        """How many other direct chats lead into a session (KEY-3)."""
        row = await self._database.read(
            lambda tx: tx.row(SQL["other_people"], (session_key, channel, peer_id))
        )
        return int(row[0]) if row is not None else 0
