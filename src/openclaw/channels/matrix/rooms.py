"""What is known about the rooms: names, members, who is a direct chat. Derived from syncs, kept nowhere.

No I/O. A room is a direct chat when the account's own `m.direct` says so, or when exactly two
people are in it or invited to it; every other room is a channel.
"""

from __future__ import annotations

from typing import Any

import msgspec
from msgspec import Struct

from openclaw.channels.matrix.wire import Event, Members, Sync, object_in, read_events, text_in

MOST_MEMBERS = 2000  # names that are remembered of one room


class Room(Struct):
    """One room that we are in."""

    id: str
    name: str = ""
    alias: str = ""
    # Who is in it or invited, with the names they have there; not everybody in a large room.
    members: dict[str, str] = {}
    # How many are in it or invited, where the homeserver has told it.
    joined: int | None = None
    invited: int | None = None

    @property
    def size(self) -> int:
        told = self.joined
        return len(self.members) if told is None else told + (self.invited or 0)

    def learn(self, event: Event) -> None:
        """Take in a state event."""
        if event.state_key is None:
            return
        match event.type:
            case "m.room.name":
                self.name = event.text("name")
            case "m.room.canonical_alias":
                self.alias = event.text("alias")
            case "m.room.member":
                self._learn_member(event.state_key, event)

    def _learn_member(self, user_id: str, event: Event) -> None:
        if event.text("membership") not in ("join", "invite"):
            self.members.pop(user_id, None)
        elif user_id in self.members or len(self.members) < MOST_MEMBERS:
            self.members[user_id] = event.text("displayname")

    def summarise(self, summary: dict[str, Any]) -> None:
        """Take in the counts, which are told only when they have changed."""
        joined, invited = summary.get("m.joined_member_count"), summary.get("m.invited_member_count")
        if isinstance(joined, int):
            self.joined = joined
        if isinstance(invited, int):
            self.invited = invited

    def count(self, members: Members) -> None:
        """Take in who is there, where the homeserver had to be asked."""
        self.joined = len(members.joined)
        for user_id, profile in list(members.joined.items())[:MOST_MEMBERS]:
            self.members.setdefault(user_id, text_in(profile, "display_name"))

    def name_of(self, user_id: str) -> str:
        return self.members.get(user_id, "")


class Invitation(Struct, frozen=True):
    """Somebody wants us in a room."""

    room_id: str
    inviter: str
    direct: bool = False


class RoomTable:
    """Every room that we are in, and which of them are direct chats; `complete` after the first sync."""

    def __init__(self) -> None:
        self.complete = False
        self._rooms: dict[str, Room] = {}
        self._direct: dict[str, str] = {}

    def room(self, room_id: str) -> Room:
        """A room; an empty one is opened for an id that is new."""
        return self._rooms.setdefault(room_id, Room(room_id))

    def take(self, sync: Sync, *, first: bool = False) -> None:
        """Take in what a sync tells about rooms, apart from their timelines.

        In a `first` sync the timelines hold a part of the rooms' state that is told nowhere else.
        """
        for event in read_events(sync.account_data.events):
            if event.type == "m.direct":
                self._direct = _direct_rooms(event.content)
        for room_id, joined in sync.rooms.join.items():
            room = self.room(room_id)
            told = (*joined.state.events, *joined.timeline.events) if first else joined.state.events
            for event in read_events(told):
                room.learn(event)
            room.summarise(joined.summary)
        for room_id in sync.rooms.leave:
            self._rooms.pop(room_id, None)
        self.complete = self.complete or first

    def is_direct(self, room: Room) -> bool:
        return room.id in self._direct or room.size == 2

    def direct_room(self, user_id: str) -> str | None:
        """The direct chat with a person: the newest that we are in."""
        marked = [room for room in self._rooms.values() if self._direct.get(room.id) == user_id]
        pairs = [room for room in self._rooms.values() if room.size == 2 and user_id in room.members]
        found = marked or pairs
        return found[-1].id if found else None


def invitations(sync: Sync, own_id: str) -> tuple[Invitation, ...]:
    """The invitations of a sync that say who invites."""
    found = []
    for room_id, invited in sync.rooms.invite.items():
        for event in read_events(invited.invite_state.events):
            ours = event.type == "m.room.member" and event.state_key == own_id
            if ours and event.text("membership") == "invite" and event.sender:
                found.append(Invitation(room_id, event.sender, event.content.get("is_direct") is True))
    return tuple(found)


def _direct_rooms(content: dict[str, Any]) -> dict[str, str]:
    """Room to person, from the person to rooms that `m.direct` holds."""
    return {
        room_id: user_id
        for user_id, listed in content.items()
        if isinstance(listed, list)
        for room_id in listed
        if isinstance(room_id, str)
    }


def is_own_arrival(event: Event, own_id: str) -> bool:
    """Whether this is the event by which we came into the room."""
    if event.type != "m.room.member" or event.state_key != own_id or event.text("membership") != "join":
        return False
    before = text_in(object_in(event.unsigned, "prev_content"), "membership")
    return before != "join"


encode_invitations = msgspec.json.Encoder().encode
decode_invitations = msgspec.json.Decoder(tuple[Invitation, ...]).decode
