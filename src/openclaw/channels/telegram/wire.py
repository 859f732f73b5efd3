"""What Telegram sends, as far as it is read here. Everything else in an update is left alone."""

from __future__ import annotations

from msgspec import Struct, field


class User(Struct, frozen=True):
    id: int
    is_bot: bool = False
    first_name: str = ""
    last_name: str = ""
    username: str = ""


class Chat(Struct, frozen=True):
    id: int
    type: str
    title: str = ""
    username: str = ""
    first_name: str = ""
    last_name: str = ""


class Entity(Struct, frozen=True):
    """A part of a text with a meaning; offset and length count UTF-16 units."""

    type: str
    offset: int
    length: int
    user: User | None = None


class File(Struct, frozen=True):
    """A photo size, a document, a sound: whatever can be fetched by id."""

    file_id: str
    file_size: int | None = None
    file_name: str = ""
    mime_type: str = ""
    width: int = 0
    height: int = 0
    duration: int = 0
    emoji: str = ""
    title: str = ""


class TopicName(Struct, frozen=True):
    name: str = ""


class Contact(Struct, frozen=True):
    phone_number: str = ""
    first_name: str = ""
    last_name: str = ""


class Location(Struct, frozen=True):
    latitude: float = 0.0
    longitude: float = 0.0


class Poll(Struct, frozen=True):
    question: str = ""


class Dice(Struct, frozen=True):
    emoji: str = ""
    value: int = 0


class Quote(Struct, frozen=True):
    text: str = ""


class Message(Struct, frozen=True):
    message_id: int
    chat: Chat
    from_: User | None = field(default=None, name="from")
    sender_chat: Chat | None = None
    message_thread_id: int | None = None
    is_topic_message: bool = False
    is_automatic_forward: bool = False
    text: str = ""
    entities: tuple[Entity, ...] = ()
    caption: str = ""
    caption_entities: tuple[Entity, ...] = ()
    reply_to_message: Message | None = None
    quote: Quote | None = None
    photo: tuple[File, ...] = ()
    document: File | None = None
    animation: File | None = None
    audio: File | None = None
    voice: File | None = None
    video: File | None = None
    video_note: File | None = None
    sticker: File | None = None
    contact: Contact | None = None
    location: Location | None = None
    poll: Poll | None = None
    dice: Dice | None = None
    forum_topic_created: TopicName | None = None
    migrate_to_chat_id: int | None = None


class Update(Struct, frozen=True):
    update_id: int
    message: Message | None = None


class Numbered(Struct, frozen=True):
    """An update of which only the number is read."""

    update_id: int


class FilePath(Struct, frozen=True):
    file_path: str = ""
    file_size: int | None = None


class SentMessage(Struct, frozen=True):
    message_id: int


class NewTopic(Struct, frozen=True):
    """A topic of a forum group that was opened for us."""

    message_thread_id: int
