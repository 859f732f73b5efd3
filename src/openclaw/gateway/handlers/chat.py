"""chat.*: send, stop, and put a note into a conversation (RPC-12, RPC-13). Reading it is `history`'s."""

from __future__ import annotations

import asyncio

from msgspec import structs

from openclaw.domain.attachments import accept_attachments
from openclaw.domain.commands import is_stop_word
from openclaw.domain.doortext import clean_text
from openclaw.domain.entry import DeliveryContext
from openclaw.domain.redaction import mask_machine_text
from openclaw.domain.transcript import AssistantMessage, TextBlock, UserBlock
from openclaw.engine.drafts import draft_message
from openclaw.engine.events import MessageStored, RunScope
from openclaw.engine.turns import Incoming, Receipt
from openclaw.errors import InvalidRequest, VersionConflict
from openclaw.gateway.services import Caller, GatewayServices, Json, resolve_seed
from openclaw.gateway.sessionview import message_for_client
from openclaw.protocol import params, results
from openclaw.protocol.events import ChatFinal
from openclaw.store.records import SessionRow, SessionSeed, StoredEntry, UserInput

MAX_MESSAGE_CHARS = 1_000_000
# Decoding and checking more base64 than this takes longer than the loop may stand still.
OFF_LOOP_CHARS = 65_536


async def send(services: GatewayServices, caller: Caller, asked: params.ChatSendParams) -> results.ChatSent:
    """The acknowledgement leaves only after the input is on disk (DB-15)."""
    content = await message_content(asked.message, asked.attachments)
    seed = resolve_seed(services, asked.session_key, asked.agent_id, caller.channel)
    await _check_place(services, seed.session_key, asked)
    commands = None if asked.suppress_command_interpretation else caller.commands
    stops = commands is not None and commands.authorised and is_stop_word(asked.message)
    stopping = await _what_runs(services, seed.session_key) if stops else []
    route = _originating_route(asked) or (await last_route(services, seed) if asked.deliver else None)
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
            caller=commands,
        )
    )
    answer = sent(receipt)
    if not stops:
        return answer
    return structs.replace(answer, ok=True, aborted=bool(stopping), run_ids=stopping)


async def _check_place(services: GatewayServices, session_key: str, asked: params.ChatSendParams) -> None:
    """Whether the message belongs where its sender looked when writing it.

    A transcript has one branch, so any entry of the current window is on it; one of another window
    means that the session was reset since. The id of an earlier window is no mistake: it ends when
    its next message comes (LIFE-1).
    """
    if isinstance(asked.expected_leaf_entry_id, str) and not await services.pages.holds(
        session_key, asked.expected_leaf_entry_id
    ):
        raise VersionConflict(f"Session {session_key} changed. Retry.")
    if asked.session_id is not None:
        row = await services.store.session_by_id(asked.session_id)
        if row is not None and row.session_key != session_key:
            raise InvalidRequest(f"sessionId {asked.session_id} does not belong to session {session_key}")


async def _what_runs(services: GatewayServices, session_key: str) -> list[str]:
    """The runs that a stop would end: what waits, then what is active (RPC-12)."""
    waiting = [item.run_id for item in await services.store.queued(session_key)]
    active = services.workers.active_run(session_key)
    return waiting if active is None else [*waiting, active.run.run_id]


def sent(receipt: Receipt) -> results.ChatSent:
    """The acknowledgement of a message, or of the same message again."""
    if receipt.duplicate:
        return results.ChatSent(run_id=receipt.run_id, status="ok" if receipt.finished else "in_flight")
    return results.ChatSent(run_id=receipt.run_id, status="started", message_seq=receipt.message_seq)


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


async def last_route(services: GatewayServices, seed: SessionSeed) -> DeliveryContext | None:
    """Where the session's replies go, for a delivery that names no place (ORG-8)."""
    row = await services.store.session(seed.session_key)
    route = row.entry.delivery_context if row else None
    return route if route and route.channel and route.to else None


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
