"""Transcript records: what a conversation is made of (SPEC §5).

A transcript is an append-only list of records that form a tree; the active
branch runs from the leaf to the root. Records are values; storing them is the
store's business, sending them to a model is an adapter's.
"""

from __future__ import annotations

from typing import Any, Literal

import msgspec
from msgspec import Struct

ProvenanceKind = Literal["external_user", "inter_session", "internal_system"]
StopReason = Literal["stop", "length", "toolUse", "error", "aborted"]
TRANSCRIPT_VERSION = 3


# -- blocks (TRX-7) --------------------------------------------------------------------------


class TextBlock(Struct, frozen=True, tag="text", tag_field="type"):
    text: str


class ImageBlock(Struct, frozen=True, tag="image", tag_field="type", rename="camel"):
    data: str
    mime_type: str


class ThinkingBlock(
    Struct, frozen=True, tag="thinking", tag_field="type", rename="camel", omit_defaults=True
):
    thinking: str
    thinking_signature: str | None = None


class ToolCallBlock(Struct, frozen=True, tag="toolCall", tag_field="type"):
    id: str
    name: str
    arguments: dict[str, Any]


AssistantBlock = TextBlock | ThinkingBlock | ToolCallBlock
UserBlock = TextBlock | ImageBlock


# -- messages (TRX-6, TRX-8) -------------------------------------------------------------------


class Cost(Struct, frozen=True, rename="camel"):
    """US dollars per kind of token."""

    input: float = 0.0
    output: float = 0.0
    cache_read: float = 0.0
    cache_write: float = 0.0
    total: float = 0.0


class Usage(Struct, frozen=True, rename="camel"):
    input: int = 0
    output: int = 0
    cache_read: int = 0
    cache_write: int = 0
    total_tokens: int = 0
    cost: Cost = Cost()


class Provenance(Struct, frozen=True, rename="camel", omit_defaults=True):
    """Who really made a user turn. A column, not a marker in the text (PITFALLS D3)."""

    kind: ProvenanceKind
    source_session_key: str | None = None
    source_channel: str | None = None
    source_tool: str | None = None
    origin_session_id: str | None = None


class UserMessage(Struct, frozen=True, tag="user", tag_field="role", rename="camel", omit_defaults=True):
    content: str | tuple[UserBlock, ...]
    timestamp: int
    provenance: Provenance | None = None


class AssistantMessage(
    Struct, frozen=True, tag="assistant", tag_field="role", rename="camel", omit_defaults=True
):
    content: tuple[AssistantBlock, ...]
    timestamp: int
    api: str = ""
    provider: str = ""
    model: str = ""
    usage: Usage | None = None
    stop_reason: StopReason | None = None
    error_message: str | None = None


class ToolResultMessage(
    Struct, frozen=True, tag="toolResult", tag_field="role", rename="camel", omit_defaults=True
):
    tool_call_id: str
    tool_name: str
    content: tuple[UserBlock, ...]
    timestamp: int
    is_error: bool = False
    details: dict[str, Any] | None = None


Message = UserMessage | AssistantMessage | ToolResultMessage


# -- records (TRX-3, TRX-4, TRX-5) -------------------------------------------------------------


class SessionHeader(Struct, frozen=True, tag="session", rename="camel", omit_defaults=True):
    """The first line of an exported transcript."""

    version: int
    id: str
    timestamp: str
    cwd: str
    parent_session: str | None = None


class RecordBase(Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True):
    id: str
    parent_id: str | None
    timestamp: str


class MessageRecord(RecordBase, frozen=True, tag="message"):
    message: Message


class CompactionRecord(RecordBase, frozen=True, tag="compaction"):
    summary: str
    first_kept_entry_id: str
    tokens_before: int
    details: dict[str, Any] | None = None
    from_hook: bool = False


class BranchSummaryRecord(RecordBase, frozen=True, tag="branch_summary"):
    from_id: str
    summary: str


class CustomRecord(RecordBase, frozen=True, tag="custom"):
    """Never sent to a model."""

    custom_type: str
    data: Any = None


class CustomMessageRecord(RecordBase, frozen=True, tag="custom_message"):
    """Sent to the model; hidden from people when `display` is false (TRX-14)."""

    custom_type: str
    content: str | tuple[UserBlock, ...]
    display: bool = True
    details: dict[str, Any] | None = None


class ModelChangeRecord(RecordBase, frozen=True, tag="model_change"):
    provider: str
    model_id: str


class ThinkingLevelRecord(RecordBase, frozen=True, tag="thinking_level_change"):
    thinking_level: str


class LabelRecord(RecordBase, frozen=True, tag="label"):
    target_id: str
    label: str | None = None


class SessionInfoRecord(RecordBase, frozen=True, tag="session_info"):
    name: str


class ResetRecord(RecordBase, frozen=True, tag="reset"):
    first_kept_entry_id: str | None = None


Record = (
    MessageRecord
    | CompactionRecord
    | BranchSummaryRecord
    | CustomRecord
    | CustomMessageRecord
    | ModelChangeRecord
    | ThinkingLevelRecord
    | LabelRecord
    | SessionInfoRecord
    | ResetRecord
)

decode_record = msgspec.json.Decoder(Record).decode
decode_message = msgspec.json.Decoder(Message).decode
encode = msgspec.json.Encoder().encode


def text_of(message: Message) -> str:
    """The readable text of a message: text blocks only, no thinking, no tool calls, no images."""
    if isinstance(message.content, str):
        return message.content
    return "\n".join(block.text for block in message.content if isinstance(block, TextBlock))


def tool_calls_of(message: Message) -> tuple[ToolCallBlock, ...]:
    if not isinstance(message, AssistantMessage):
        return ()
    return tuple(block for block in message.content if isinstance(block, ToolCallBlock))
