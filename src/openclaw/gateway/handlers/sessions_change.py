"""sessions.reset, delete, restore, compact, send, steer, abort: changing a conversation (RPC-8 to RPC-10).

A method that began is finished even if its client goes away. The works themselves are
`engine.sessionwork`'s and `engine.turns`'s.
"""

from __future__ import annotations

from typing import Literal

import msgspec

from openclaw.domain.entry import entry_to_wire
from openclaw.domain.keys import KeyShape, main_session_key, parse_key
from openclaw.engine.compaction import Compacted
from openclaw.engine.turns import Incoming
from openclaw.errors import InvalidRequest, SessionNotFound
from openclaw.gateway.handlers.chat import message_content, sent
from openclaw.gateway.handlers.sessions import resolved_model
from openclaw.gateway.services import Caller, GatewayServices, meant_key, resolve_seed
from openclaw.protocol import params_sessions as params
from openclaw.protocol import results_sessions as results
from openclaw.protocol.results import ChatSent
from openclaw.store.endings import Guard
from openclaw.store.records import UserInput


async def reset(
    services: GatewayServices, caller: Caller, asked: params.SessionsResetParams
) -> results.SessionReset:
    seed = resolve_seed(services, asked.key, asked.agent_id, caller.channel)
    guard = Guard(expected_session_id=asked.expected_session_id)
    row = await services.session_work.reset(seed, asked.reason, guard)
    return results.SessionReset(
        ok=True,
        key=row.session_key,
        entry=entry_to_wire(row.entry),
        resolved=resolved_model(services, row),
    )


async def delete(
    services: GatewayServices, _caller: Caller, asked: params.SessionsDeleteParams
) -> results.SessionDeleted:
    """One key, never a whole store (LIFE-24); also of an agent that is no longer configured."""
    key = meant_key(services, asked.key, asked.agent_id)
    if _is_main(services, key):
        raise InvalidRequest(f"Cannot delete the main session ({key}).")
    guard = Guard(expected_session_id=asked.expected_session_id, archived_only=asked.archived_only)
    done = await services.session_work.delete(key, guard, archive=asked.delete_transcript)
    return results.SessionDeleted(ok=True, key=key, deleted=done.deleted, archived=list(done.archived))


def _is_main(services: GatewayServices, session_key: str) -> bool:
    settings = services.settings()
    key = parse_key(session_key, settings.keys)
    if key.shape in (KeyShape.main, KeyShape.global_):
        return True
    return key.agent_id is not None and key == main_session_key(key.agent_id, settings.keys)


async def restore(
    services: GatewayServices, _caller: Caller, asked: params.SessionsRestoreParams
) -> results.SessionRestored:
    key = meant_key(services, asked.key, asked.agent_id)
    done = await services.session_work.restore(key, Guard(expected_session_id=asked.expected_session_id))
    return results.SessionRestored(
        ok=True, key=key, restored=done.undone, entry=entry_to_wire(done.session.entry)
    )


async def compact(
    services: GatewayServices, _caller: Caller, asked: params.SessionsCompactParams
) -> results.SessionCompacted:
    key = meant_key(services, asked.key, asked.agent_id)
    if asked.max_lines is not None:
        trimmed = await services.session_work.trim(key, asked.max_lines)
        return results.SessionCompacted(
            ok=True, key=key, compacted=trimmed.trimmed, kept=trimmed.kept, archived=trimmed.archived
        )
    result = await services.session_work.compact(key)
    if not isinstance(result, Compacted):
        return results.SessionCompacted(ok=False, key=key, compacted=False, reason=result.message)
    numbers = results.CompactionNumbers(
        summary=str(msgspec.json.decode(result.entry.body).get("summary", "")),
        tokens_before=result.tokens_before,
        tokens_after=result.tokens_after,
    )
    return results.SessionCompacted(ok=True, key=key, compacted=True, result=numbers)


# -- messages ----------------------------------------------------------------------------------


async def send(services: GatewayServices, caller: Caller, asked: params.SessionsSendParams) -> ChatSent:
    """A message for a session that exists; the queue decides what it does to a turn in progress."""
    return await _send(services, caller, asked, None)


async def steer(services: GatewayServices, caller: Caller, asked: params.SessionsSendParams) -> ChatSent:
    """As `sessions.send`, but a turn in progress takes the message in (QUE-4)."""
    return await _send(services, caller, asked, "steer")


async def _send(
    services: GatewayServices,
    caller: Caller,
    asked: params.SessionsSendParams,
    mode: Literal["steer"] | None,
) -> ChatSent:
    content = await message_content(asked.message, asked.attachments)
    seed = resolve_seed(services, asked.key, asked.agent_id, caller.channel)
    if await services.store.session(seed.session_key) is None:
        raise SessionNotFound(f"session not found: {seed.session_key}")
    body = UserInput(
        content,
        services.clock.now_ms(),
        thinking=asked.thinking,
        timeout_ms=asked.timeout_ms,
        queue_mode=mode,
    )
    receipt = await services.turns.accept(
        Incoming(
            asked.idempotency_key or services.ids.uuid(),
            seed,
            caller.source,
            caller.principal,
            body,
            inbound=caller.inbound,
            timeout_s=asked.timeout_ms / 1000 if asked.timeout_ms else None,
            caller=caller.commands,
        )
    )
    return sent(receipt)


async def abort(
    services: GatewayServices, _caller: Caller, asked: params.SessionsAbortParams
) -> results.SessionAborted:
    """Stop the active run, or the one that is named; with `clearQueued` also what waits."""
    key = await _session_of(services, asked)
    if key is None:
        return results.SessionAborted(ok=True, aborted_run_id=None, status="no-active-run")
    active = services.workers.active_run(key)
    running = () if active is None else (active.run.run_id, *active.absorbed)
    stopped: list[str] = []
    if asked.run_id is None and asked.clear_queued:
        stopped += await services.turns.abort(key)
    else:
        if asked.clear_queued:  # first, or the next one would begin
            stopped += await _clear(services, key)
        target = asked.run_id or (running[0] if running else None)
        if target is not None:
            stopped += await services.turns.abort(key, target)
    aborted = next((one for one in stopped if one in running), None)
    if aborted is None and asked.run_id is not None and asked.run_id in stopped:
        aborted = asked.run_id
    cleared = [one for one in stopped if one != aborted]
    return results.SessionAborted(
        ok=True,
        aborted_run_id=aborted,
        status="no-active-run" if aborted is None else "aborted",
        cleared=cleared or None,
    )


async def _clear(services: GatewayServices, session_key: str) -> list[str]:
    """Cancel what waits and nothing else."""
    cancelled: list[str] = []
    for item in await services.store.queued(session_key):
        cancelled += await services.turns.abort(session_key, item.run_id)
    return cancelled


async def _session_of(services: GatewayServices, asked: params.SessionsAbortParams) -> str | None:
    if asked.key is not None:
        return meant_key(services, asked.key, asked.agent_id)
    known = await services.store.input_state(asked.run_id or "")
    return None if known is None else known.session_key
