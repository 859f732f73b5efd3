"""What people get to see of a finished run: the visible text, a notice before it, and where it is delivered.

The stored message keeps what the model wrote. A silent reply, a denied session
and a turn without a captured route deliver nothing.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec
from msgspec import Struct

from openclaw.domain.announce import is_silent_announcement
from openclaw.domain.entry import DeliveryContext
from openclaw.domain.heartbeat import worth_telling
from openclaw.domain.lifecycle import ExpiryReason, reset_notice, reset_notice_is_due, resolve_reset
from openclaw.domain.media import MediaReading, media_file, take_media
from openclaw.domain.policy import decide_send, send_facts
from openclaw.domain.showing import ShownLevels, Used, thinking_of, thinking_text, usage_line
from openclaw.domain.silence import visible_reply
from openclaw.domain.toolpolicy import Refused, decide_tool_use
from openclaw.domain.transcript import AssistantMessage, StopReason, TextBlock, encode, text_of
from openclaw.engine.ports import ModelTarget
from openclaw.engine.settings import EngineSettings
from openclaw.engine.started import StartedRun
from openclaw.store.records import DeliveryDraft, RunOutcome, SessionRow, UsageRow
from openclaw.store.runs import RunEnd

DELIVERY_TTL_MS = 15 * 60 * 1000
_AUTOMATIC: dict[str, ExpiryReason] = {"daily": "daily", "idle": "idle"}


class Beside(Struct, frozen=True):
    """What people asked to see with a reply: the thinking before it, and what it used below it."""

    thinking: str = ""
    usage: str = ""
    streamed: bool = False  # the thinking was shown while it came


NOTHING_BESIDE = Beside()


class Reply(Struct, frozen=True):
    """The text for people, the thinking that is shown with it, and the deliveries that carry both."""

    text: str
    deliveries: tuple[DeliveryDraft, ...] = ()
    thinking: str = ""


def partial_message(said: str, target: ModelTarget, end: RunEnd, now_ms: int) -> AssistantMessage | None:
    """What had been said when a run was stopped, kept as such (LOOP-4)."""
    if not said and end.outcome == "aborted":
        return None
    reason: StopReason = "aborted" if end.outcome == "aborted" else "error"
    content = (TextBlock(said),) if said else ()
    return AssistantMessage(
        content, now_ms, target.api, target.provider, target.model, None, reason, end.error
    )


def reply_of(
    message: AssistantMessage | None,
    start: StartedRun,
    session: SessionRow,
    settings: EngineSettings,
    outcome: RunOutcome,
    now_ms: int,
    beside: Beside = NOTHING_BESIDE,
) -> Reply:
    """What leaves a run. Only a finished run delivers; an aborted one shows what had been said.

    `session` is the row as it is now: a person may have closed the session meanwhile.
    """
    text = visible_reply(text_of(message)) if message else ""
    if start.inputs and start.inputs[0].source == "heartbeat":
        rules = settings.agent(session.agent_id).heartbeat
        text = worth_telling(text, rules.ack_max_chars if rules else 0)
    route = reply_route(start)
    purpose = start.inputs[0].body.purpose if start.inputs else None
    if outcome != "ok" and purpose == "completion" and route is not None:
        # The turn that should have put a helper's result into words failed: the result itself goes out.
        return Reply(text, _delivery(start, route, str(start.inputs[0].body.content), now_ms))
    if outcome != "ok" or not text or (purpose == "exchange" and is_silent_announcement(text)):
        return Reply(text)
    if not is_read_by_people(start):
        beside = NOTHING_BESIDE
    text = "\n\n".join(part for part in (_notice(start, settings), text, beside.usage) if part)
    if route is None or not _may_leave(session, route, settings):
        return Reply(text, (), beside.thinking)
    deliveries = _delivery(start, route, text, now_ms, _files_of(start, session, settings))
    if beside.thinking and not beside.streamed:
        deliveries = (_thinking(start, route, beside.thinking, now_ms), *deliveries)
    return Reply(text, deliveries, beside.thinking)


def beside_reply(
    message: AssistantMessage | None, shown: ShownLevels, paid: Sequence[UsageRow], window: int
) -> Beside:
    """What the levels of the turn ask to be shown with its reply (CMD-10, CMD-11)."""
    thought = thinking_of(message) if message and shown.reasoning in ("on", "stream") else ""
    streamed = shown.reasoning == "stream"
    if shown.usage == "off" or not paid:
        return Beside(thought, streamed=streamed)
    costs = [row.cost_usd for row in paid]
    last = paid[-1]
    used = Used(
        input=sum(_prompt_tokens(row) for row in paid),
        output=sum(row.output or 0 for row in paid),
        cached=sum(row.cache_read or 0 for row in paid),
        cost_usd=None if None in costs else sum(cost for cost in costs if cost is not None),
        model=f"{last.provider}/{last.model}",
        context=_prompt_tokens(last) + (last.output or 0),
        window=window,
    )
    return Beside(thought, usage_line(shown.usage, used), streamed)


def _prompt_tokens(row: UsageRow) -> int:
    """Everything that the model was given, whether or not it came from the provider's cache."""
    return (row.input or 0) + (row.cache_read or 0) + (row.cache_write or 0)


def is_read_by_people(start: StartedRun) -> bool:
    """Whether a person said what this turn answers, and reads the answer."""
    key = start.session.session_key
    return bool(start.inputs) and reset_notice_is_due(source=start.inputs[0].source, key_text=key)


def _thinking(start: StartedRun, route: DeliveryContext, thinking: str, now_ms: int) -> DeliveryDraft:
    body = encode({"text": thinking_text(thinking)})
    key = f"{start.run.run_id}:thinking"
    return DeliveryDraft(key, route, body, now_ms + DELIVERY_TTL_MS, aside=True)


def _delivery(
    start: StartedRun, route: DeliveryContext, text: str, now_ms: int, workspace: str | None = None
) -> tuple[DeliveryDraft, ...]:
    """The delivery of a reply; with a workspace, the files that its `MEDIA:` lines name go along."""
    content: dict[str, Any] = {"text": text}
    reading = take_media(text) if workspace is not None else MediaReading(text)
    if reading.paths:
        files = [media_file(path, workspace or "") for path in reading.paths]
        content = {"text": reading.text, "media": msgspec.to_builtins(files)}
    return (DeliveryDraft(f"{start.run.run_id}:reply", route, encode(content), now_ms + DELIVERY_TTL_MS),)


def _files_of(start: StartedRun, session: SessionRow, settings: EngineSettings) -> str | None:
    """The workspace whose files may leave with this reply: that of a turn which may read them anyway."""
    agent, key = settings.agent(session.agent_id), session.session_key
    owner = bool(start.inputs) and all(item.principal == "operator" for item in start.inputs)
    sandboxed = agent.is_sandboxed(key)
    may_read = decide_tool_use("read", caller_is_owner=owner, sandboxed=sandboxed, sandbox_backend=False)
    if "read" not in agent.tools_for(session.entry, key) or isinstance(may_read, Refused):
        return None
    return None if agent.access_for(key) == "none" else agent.workspace


def reply_route(start: StartedRun) -> DeliveryContext | None:
    """Where the message came from, captured on the input (ROUTE-2, PITFALLS G2)."""
    first = start.inputs[0] if start.inputs else None
    route = first.body.route if first and first.body.deliver else None
    return route if route and route.channel and route.to else None


def _may_leave(session: SessionRow, route: DeliveryContext, settings: EngineSettings) -> bool:
    facts = send_facts(session.entry, session.session_key, request_channel=route.channel)
    return decide_send(settings.send_policy, facts).action == "allow"


def _notice(start: StartedRun, settings: EngineSettings) -> str | None:
    """The one line after an automatic reset, where a person reads it."""
    reason = _AUTOMATIC.get(start.opened or "")
    if reason is None or not is_read_by_people(start):
        return None
    row = start.session
    policy = resolve_reset(settings.resets.rules, session_type=row.session_type, channel=row.entry.channel)
    return reset_notice(reason, policy)
