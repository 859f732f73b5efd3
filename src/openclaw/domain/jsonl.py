"""Transcript records and their JSON Lines, version 3 (TRX-2 to TRX-7).

One direction reads a line of a transcript file into the values that the store keeps;
the other writes the line of a stored entry. A line that reads and writes to the same
bytes needs nothing else to be exported exactly (DB-4). This room knows no files: whoever
reads them says where a line stood.
"""

from __future__ import annotations

import json
import re
from datetime import UTC, datetime, timedelta
from hashlib import sha256
from typing import Any, Literal

import msgspec
from msgspec import UNSET, Raw, Struct, UnsetType

from openclaw.domain.context import upgrade_records
from openclaw.domain.doortext import clean_json
from openclaw.domain.sanitise import sanitise_assistant_text
from openclaw.domain.searchtext import index_text
from openclaw.domain.transcript import (
    TRANSCRIPT_VERSION,
    AssistantBlock,
    AssistantMessage,
    Message,
    SessionHeader,
    ToolResultMessage,
    UserBlock,
    UserMessage,
    decode_message,
    decode_record,
    encode,
    text_of,
)
from openclaw.errors import InvalidRequest

Json = dict[str, Any]
Audience = Literal["people", "model", "internal"]
UNKNOWN_TYPE = "imported"  # the customType of a record that is kept but not understood
MAX_ID_CHARS = 128

_BASE = ("type", "id", "parentId", "timestamp")
_FOR_MODEL = ("compaction", "branch_summary", "custom_message")
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_LAST_MS = 253_402_300_799_999
# Escapes and bytes that clean text does not have; a line with one of them is read the careful way.
_SUSPICIOUS = re.compile(rb"\\u00[01789]|\\u[dD][89a-fA-F]|\x7f|\xc2[\x80-\x9f]")


class UnreadableLine(Exception):
    """A line that is no record; the text says why."""


class ReadRecord(Struct, frozen=True):
    """A record as the store keeps it. `understood` is false for one that is kept for its bytes only."""

    type: str
    entry_id: str
    parent_id: str | None
    created_at: int
    body: bytes
    role: str | None = None
    provenance: str | None = None
    audience: Audience = "internal"
    text: str | None = None
    words: str = ""
    understood: bool = True


# -- time ---------------------------------------------------------------------------------------------


def iso_of(at_ms: int) -> str:
    """The time as transcripts write it: `2026-01-31T08:00:00.000Z`."""
    moment = _EPOCH + timedelta(milliseconds=min(max(at_ms, 0), _LAST_MS))
    return moment.isoformat(timespec="milliseconds").removesuffix("+00:00") + "Z"


def ms_of(timestamp: Any) -> int | None:
    """Epoch milliseconds of an ISO time or of a number; None when it is neither."""
    if isinstance(timestamp, bool):
        return None
    if isinstance(timestamp, int | float):
        return int(timestamp) if 0 <= timestamp <= _LAST_MS else None
    try:
        moment = datetime.fromisoformat(timestamp)
        moment = moment if moment.tzinfo else moment.replace(tzinfo=UTC)
        return max(round((moment - _EPOCH) / timedelta(milliseconds=1)), 0)
    except (TypeError, ValueError, OverflowError):
        return None


# -- writing ------------------------------------------------------------------------------------------


def header_line(session_id: str, started_at: int, cwd: str, parent_session: str | None = None) -> bytes:
    """The first line of a transcript (TRX-3)."""
    header = SessionHeader(TRANSCRIPT_VERSION, session_id, iso_of(started_at), cwd, parent_session)
    return encode(header) + b"\n"


def record_line(type_: str, entry_id: str, parent_id: str | None, created_at: int, body: bytes) -> bytes:
    """The line of a stored entry (TRX-4). The body of a message entry is the message itself."""
    head = encode({"type": type_, "id": entry_id, "parentId": parent_id, "timestamp": iso_of(created_at)})
    if type_ == "message":
        return head[:-1] + b',"message":' + body + b"}\n"
    return head[:-1] + (b"," + body[1:] if len(body) > 2 else b"}") + b"\n"


# -- reading ------------------------------------------------------------------------------------------


class _Line(Struct):
    """A message line of version 3, its message left as the bytes that it is."""

    type: str
    id: str | UnsetType = UNSET
    parent_id: str | UnsetType | None = msgspec.field(name="parentId", default=UNSET)
    timestamp: str = ""
    message: Raw = Raw(b"")


_decode_line = msgspec.json.Decoder(_Line).decode
_decode_any = msgspec.json.Decoder().decode


def read_object(line: bytes) -> Json:
    """The JSON object of a line, safe to store: no half characters, no NUL. Raises UnreadableLine."""
    try:
        value = _decode_any(line)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        value = _decode_leniently(line)
    try:
        cleaned = clean_json(value)
    except InvalidRequest as refusal:
        raise UnreadableLine(refusal.message) from None
    if not isinstance(cleaned, dict):
        raise UnreadableLine("not a JSON object")
    return cleaned


def _decode_leniently(line: bytes) -> Any:
    """What the strict parser refuses but others write: lone surrogates, NaN, bytes that are not UTF-8."""
    try:
        return json.loads(line.decode("utf-8", "replace"))
    except RecursionError:
        raise UnreadableLine("nested too deeply") from None
    except ValueError as error:
        raise UnreadableLine(f"not JSON: {str(error)[:80]}") from None


def read_line(line: bytes, name: str) -> ReadRecord:
    """A record of a version 3 transcript. `name` tells the line apart, for records without an id.

    Raises UnreadableLine. The header is read with `read_object`.
    """
    if _SUSPICIOUS.search(line) is None:
        record = _read_plain_message(line)
        if record is not None:
            return record
    value = read_object(line)
    if not is_entry_id(value.get("id")):
        value["id"] = derived_id(name)
    header = {"type": "session", "version": TRANSCRIPT_VERSION}
    return read_upgraded(upgrade_records([header, value])[1])


def is_entry_id(value: Any) -> bool:
    return isinstance(value, str) and 0 < len(value) <= MAX_ID_CHARS


def derived_id(name: str) -> str:
    """Eight hex digits for a record without an id of its own; the same name gives the same id."""
    return sha256(name.encode("utf-8", "replace")).hexdigest()[:8]


def _read_plain_message(line: bytes) -> ReadRecord | None:
    """The quick way, for a message line as it is usually written; None for every other line."""
    try:
        read = _decode_line(line)
        at_ms = ms_of(read.timestamp)
        if read.type != "message" or not is_entry_id(read.id) or read.parent_id is UNSET or at_ms is None:
            return None
        body = bytes(read.message)
        message = decode_message(body)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        return None
    return _message_record(str(read.id), read.parent_id, at_ms, body, message)


def read_upgraded(value: Json) -> ReadRecord:
    """A record that is already brought to version 3. One bad field costs only itself."""
    type_, entry_id = value.get("type"), str(value["id"])
    parent_id = value["parentId"] if isinstance(value.get("parentId"), str) else None
    message = value.get("message")
    at_ms = ms_of(value.get("timestamp"))
    if at_ms is None:
        at_ms = (ms_of(message.get("timestamp")) if isinstance(message, dict) else None) or 0
    if type_ == "message":
        found = _read_message(message)
        if found is not None:
            return _message_record(entry_id, parent_id, at_ms, *found)
    elif isinstance(type_, str) and type_ != "session":
        body = encode({name: part for name, part in value.items() if name not in _BASE})
        try:
            decode_record(record_line(type_, entry_id, parent_id, at_ms, body))
        except msgspec.MsgspecError:
            pass
        else:
            audience: Audience = "model" if type_ in _FOR_MODEL else "internal"
            return ReadRecord(type_, entry_id, parent_id, at_ms, body, audience=audience)
    body = encode({"customType": UNKNOWN_TYPE, "data": value})
    return ReadRecord("custom", entry_id, parent_id, at_ms, body, understood=False)


def _message_record(entry_id: str, parent_id: Any, at_ms: int, body: bytes, message: Message) -> ReadRecord:
    provenance = message.provenance if isinstance(message, UserMessage) else None
    text = text_of(message)
    return ReadRecord(
        "message",
        entry_id,
        parent_id,
        at_ms,
        body,
        role_of(message),
        provenance.kind if provenance else None,
        "people",
        text,
        words_of(message, text),
    )


def role_of(message: Message) -> str:
    if isinstance(message, UserMessage):
        return "user"
    return "assistant" if isinstance(message, AssistantMessage) else "toolResult"


def words_of(message: Message, text: str) -> str:
    """The folded words by which search finds a message; none for the result of a tool (SRCH-3)."""
    if isinstance(message, ToolResultMessage):
        return ""
    return index_text(sanitise_assistant_text(text) if isinstance(message, AssistantMessage) else text)


# -- messages with unreadable parts -------------------------------------------------------------------

_KINDS: dict[str, type[Message]] = {
    "user": UserMessage,
    "assistant": AssistantMessage,
    "toolResult": ToolResultMessage,
}


def _read_message(value: Any) -> tuple[bytes, Message] | None:
    """The message and its JSON; fields and blocks that cannot be read are left out. None when nothing can."""
    if not isinstance(value, dict):
        return None
    for candidate in (value, _readable_parts(value)):
        body = encode(candidate)
        try:
            return body, decode_message(body)
        except msgspec.MsgspecError:
            continue
    return None


def _readable_parts(value: Json) -> Json:
    kind = _KINDS.get(str(value.get("role")))
    if kind is None:
        return {}
    kept: Json = {"role": value["role"]}
    if kind is ToolResultMessage:
        kept["toolName"] = "tool"
    for field in msgspec.structs.fields(kind):
        part = value.get(field.encode_name)
        if field.name == "content" and isinstance(part, list):
            blocks = AssistantBlock if kind is AssistantMessage else UserBlock
            part = [block for block in part if _fits(block, blocks)]
        if part is not None and _fits(part, field.type):
            kept[field.encode_name] = part
    return kept


def _fits(value: Any, kind: Any) -> bool:
    """Whether the value can be read back after it was written; NaN, for one, cannot."""
    try:
        msgspec.json.decode(encode(value), type=kind)
    except msgspec.ValidationError:
        return False
    return True
