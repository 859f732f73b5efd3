"""agent and agent.wait: run a turn and wait for it on the server (RPC-15 to RPC-17)."""

from __future__ import annotations

from typing import Literal

import msgspec

from openclaw.domain.addressing import AddressSettings, Conversation, session_key_for
from openclaw.domain.deliverystatus import judge_delivery
from openclaw.domain.entry import DeliveryContext
from openclaw.domain.keys import SessionKey, format_key, main_session_key
from openclaw.domain.transcript import Provenance, decode_message, text_of
from openclaw.engine.turns import Incoming
from openclaw.errors import InvalidRequest
from openclaw.gateway.handlers.chat import last_route, message_content
from openclaw.gateway.services import Caller, GatewayServices, Json, resolve_seed
from openclaw.protocol import params, results
from openclaw.store.records import RunRow, SessionSeed, UserInput

LONGEST_WAIT_S = 3 * 24 * 3600.0


async def run_agent(
    services: GatewayServices, caller: Caller, asked: params.AgentParams
) -> results.AgentAccepted:
    """Answer twice: accepted once the input is on disk, and the result when the run has ended."""
    content = await message_content(asked.message, asked.attachments)
    seed = await _seed(services, caller, asked)
    route = _route(asked) or (await last_route(services, seed) if asked.deliver else None)
    body = UserInput(
        content,
        services.clock.now_ms(),
        route=route,
        provenance=_provenance(asked),
        thinking=asked.thinking,
        model=services.check_model(asked.model) if asked.model else None,
        extra_system_prompt=asked.extra_system_prompt,
        deliver=bool(asked.deliver and route),
    )
    receipt = await services.turns.accept(
        Incoming(
            asked.idempotency_key,
            seed,
            caller.source,
            caller.principal,
            body,
            caller=caller.commands,
            timeout_s=asked.timeout or None,
            inbound=caller.inbound,
        )
    )
    delivery = Delivery(bool(asked.deliver), route is not None)
    services.spawn(_answer_when_done(services, caller, receipt.run_id, delivery))
    return results.AgentAccepted(
        run_id=receipt.run_id,
        session_key=receipt.session_key,
        agent_id=seed.agent_id,
        status="accepted",
        accepted_at=receipt.accepted_at,
    )


async def _seed(services: GatewayServices, caller: Caller, asked: params.AgentParams) -> SessionSeed:
    if asked.session_key is not None:
        return resolve_seed(services, asked.session_key, asked.agent_id, caller.channel)
    if asked.session_id is not None:
        row = await services.store.session_by_id(asked.session_id)
        if row is None:
            raise InvalidRequest(f"No session found: {asked.session_id}")
        return resolve_seed(services, row.session_key, row.agent_id, caller.channel)
    settings = services.settings()
    agent_id = asked.agent_id or settings.default_agent
    if asked.to is None:
        key = main_session_key(agent_id, settings.keys)
    else:
        key = _key_of_person(settings.addresses, agent_id, asked)
    return resolve_seed(services, format_key(key), agent_id, caller.channel)


def _key_of_person(addresses: AddressSettings, agent_id: str, asked: params.AgentParams) -> SessionKey:
    """The session in which the agent talks with `to`, as `session.dmScope` says (KEY-3)."""
    if asked.channel is None and addresses.dm_scope not in ("main", "per-peer"):
        raise InvalidRequest(f"agent: `to` needs a channel while session.dmScope is {addresses.dm_scope}")
    channel, account = asked.channel or "internal", asked.account_id or "default"
    person = Conversation(channel, "direct", asked.to or "", account)
    return session_key_for(person, agent_id=agent_id, settings=addresses)


def _route(asked: params.AgentParams) -> DeliveryContext | None:
    channel, to = asked.reply_channel or asked.channel, asked.reply_to or asked.to
    if channel is None or to is None:
        return None
    thread = None if asked.thread_id is None else str(asked.thread_id)
    return DeliveryContext(channel, to, asked.reply_account_id or asked.account_id, thread)


def _provenance(asked: params.AgentParams) -> Provenance | None:
    given = asked.input_provenance
    return None if given is None else Provenance(**msgspec.structs.asdict(given))


class Delivery(msgspec.Struct, frozen=True):
    """What the caller asked for beside the answer."""

    requested: bool
    has_route: bool


async def _answer_when_done(
    services: GatewayServices, caller: Caller, run_id: str, delivery: Delivery
) -> None:
    run = await services.turns.wait(run_id, LONGEST_WAIT_S)
    if run is None:
        caller.answer_later(results.AgentFinished(run_id=run_id, status="timeout", summary="timeout"))
        return
    text = await _reply_text(services, run)
    if run.outcome == "ok":
        caller.answer_later(
            results.AgentFinished(
                run_id=run_id,
                status="ok",
                summary="yielded" if run.stop_reason == "yielded" else "completed",
                result=await _result(services, run, text, delivery),
            )
        )
        return
    status: Literal["timeout", "error"] = "timeout" if run.outcome == "timeout" else "error"
    summary = run.error or run.outcome or "error"
    caller.answer_later(
        results.AgentFinished(
            run_id=run_id,
            status=status,
            summary=summary,
            result=await _result(services, run, text, delivery),
        )
    )


async def _result(services: GatewayServices, run: RunRow, text: str, delivery: Delivery) -> Json:
    session = await services.store.session(run.session_key)
    entry = session.entry if session else None
    meta: Json = {
        "durationMs": (run.ended_at or run.started_at) - run.started_at,
        "aborted": run.outcome == "aborted",
        "agentMeta": {
            "sessionId": entry.session_id if entry else None,
            "provider": entry.model_provider if entry else None,
            "model": entry.model if entry else None,
            "usage": {
                "input": entry.input_tokens if entry else None,
                "output": entry.output_tokens if entry else None,
                "total": entry.total_tokens if entry else None,
            },
        },
    }
    if run.error:
        meta["error"] = {"message": run.error}
    parts = await services.outbox.reply_of(run.run_id) if delivery.requested else ()
    told = judge_delivery(requested=delivery.requested, has_route=delivery.has_route, parts=parts)
    return {
        "payloads": [{"text": text, "mediaUrl": None}] if text else [],
        "meta": meta,
        "deliveryStatus": msgspec.to_builtins(told),
    }


async def _reply_text(services: GatewayServices, run: RunRow) -> str:
    if run.kind == "command":
        return await services.commands.answer_of(run.run_id) or ""
    if run.reply_seq is None:
        return ""
    entry = await services.store.entry(run.window_no, run.reply_seq)
    return text_of(decode_message(entry.body)) if entry else ""


async def wait_for_run(
    services: GatewayServices, _caller: Caller, asked: params.AgentWaitParams
) -> results.AgentWaited:
    """An unknown run simply times out; a finished one answers at once, from its row (RPC-17)."""
    run = await services.turns.wait(asked.run_id, asked.timeout_ms / 1000)
    if run is None:
        known = await services.store.input_state(asked.run_id)
        if known is not None and known.state == "cancelled":
            error = "the input was cancelled before it ran"
            return results.AgentWaited(run_id=asked.run_id, status="error", error=error)
        return results.AgentWaited(run_id=asked.run_id, status="timeout")
    if run.outcome != "ok":
        return results.AgentWaited(
            run_id=asked.run_id,
            status="error",
            started_at=run.started_at,
            ended_at=run.ended_at,
            error=run.error,
            stop_reason=run.stop_reason,
        )
    text = await _reply_text(services, run)
    return results.AgentWaited(
        run_id=asked.run_id,
        status="ok",
        started_at=run.started_at,
        ended_at=run.ended_at,
        stop_reason=run.stop_reason,
        yielded=True if run.stop_reason == "yielded" else None,
        terminal_reply=results.TerminalReply(disposition="visible" if text else "silent", text=text),
    )
