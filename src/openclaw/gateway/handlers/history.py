"""chat.history, chat.message.get, chat.startup, chat.metadata: reading a conversation, and going on (RPC-11).

A cursor names a place in one window of a session. Whoever comes back with it gets what
came since, each message once; if the window is not the current one any more, or too
much came, the answer is to read anew. Nothing of this is remembered per client.
"""

from __future__ import annotations

import base64
import binascii
from collections.abc import Sequence

import msgspec
from msgspec import Struct

from openclaw.domain.commandtable import command_rows
from openclaw.domain.display import OVERSIZED, visible_rows
from openclaw.errors import InvalidRequest
from openclaw.gateway.handlers.agents import model_rows
from openclaw.gateway.handlers.sessions import shown_row
from openclaw.gateway.services import Caller, GatewayServices, Json, list_defaults, resolve_seed
from openclaw.gateway.sessionview import message_for_client, off_the_loop
from openclaw.protocol import params, params_sessions, results
from openclaw.protocol.frames import encode_json
from openclaw.store.pages import CompactionSeen, Page, PageAsked, Since, Waiting
from openclaw.store.records import QueuedInput, RunRow, SessionRow, StoredEntry

DISPLAY_CHARS = 8000
# What a frame to a client may hold, less a little for what is around the message.
WHOLE_BYTES = 24 * 1024 * 1024


class Cursor(Struct, frozen=True, rename={"session_id": "s", "seq": "q", "version": "v"}):
    """The last entry that a client may have seen, in which window."""

    session_id: str
    seq: int
    version: int = 1


def write_cursor(session: SessionRow) -> str:
    """The place at the end of a session as it was read."""
    text = msgspec.json.encode(Cursor(session.entry.session_id, session.last_seq))
    return base64.urlsafe_b64encode(text).decode("ascii").rstrip("=")


def read_cursor(text: str) -> Cursor | None:
    """None for what is not a cursor of ours, such as one of another gateway."""
    try:
        data = base64.b64decode(text + "=" * (-len(text) % 4), altchars=b"-_", validate=True)
        cursor = msgspec.json.decode(data, type=Cursor)
    except (binascii.Error, msgspec.MsgspecError, UnicodeError, ValueError):
        return None
    return cursor if cursor.version == 1 else None


# -- the methods -------------------------------------------------------------------------------


async def history(
    services: GatewayServices, _caller: Caller, asked: params.ChatHistoryParams
) -> results.ChatHistory | results.ChatDelta | results.ChatReset:
    key = resolve_seed(services, asked.session_key, asked.agent_id).session_key
    if asked.cursor is not None:
        return await _since(services, key, asked)
    return await _page(services, key, asked)


async def startup(
    services: GatewayServices, caller: Caller, asked: params_sessions.ChatStartupParams
) -> results.ChatStarted:
    """What a chat needs to be drawn at once: its history, and what can be chosen in it."""
    if asked.session_key is not None:
        key = resolve_seed(services, asked.session_key, asked.agent_id).session_key
    else:
        row = await services.pages.by_short_id(asked.short_id or "")
        if row is None:
            raise InvalidRequest(f"No session found: {asked.short_id}")
        key = row.session_key
    page = await _page(services, key, asked)
    around = await metadata(services, caller, params_sessions.ChatMetadataParams(session_key=key))
    fields = {name: getattr(page, name) for name in page.__struct_fields__}
    return results.ChatStarted(**fields, metadata=msgspec.to_builtins(around))


async def metadata(
    services: GatewayServices, caller: Caller, asked: params_sessions.ChatMetadataParams
) -> results.ChatMetadata:
    agent_id = asked.agent_id
    if asked.session_key is not None:
        agent_id = resolve_seed(services, asked.session_key, asked.agent_id).agent_id
    return results.ChatMetadata(
        models=model_rows(services, agent_id), commands=command_rows(owner=caller.commands.owner)
    )


async def message(
    services: GatewayServices, _caller: Caller, asked: params_sessions.ChatMessageGetParams
) -> msgspec.Raw:
    """One message as `chat.history` shows it, but whole, if it fits into a frame."""
    key = resolve_seed(services, asked.session_key, asked.agent_id).session_key
    entry = await services.pages.message(key, asked.message_id, asked.session_id)
    if entry is None:
        return msgspec.Raw(encode_json(results.ChatMessage(ok=False, unavailable_reason="not_found")))
    return await off_the_loop((entry,), lambda: _whole(entry, asked.max_chars))


def _whole(entry: StoredEntry, max_chars: int) -> msgspec.Raw:
    """The answer as JSON: a large one is encoded where it was made, beside the loop."""
    shown = message_for_client(entry, max_chars=max_chars, max_bytes=WHOLE_BYTES)
    if entry.audience != "people" or shown is None:
        answer = results.ChatMessage(ok=False, unavailable_reason="not_visible")
    elif shown["__openclaw"].get("reason") == OVERSIZED:
        answer = results.ChatMessage(ok=False, unavailable_reason="oversized")
    else:
        answer = results.ChatMessage(ok=True, message=shown)
    return msgspec.Raw(encode_json(answer))


# -- a page ------------------------------------------------------------------------------------


async def _page(services: GatewayServices, key: str, asked: params.HistoryFields) -> results.ChatHistory:
    page = await services.pages.page(
        PageAsked(
            key,
            asked.limit,
            asked.offset,
            asked.session_id,
            asked.message_id,
            _place_in_queue(asked.pending_before),
            asked.input_run_ids,
        )
    )
    if page is None:
        return results.ChatHistory(
            session_key=key,
            messages=[],
            has_more=False,
            total_messages=0,
            pending_inputs=results.PendingInputs(items=[], total=0),
            defaults=list_defaults(services),
        )
    return await _history(services, asked, page)


async def _history(services: GatewayServices, asked: params.HistoryFields, page: Page) -> results.ChatHistory:
    session, entry = page.session, page.session.entry
    max_chars = asked.max_chars or DISPLAY_CHARS
    messages, taken = await off_the_loop(
        page.entries, lambda: _newest_that_fit(page.entries, max_chars, asked.max_bytes)
    )
    has_more = page.more or taken < len(page.entries)
    is_current = page.session_id == entry.session_id
    return results.ChatHistory(
        session_key=session.session_key,
        session_id=page.session_id,
        messages=messages,
        has_more=has_more,
        total_messages=session.message_count,
        next_offset=page.offset + taken if has_more else None,
        delta_cursor=write_cursor(session) if is_current else None,
        activity=activity_of(messages) or None,
        pending_inputs=_pending(page.waiting),
        defaults=list_defaults(services),
        session_info=shown_row(services, session),
        thinking_level=entry.thinking_level,
        verbose_level=entry.verbose_level,
        in_flight_run=_in_flight(services, page.active_run),
        compactions=_marks(page.compactions),
    )


def _newest_that_fit(
    entries: Sequence[StoredEntry], max_chars: int, max_bytes: int | None
) -> tuple[list[Json], int]:
    """The newest messages that fit, at least one, oldest first; and how many entries were looked at."""
    newest_first: list[Json] = []
    taken = 0
    for entry in reversed(entries):
        shown = message_for_client(entry, max_chars=max_chars)
        if shown is not None and max_bytes is not None:
            max_bytes -= len(encode_json(shown))
            if max_bytes < 0 and newest_first:
                break
        taken += 1
        if shown is not None:
            newest_first.append(shown)
    return visible_rows(newest_first[::-1]), taken


def activity_of(messages: Sequence[Json]) -> list[Json]:
    """What tools did, by the messages that tell of it: one line for each call (TRX-10)."""
    results_by_call = {
        message.get("toolCallId"): message for message in messages if message.get("role") == "toolResult"
    }
    found: list[Json] = []
    for message in messages:
        content = message.get("content")
        blocks = content if isinstance(content, list) else []
        if message.get("role") == "toolResult":
            items = [_item(message.get("toolCallId"), message.get("toolName"), message)]
        else:
            items = [
                _item(block.get("id"), block.get("name"), results_by_call.get(block.get("id")))
                for block in blocks
                if block.get("type") == "toolCall"
            ]
        if items:
            found.append({"messageId": message["__openclaw"]["id"], "items": items})
    return found


def _item(call_id: object, name: object, result: Json | None) -> Json:
    status = "running" if result is None else ("failed" if result.get("isError") else "completed")
    return {
        "itemId": f"tool:{call_id}",
        "toolCallId": call_id,
        "name": name,
        "kind": "tool",
        "phase": "start" if result is None else "end",
        "title": name,
        "status": status,
    }


def _marks(compactions: Sequence[CompactionSeen]) -> list[results.CompactionMark] | None:
    marks = [
        results.CompactionMark(id=one.entry_id, seq=one.seq, at=one.at_ms, tokens_before=one.tokens_before)
        for one in compactions
    ]
    return marks or None


def _place_in_queue(text: str | int | None) -> int | None:
    if text is None:
        return None
    number = str(text)
    if not (number.isascii() and number.isdigit() and len(number) <= 16):
        raise InvalidRequest("pendingBefore must be the id of a pending input")
    return int(number)


# -- what came since ---------------------------------------------------------------------------


async def _since(
    services: GatewayServices, key: str, asked: params.ChatHistoryParams
) -> results.ChatDelta | results.ChatReset:
    cursor = read_cursor(asked.cursor or "")
    came = None
    if cursor is not None:
        came = await services.pages.since(key, cursor.session_id, cursor.seq, asked.limit)
    if came is None:
        return results.ChatReset(kind="reset")
    return await _delta(services, asked, came)


async def _delta(
    services: GatewayServices, asked: params.ChatHistoryParams, came: Since
) -> results.ChatDelta:
    session, max_chars = came.session, asked.max_chars or DISPLAY_CHARS
    messages, _ = await off_the_loop(came.entries, lambda: _newest_that_fit(came.entries, max_chars, None))
    return results.ChatDelta(
        kind="delta",
        session_key=session.session_key,
        session_id=session.entry.session_id,
        messages=[_payload(session, message) for message in messages],
        delta_cursor=write_cursor(session),
        pending_inputs=_pending(came.waiting),
        session_info=shown_row(services, session),
        in_flight_run=_in_flight(services, came.active_run),
        compactions=_marks(came.compactions),
    )


def _payload(session: SessionRow, message: Json) -> Json:
    """As `session.message` tells it; the row stands beside the messages, once."""
    marks = message["__openclaw"]
    return {
        "sessionKey": session.session_key,
        "agentId": session.agent_id,
        "sessionId": session.entry.session_id,
        "message": message,
        "messageId": marks["id"],
        "messageSeq": marks["seq"],
    }


# -- what is under way -------------------------------------------------------------------------


def _in_flight(services: GatewayServices, run: RunRow | None) -> results.InFlightRun | None:
    if run is None:
        return None
    text = services.hub.streaming_text(run.run_id)
    return results.InFlightRun(run_id=run.run_id, text=text, started_at=run.started_at)


def _pending(waiting: Waiting) -> results.PendingInputs:
    return results.PendingInputs(items=[_pending_input(item) for item in waiting.items], total=waiting.total)


def _pending_input(item: QueuedInput) -> results.PendingInput:
    return results.PendingInput(
        id=str(item.admission),
        accepted_at=item.accepted_at,
        state="queued",
        message={
            "role": "user",
            "content": item.body.content,
            "timestamp": item.body.timestamp,
            "__openclaw": {"id": f"pending:{item.admission}"},
        },
        run_id=item.run_id,
    )
