"""From an update of Telegram to a message of the house: pure, and total over whatever comes.

The rules, each stated once: text and captions are words; photos and documents are files; a sticker,
a voice message, a place, a contact, a poll become one line in brackets that says what it was.
Edited messages, posts of channels, messages of other bots and what the platform itself
tells (somebody joined, a title changed) are not messages to an agent and are ignored, except
that a group which got a new id is reported as such.
"""

from __future__ import annotations

import re

import msgspec
from msgspec import Struct

from openclaw.channels.telegram import wire
from openclaw.domain.doortext import clean_text, cut
from openclaw.domain.entry import ChatType
from openclaw.domain.routing import Envelope
from openclaw.protocol.intake import is_too_deep, replace_escaped_surrogates, to_utf8

MAX_FILE_BYTES = 20 * 1024 * 1024  # what Telegram lets a bot fetch
MOST_ENTITIES = 200
_COMMAND = re.compile(r"/([A-Za-z0-9_]{1,64})@([A-Za-z0-9_]{1,64})(?=\s|\Z)")
_KINDS: dict[str, ChatType] = {"private": "direct", "group": "group", "supergroup": "group"}
_decode = msgspec.json.Decoder(wire.Update).decode
_decode_number = msgspec.json.Decoder(wire.Numbered).decode


class Me(Struct, frozen=True):
    """The bot itself, and where its messages belong."""

    id: int
    username: str
    channel: str = "telegram"
    account_id: str = "default"


class FileRef(Struct, frozen=True):
    """A file that can be fetched; `problem` says why it will not be."""

    file_id: str
    name: str
    mime: str
    problem: str | None = None


class Said(Struct, frozen=True):
    """Somebody said something."""

    envelope: Envelope
    files: tuple[FileRef, ...] = ()
    quoted: str | None = None
    quoted_sender: str | None = None


class Moved(Struct, frozen=True):
    """A group goes on under another id."""

    old: str
    new: str


class Ignored(Struct, frozen=True):
    reason: str


Reading = Said | Moved | Ignored


def number_of(raw: bytes) -> int | None:
    """The number of an update; None when even that cannot be read."""
    try:
        return _decode_number(raw).update_id
    except (msgspec.MsgspecError, UnicodeDecodeError):
        return None


def read_update(raw: bytes, me: Me, *, largest_file: int = MAX_FILE_BYTES) -> Reading:
    """What an update means. Never raises: an update that makes no sense must not come again for ever."""
    data = to_utf8(raw)
    if data is None or is_too_deep(data):
        return Ignored("malformed")
    try:
        update = _decode(replace_escaped_surrogates(data))
    except (msgspec.MsgspecError, RecursionError):
        return Ignored("malformed")
    if update.message is None:
        return Ignored("not a message")
    return _read_message(update.message, me, largest_file)


def _read_message(message: wire.Message, me: Me, largest_file: int) -> Reading:
    chat = message.chat
    if message.migrate_to_chat_id is not None:
        return Moved(str(chat.id), str(message.migrate_to_chat_id))
    kind = _KINDS.get(chat.type)
    if kind is None:
        return Ignored("not a chat with people")
    sender = _sender(message)
    if sender is None:
        return Ignored("not said by a person")
    words, entities = _words(message)
    files, note = _files(message, largest_file), _note(message)
    if not words and not files and not note:
        return Ignored("nothing was said")
    other = _COMMAND.match(words)
    if other is not None and other[2].lower() != me.username.lower():
        return Ignored("a command for another bot")
    text = _unaddressed(words, me)
    reply = _replied(message)
    sender_id, sender_name = sender
    thread = message.message_thread_id if message.is_topic_message else None
    envelope = Envelope(
        channel=me.channel,
        account_id=me.account_id,
        peer_kind=kind,
        peer_id=str(chat.id),
        thread_id=None if thread is None else str(thread),
        thread_kind=None if thread is None else "topic",
        sender_id=sender_id,
        sender_name=sender_name,
        message_id=str(message.message_id),
        text="\n".join(part for part in (note, text) if part),
        has_media=bool(files),
        was_mentioned=other is not None or _mentions(words, entities, me),
        replied_to_us=reply is not None and reply.from_ is not None and reply.from_.id == me.id,
        conversation_label=_line(chat.title) if kind == "group" else sender_name,
        group_subject=_line(chat.title) if kind == "group" else None,
        thread_label=_topic_name(message),
    )
    quoted, quoted_sender = _quoted(message, reply)
    return Said(envelope, files, quoted, quoted_sender)


# -- who -------------------------------------------------------------------------------------------


def _sender(message: wire.Message) -> tuple[str, str | None] | None:
    """Id and name. Someone who speaks as the group or as a channel is that chat; bots are nobody."""
    if message.is_automatic_forward:
        return None
    if message.sender_chat is not None:
        spoken = message.sender_chat
        return str(spoken.id), _line(spoken.title) or _line(spoken.username)
    if message.from_ is None or message.from_.is_bot:
        return None
    return str(message.from_.id), _user_name(message.from_)


def _user_name(user: wire.User) -> str | None:
    return _line(f"{user.first_name} {user.last_name}") or _line(user.username)


def _line(text: str) -> str | None:
    return cut(" ".join(clean_text(text).split()), 200) or None


# -- what ------------------------------------------------------------------------------------------


def _words(message: wire.Message) -> tuple[str, tuple[wire.Entity, ...]]:
    if message.text:
        return message.text, message.entities
    return message.caption, message.caption_entities


def _unaddressed(words: str, me: Me) -> str:
    """The words without our name in front: `/new@bot` is `/new`, `@bot: hi` is `hi` (CMD-12, LIFE-14)."""
    text = words.strip()
    name = f"@{me.username}"
    if me.username and text[: len(name)].lower() == name.lower():
        rest = text[len(name) :]
        if not rest[:1].isalnum() and rest[:1] != "_":
            text = rest.lstrip(" \t\n,:") or text
    command = _COMMAND.match(text)
    if command is not None and command[2].lower() == me.username.lower():
        return f"/{command[1]}{text[command.end() :]}"
    return text


def _mentions(words: str, entities: tuple[wire.Entity, ...], me: Me) -> bool:
    """Whether one of the parts that Telegram marked as a mention is us. It counts in UTF-16 units."""
    as_units = words.encode("utf-16-le", "surrogatepass")
    for entity in entities[:MOST_ENTITIES]:
        if entity.type == "text_mention" and entity.user is not None and entity.user.id == me.id:
            return True
        if entity.type == "mention" and 0 < entity.length <= 65 and entity.offset >= 0:
            part = as_units[2 * entity.offset : 2 * (entity.offset + entity.length)]
            if part.decode("utf-16-le", "replace").lower() == f"@{me.username}".lower():
                return True
        if entity.type == "bot_command" and 0 < entity.length <= 130 and entity.offset >= 0:
            part = as_units[2 * entity.offset : 2 * (entity.offset + entity.length)]
            _, at, named = part.decode("utf-16-le", "replace").partition("@")
            if at and named.lower() == me.username.lower():
                return True
    return False


def _files(message: wire.Message, largest: int) -> tuple[FileRef, ...]:
    """The photo in the largest size that may be fetched, and the document."""
    found = []
    if message.photo:
        by_area = sorted(message.photo, key=lambda size: size.width * size.height)
        fitting = [size for size in by_area if (size.file_size or 0) <= largest]
        found.append(_file(fitting[-1] if fitting else by_area[0], "photo.jpg", "image/jpeg", largest))
    if message.document is not None and message.animation is None:
        found.append(_file(message.document, "file", "application/octet-stream", largest))
    return tuple(found)


def _file(file: wire.File, name: str, mime: str, largest: int) -> FileRef:
    size, most = file.file_size or 0, largest // (1024 * 1024)
    problem = f"it has {size} bytes, and at most {most} MB are fetched" if size > largest else None
    return FileRef(file.file_id, _line(file.file_name) or name, _line(file.mime_type) or mime, problem)


def _note(message: wire.Message) -> str | None:
    """One line for what has no words and is not read as a file."""
    heard = "; its sound was not listened to"
    seen = "; it was not looked at"
    if message.sticker is not None:
        return f"[Sticker {_line(message.sticker.emoji) or ''}".rstrip() + "]"
    if message.voice is not None:
        return f"[Voice message, {message.voice.duration} s{heard}]"
    if message.audio is not None:
        name = _line(message.audio.title) or _line(message.audio.file_name) or "without a title"
        return f"[Audio {name}, {message.audio.duration} s{heard}]"
    if message.video_note is not None:
        return f"[Video message, {message.video_note.duration} s{seen}]"
    if message.animation is not None:
        return f"[Animation, {message.animation.duration} s{seen}]"
    if message.video is not None:
        return f"[Video, {message.video.duration} s{seen}]"
    return _small_note(message)


def _small_note(message: wire.Message) -> str | None:
    if message.location is not None:
        return f"[Location {message.location.latitude:.5f}, {message.location.longitude:.5f}]"
    if message.contact is not None:
        who = message.contact
        parts = (_line(f"{who.first_name} {who.last_name}"), _line(who.phone_number))
        return f"[Contact {' '.join(part for part in parts if part)}]"
    if message.poll is not None:
        return f"[Poll: {_line(message.poll.question) or ''}]"
    if message.dice is not None:
        return f"[{_line(message.dice.emoji) or 'Dice'} shows {message.dice.value}]"
    return None


# -- what it answers -------------------------------------------------------------------------------


def _replied(message: wire.Message) -> wire.Message | None:
    """The message that this one answers. In a topic, Telegram puts the topic's beginning there as well."""
    reply = message.reply_to_message
    return None if reply is None or reply.forum_topic_created is not None else reply


def _quoted(message: wire.Message, reply: wire.Message | None) -> tuple[str | None, str | None]:
    if reply is None:
        return None, None
    picked = message.quote.text if message.quote is not None else ""
    text = picked or _words(reply)[0] or _note(reply) or ("[a file]" if reply.photo or reply.document else "")
    if not text:
        return None, None
    if reply.from_ is not None and reply.sender_chat is None:
        return text, _user_name(reply.from_)
    return text, None if reply.sender_chat is None else _line(reply.sender_chat.title)


def _topic_name(message: wire.Message) -> str | None:
    beginning = message.reply_to_message.forum_topic_created if message.reply_to_message else None
    return None if beginning is None or not message.is_topic_message else _line(beginning.name)
