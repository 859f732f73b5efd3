"""From an event of Matrix to a message of the house: pure, and total over whatever comes.

The rules, each stated once: text is words, images and files are files; sound, film, a place and
a sticker become one line in brackets. Notices (what bots say), edits, reactions, redactions, our own
events and encrypted ones are not messages to an agent. Room, thread and user ids stay byte-exact
(KEY-20). A thread is a conversation of its own below its room (KEY-11).
"""

from __future__ import annotations

import html
import re
from typing import Any
from urllib.parse import unquote

import msgspec
from msgspec import Struct

from openclaw.channels.matrix.rooms import Room
from openclaw.channels.matrix.wire import Event, object_in, text_in
from openclaw.domain.doortext import clean_text, cut
from openclaw.domain.routing import Envelope

_MXC = re.compile(r"mxc://([A-Za-z0-9.:\[\]-]{1,255})/([A-Za-z0-9_-]{1,255})")
_LINKED = re.compile(r"https://matrix\.to/#/([^\s\"'<>?]{1,400})")
_FILES = {"m.image": "image", "m.file": "file"}
_UNREAD = {"m.audio": "Audio", "m.video": "Video"}


class Me(Struct, frozen=True):
    """Our own account, and where its messages belong."""

    user_id: str
    channel: str = "matrix"
    account_id: str = "default"
    name: str = ""  # as people see it where a room knows no other


class FileRef(Struct, frozen=True):
    """A file that can be fetched; `problem` says why it will not be."""

    server: str
    media_id: str
    name: str
    mime: str
    problem: str | None = None


class Said(Struct, frozen=True):
    """Somebody said something. `answers` is the event that it is a reply to."""

    envelope: Envelope
    room_id: str
    files: tuple[FileRef, ...] = ()
    answers: str | None = None
    quoted: str | None = None
    quoted_sender: str | None = None


class Ignored(Struct, frozen=True):
    reason: str


Reading = Said | Ignored


def read_event(event: Event, room: Room, me: Me, *, direct: bool, largest_file: int) -> Reading:
    """What an event of a room's timeline means. Never raises."""
    refused = _not_for_us(event, me)
    if refused is not None:
        return Ignored(refused)
    relation = object_in(event.content, "m.relates_to")
    thread_id = text_in(relation, "event_id") if text_in(relation, "rel_type") == "m.thread" else ""
    answers = _answered(relation)
    files = _files(event, largest_file)
    words = _words(event, room, is_reply=bool(answers))
    if not words.strip() and not files:
        return Ignored("nothing was said")
    sender_name = _line(room.name_of(event.sender)) or event.sender
    label = _line(room.name) or _line(room.alias)
    envelope = Envelope(
        channel=me.channel,
        account_id=me.account_id,
        peer_kind="direct" if direct else "channel",
        peer_id=event.sender if direct else room.id,
        parent_peer_id=room.id if thread_id and not direct else None,
        thread_id=thread_id or None,
        thread_kind="thread" if thread_id else None,
        reply_to=room.id,
        sender_id=event.sender,
        sender_name=sender_name,
        from_=event.sender,
        to=room.id,
        message_id=event.event_id,
        text=_unaddressed(words, _names(room, me)),
        has_media=bool(files),
        was_mentioned=mentions(event, room, me),
        conversation_label=sender_name if direct else label or room.id,
        group_subject=None if direct else label,
        group_channel=None if direct else _line(room.alias),
    )
    return Said(envelope, room.id, files, answers or None)


def with_answered(said: Said, answered: Event, room: Room, me: Me) -> Said:
    """The same message, knowing what it is a reply to; an answer to us counts as calling us."""
    is_ours = answered.sender == me.user_id
    text = answered.text("body") or "[a message]"
    return msgspec.structs.replace(
        said,
        envelope=msgspec.structs.replace(said.envelope, replied_to_us=is_ours),
        quoted=_without_fallback(text),
        quoted_sender=_line(room.name_of(answered.sender) or (me.name if is_ours else ""))
        or answered.sender
        or None,
    )


def _not_for_us(event: Event, me: Me) -> str | None:
    if event.state_key is not None:
        return "not a message"
    if event.type == "m.room.encrypted":
        return "encrypted"
    if event.type not in ("m.room.message", "m.sticker"):
        return "not a message"
    if not event.sender or not event.event_id:
        return "malformed"
    if event.sender == me.user_id:
        return "our own"
    if event.text("msgtype") == "m.notice":
        return "said by a bot"
    if text_in(object_in(event.content, "m.relates_to"), "rel_type") == "m.replace":
        return "an edit"
    return None


def _answered(relation: dict[str, Any]) -> str:
    """The event this one answers; in a thread, not the one that is named for clients without threads."""
    if text_in(relation, "rel_type") == "m.thread" and relation.get("is_falling_back") is True:
        return ""
    return text_in(object_in(relation, "m.in_reply_to"), "event_id")


# -- words -----------------------------------------------------------------------------------------


def _words(event: Event, room: Room, *, is_reply: bool) -> str:
    kind, body = event.text("msgtype"), event.text("body")
    if event.type == "m.sticker":
        return f"[Sticker {_line(body) or ''}".rstrip() + "]"
    if kind in _FILES:
        # Without a name of its own the body is the name, and nothing was said.
        name = event.text("filename")
        return body.strip() if name and name != body else ""
    if kind in _UNREAD:
        return f"[{_UNREAD[kind]} {_line(body) or 'without a name'}; it was not listened to or looked at]"
    if kind == "m.location":
        return f"[Location {_line(event.text('geo_uri')) or _line(body) or 'unknown'}]"
    if kind == "m.emote":
        return f"* {_line(room.name_of(event.sender)) or event.sender} {body}"
    return (_without_fallback(body) if is_reply else body).strip()


def _without_fallback(body: str) -> str:
    """The words without the quotation that older clients put in front of a reply."""
    if not body.startswith("> "):
        return body
    lines = body.split("\n")
    first = next((at for at, line in enumerate(lines) if not line.startswith(">")), len(lines))
    return "\n".join(lines[first:]).strip() or body


def _line(text: str) -> str | None:
    return cut(" ".join(clean_text(text).split()), 200) or None


# -- who is called ---------------------------------------------------------------------------------


def mentions(event: Event, room: Room, me: Me) -> bool:
    """Whether we are called: in the list of mentions, by id, by a link to us, or by our name as a word."""
    listed = object_in(event.content, "m.mentions").get("user_ids")
    if isinstance(listed, list) and me.user_id in listed:
        return True
    linked = _LINKED.findall(event.text("formatted_body"))
    if any(html.unescape(unquote(target)) == me.user_id for target in linked):
        return True
    body = _without_fallback(event.text("body"))
    return any(_stands_alone(body, name) for name in _names(room, me))


def _names(room: Room, me: Me) -> tuple[str, ...]:
    """What people call us: our id, `@` with the first part of it, and the name we have in this room."""
    shown = _line(room.name_of(me.user_id)) or _line(me.name)
    names = [me.user_id, me.user_id.partition(":")[0]]
    return (*names, shown) if shown and len(shown) > 1 else tuple(names)


def _stands_alone(body: str, name: str) -> bool:
    """Whether a text holds a name as words of their own, in any case."""
    text, wanted = body.lower(), name.lower()
    at = text.find(wanted)
    while at >= 0:
        end = at + len(wanted)
        before, behind = text[at - 1 : at] if at else "", text[end : end + 1]
        # `@house` is not called by `@house:elsewhere.org`.
        is_longer_id = wanted[:1] == "@" and behind == ":" and _wordy(text[end + 1 : end + 2])
        if not _wordy(before) and not _wordy(behind) and not is_longer_id:
            return True
        at = text.find(wanted, end)
    return False


def _wordy(char: str) -> bool:
    return char.isalnum() or char == "_"


def _unaddressed(words: str, names: tuple[str, ...]) -> str:
    """The words without our name in front: `@house:hs.org /new` is `/new`, `House: hi` is `hi` (CMD-12)."""
    text = words.strip()
    for name in names:
        if text[: len(name)].lower() != name.lower():
            continue
        rest = text[len(name) :]
        called = rest[:1] in (":", ",") or (name.startswith("@") and rest[:1].isspace())
        if called and (left := rest.lstrip(" \t\n,:")):
            return left
    return text


# -- files -----------------------------------------------------------------------------------------


def _files(event: Event, largest: int) -> tuple[FileRef, ...]:
    if event.type != "m.room.message" or event.text("msgtype") not in _FILES:
        return ()
    info = object_in(event.content, "info")
    default = "image/jpeg" if event.text("msgtype") == "m.image" else "application/octet-stream"
    name = _line(event.text("filename")) or _line(event.text("body")) or _FILES[event.text("msgtype")]
    mime = _line(text_in(info, "mimetype")) or default
    place = _MXC.fullmatch(event.text("url"))
    if "file" in event.content:
        return (FileRef("", "", name, mime, "it is encrypted and cannot be read"),)
    if place is None:
        return (FileRef("", "", name, mime, "its address is not one of Matrix"),)
    size = info.get("size")
    problem = None
    if isinstance(size, int) and size > largest:
        problem = f"it has {size} bytes, and at most {largest // (1024 * 1024)} MB are fetched"
    return (FileRef(place[1], place[2], name, mime, problem),)
