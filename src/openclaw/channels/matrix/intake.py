"""Events on their way to the door: in order within a room, several rooms at once, files fetched.

A sync is done when the door has answered for every event of it. When the door cannot keep a
message, nothing of the sync counts as done: it comes again, and what was kept is recognised there.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Sequence

from openclaw.channels.base import Door, Message
from openclaw.channels.fetching import Fetching, UnfetchedError
from openclaw.channels.matrix.api import Homeserver, MatrixError, Refused
from openclaw.channels.matrix.reading import FileRef, Ignored, Me, Said, read_event, with_answered
from openclaw.channels.matrix.rooms import Room, RoomTable, is_own_arrival
from openclaw.channels.matrix.wire import Event, Sync, Timeline, read_events
from openclaw.engine.ports import Clock

log = logging.getLogger("openclaw.channels")
ROOMS_AT_ONCE = 8
# Said before we came into a room, and still worth an answer: people invite and write in one go.
FRESH_MS = 5 * 60 * 1000
PAGE = 100
MOST_PAGES = 20
MOST_RECENT = 2000


class Intake:
    """The way in of one account."""

    def __init__(
        self, server: Homeserver, rooms: RoomTable, me: Me, door: Door, clock: Clock, *, largest_file: int
    ) -> None:
        self._server = server
        self._rooms = rooms
        self._me = me
        self._door = door
        self._largest = largest_file
        self._places = asyncio.Semaphore(ROOMS_AT_ONCE)
        self._files = Fetching(self._fetch, door, clock, self._name)
        self._recent: dict[str, Event] = {}
        self._silent: set[str] = set()

    async def take(self, sync: Sync, since: str | None) -> None:
        """Hand in what a sync brought. Without `since` only what is fresh: the rest is history."""
        try:
            async with asyncio.TaskGroup() as group:
                for room_id, joined in sync.rooms.join.items():
                    if joined.timeline.events:
                        group.create_task(self._take_room(room_id, joined.timeline, since))
        except ExceptionGroup as failed:
            raise failed.exceptions[0] from None

    @property
    def unreadable(self) -> tuple[str, ...]:
        """Rooms where encrypted messages came that nobody could read."""
        return tuple(sorted(self._silent))

    async def _take_room(self, room_id: str, timeline: Timeline, since: str | None) -> None:
        async with self._places:
            room, events = self._rooms.room(room_id), read_events(timeline.events)
            if room.joined is None:  # nothing is guessed about who listens
                room.count(await self._server.members(room_id))
            arrived = max(
                (at for at, event in enumerate(events) if is_own_arrival(event, self._me.user_id)), default=-1
            )
            if timeline.limited and timeline.prev_batch and since is not None and arrived < 0:
                events = [*await self._missed(room_id, timeline.prev_batch, since), *events]
            for at, event in enumerate(events):
                room.learn(event)
                is_history = since is None or at < arrived
                if not is_history or event.age_ms <= FRESH_MS:
                    await self._take_event(event, room)

    async def _missed(self, room_id: str, before: str, since: str) -> list[Event]:
        """What was said between two syncs and did not fit into the second, oldest first."""
        found: list[Event] = []
        start: str | None = before
        for _ in range(MOST_PAGES):
            if start is None:
                break
            page = await self._server.history(room_id, start, since, PAGE)
            found.extend(read_events(page.chunk))
            start = page.end if page.chunk else None
        else:
            log.warning("%s: more than %d events were missed in %s", self._name, len(found), room_id)
        return found[::-1]

    @property
    def _name(self) -> str:
        return f"{self._me.channel} ({self._me.account_id})"

    # -- one event -----------------------------------------------------------------------------

    async def _take_event(self, event: Event, room: Room) -> None:
        self._remember(event)
        direct = self._rooms.is_direct(room)
        reading = read_event(event, room, self._me, direct=direct, largest_file=self._largest)
        if isinstance(reading, Ignored):
            if reading.reason == "encrypted" and room.id not in self._silent:
                self._silent.add(room.id)
                log.warning(
                    "%s: messages in %s are encrypted and cannot be read; use a room without encryption",
                    self._name,
                    room.id,
                )
            return
        said = await self._with_answered(reading, room)
        await self._door.accept(
            Message(
                envelope=said.envelope,
                attachments=await self._files.attachments(said.envelope, said.files),
                quoted=said.quoted,
                quoted_sender=said.quoted_sender,
            )
        )

    def _remember(self, event: Event) -> None:
        if event.type == "m.room.message" and event.event_id:
            self._recent[event.event_id] = event
            while len(self._recent) > MOST_RECENT:
                del self._recent[next(iter(self._recent))]

    async def _with_answered(self, said: Said, room: Room) -> Said:
        if said.answers is None:
            return said
        answered = self._recent.get(said.answers)
        if answered is None:
            try:
                answered = await self._server.event(room.id, said.answers)
            except Refused:
                return said  # it is gone, or was never for our eyes
        return with_answered(said, answered, room, self._me)

    async def _fetch(self, file: FileRef) -> bytes:
        try:
            return await self._server.fetch(file.server, file.media_id, self._largest)
        except Refused as refused:
            wait_s = refused.retry_after_s
            raise UnfetchedError(refused.message, final=wait_s is None, retry_after_s=wait_s) from None
        except MatrixError as error:
            raise UnfetchedError(error.message) from None


def rooms_named(rooms: Sequence[str]) -> str:
    """A few rooms for a line that people read."""
    shown = ", ".join(rooms[:3])
    return shown if len(rooms) <= 3 else f"{shown} and {len(rooms) - 3} more"
