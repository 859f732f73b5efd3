"""What people get to see of a finished run: the visible text, a notice before it, and where it is delivered.

The stored message keeps what the model wrote. A silent reply, a denied session
and a turn without a captured route deliver nothing.
"""

from __future__ import annotations

from msgspec import Struct

from openclaw.domain.announce import is_silent_announcement
from openclaw.domain.entry import DeliveryContext
from openclaw.domain.lifecycle import ExpiryReason, reset_notice, reset_notice_is_due, resolve_reset
from openclaw.domain.policy import decide_send, send_facts
from openclaw.domain.silence import visible_reply
from openclaw.domain.transcript import AssistantMessage, StopReason, TextBlock, encode, text_of
from openclaw.engine.ports import ModelTarget
from openclaw.engine.settings import EngineSettings
from openclaw.engine.started import StartedRun
from openclaw.store.records import DeliveryDraft, RunOutcome, SessionRow
from openclaw.store.runs import RunEnd

DELIVERY_TTL_MS = 15 * 60 * 1000
_AUTOMATIC: dict[str, ExpiryReason] = {"daily": "daily", "idle": "idle"}


class Reply(Struct, frozen=True):
    """The text for people, and the deliveries that carry it."""

    text: str
    deliveries: tuple[DeliveryDraft, ...] = ()


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
) -> Reply:
    """What leaves a run. Only a finished run delivers; an aborted one shows what had been said.

    `session` is the row as it is now: a person may have closed the session meanwhile.
    """
    text = visible_reply(text_of(message)) if message else ""
    route = reply_route(start)
    purpose = start.inputs[0].body.purpose if start.inputs else None
    if outcome != "ok" and purpose == "completion" and route is not None:
        # The turn that should have put a helper's result into words failed: the result itself goes out.
        return Reply(text, _delivery(start, route, str(start.inputs[0].body.content), now_ms))
    if outcome != "ok" or not text or (purpose == "exchange" and is_silent_announcement(text)):
        return Reply(text)
    notice = _notice(start, settings)
    if notice:
        text = f"{notice}\n\n{text}"
    if route is None or not _may_leave(session, route, settings):
        return Reply(text)
    return Reply(text, _delivery(start, route, text, now_ms))


def _delivery(start: StartedRun, route: DeliveryContext, text: str, now_ms: int) -> tuple[DeliveryDraft, ...]:
    body = encode({"text": text})
    return (DeliveryDraft(f"{start.run.run_id}:reply", route, body, now_ms + DELIVERY_TTL_MS),)


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
    if reason is None or not start.inputs:
        return None
    row = start.session
    source = start.inputs[0].source
    if not reset_notice_is_due(source=source, key_text=row.session_key):
        return None
    policy = resolve_reset(settings.resets.rules, session_type=row.session_type, channel=row.entry.channel)
    return reset_notice(reason, policy)
