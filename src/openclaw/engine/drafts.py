"""From what was said to transcript entries: bodies, columns and search text, made once per message.

An accepted input may need a note for the model besides the words of its sender:
the time after a pause, that the last turn was stopped, what one turn adds to the
instructions. Such a note is a hidden entry just before the user's, stored and
replayed unchanged, so that the prompt's prefix never moves (LOOP-2, TRX-14).
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from zoneinfo import ZoneInfo

import msgspec

from openclaw.domain.queueing import dropped_prompt
from openclaw.domain.sanitise import sanitise_assistant_text
from openclaw.domain.searchtext import index_text
from openclaw.domain.spawnfiles import without_contents
from openclaw.domain.transcript import (
    AssistantBlock,
    AssistantMessage,
    Message,
    ToolCallBlock,
    ToolResultMessage,
    UserMessage,
    encode,
    text_of,
    tool_calls_of,
)
from openclaw.store.records import EntryDraft, QueuedInput, SessionRow
from openclaw.store.runs import DraftInputs

PAUSE_MS = 30 * 60 * 1000  # after so long the model is told the time again
SPAWN = "sessions_spawn"
NOTE_HEAD = "[Gateway note]"
ABORTED_NOTE = "The previous turn was stopped before it had finished."


def draft_message(message: Message, run_id: str, *, hidden: bool = False) -> EntryDraft:
    """A message as an entry to append: body, columns and folded search text made once."""
    text = text_of(message)
    if isinstance(message, AssistantMessage):
        message = _without_files(message)
    words = "" if hidden or isinstance(message, ToolResultMessage) else index_text(_said(message, text))
    provenance = message.provenance if isinstance(message, UserMessage) else None
    return EntryDraft(
        "message",
        encode(message),
        role_of(message),
        provenance.kind if provenance else None,
        "model" if hidden else "people",
        run_id,
        text,
        words,
    )


def _without_files(message: AssistantMessage) -> AssistantMessage:
    """Files that are handed to a helper stand in the caller's transcript by name only (SPAWN-17)."""
    if not any(isinstance(block, ToolCallBlock) and block.name == SPAWN for block in message.content):
        return message
    return msgspec.structs.replace(message, content=tuple(_kept_block(block) for block in message.content))


def _kept_block(block: AssistantBlock) -> AssistantBlock:
    return kept_call(block) if isinstance(block, ToolCallBlock) else block


def kept_call(call: ToolCallBlock) -> ToolCallBlock:
    """A call as it is stored and shown."""
    if call.name != SPAWN:
        return call
    return msgspec.structs.replace(call, arguments=without_contents(call.arguments))


def _said(message: Message, text: str) -> str:
    return sanitise_assistant_text(text) if isinstance(message, AssistantMessage) else text


def draft_note(kind: str, text: str, run_id: str) -> EntryDraft:
    """A note that the model reads and people do not see."""
    body = encode({"customType": kind, "content": text, "display": False})
    return EntryDraft("custom_message", body, None, "internal_system", "model", run_id)


def draft_boundary(kind: str, run_id: str) -> EntryDraft:
    """A mark in the transcript: from here on requests begin differently, and why (LOOP-2, PRUNE-3)."""
    body = encode({"customType": "context_boundary", "data": {"kind": kind}})
    return EntryDraft("custom", body, audience="internal", run_id=run_id)


def draft_inputs_in(zone: ZoneInfo) -> DraftInputs:
    """How inputs become entries in a gateway of this time zone (TRX-8)."""

    def draft_inputs(session: SessionRow | None, inputs: tuple[QueuedInput, ...]) -> Sequence[EntryDraft]:
        drafts: list[EntryDraft] = []
        note = "\n\n".join(_notes(session, inputs, zone))
        if note:
            drafts.append(draft_note("turn_context", f"{NOTE_HEAD}\n{note}", inputs[0].run_id))
        drafts.extend(_draft_input(item) for item in inputs)
        return drafts

    return draft_inputs


def _notes(session: SessionRow | None, inputs: tuple[QueuedInput, ...], zone: ZoneInfo) -> Sequence[str]:
    notes = []
    if session is not None:
        if session.entry.aborted_last_run:
            notes.append(ABORTED_NOTE)
        if _paused(session, inputs[0].accepted_at):
            local = datetime.fromtimestamp(inputs[0].accepted_at / 1000, zone)
            notes.append(f"It is {local:%A, %Y-%m-%d %H:%M} ({zone.key}).")
    dropped = [line for item in inputs for line in item.body.dropped]
    if dropped:
        notes.append(dropped_prompt(dropped))
    notes.extend(dict.fromkeys(text for item in inputs if (text := item.body.extra_system_prompt)))
    return notes


def _paused(session: SessionRow, now_ms: int) -> bool:
    """Whether this is the first turn of a window, or the first after a while."""
    ended = session.entry.ended_at
    return session.last_seq == 0 or ended is None or now_ms - ended >= PAUSE_MS


def _draft_input(queued: QueuedInput) -> EntryDraft:
    body = queued.body
    message = UserMessage(body.content, body.timestamp, body.provenance)
    return draft_message(message, queued.run_id, hidden=body.hidden_prompt)


def role_of(message: Message) -> str:
    if isinstance(message, UserMessage):
        return "user"
    return "assistant" if isinstance(message, AssistantMessage) else "toolResult"


def open_calls(messages: Sequence[Message]) -> tuple[ToolCallBlock, ...]:
    """The tool calls that have no result: what a crash or an abort left open (PITFALLS B1)."""
    answered = {message.tool_call_id for message in messages if isinstance(message, ToolResultMessage)}
    return tuple(call for message in messages for call in tool_calls_of(message) if call.id not in answered)


def turn_was_yielded(messages: Sequence[Message]) -> bool:
    """Whether the last thing that happened ended the turn on purpose: nobody is asked again (YIELD-2)."""
    for message in reversed(messages):
        if not isinstance(message, ToolResultMessage):
            break
        if message.tool_name == "sessions_yield" and not message.is_error:
            return True
    return False
