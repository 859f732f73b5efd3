"""sessions_send: a message to another session, with or without waiting for its reply (SPEC §15).

The message is an ordinary input of the target, accepted under an id made from this
call: a run that goes on after a crash finds it sent and waits again.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal

from msgspec import Meta

from openclaw.domain.entry import SessionEntry
from openclaw.domain.exchange import MAX_HOPS, Exchange
from openclaw.domain.transcript import decode_message, text_of
from openclaw.engine.errands import seed_of
from openclaw.engine.exchanges import announce_route, is_thread_key, primary_prompt, source_of
from openclaw.engine.ports import ToolContext, ToolOutcome, ToolSpec
from openclaw.engine.tools.registry import failure
from openclaw.engine.tools.sessions.parameters import Parameters, answer, read_parameters, schema_of
from openclaw.engine.tools.sessions.powers import Powers
from openclaw.engine.tools.sessions.reach import Reach, Reached, Refused
from openclaw.engine.turns import Incoming
from openclaw.engine.workers import lane_of
from openclaw.errors import OpenClawError, SendDenied
from openclaw.store.records import RunRow, SessionRow, UserInput

DEFAULT_WAIT_S = 30
LONGEST_WAIT_S = 3600
MAX_MESSAGE_CHARS = 200_000
CIRCLE = "the other session waits for this one; its reply will come as a message"


class SendParams(Parameters, frozen=True, kw_only=True):
    session_key: Annotated[
        str | None, Meta(description="key or sessionId of the session to write to, as sessions_list shows it")
    ] = None
    label: Annotated[str | None, Meta(description="instead of sessionKey: the label of the session")] = None
    agent_id: Annotated[str | None, Meta(description="with label: the agent that the session belongs to")] = (
        None
    )
    message: Annotated[str, Meta(description="what to tell the other session", min_length=1)]
    timeout_seconds: Annotated[
        float | None, Meta(description="how long to wait for the reply; 0 does not wait; 30 unless given")
    ] = None


class SessionsSendTool:
    def __init__(self, reach: Reach, powers: Powers) -> None:
        self._reach = reach
        self._powers = powers

    @property
    def spec(self) -> ToolSpec:
        return _SPEC

    async def call(self, arguments: dict[str, Any], context: ToolContext) -> ToolOutcome:
        asked = read_parameters(arguments, SendParams)
        if len(asked.message) > MAX_MESSAGE_CHARS:
            return failure(f"message is longer than {MAX_MESSAGE_CHARS} characters; send a shorter one")
        reached = await self._target(asked, context)
        if isinstance(reached, Refused):
            return reached.outcome()
        if is_thread_key(reached.row.session_key):
            return failure(
                "a thread or topic cannot be written to; use the key of the channel or group it belongs to"
            )
        if context.hops >= MAX_HOPS:
            return failure(
                f"this message came through {MAX_HOPS} sessions already; it is not handed on further"
            )
        try:
            run_id = await self._send(asked.message, reached.row, context)
        except SendDenied as error:
            return failure(error.message, "forbidden")
        except OpenClawError as error:
            return failure(error.message)
        return await self._reply(run_id, reached, asked, context)

    async def _target(self, asked: SendParams, context: ToolContext) -> Reached | Refused:
        if (asked.session_key is None) == (asked.label is None):
            return Refused("error", "give either sessionKey or label, and not both")
        if asked.session_key is not None:
            return await self._reach.resolve(asked.session_key, context)
        found = await self._powers.store.session_by_label(asked.label or "", asked.agent_id)
        if found is None:
            return await self._reach.resolve(asked.label or "", context)
        return await self._reach.resolve(found.session_key, context)

    async def _send(self, message: str, target: SessionRow, context: ToolContext) -> str:
        message = self._powers.masked(message)
        own = await self._powers.store.session(context.session_key)
        channel = _channel(own.entry) if own else None
        run_id = f"{context.run_id}:{context.tool_call_id}:send"
        exchange = Exchange(
            run_id, context.session_key, target.session_key, self._powers.settings().ping_pong_turns,
            message[:4000], channel, parent_waits=target.entry.spawned_by == context.session_key,
        )  # fmt: skip
        body = UserInput(
            message, context.now_ms, provenance=source_of(exchange, context.session_key),
            extra_system_prompt=primary_prompt(exchange), queue_mode="followup", purpose="exchange",
            hops=context.hops + 1, exchange=exchange,
        )  # fmt: skip
        receipt = await self._powers.turns.accept(
            Incoming(run_id, seed_of(target), "inter_session", f"session:{context.session_key}", body)
        )
        return receipt.run_id

    async def _reply(
        self, run_id: str, reached: Reached, asked: SendParams, context: ToolContext
    ) -> ToolOutcome:
        wait_s = DEFAULT_WAIT_S if asked.timeout_seconds is None else int(max(0, asked.timeout_seconds))
        told: dict[str, Any] = {"runId": run_id, "sessionKey": reached.key}
        target = reached.row.session_key
        if wait_s == 0:
            return answer({**told, "status": "accepted", "delivery": _delivery(reached.row)})
        if self._powers.closes_circle(context.session_key, target):
            return answer({**told, "status": "accepted", "note": CIRCLE})
        run = await self._wait(run_id, target, min(wait_s, LONGEST_WAIT_S), context)
        if run is None:
            why = (
                f"no reply within {wait_s} s; the other session goes on. Read it later with sessions_history"
            )
            return answer({**told, "status": "timeout", "error": why})
        if run.outcome != "ok":
            return answer({**told, "status": "error", "error": run.error or f"the run was {run.outcome}"})
        return answer(
            {**told, "status": "ok", "reply": await self._said(run), "delivery": _delivery(reached.row)}
        )

    async def _wait(self, run_id: str, target: str, wait_s: float, context: ToolContext) -> RunRow | None:
        """Wait outside the lane: whoever waits keeps nobody from running (QUE-1)."""
        powers, own = self._powers, context.session_key
        powers.waiting.setdefault(own, []).append(target)
        try:
            if powers.workers.active_run(own) is None:
                return await powers.turns.wait(run_id, wait_s)
            async with powers.lanes.outside(lane_of(own), own):
                return await powers.turns.wait(run_id, wait_s)
        finally:
            powers.waiting[own].remove(target)
            if not powers.waiting[own]:
                del powers.waiting[own]

    async def _said(self, run: RunRow) -> str:
        if run.reply_seq is None:
            return ""
        entry = await self._powers.store.entry(run.window_no, run.reply_seq)
        return text_of(decode_message(entry.body)) if entry else ""


def _channel(entry: SessionEntry) -> str | None:
    route = entry.delivery_context
    return entry.channel or (route.channel if route else None)


def _delivery(row: SessionRow) -> dict[str, str]:
    """Whether the target's own people may hear of it afterwards (A2A-16)."""
    status: Literal["pending", "skipped"] = "pending" if announce_route(row) else "skipped"
    return {"status": status, "mode": "announce"}


_SPEC = ToolSpec(
    "sessions_send",
    "Send a message to another session and get its reply. Use sessions_list to find its key. "
    "With timeoutSeconds 0 the message is only handed over.",
    schema_of(SendParams),
    parallel=True,
    repeatable=True,
)
