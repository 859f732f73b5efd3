"""The answers of a homeserver as values: only what is read, and tolerant about everything else.

Events stay raw inside an answer and are read one by one, so that a single odd event of some
other server cannot make a whole answer unreadable. Nothing here decides what an event means.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import msgspec
from msgspec import Raw, Struct

from openclaw.protocol.intake import is_too_deep, replace_escaped_surrogates, to_utf8


class Event(Struct, frozen=True):
    """One event of a room. Ids are kept as they came."""

    type: str = ""
    sender: str = ""
    event_id: str = ""
    state_key: str | None = None
    content: dict[str, Any] = {}
    unsigned: dict[str, Any] = {}

    def text(self, name: str) -> str:
        """A text of the content; empty when there is none or it is something else."""
        return text_in(self.content, name)

    @property
    def age_ms(self) -> int:
        """How long ago it was said, by the homeserver's own clock."""
        age = self.unsigned.get("age")
        return int(age) if isinstance(age, int | float) else 0


class Events(Struct, frozen=True):
    events: list[Raw] = []


class Timeline(Struct, frozen=True):
    events: list[Raw] = []
    limited: bool = False
    prev_batch: str | None = None


class Joined(Struct, frozen=True):
    """What happened in a room we are in."""

    state: Events = Events()
    timeline: Timeline = Timeline()
    summary: dict[str, Any] = {}


class Invited(Struct, frozen=True):
    invite_state: Events = Events()


class Rooms(Struct, frozen=True):
    join: dict[str, Joined] = {}
    invite: dict[str, Invited] = {}
    leave: dict[str, Raw] = {}


class Sync(Struct, frozen=True):
    """An answer to `sync`."""

    next_batch: str
    rooms: Rooms = Rooms()
    account_data: Events = Events()


class Page(Struct, frozen=True):
    """A page of a room's history, newest first when it was asked for backwards."""

    chunk: list[Raw] = []
    end: str | None = None


class Members(Struct, frozen=True):
    """Who is in a room, with the names they have there."""

    joined: dict[str, dict[str, Any]] = {}


class WhoAmI(Struct, frozen=True):
    user_id: str
    device_id: str = ""


class Profile(Struct, frozen=True):
    displayname: str = ""


class LoggedIn(Struct, frozen=True):
    user_id: str
    access_token: str
    device_id: str = ""


class SentEvent(Struct, frozen=True):
    event_id: str = ""


class Uploaded(Struct, frozen=True):
    content_uri: str


class Trouble(Struct, frozen=True):
    """What a homeserver says when it refuses."""

    errcode: str = ""
    error: str = ""
    retry_after_ms: float | None = None


_decode_event = msgspec.json.Decoder(Event).decode
_decode_sync = msgspec.json.Decoder(Sync).decode


def clean(data: bytes) -> bytes | None:
    """JSON that a decoder may see; None for what is not UTF-8 or nested without end."""
    utf8 = to_utf8(data)
    return None if utf8 is None or is_too_deep(utf8) else replace_escaped_surrogates(utf8)


def read_sync(data: bytes) -> Sync | None:
    """An answer to `sync`; None when it cannot be read."""
    cleaned = clean(data)
    try:
        return None if cleaned is None else _decode_sync(cleaned)
    except (msgspec.MsgspecError, RecursionError):
        return None


def read_events(raw: Iterable[Raw]) -> list[Event]:
    """The events that can be read, in order."""
    return [event for one in raw if (event := event_of(bytes(one))) is not None]


def event_of(data: bytes) -> Event | None:
    """One event; None when it is not shaped like one."""
    cleaned = clean(data)
    try:
        return None if cleaned is None else _decode_event(cleaned)
    except (msgspec.MsgspecError, RecursionError):
        return None


def text_in(content: Any, name: str) -> str:
    found = content.get(name) if isinstance(content, dict) else None
    return found if isinstance(found, str) else ""


def object_in(content: Any, name: str) -> dict[str, Any]:
    found = content.get(name) if isinstance(content, dict) else None
    return found if isinstance(found, dict) else {}
