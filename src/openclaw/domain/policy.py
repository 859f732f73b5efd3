"""Who may be answered: the send policy, and how often two agents answer each other (SPEC §8).

Rules block delivery for kinds of sessions without naming any session. The same
decision serves the RPCs `chat.send` and `agent` and the delivery of replies
(SEND-5); carrying it out is theirs. Whether a caller may change the policy is
not decided here.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

from msgspec import Struct

from openclaw.domain.entry import ChatType, SendAction, SessionEntry
from openclaw.domain.groups import fold_word, normalise_chat_type
from openclaw.domain.keys import channel_of_key, chat_type_of_key, strip_agent
from openclaw.domain.lifecycle import floor_number
from openclaw.errors import SendDenied

DEFAULT_PING_PONG_TURNS = 5
MOST_PING_PONG_TURNS = 20

SendSource = Literal["override", "rule", "default", "none"]
SendChange = Literal["allow", "deny", "inherit"]


class SendMatch(Struct, frozen=True, rename="camel", omit_defaults=True, forbid_unknown_fields=True):
    """What a rule applies to. All given fields must hold; none given means every session (SEND-6)."""

    channel: str | None = None
    chat_type: Literal["direct", "dm", "group", "channel", "room"] | None = None
    key_prefix: str | None = None
    raw_key_prefix: str | None = None


class SendRule(Struct, frozen=True, rename="camel", forbid_unknown_fields=True):
    """One rule of `session.sendPolicy.rules`."""

    action: SendAction
    match: SendMatch = SendMatch()


class SendPolicy(Struct, frozen=True, rename="camel", omit_defaults=True, forbid_unknown_fields=True):
    """The shape of `session.sendPolicy` (SEND-2)."""

    rules: tuple[SendRule, ...] = ()
    default: SendAction | None = None


class SendFacts(Struct, frozen=True):
    """What the rules are held against: one session, as it is addressed now."""

    key: str
    override: SendAction | None = None
    channel: str | None = None
    chat_type: ChatType | None = None


class SendDecision(Struct, frozen=True):
    """The outcome and what it rests on. `rule_index` counts from 0 and is set for rules only."""

    action: SendAction
    source: SendSource
    rule_index: int | None = None


def send_facts(entry: SessionEntry | None, key_text: str, *, request_channel: str | None = None) -> SendFacts:
    """Collect the facts of a session, each from the first place that knows it (SEND-7).

    Channel: the request, the entry, its last route, the key. Chat type: the entry,
    the key. A session without an entry is known by its key alone.
    """
    channels: list[str | None] = [request_channel]
    if entry is not None:
        route = entry.delivery_context
        channels += [entry.channel, None if route is None else route.channel]
    channel = next((folded for name in channels if name and (folded := fold_word(name))), None)
    stored = None if entry is None else entry.chat_type
    return SendFacts(
        key=key_text,
        override=None if entry is None else entry.send_policy,
        channel=channel or channel_of_key(key_text),
        chat_type=stored or chat_type_of_key(key_text),
    )


def decide_send(policy: SendPolicy | None, facts: SendFacts) -> SendDecision:
    """Whether a session may be sent to (SEND-6).

    The override decides alone. Otherwise the first matching deny ends the search;
    without one any matching allow wins, then the default, then allow.
    """
    if facts.override is not None:
        return SendDecision(facts.override, "override")
    if policy is None:
        return SendDecision("allow", "none")
    first_allow: int | None = None
    for index, rule in enumerate(policy.rules):
        if not matches(rule.match, facts):
            continue
        if rule.action == "deny":
            return SendDecision("deny", "rule", index)
        first_allow = index if first_allow is None else first_allow
    if first_allow is not None:
        return SendDecision("allow", "rule", first_allow)
    if policy.default is not None:
        return SendDecision(policy.default, "default")
    return SendDecision("allow", "none")


def require_send(decision: SendDecision) -> None:
    """Refuse a request whose session may not be sent to (SEND-8)."""
    if decision.action == "deny":
        raise SendDenied(source=decision.source, rule_index=decision.rule_index)


def matches(match: SendMatch, facts: SendFacts) -> bool:
    """Whether every given field of a match holds (SEND-6, SEND-7). A blank field counts as not given."""
    channel, chat_type = fold_word(match.channel or ""), normalise_chat_type(match.chat_type)
    prefix, raw_prefix = fold_word(match.key_prefix or ""), fold_word(match.raw_key_prefix or "")
    full = fold_word(facts.key)
    return (
        (not channel or channel == facts.channel)
        and (chat_type is None or chat_type == facts.chat_type)
        and (not prefix or _starts(full, prefix) or _starts(strip_agent(full), prefix))
        and (not raw_prefix or _starts(full, raw_prefix))
    )


def _starts(key: str, prefix: str) -> bool:
    return key.startswith(prefix) or _old_words(key).startswith(_old_words(prefix))


def _old_words(text: str) -> str:
    """Spell chat words one way, segment by segment, so that `direct:` finds `dm:` (AMB-8, AMB-21)."""
    spelling = {"direct": "dm", "room": "channel"}
    return ":".join(spelling.get(segment, segment) for segment in text.split(":"))


# -- the auto-reply path -----------------------------------------------------------------------


class ReplyPlan(Struct, frozen=True):
    """What happens with a message that came in: whether the model runs, and whether its answer leaves."""

    run: bool
    deliver: bool


def plan_auto_reply(decision: SendDecision, *, process_when_denied: bool = False) -> ReplyPlan:
    """Under deny nothing visible leaves, and by default no model runs (SEND-9, AMB-27).

    Chat commands are answered before this is asked, so `/send on` still works.
    """
    if decision.action == "allow":
        return ReplyPlan(run=True, deliver=True)
    return ReplyPlan(run=process_when_denied, deliver=False)


# -- the command -------------------------------------------------------------------------------

_SEND_WORDS: dict[str, SendChange] = {
    "on": "allow",
    "allow": "allow",
    "off": "deny",
    "deny": "deny",
    "inherit": "inherit",
    "default": "inherit",
    "reset": "inherit",
}


def parse_send_command(
    text: str, *, mention_names: Sequence[str] = ()
) -> SendChange | Literal["usage"] | None:
    """Read `/send on|off|inherit` as a message of its own (SEND-10, CMD-8).

    A missing or unknown word asks for the usage text; anything longer than one
    word is an ordinary message: None.
    """
    words = text.split(maxsplit=2)
    if not words:
        return None
    command, _, joined = words[0].lower().partition(":")
    given = [joined, *words[1:]] if joined else words[1:]
    addressed = {f"/send@{name.strip().removeprefix('@').lower()}" for name in mention_names}
    if command not in {"/send", *addressed} or len(given) > 1:
        return None
    return _SEND_WORDS.get(given[0].lower(), "usage") if given else "usage"


# -- agent to agent ----------------------------------------------------------------------------


def clamp_ping_pong_turns(value: object) -> int:
    """`session.agentToAgent.maxPingPongTurns` at use time: floored, 0 to 20; a non-number is 5 (CFG-12)."""
    turns = floor_number(value)
    return DEFAULT_PING_PONG_TURNS if turns is None else min(max(turns, 0), MOST_PING_PONG_TURNS)
