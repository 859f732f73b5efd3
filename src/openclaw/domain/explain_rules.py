"""Why a session resets, why sending is denied, why a session cannot be seen: the rule that decided.

Each explanation asks the deciding function of its room (`lifecycle`, `policy`,
`visibility`) and tells what it found on the way. It adds no rule of its own.
"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

import msgspec
from msgspec import Struct

from openclaw.domain import lifecycle, visibility
from openclaw.domain.explanation import Explanation, Step
from openclaw.domain.lifecycle import Expired, NextExpiry, ResetPolicy, ResetRules, SessionType
from openclaw.domain.policy import SendDecision, SendFacts, SendMatch, SendPolicy, decide_send, matches
from openclaw.domain.visibility import Denied, SessionCaller, TargetFacts, VisibilityPolicy, Visible

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MS = timedelta(milliseconds=1)


# -- reset ----------------------------------------------------------------------------------------


class ResetFacts(Struct, frozen=True, kw_only=True):
    """What freshness reads of one session. `exists` False: only the policy can be told."""

    session_key: str
    session_type: SessionType
    channel: str | None = None
    exists: bool = True
    last_interaction_ms: int | None = None
    run_active: bool = False
    inputs_waiting: bool = False


def explain_reset(rules: ResetRules, facts: ResetFacts, *, now_ms: int, zone: ZoneInfo) -> Explanation:
    """When a session starts anew and by which rule, as a message of a person would find it now (LIFE-1)."""
    policy = lifecycle.resolve_reset(rules, session_type=facts.session_type, channel=facts.channel)
    end = lifecycle.next_expiry(
        policy, last_interaction_ms=facts.last_interaction_ms, now_ms=now_ms, zone=zone
    )
    verdict = lifecycle.judge_freshness(
        policy,
        last_interaction_ms=facts.last_interaction_ms,
        now_ms=now_ms,
        zone=zone,
        run_active=facts.run_active,
        inputs_waiting=facts.inputs_waiting,
        source="channel",
    )
    setting = _reset_setting(policy, facts)
    steps = [
        Step("type", f"{facts.session_type}, on {facts.channel or 'no channel'}"),
        Step("policy", _policy_words(policy), setting or "the built-in default", True),
    ]
    if facts.exists:
        steps += [
            Step("last message of a person", local_time(facts.last_interaction_ms, zone)),
            Step("busy", _busy_words(facts)),
            Step("next reset", _end_words(end, policy, zone)),
        ]
    return Explanation(
        kind="reset",
        answer=_reset_answer(facts, policy, verdict, end, zone),
        steps=tuple(steps),
        facts={
            "sessionKey": facts.session_key,
            "exists": facts.exists,
            "sessionType": facts.session_type,
            "channel": facts.channel,
            "mode": policy.mode,
            "atHour": policy.at_hour,
            "idleMinutes": policy.idle_minutes,
            "origin": policy.origin,
            "lastInteractionAt": facts.last_interaction_ms,
            "expired": isinstance(verdict, Expired),
            "nextResetAt": None if end is None else end.at_ms,
            "nextResetReason": None if end is None else end.reason,
            "zone": str(zone),
        },
        decided_by=setting,
    )


def local_time(at_ms: int | None, zone: ZoneInfo) -> str:
    """A moment as the clock of that zone shows it."""
    if at_ms is None:
        return "not known"
    return (_EPOCH + at_ms * _MS).astimezone(zone).strftime("%Y-%m-%d %H:%M:%S %Z")


def _reset_setting(policy: ResetPolicy, facts: ResetFacts) -> str | None:
    return {
        "channel": f"session.resetByChannel.{facts.channel}",
        "type": f"session.resetByType.{facts.session_type}",
        "reset": "session.reset",
        "legacy": "session.idleMinutes",
        "default": None,
    }[policy.origin]


def _policy_words(policy: ResetPolicy) -> str:
    words = []
    if policy.mode == "daily":
        words.append(f"daily at {policy.at_hour:02d}:00")
    if policy.idle_minutes is not None:
        words.append(f"after {policy.idle_minutes} minutes without a message")
    return ", or ".join(words)


def _busy_words(facts: ResetFacts) -> str:
    if facts.run_active:
        return "a turn runs; a busy session is never reset by itself"
    if facts.inputs_waiting:
        return "messages wait; a busy session is never reset by itself"
    return "no"


def _end_words(end: NextExpiry | None, policy: ResetPolicy, zone: ZoneInfo) -> str:
    if end is None:
        return "none: without a message of a person nothing proves that it is old"
    why = "the daily reset" if end.reason == "daily" else f"{policy.idle_minutes} idle minutes"
    return f"{local_time(end.at_ms, zone)}, by {why}"


def _reset_answer(
    facts: ResetFacts,
    policy: ResetPolicy,
    verdict: lifecycle.Fresh | Expired,
    end: NextExpiry | None,
    zone: ZoneInfo,
) -> str:
    if not facts.exists:
        return (
            f"There is no session {facts.session_key} yet. Once it exists it resets {_policy_words(policy)}."
        )
    if isinstance(verdict, Expired):
        return f"The next message starts a new session: it expired {_end_words(end, policy, zone)}."
    if end is None:
        return "The next message goes on with this session: nothing is known that would make it old."
    if facts.run_active or facts.inputs_waiting:
        return "The session is busy, and a busy session is never reset by itself."
    return f"The next message goes on with this session, until {_end_words(end, policy, zone)}."


# -- send -----------------------------------------------------------------------------------------


def explain_send(policy: SendPolicy | None, facts: SendFacts) -> Explanation:
    """Whether a session may be sent to, and which rule says so (SEND-6)."""
    decision = decide_send(policy, facts)
    setting = _send_setting(decision)
    steps = [
        Step("session", f"channel {facts.channel or 'none'}, chat type {facts.chat_type or 'none'}"),
        Step(
            "override of this session",
            "none" if facts.override is None else facts.override,
            "/send",
            facts.override is not None,
        ),
    ]
    if facts.override is None:
        steps += _rule_steps(policy or SendPolicy(), facts, decision)
    verb = "denied" if decision.action == "deny" else "allowed"
    because = "nothing forbids it" if decision.source == "none" else f"{setting} says so"
    return Explanation(
        kind="send",
        answer=f"Sending to {facts.key} is {verb}: {because}.",
        steps=tuple(steps),
        facts={
            "sessionKey": facts.key,
            "action": decision.action,
            "source": decision.source,
            "ruleIndex": decision.rule_index,
            "override": facts.override,
            "channel": facts.channel,
            "chatType": facts.chat_type,
        },
        decided_by=setting,
        fix=_send_fix(decision, setting),
    )


def _send_setting(decision: SendDecision) -> str | None:
    return {
        "override": "the override of this session",
        "rule": f"session.sendPolicy.rules[{decision.rule_index}]",
        "default": "session.sendPolicy.default",
        "none": None,
    }[decision.source]


def _send_fix(decision: SendDecision, setting: str | None) -> str | None:
    if decision.action == "allow":
        return None
    if decision.source == "override":
        return "send /send inherit in that session, or patch its sendPolicy to null"
    return f"change {setting} in the config, or send /send on in that session"


def _rule_steps(policy: SendPolicy, facts: SendFacts, decision: SendDecision) -> list[Step]:
    steps: list[Step] = []
    for index, rule in enumerate(policy.rules):
        name = f"session.sendPolicy.rules[{index}]"
        decides = decision.rule_index == index
        if decision.action == "deny" and decision.rule_index is not None and index > decision.rule_index:
            outcome = "not asked: the first matching deny ends the search"
        elif matches(rule.match, facts):
            outcome = "matches" if decides else "matches, but an earlier allow stands"
            if decision.action == "deny" and not decides:
                outcome = "matches, but a deny wins"
        else:
            outcome = f"does not match: {', '.join(_differing(rule.match, facts))}"
        steps.append(Step(f"rules[{index}]: {rule.action}", outcome, name, decides))
    words = "not set, which allows" if policy.default is None else policy.default
    decides = decision.source in ("default", "none")
    steps.append(Step("default", words, "session.sendPolicy.default", decides))
    return steps


def _differing(match: SendMatch, facts: SendFacts) -> list[str]:
    """The fields of a rule that do not hold when each is asked alone."""
    alone = {
        "channel": SendMatch(channel=match.channel),
        "chatType": SendMatch(chat_type=match.chat_type),
        "keyPrefix": SendMatch(key_prefix=match.key_prefix),
        "rawKeyPrefix": SendMatch(raw_key_prefix=match.raw_key_prefix),
    }
    return [name for name, field in alone.items() if not matches(field, facts)]


# -- visibility -----------------------------------------------------------------------------------


def explain_visibility(
    policy: VisibilityPolicy, caller: SessionCaller, target: TargetFacts | None, target_key: str
) -> Explanation:
    """Whether one session may see another, and which step lets it or refuses it (VIS-1 to VIS-7).

    For the operator who asks: a sandboxed caller itself is told less (VIS-7).
    """
    decision = visibility.decide_visibility(policy, caller, target)
    level = visibility.effective_level(policy, caller)
    # The same question without the sandbox's silence: the clamped level gives the real reason.
    spoken = visibility.decide_visibility(
        msgspec.structs.replace(policy, level=level), msgspec.structs.replace(caller, sandboxed=False), target
    )
    steps = [
        _exists_step(target, spoken),
        _level_step(policy, caller, level, spoken),
        *([] if target is None else _relation_steps(policy, caller, target, spoken)),
    ]
    seen = isinstance(decision, Visible)
    setting = None if isinstance(spoken, Visible) else spoken.setting or None
    if level != policy.level and isinstance(spoken, Denied) and spoken.reason == "level":
        setting = visibility.SANDBOX_SETTING
    can = "can see" if seen else "cannot see"
    return Explanation(
        kind="visibility",
        answer=f"{caller.session_key} {can} {target_key}: {_reason_words(spoken)}",
        steps=tuple(steps),
        facts={
            "from": caller.session_key,
            "to": target_key,
            "visible": seen,
            "reason": spoken.reason,
            "level": policy.level,
            "effectiveLevel": level,
            "sandboxed": caller.sandboxed,
            "agentToAgent": policy.agent_to_agent_enabled,
            "allow": list(policy.agent_to_agent_allow),
            "toldToCaller": None if isinstance(decision, Visible) else decision.message,
        },
        decided_by=setting,
        fix=None if isinstance(spoken, Visible) or target is None else _visibility_fix(spoken, setting),
    )


_REASON_WORDS = {
    "own": "it is the session itself.",
    "spawned": "it spawned that session.",
    "same-agent": "both belong to one agent, and the level allows it.",
    "cross-agent": "agents may see one another, and both are allowed.",
}


def _reason_words(decision: Visible | Denied) -> str:
    return _REASON_WORDS[decision.reason] if isinstance(decision, Visible) else decision.message


def _visibility_fix(refused: Denied, setting: str | None) -> str:
    if setting == visibility.SANDBOX_SETTING:
        return "the agent is sandboxed; agents.defaults.sandbox.mode or the agent's own sandbox.mode decides"
    return f"change {refused.setting} in the config"


def _exists_step(target: TargetFacts | None, spoken: Visible | Denied) -> Step:
    outcome = "no" if target is None else "yes"
    return Step("the session exists", outcome, None, isinstance(spoken, Denied) and target is None)


def _level_step(
    policy: VisibilityPolicy, caller: SessionCaller, level: str, spoken: Visible | Denied
) -> Step:
    outcome = f'"{policy.level}"'
    if level != policy.level:
        outcome += f', clamped to "{level}" because the caller is sandboxed'
    elif caller.sandboxed:
        outcome += "; the sandbox changes nothing here"
    refused = isinstance(spoken, Denied) and spoken.reason == "level"
    return Step("level", outcome, visibility.LEVEL_SETTING, refused)


def _relation_steps(
    policy: VisibilityPolicy, caller: SessionCaller, target: TargetFacts, spoken: Visible | Denied
) -> list[Step]:
    def yes(flag: bool) -> str:
        return "yes" if flag else "no"

    reason = spoken.reason
    same_agent = target.agent_id == caller.agent_id
    steps = [
        Step("its own session", yes(target.session_key == caller.session_key), None, reason == "own"),
        Step(
            "the caller spawned it",
            yes(visibility.in_tree_of(caller.session_key, target)),
            None,
            reason == "spawned",
        ),
        Step(
            "same agent",
            f"{yes(same_agent)} ({caller.agent_id}, {target.agent_id})",
            None,
            reason == "same-agent",
        ),
    ]
    if same_agent:
        return steps
    enabled = "on" if policy.agent_to_agent_enabled else "off"
    allow = ", ".join(policy.agent_to_agent_allow) or "every agent"
    return [
        *steps,
        Step("agent to agent", enabled, visibility.ENABLED_SETTING, reason == "agent-to-agent-off"),
        Step(
            "allowed agents",
            allow,
            visibility.ALLOW_SETTING,
            reason in ("agent-to-agent-allow", "cross-agent"),
        ),
    ]
