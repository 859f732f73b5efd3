"""An inbound message: whose it is, whether it is taken, where the answer goes (SPEC §10).

Everything is decided from the envelope and the configuration. The reply route is
captured here, once, and is never looked up later from a session, a key or a model's
words (PITFALLS G2). This room stores nothing and sends nothing.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Literal

import msgspec
from msgspec import Struct

from openclaw.domain.addressing import AddressSettings, Conversation, session_key_for
from openclaw.domain.entry import ChatType, DeliveryContext, GroupActivation
from openclaw.domain.groups import (
    DEFAULT_AGENT_ID,
    fold_channel,
    fold_listed_peer,
    fold_peer,
    fold_word,
    normalise_account_id,
    normalise_agent_id,
    normalise_chat_type,
)
from openclaw.domain.keys import KeySettings, SessionKey, ThreadKind, main_session_key

RouteTier = Literal["peer", "parent_peer", "guild_roles", "guild", "team", "account", "channel", "default"]
GroupPolicy = Literal["open", "allowlist", "disabled"]


class Envelope(Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True):
    """One message as a connector hands it over. Ids are the platform's own, byte-exact."""

    # Where it was said.
    channel: str
    peer_kind: ChatType
    peer_id: str  # the other person in a direct chat, else the group or room
    account_id: str = "default"  # which of our accounts on that channel received it
    parent_peer_id: str | None = None  # the room that a thread or topic hangs below
    thread_id: str | None = None
    thread_kind: ThreadKind | None = None  # set when the thread is a session of its own (KEY-10, KEY-11)
    reply_to: str | None = None  # where an answer is addressed, when that is not the peer id itself
    guild_id: str | None = None
    team_id: str | None = None

    # Who said it.
    sender_id: str | None = None
    sender_name: str | None = None
    roles: tuple[str, ...] = ()  # the sender's roles in the guild

    # What the platform wrote on it; `origin` shows these, routing does not read them.
    from_: str | None = msgspec.field(default=None, name="from")
    to: str | None = None
    provider: str | None = None
    chat_type: str | None = None

    # The message.
    message_id: str | None = None
    text: str = ""
    has_media: bool = False
    was_mentioned: bool = False  # our name was called in the platform's own way, or by a configured pattern
    replied_to_us: bool = False  # it answers one of our messages, which counts as calling us
    mentions_detectable: bool = True  # False where the platform cannot tell who was called

    # How people name the place (ORG-4).
    conversation_label: str | None = None
    group_subject: str | None = None
    group_channel: str | None = None
    group_space: str | None = None
    thread_label: str | None = None


# -- which agent (ROUTE-1) ------------------------------------------------------------------------


class PeerMatch(Struct, frozen=True):
    kind: str  # any spelling of a chat type
    id: str


class BindingMatch(Struct, frozen=True, kw_only=True, rename="camel"):
    """What a binding asks for. A field that is not given asks for nothing."""

    channel: str
    account_id: str | None = None  # `*` is every account, like leaving it out
    peer: PeerMatch | None = None
    guild_id: str | None = None
    team_id: str | None = None
    roles: tuple[str, ...] = ()  # one of them is enough


class Binding(Struct, frozen=True, kw_only=True, rename="camel"):
    agent_id: str
    match: BindingMatch


class AgentRef(Struct, frozen=True):
    """An entry of `agents.list`, as far as routing reads it."""

    id: str
    default: bool = False


class AgentChoice(Struct, frozen=True):
    """The agent, and what chose it. `binding_index` counts from 0 in file order."""

    agent_id: str
    tier: RouteTier
    binding_index: int | None = None


_TIERS: tuple[RouteTier, ...] = ("peer", "parent_peer", "guild_roles", "guild", "team", "account", "channel")


def choose_agent(
    envelope: Envelope,
    bindings: Sequence[Binding],
    agents: Sequence[AgentRef],
    settings: KeySettings,
) -> AgentChoice:
    """The agent that a message belongs to: the most specific tier that matches, file order inside a tier."""
    best: AgentChoice | None = None
    for index, binding in enumerate(bindings):
        tier = _matching_tier(binding.match, envelope, settings)
        if tier is not None and (best is None or _TIERS.index(tier) < _TIERS.index(best.tier)):
            best = AgentChoice(normalise_agent_id(binding.agent_id), tier, index)
    return best or AgentChoice(default_agent_id(agents), "default")


def default_agent_id(agents: Sequence[AgentRef]) -> str:
    """The agent marked as default, else the first one listed, else `main`."""
    marked = [agent.id for agent in agents if agent.default]
    listed = [agent.id for agent in agents]
    return normalise_agent_id(next(iter(marked + listed), DEFAULT_AGENT_ID))


def _matching_tier(match: BindingMatch, envelope: Envelope, settings: KeySettings) -> RouteTier | None:
    """The tier of a binding whose every given field matches, else None."""
    names_account = match.account_id is not None and match.account_id.strip() != "*"
    if fold_word(match.channel) != fold_word(envelope.channel):
        return None
    if names_account and normalise_account_id(match.account_id) != normalise_account_id(envelope.account_id):
        return None
    if match.guild_id is not None and match.guild_id != envelope.guild_id:
        return None
    if match.team_id is not None and match.team_id != envelope.team_id:
        return None
    if match.roles and set(match.roles).isdisjoint(envelope.roles):
        return None
    if match.peer is not None:
        return _peer_tier(match.peer, envelope, settings)
    if match.guild_id is not None:
        return "guild_roles" if match.roles else "guild"
    if match.team_id is not None:
        return "team"
    return "account" if names_account else "channel"


def _peer_tier(peer: PeerMatch, envelope: Envelope, settings: KeySettings) -> RouteTier | None:
    if normalise_chat_type(peer.kind) != envelope.peer_kind:
        return None
    channel = fold_word(envelope.channel)
    wanted = fold_peer(peer.id, channel, settings.case_sensitive_channels)
    if wanted == fold_peer(envelope.peer_id, channel, settings.case_sensitive_channels):
        return "peer"
    parent = fold_peer(envelope.parent_peer_id or "", channel, settings.case_sensitive_channels)
    return "parent_peer" if parent and wanted == parent else None


# -- the whole address of a message (ROUTE-2, ROUTE-5) --------------------------------------------


class InboundRoute(Struct, frozen=True):
    """Everything that is fixed about a message when it comes in."""

    agent: AgentChoice
    key: SessionKey
    conversation: Conversation
    reply: DeliveryContext


def route_inbound(
    envelope: Envelope,
    *,
    bindings: Sequence[Binding],
    agents: Sequence[AgentRef],
    settings: AddressSettings,
) -> InboundRoute:
    """Agent, session, conversation and reply route of a message. Raises InvalidSessionKey on unusable ids."""
    agent = choose_agent(envelope, bindings, agents, settings.keys)
    conversation = conversation_of(envelope)
    key = session_key_for(conversation, agent_id=agent.agent_id, settings=settings)
    return InboundRoute(agent, key, conversation, reply_route(envelope))


def conversation_of(envelope: Envelope) -> Conversation:
    """The conversation that a message was said in."""
    return Conversation(
        channel=fold_channel(envelope.channel),
        kind=envelope.peer_kind,
        peer_id=envelope.peer_id,
        account_id=normalise_account_id(envelope.account_id),
        thread_kind=envelope.thread_kind,
        thread_id=envelope.thread_id,
    )


def reply_route(envelope: Envelope) -> DeliveryContext:
    """Where the answer goes: back to where the message came from, whatever the model says (ROUTE-2)."""
    return DeliveryContext(
        channel=fold_word(envelope.channel),
        to=envelope.reply_to or envelope.peer_id,
        account_id=normalise_account_id(envelope.account_id),
        thread_id=envelope.thread_id or None,
    )


def webchat_key(selected_agent_id: str, settings: KeySettings) -> SessionKey:
    """The session that a web chat shows when it names none: the agent's main session (ROUTE-5)."""
    return main_session_key(selected_agent_id, settings)


# -- is a group message taken (ROUTE-3) -----------------------------------------------------------


class GroupRules(Struct, frozen=True, kw_only=True):
    """The rules of one channel for groups. A list of None is not configured; `*` lists everyone."""

    policy: GroupPolicy
    groups: Collection[str] | None = None
    senders: Collection[str] | None = None
    require_mention: bool = True


class Accept(Struct, frozen=True, tag="accept"):
    """The message starts a turn."""

    reason: Literal["direct", "mentioned", "reply", "command", "mention_not_required", "mention_unknowable"]


class Pending(Struct, frozen=True, tag="pending"):
    """The message is kept as context for the next turn and starts none."""

    reason: Literal["not_mentioned"] = "not_mentioned"


class Drop(Struct, frozen=True, tag="drop"):
    """The message is not kept at all."""

    reason: Literal["groups_disabled", "nothing_listed", "group_not_listed", "sender_not_listed"]


GateDecision = Accept | Pending | Drop


def gate_group(
    envelope: Envelope,
    rules: GroupRules,
    *,
    settings: KeySettings,
    activation: GroupActivation | None = None,
    is_authorised_command: bool = False,
) -> GateDecision:
    """Whether a message is taken. `activation` is what `/activation` stored; it beats `require_mention`.

    A command of someone who may give it needs no mention, or `/activation` could never be changed.
    """
    if envelope.peer_kind == "direct":
        return Accept("direct")
    refused = _refused_by_policy(envelope, rules, settings)
    if refused is not None:
        return refused
    if is_authorised_command:
        return Accept("command")
    if envelope.was_mentioned:
        return Accept("mentioned")
    if envelope.replied_to_us:
        return Accept("reply")
    if not (rules.require_mention if activation is None else activation == "mention"):
        return Accept("mention_not_required")
    return Pending() if envelope.mentions_detectable else Accept("mention_unknowable")


def _refused_by_policy(envelope: Envelope, rules: GroupRules, settings: KeySettings) -> Drop | None:
    if rules.policy == "disabled":
        return Drop("groups_disabled")
    if rules.policy == "open":
        return None
    if rules.groups is None and rules.senders is None:
        return Drop("nothing_listed")
    group_ids = (envelope.peer_id, envelope.parent_peer_id)
    if rules.groups is not None and not _is_listed(group_ids, rules.groups, envelope, settings):
        return Drop("group_not_listed")
    if rules.senders is not None and not _is_listed((envelope.sender_id,), rules.senders, envelope, settings):
        return Drop("sender_not_listed")
    return None


def _is_listed(
    ids: Sequence[str | None], listed: Collection[str], envelope: Envelope, settings: KeySettings
) -> bool:
    channel, case_sensitive = fold_word(envelope.channel), settings.case_sensitive_channels
    wanted = {fold_peer(text, channel, case_sensitive) for text in ids if text} | {"*"}
    return any(fold_listed_peer(entry, channel, case_sensitive) in wanted for entry in listed)


# -- the same message twice, and many in a row (ROUTE-4) ------------------------------------------


class DeliveryIdentity(Struct, frozen=True):
    """What makes a delivery the same one. Message ids are unique per chat only, hence the peer."""

    channel: str
    account_id: str
    peer_id: str
    message_id: str


def delivery_identity(envelope: Envelope) -> DeliveryIdentity | None:
    """The identity under which a repeated delivery is recognised; None when the platform gives no id."""
    if not envelope.message_id:
        return None
    account_id = normalise_account_id(envelope.account_id)
    return DeliveryIdentity(fold_word(envelope.channel), account_id, envelope.peer_id, envelope.message_id)


class DebounceSettings(Struct, frozen=True, rename="camel"):
    """`messages.inbound`: how long rapid messages of one sender are gathered. 0 is off."""

    debounce_ms: int = 0
    by_channel: Mapping[str, int] = {}


class FlushNow(Struct, frozen=True, tag="flush"):
    """Hand over what was gathered, then this message, at once."""

    reason: Literal["off", "command", "media"]


class Coalesce(Struct, frozen=True, tag="coalesce"):
    """Gather this message until `flush_at_ms`; without `joins_waiting` hand over the older ones first."""

    flush_at_ms: int
    joins_waiting: bool


def decide_debounce(
    *,
    now_ms: int,
    last_ms: int | None,
    channel: str,
    settings: DebounceSettings,
    is_command: bool,
    has_media: bool,
) -> FlushNow | Coalesce:
    """What to do with a message; `last_ms` is when the sender's last gathered message came, if one waits."""
    if is_command:
        return FlushNow("command")
    if has_media:
        return FlushNow("media")
    window_ms = settings.by_channel.get(fold_word(channel), settings.debounce_ms)
    if window_ms <= 0:
        return FlushNow("off")
    return Coalesce(now_ms + window_ms, last_ms is not None and now_ms - last_ms < window_ms)


class DebounceLane(Struct, frozen=True):
    """Messages are gathered together only when all of this is equal."""

    channel: str
    account_id: str
    peer_id: str
    thread_id: str | None
    sender_id: str | None


def debounce_lane(envelope: Envelope) -> DebounceLane:
    """The lane in which a message may be joined with others: one sender in one place."""
    return DebounceLane(
        fold_word(envelope.channel),
        normalise_account_id(envelope.account_id),
        envelope.peer_id,
        envelope.thread_id or None,
        envelope.sender_id,
    )
