"""Why a message lands in its session: which binding, which agent, which key, and whether it is taken.

Tells the story of `routing.route_inbound` and `routing.gate_group` by asking those
functions again about each binding and each field alone. It adds no rule of its own.
"""

from __future__ import annotations

from collections.abc import Sequence

from msgspec import Struct

from openclaw.domain.addressing import AddressSettings, linked_identity, session_key_for
from openclaw.domain.admission import Admit, AskToPair, DirectDecision
from openclaw.domain.explanation import Explanation, Step
from openclaw.domain.groups import fold_word, normalise_agent_id
from openclaw.domain.keys import format_key
from openclaw.domain.routing import (
    Accept,
    AgentChoice,
    AgentRef,
    Binding,
    BindingMatch,
    Envelope,
    GroupRules,
    InboundRoute,
    choose_agent,
    conversation_of,
    gate_group,
    reply_route,
    route_inbound,
)

_TIER_WORDS = {
    "peer": "the chat itself",
    "parent_peer": "the room above the thread",
    "guild_roles": "the guild and a role of the sender",
    "guild": "the guild",
    "team": "the team",
    "account": "the account",
    "channel": "the whole channel",
}
_GATE_WORDS = {
    "mentioned": "taken: the agent was called by name",
    "reply": "taken: it answers one of the agent's messages",
    "mention_not_required": "taken: no mention is needed in this group",
    "mention_unknowable": "taken: this platform cannot tell who was called",
    "not_mentioned": "kept as context only: the agent was not called by name",
    "groups_disabled": "dropped: groups are disabled on this channel",
    "nothing_listed": "dropped: neither groups nor senders are listed, and only listed ones are heard",
    "group_not_listed": "dropped: this group is not listed",
    "sender_not_listed": "dropped: this sender is not listed",
}
_GATE_SETTINGS = {
    "mention_not_required": "requireMention",
    "not_mentioned": "requireMention",
    "groups_disabled": "groupPolicy",
    "nothing_listed": "groupPolicy",
    "group_not_listed": "groups",
    "sender_not_listed": "groupAllowFrom",
}
_ADMISSION_WORDS = {
    "listed": "taken: allowFrom names the sender",
    "paired": "taken: a person let the sender in",
    "open": "taken: the door is open to everybody",
    "asked_to_pair": "not taken: a stranger is given a pairing code first",
    "disabled": "dropped: direct messages are disabled on this channel",
    "not_listed": "dropped: allowFrom does not name the sender",
    "no_sender": "dropped: the platform names no sender",
}
_SCOPE_WORDS = {
    "main": "direct messages share the agent's main session",
    "per-peer": "each person has one session, whatever the channel",
    "per-channel-peer": "each person has one session per channel",
    "per-account-channel-peer": "each person has one session per account and channel",
}


class RoutingGround(Struct, frozen=True, kw_only=True):
    """The configuration that routing reads. `group_rules` are those of the envelope's own group."""

    bindings: Sequence[Binding]
    agents: Sequence[AgentRef]
    settings: AddressSettings
    dm_scope_is_set: bool
    group_rules: GroupRules


class SessionFound(Struct, frozen=True):
    """The session that stands behind the key."""

    session_id: str
    message_count: int


def find_route(envelope: Envelope, ground: RoutingGround, agent_id: str | None = None) -> InboundRoute:
    """The route of a message; `agent_id` passes the bindings by, as choosing an agent by hand does.

    Raises InvalidSessionKey on unusable ids.
    """
    if agent_id is None:
        return route_inbound(
            envelope, bindings=ground.bindings, agents=ground.agents, settings=ground.settings
        )
    agent = AgentChoice(normalise_agent_id(agent_id), "default")
    conversation = conversation_of(envelope)
    key = session_key_for(conversation, agent_id=agent.agent_id, settings=ground.settings)
    return InboundRoute(agent, key, conversation, reply_route(envelope))


def explain_route(
    envelope: Envelope,
    ground: RoutingGround,
    route: InboundRoute,
    found: SessionFound | None,
    *,
    admission: DirectDecision | None = None,
    agent_was_named: bool = False,
) -> Explanation:
    """Tell how `route`, which `find_route` gave for the same values, came about.

    `admission` is what `admit_direct` decided; None where nobody has to be let in.
    """
    key = format_key(route.key)
    taken = _taken_step(envelope, ground, admission)
    agent_steps = _agent_steps(envelope, ground, route.agent, named=agent_was_named)
    key_step = _key_step(envelope, ground)
    steps = [*agent_steps, key_step]
    if route.key.thread_id is not None:
        steps.append(Step("thread", f"{route.key.thread_kind} {route.key.thread_id} is a session of its own"))
    if taken.step is not None:
        steps.append(taken.step)
    steps.append(_session_step(found))
    return Explanation(
        kind="route",
        answer=_route_answer(key, route.agent, taken, found),
        steps=tuple(steps),
        facts={
            "sessionKey": key,
            "agentId": route.agent.agent_id,
            "tier": "named" if agent_was_named else route.agent.tier,
            "bindingIndex": route.agent.binding_index,
            "dmScope": ground.settings.dm_scope,
            "identity": _identity(envelope, ground.settings),
            "taken": taken.taken,
            "gate": taken.reason,
            "exists": found is not None,
            "sessionId": None if found is None else found.session_id,
            "reply": {"channel": route.reply.channel, "to": route.reply.to},
        },
        decided_by=_deciding_setting(steps, taken),
    )


def _deciding_setting(steps: list[Step], taken: _Taken) -> str | None:
    """What to look at first: what refuses the message, else what chose the agent, else the key."""
    if taken.step is not None and not taken.taken:
        return taken.step.setting
    return next((step.setting for step in steps if step.decided and step.setting), None)


def _route_answer(key: str, agent: AgentChoice, taken: _Taken, found: SessionFound | None) -> str:
    if taken.step is not None and not taken.taken:
        return f"The message would start no turn: {taken.step.outcome}. Its session would be {key}."
    state = "which exists" if found else "which the message would create"
    return f"The message goes to agent {agent.agent_id}, session {key}, {state}."


# -- the agent ------------------------------------------------------------------------------------


def _agent_steps(envelope: Envelope, ground: RoutingGround, agent: AgentChoice, *, named: bool) -> list[Step]:
    if named:
        return [Step("agent", f"{agent.agent_id}: it was named, so no binding was asked", None, True)]
    steps = [
        _binding_step(index, binding, envelope, ground, chosen=index == agent.binding_index)
        for index, binding in enumerate(ground.bindings)
    ]
    if agent.binding_index is None:
        steps.append(_default_step(ground, agent))
    return steps


def _default_step(ground: RoutingGround, agent: AgentChoice) -> Step:
    if any(one.default for one in ground.agents):
        why = "it is marked as the default agent"
    elif ground.agents:
        why = "it is the first agent that is listed"
    else:
        why = "no agent is listed"
    tried = "no binding matches, and " if ground.bindings else "there are no bindings, and "
    return Step("agent", f"{agent.agent_id}: {tried}{why}", "agents.list", True)


def _binding_step(
    index: int, binding: Binding, envelope: Envelope, ground: RoutingGround, *, chosen: bool
) -> Step:
    name = f"bindings[{index}]"
    question = f"{name} for {normalise_agent_id(binding.agent_id)}"
    alone = choose_agent(envelope, (binding,), ground.agents, ground.settings.keys)
    if alone.binding_index is None:
        differing = ", ".join(_differing(binding.match, envelope, ground))
        return Step(question, f"does not match: {differing}", name)
    by = _TIER_WORDS[alone.tier]
    outcome = f"matches by {by}" if chosen else f"matches by {by}, but a more specific or earlier one wins"
    return Step(question, outcome, name, chosen)


def _differing(match: BindingMatch, envelope: Envelope, ground: RoutingGround) -> list[str]:
    """The fields of a binding that do not match when each is asked alone."""
    channel = envelope.channel
    alone = {
        "channel": BindingMatch(channel=match.channel),
        "accountId": BindingMatch(channel=channel, account_id=match.account_id),
        "guildId": BindingMatch(channel=channel, guild_id=match.guild_id),
        "teamId": BindingMatch(channel=channel, team_id=match.team_id),
        "roles": BindingMatch(channel=channel, roles=match.roles),
        "peer": BindingMatch(channel=channel, peer=match.peer),
    }
    keys = ground.settings.keys
    return [
        name
        for name, field in alone.items()
        if choose_agent(envelope, (Binding(agent_id="x", match=field),), (), keys).binding_index is None
    ]


# -- the key --------------------------------------------------------------------------------------


def _key_step(envelope: Envelope, ground: RoutingGround) -> Step:
    settings = ground.settings
    if settings.keys.scope == "global":
        return Step("key", "every chat is one session", "session.scope", True)
    if envelope.peer_kind != "direct":
        return Step("key", f"a {envelope.peer_kind} always has a session of its own")
    scope = settings.dm_scope
    chosen = f'"{scope}"' if ground.dm_scope_is_set else f'"{scope}", the default'
    outcome = f"dmScope is {chosen}: {_SCOPE_WORDS[scope]}"
    identity = _identity(envelope, settings)
    if identity is not None:
        outcome += f"; this id is linked to {identity}"
        return Step("key", outcome, f"session.identityLinks.{identity}", True)
    return Step("key", outcome, "session.dmScope", True)


def _identity(envelope: Envelope, settings: AddressSettings) -> str | None:
    """The linked person, where the key asks for one (KEY-7)."""
    asked = settings.keys.scope != "global" and envelope.peer_kind == "direct" and settings.dm_scope != "main"
    return linked_identity(envelope.channel, envelope.peer_id, settings) if asked else None


# -- taken or not, and the session ----------------------------------------------------------------


class _Taken(Struct, frozen=True):
    """Whether the message starts a turn, why, and the step that tells it."""

    taken: bool
    reason: str
    step: Step | None = None


def _taken_step(envelope: Envelope, ground: RoutingGround, admission: DirectDecision | None) -> _Taken:
    channel = f"channels.{fold_word(envelope.channel)}"
    if envelope.peer_kind == "direct":
        if admission is None:
            return _Taken(True, "direct")
        reason = "asked_to_pair" if isinstance(admission, AskToPair) else admission.reason
        taken = isinstance(admission, Admit)
        setting = "allowFrom" if reason in ("listed", "not_listed") else "dmPolicy"
        step = Step("direct message", _ADMISSION_WORDS[reason], f"{channel}.{setting}", not taken)
        return _Taken(taken, reason, step)
    gate = gate_group(envelope, ground.group_rules, settings=ground.settings.keys)
    taken = isinstance(gate, Accept)
    name = _GATE_SETTINGS.get(gate.reason)
    where = None if name is None else f"{channel}.{name}"
    return _Taken(taken, gate.reason, Step("group", _GATE_WORDS[gate.reason], where, not taken))


def _session_step(found: SessionFound | None) -> Step:
    if found is None:
        return Step("session", "none yet; the first message creates it")
    plural = "message" if found.message_count == 1 else "messages"
    return Step("session", f"{found.session_id}, {found.message_count} {plural}")
