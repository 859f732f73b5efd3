"""chat.*: send, read back, stop, and put a note into a conversation (RPC-11 to RPC-13)."""

from __future__ import annotations

import asyncio

from openclaw.domain.attachments import accept_attachments
from openclaw.domain.display import visible_rows
from openclaw.domain.doortext import clean_text
from openclaw.domain.entry import DeliveryContext
from openclaw.domain.redaction import mask_machine_text
from openclaw.domain.transcript import AssistantMessage, TextBlock, UserBlock
from openclaw.engine.drafts import draft_message
from openclaw.engine.events import MessageStored, RunScope
from openclaw.engine.turns import Incoming
from openclaw.errors import InvalidRequest
from openclaw.gateway.handlers.sessions import shown_row
from openclaw.gateway.services import Caller, GatewayServices, Json, list_defaults, resolve_seed
from openclaw.gateway.sessionview import message_for_client
from openclaw.protocol import params, results
from openclaw.protocol.events import ChatFinal
from openclaw.protocol.frames import encode_json
from openclaw.store.records import SessionRow, StoredEntry, UserInput
from openclaw.store.store import HistoryPage

MAX_MESSAGE_CHARS = 1_000_000
# Decoding and checking more base64 than this takes longer than the loop may stand still.
OFF_LOOP_CHARS = 65_536


async def send(services: GatewayServices, caller: Caller, asked: params.ChatSendParams) -> results.ChatSent:
    """The acknowledgement leaves only after the input is on disk (DB-15)."""
    content = await message_content(asked.message, asked.attachments)
    seed = resolve_seed(services, asked.session_key, asked.agent_id, caller.channel)
    route = _originating_route(asked)
    body = UserInput(
        content,
        services.clock.now_ms(),
        route=route,
        thinking=asked.thinking,
        timeout_ms=asked.timeout_ms,
        deliver=bool(asked.deliver and route),
        queue_mode=asked.queue_mode,
    )
    receipt = await services.turns.accept(
        Incoming(
            asked.idempotency_key,
            seed,
            caller.source,
            caller.principal,
            body,
            inbound=caller.inbound,
            timeout_s=asked.timeout_ms / 1000 if asked.timeout_ms else None,
            caller=None if asked.suppress_command_interpretation else caller.commands,
        )
    )
    if receipt.duplicate:
        return results.ChatSent(run_id=receipt.run_id, status="ok" if receipt.finished else "in_flight")
    return results.ChatSent(run_id=receipt.run_id, status="started")


def message_text(message: str) -> str:
    text = clean_text(message)
    if not text.strip():
        raise InvalidRequest("message must not be empty")
    if len(text) > MAX_MESSAGE_CHARS:
        raise InvalidRequest(f"message is longer than {MAX_MESSAGE_CHARS} characters")
    return text


async def message_content(message: str, attachments: tuple[Json, ...]) -> str | tuple[UserBlock, ...]:
    """What a person said: their text, and what they attached after it. Attachments may stand alone."""
    if not attachments:
        return message_text(message)
    chars = sum(len(value) for item in attachments for value in item.values() if isinstance(value, str))
    if chars > OFF_LOOP_CHARS:
        blocks = await asyncio.to_thread(accept_attachments, attachments)
    else:
        blocks = accept_attachments(attachments)
    if not message.strip():
        return blocks
    return (TextBlock(message_text(message)), *blocks)


def _originating_route(asked: params.ChatSendParams) -> DeliveryContext | None:
    if asked.originating_channel is None or asked.originating_to is None:
        return None
    thread = asked.originating_thread_id
    return DeliveryContext(
        asked.originating_channel,
        asked.originating_to,
        asked.originating_account_id,
        None if thread is None else str(thread),
    )


async def history(
    services: GatewayServices, _caller: Caller, asked: params.ChatHistoryParams
) -> results.ChatHistory:
    seed = resolve_seed(services, asked.session_key, asked.agent_id)
    page = await services.store.history(seed.session_key, asked.limit + asked.offset + 1)
    if page is None:
        return results.ChatHistory(
            session_key=seed.session_key,
            messages=[],
            has_more=False,
            total_messages=0,
            pending_inputs=results.PendingInputs(items=[], total=0),
            defaults=list_defaults(services),
        )
    return _history(services, asked, page)


def _history(
    services: GatewayServices, asked: params.ChatHistoryParams, page: HistoryPage
) -> results.ChatHistory:
    session = page.session
    newest_first = page.entries[::-1][asked.offset :]
    has_more = len(newest_first) > asked.limit
    entries = newest_first[: asked.limit][::-1]
    projected = [
        shown
        for entry in entries
        if (shown := message_for_client(entry, max_chars=asked.max_chars or 8000)) is not None
    ]
    messages = _within_bytes(visible_rows(projected), asked.max_bytes)
    active = page.active_run
    in_flight = None
    if active is not None:
        text = services.hub.streaming_text(active.run_id)
        in_flight = results.InFlightRun(run_id=active.run_id, text=text, started_at=active.started_at)
    return results.ChatHistory(
        session_key=session.session_key,
        session_id=session.entry.session_id,
        messages=messages,
        has_more=has_more or len(messages) < len(projected),
        total_messages=session.message_count,
        next_offset=asked.offset + asked.limit if has_more else None,
        pending_inputs=_pending(page),
        defaults=list_defaults(services),
        session_info=shown_row(services, session),
        thinking_level=session.entry.thinking_level,
        verbose_level=session.entry.verbose_level,
        in_flight_run=in_flight,
    )


def _within_bytes(messages: list[Json], max_bytes: int | None) -> list[Json]:
    """The newest messages that fit; at least the newest one."""
    if max_bytes is None:
        return messages
    kept: list[Json] = []
    for message in reversed(messages):
        max_bytes -= len(encode_json(message))
        if max_bytes < 0 and kept:
            break
        kept.append(message)
    return kept[::-1]


def _pending(page: HistoryPage) -> results.PendingInputs:
    items = [
        results.PendingInput(
            id=str(item.admission),
            accepted_at=item.accepted_at,
            state="queued",
            message={"role": "user", "content": item.body.content, "timestamp": item.body.timestamp},
            run_id=item.run_id,
        )
        for item in page.pending
    ]
    return results.PendingInputs(items=items, total=len(items))


async def abort(
    services: GatewayServices, _caller: Caller, asked: params.ChatAbortParams
) -> results.ChatAborted:
    seed = resolve_seed(services, asked.session_key, asked.agent_id)
    stopped = await services.turns.abort(seed.session_key, asked.run_id)
    return results.ChatAborted(ok=True, aborted=bool(stopped), run_ids=list(stopped))


async def inject(
    services: GatewayServices, _caller: Caller, asked: params.ChatInjectParams
) -> results.ChatInjected:
    seed = resolve_seed(services, asked.session_key, asked.agent_id)
    now_ms = services.clock.now_ms()
    text = mask_machine_text(message_text(asked.message)).text
    if asked.label:
        text = f"[{clean_text(asked.label)}]\n\n{text}"
    message = AssistantMessage(
        (TextBlock(text),), now_ms, provider="openclaw", model="gateway-injected", stop_reason="stop"
    )
    run_id = f"inject-{services.ids.uuid()}"
    (entry,) = await services.store.append(seed.session_key, (draft_message(message, run_id),), now_ms=now_ms)
    session = await services.store.session(seed.session_key)
    if session is not None:
        _tell_injected(services, session, run_id, entry)
    return results.ChatInjected(ok=True, message_id=entry.entry_id)


def _tell_injected(services: GatewayServices, session: SessionRow, run_id: str, entry: StoredEntry) -> None:
    scope = RunScope(run_id, session.session_key, session.agent_id, session.entry.session_id)
    services.hub.publish(MessageStored(scope, session, entry))
    final = ChatFinal(
        run_id=f"inject-{entry.entry_id}",
        session_key=session.session_key,
        agent_id=session.agent_id,
        seq=0,
        message=message_for_client(entry),
    )
    services.hub.broadcast("chat", final)
