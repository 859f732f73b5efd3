"""What may be attached to a message, and what it becomes (RPC-12).

An attachment arrives as an object with its bytes in base64. Images stay images,
text becomes a text block under a header that names the file; everything else is
refused, because no model that is spoken to here could read it. What bytes are is
told by the bytes; a claim that they are something else is an error. This room
checks values in hand; it does not fetch, store or resize.
"""

from __future__ import annotations

import binascii
from collections.abc import Mapping, Sequence
from typing import Any

from msgspec import Struct

from openclaw.domain.doortext import clean_text, cut
from openclaw.domain.transcript import ImageBlock, TextBlock, UserBlock
from openclaw.errors import InvalidRequest

MAX_NAME_CHARS = 120
_SNIFFED_TEXT_BYTES = 8192


class AttachmentLimits(Struct, frozen=True, kw_only=True):
    """The most that is taken, in number and in decoded bytes."""

    count: int = 20
    image_bytes: int = 6_291_456
    text_bytes: int = 524_288
    total_bytes: int = 19_464_192


CHAT_LIMITS = AttachmentLimits()
# What a spawned session may be given (SPAWN-17).
SPAWN_LIMITS = AttachmentLimits(count=50, image_bytes=1_048_576, text_bytes=1_048_576, total_bytes=5_242_880)

# Bytes at the start, and what they mean. Only the images that models read are accepted.
_SIGNATURES: tuple[tuple[bytes, str], ...] = (
    (b"\x89PNG\r\n\x1a\n", "image/png"),
    (b"\xff\xd8\xff", "image/jpeg"),
    (b"GIF87a", "image/gif"),
    (b"GIF89a", "image/gif"),
    (b"BM", "image/bmp"),
    (b"II*\x00", "image/tiff"),
    (b"MM\x00*", "image/tiff"),
    (b"%PDF-", "application/pdf"),
    (b"PK\x03\x04", "application/zip"),
    (b"\x1f\x8b", "application/gzip"),
)
IMAGE_TYPES = ("image/png", "image/jpeg", "image/gif", "image/webp")
_TEXT_TYPES = (
    "application/json",
    "application/xml",
    "application/yaml",
    "application/x-yaml",
    "application/toml",
    "application/javascript",
    "application/x-sh",
    "application/sql",
    "image/svg+xml",
)
_TEXT_SUFFIXES = ("+json", "+xml", "+yaml")
_SAME_TYPES = {"image/jpg": "image/jpeg", "image/pjpeg": "image/jpeg", "image/x-png": "image/png"}
_NO_CLAIM = ("", "application/octet-stream", "binary/octet-stream")


class _File(Struct, frozen=True):
    """One attachment after decoding. `label` is how an error names it."""

    label: str
    name: str
    claimed: str
    data: bytes


def accept_attachments(
    raw: Sequence[Mapping[str, Any]], limits: AttachmentLimits = CHAT_LIMITS
) -> tuple[UserBlock, ...]:
    """The blocks that follow the text of a message, in the order of the attachments.

    Raises InvalidRequest that names the attachment and what to change. Sizes are
    refused before anything is decoded.
    """
    if len(raw) > limits.count:
        raise InvalidRequest(f"{len(raw)} attachments; at most {limits.count} can be sent at once")
    blocks: list[UserBlock] = []
    total = 0
    for number, item in enumerate(raw, 1):
        file = _decode(number, item, limits.total_bytes - total, limits)
        total += len(file.data)
        blocks.append(_block(file, limits))
    return tuple(blocks)


def image_block(data: bytes, limits: AttachmentLimits = CHAT_LIMITS) -> ImageBlock | None:
    """Bytes that go out to a model as an image; None when they are not an image that models read."""
    mime = sniff(data)
    if mime not in IMAGE_TYPES:
        return None
    if len(data) > limits.image_bytes:
        raise InvalidRequest(f"the image has {len(data)} bytes; at most {limits.image_bytes} can be shown")
    return ImageBlock(binascii.b2a_base64(data, newline=False).decode(), mime)


def sniff(data: bytes) -> str | None:
    """The type that the first bytes announce; `text/plain` for UTF-8 without NUL; None for the rest."""
    if data[:4] == b"RIFF" and data[8:12] == b"WEBP":
        return "image/webp"
    for signature, mime in _SIGNATURES:
        if data.startswith(signature):
            return mime
    if b"\x00" in data[:_SNIFFED_TEXT_BYTES]:
        return None
    try:
        data.decode()
    except UnicodeDecodeError:
        return None
    return "text/plain"


# -- one attachment ------------------------------------------------------------------------------


def _decode(number: int, item: Mapping[str, Any], room: int, limits: AttachmentLimits) -> _File:
    name = _name(item)
    label = f"attachment {number}" + (f" ({name})" if name else "")
    claimed, text = _encoded(label, item)
    # Four characters carry three bytes; padding and line breaks only make the text longer.
    if (len(text) // 4) * 3 - 2 > room:
        raise InvalidRequest(f"{label}: the attachments have more than {limits.total_bytes} bytes together")
    data: bytes | None
    try:
        data = binascii.a2b_base64(text, strict_mode=True)
    except ValueError:
        data = None
    if data is None or len(text) % 4:
        raise InvalidRequest(f"{label}: the content is not valid base64")
    if not data:
        raise InvalidRequest(f"{label} is empty; leave it out")
    if len(data) > room:
        raise InvalidRequest(f"{label}: the attachments have more than {limits.total_bytes} bytes together")
    return _File(label, name, claimed, data)


def _name(item: Mapping[str, Any]) -> str:
    given = item.get("fileName") or item.get("name")
    if not isinstance(given, str):
        return ""
    # Only the last part of a path, on one line: the name stands in a header that a model reads.
    last = clean_text(given[-1024:]).replace("\\", "/").rstrip("/").rpartition("/")[2]
    return cut(" ".join(last.replace("]", ")").replace("[", "(").split()), MAX_NAME_CHARS)


def _encoded(label: str, item: Mapping[str, Any]) -> tuple[str, str]:
    """The claimed type and the base64 text, wherever the client put them."""
    source = item.get("source")
    inner: Mapping[str, Any] = source if isinstance(source, Mapping) else item
    content = inner.get("content", inner.get("data"))
    if not isinstance(content, str):
        raise InvalidRequest(f"{label} has no content; put the file's bytes into `content` as base64")
    mime = item.get("mimeType") or inner.get("mimeType") or inner.get("media_type") or ""
    if content.startswith("data:"):
        head, comma, content = content.partition(",")
        if not comma or not head.endswith(";base64"):
            raise InvalidRequest(f"{label}: a data URL must be of the form data:TYPE;base64,…")
        mime = mime or head[len("data:") : -len(";base64")]
    if any(blank in content for blank in "\n\r "):
        content = "".join(content.split())
    if not content.isascii():
        raise InvalidRequest(f"{label}: the content is not valid base64")
    return _plain_type(mime), content


def _plain_type(mime: Any) -> str:
    """`Text/Plain; charset=utf-8` as `text/plain`; one name for types that have several."""
    name = mime.partition(";")[0].strip().lower() if isinstance(mime, str) else ""
    return _SAME_TYPES.get(name, "" if name in _NO_CLAIM else name)


def _block(file: _File, limits: AttachmentLimits) -> UserBlock:
    found = sniff(file.data)
    claimed = file.claimed
    if found == "text/plain":
        if claimed and not _is_text_type(claimed):
            raise InvalidRequest(f"{file.label} says it is {cut(claimed, 60)}, but its bytes are text")
        return _text_block(file, claimed or found, limits)
    if claimed and found is not None and claimed != found:
        raise InvalidRequest(f"{file.label} says it is {cut(claimed, 60)}, but its bytes are {found}")
    if found is None or found not in IMAGE_TYPES:
        what = found or claimed or "of an unknown kind"
        raise InvalidRequest(
            f"{file.label} is {cut(what, 60)}; send UTF-8 text or a PNG, JPEG, GIF or WebP image"
        )
    if len(file.data) > limits.image_bytes:
        raise InvalidRequest(
            f"{file.label} has {len(file.data)} bytes; an image may have at most {limits.image_bytes}"
        )
    return ImageBlock(binascii.b2a_base64(file.data, newline=False).decode(), found)


def _is_text_type(mime: str) -> bool:
    return mime.startswith("text/") or mime in _TEXT_TYPES or mime.endswith(_TEXT_SUFFIXES)


def _text_block(file: _File, mime: str, limits: AttachmentLimits) -> TextBlock:
    size = len(file.data)
    if size > limits.text_bytes:
        raise InvalidRequest(
            f"{file.label} has {size} bytes; a text file may have {limits.text_bytes}, send a part of it"
        )
    name = file.name or "unnamed"
    head = f"[Attached file: {name} ({cut(clean_text(mime), 60)}, {size} bytes)]"
    return TextBlock(f"{head}\n{clean_text(file.data.decode('utf-8-sig'))}\n[End of file: {name}]")
