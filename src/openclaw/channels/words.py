"""What a platform message becomes for the model: who spoke, what it answers, what was said before, files.

Values only. Everything here is somebody's words: it is labelled, and never made part of instructions.
"""

from __future__ import annotations

import base64
from collections.abc import Sequence

from openclaw.channels.base import Attachment, Message
from openclaw.domain.attachments import accept_attachments
from openclaw.domain.doortext import clean_text, cut
from openclaw.domain.transcript import TextBlock, UserBlock
from openclaw.errors import InvalidRequest
from openclaw.store.senders import Heard

QUOTED_CHARS = 600
NAME_CHARS = 80


def spoken(message: Message, heard: Sequence[Heard] = ()) -> str:
    """The text of a turn: in a group with its speaker, after what was said without calling the agent."""
    envelope = message.envelope
    said = clean_text(envelope.text)
    if message.quoted:
        said = f"{_quote(message)}\n{said}".rstrip()
    if envelope.peer_kind != "direct" and said:
        said = f"{speaker(message)}: {said}"
    if not heard:
        return said
    lines = "\n".join(f"{one.sender}: {one.said}" for one in heard)
    return f"[Said here since your last reply, for context]\n{lines}\n\n[Now]\n{said}"


def speaker(message: Message) -> str:
    """How the sender is called, on one line."""
    envelope = message.envelope
    name = " ".join(clean_text(envelope.sender_name or envelope.sender_id or "somebody").split())
    return cut(name.replace(":", " "), NAME_CHARS)


def _quote(message: Message) -> str:
    whom = f" {message.quoted_sender}" if message.quoted_sender else ""
    text = " ".join(clean_text(message.quoted or "").split())
    return f"[In reply to{whom}: {cut(text, QUOTED_CHARS)}]"


def content_of(message: Message, text: str) -> str | tuple[UserBlock, ...]:
    """Text and files as one content. A file that cannot be shown leaves a line that says why."""
    if not message.attachments:
        return text
    blocks: list[UserBlock] = []
    for attachment in message.attachments:
        blocks.extend(_blocks(attachment))
    return (TextBlock(text), *blocks) if text else tuple(blocks)


def _blocks(attachment: Attachment) -> tuple[UserBlock, ...]:
    name = cut(" ".join(clean_text(attachment.name).split()) or "file", NAME_CHARS)
    if attachment.problem:
        return (TextBlock(f"[Attachment {name}: {attachment.problem}]"),)
    encoded = base64.b64encode(attachment.data).decode()
    try:
        return accept_attachments([{"fileName": name, "mimeType": attachment.mime, "content": encoded}])
    except InvalidRequest as error:
        return (TextBlock(f"[Attachment {name} was not read: {error.message}]"),)
