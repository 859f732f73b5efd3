"""Answers to "why?": the configuration in force and the rows, put before the pure functions that decide.

Part of the composition root. A running gateway answers for itself; without one the
command line asks here while it holds the lock of the state directory.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from zoneinfo import ZoneInfo

from openclaw.app.settings import local_zone
from openclaw.channels.inbound import account_of, direct_rules
from openclaw.config import views
from openclaw.config.load import LoadedConfig
from openclaw.config.schema import Config
from openclaw.domain.admission import DirectDecision, admit_direct, sender_of
from openclaw.domain.explain_routing import RoutingGround, SessionFound, explain_route, find_route
from openclaw.domain.explain_rules import ResetFacts, explain_reset, explain_send, explain_visibility
from openclaw.domain.explanation import Explanation
from openclaw.domain.groups import CHAT_WORDS, fold_channel, fold_word
from openclaw.domain.keys import canonical_key, channel_of_key, format_key, parse_key
from openclaw.domain.lifecycle import session_type
from openclaw.domain.policy import send_facts
from openclaw.domain.routing import Envelope
from openclaw.domain.visibility import SessionCaller
from openclaw.errors import InvalidRequest
from openclaw.protocol.params_insight import ExplainParams
from openclaw.store.database import Database
from openclaw.store.insight import Insight
from openclaw.store.recall import Recall
from openclaw.store.senders import SenderRef, Senders

INTERNAL_CHANNELS = frozenset(("webchat", "internal"))


class Explainer:
    """`in_force` is asked anew each time, so that a reload counts."""

    def __init__(
        self,
        database: Database,
        in_force: Callable[[], LoadedConfig],
        env: Mapping[str, str],
        now_ms: Callable[[], int],
    ) -> None:
        self._insight = Insight(database)
        self._recall = Recall(database)
        self._senders = Senders(database)
        self._in_force = in_force
        self._env = env
        self._now_ms = now_ms
        self._zone: ZoneInfo = local_zone(env)

    async def explain(self, asked: ExplainParams) -> Explanation:
        """Raises InvalidRequest where something is missing, InvalidSessionKey for text that is no key."""
        kinds = {
            "route": self._route,
            "reset": self._reset,
            "send": self._send,
            "visibility": self._visibility,
        }
        return await kinds[asked.kind](asked, self._in_force().config)

    async def _route(self, asked: ExplainParams, config: Config) -> Explanation:
        if asked.channel is None or asked.peer_kind is None or asked.peer_id is None:
            raise InvalidRequest("explain route: name a channel and a peer")
        if asked.agent_id is not None:
            views.agent(config, asked.agent_id, self._env)  # refuses one that is not configured
        envelope = _envelope(asked)
        ground = RoutingGround(
            bindings=views.bindings(config),
            agents=views.agent_refs(config),
            settings=views.address_settings(config),
            dm_scope_is_set=views.dm_scope_is_set(config),
            group_rules=views.group_rules(
                config, envelope.channel, envelope.parent_peer_id or envelope.peer_id, asked.account_id
            ),
        )
        route = find_route(envelope, ground, asked.agent_id)
        state = await self._insight.state_of(format_key(route.key))
        found = None
        if state is not None:
            found = SessionFound(state.row.entry.session_id, state.row.message_count)
        admission = await self._admission(envelope, config)
        named = asked.agent_id is not None
        return explain_route(envelope, ground, route, found, admission=admission, agent_was_named=named)

    async def _admission(self, envelope: Envelope, config: Config) -> DirectDecision | None:
        """Whether a person on a platform is let in; what comes through the Gateway's own door is."""
        if envelope.peer_kind != "direct" or fold_word(envelope.channel) in INTERNAL_CHANNELS:
            return None
        who = SenderRef(fold_channel(envelope.channel), account_of(envelope), sender_of(envelope))
        standing = await self._senders.standing(who)
        return admit_direct(envelope, direct_rules(config, envelope), standing, views.key_settings(config))

    async def _reset(self, asked: ExplainParams, config: Config) -> Explanation:
        key = self._key(asked.key, asked, config, "explain reset: name the session with key")
        state = await self._insight.state_of(key)
        if state is None:
            channel = channel_of_key(parse_key(key, views.key_settings(config)))
            facts = ResetFacts(
                session_key=key, session_type=session_type(key_text=key), channel=channel, exists=False
            )
        else:
            entry = state.row.entry
            facts = ResetFacts(
                session_key=key,
                session_type=state.row.session_type,
                channel=entry.channel,
                last_interaction_ms=entry.last_interaction_at,
                run_active=entry.status == "running",
                inputs_waiting=state.inputs_waiting,
            )
        return explain_reset(views.reset_rules(config), facts, now_ms=self._now_ms(), zone=self._zone)

    async def _send(self, asked: ExplainParams, config: Config) -> Explanation:
        key = self._key(asked.key, asked, config, "explain send: name the session with key")
        state = await self._insight.state_of(key)
        entry = None if state is None else state.row.entry
        facts = send_facts(entry, key, request_channel=asked.channel)
        return explain_send(views.send_policy(config), facts)

    async def _visibility(self, asked: ExplainParams, config: Config) -> Explanation:
        missing = "explain visibility: name both sessions with fromKey and toKey"
        from_key = self._key(asked.from_key, asked, config, missing)
        to_key = self._key(asked.to_key, asked, config, missing)
        agent_id = parse_key(from_key, views.key_settings(config)).agent_id or views.default_agent_id(config)
        known = agent_id in views.agent_ids(config)
        sandboxed = known and views.agent(config, agent_id, self._env).sandbox.mode == "all"
        caller = SessionCaller(session_key=from_key, agent_id=agent_id, sandboxed=sandboxed)
        # What a tool is never shown (KEY-15, KEY-16) does not exist for one.
        reserved = to_key == "unknown" or (to_key == "global" and config.session.scope != "global")
        met = None if reserved else await self._recall.by_key(to_key, from_key)
        policy = views.visibility_policy(config, agent_id)
        return explain_visibility(policy, caller, None if met is None else met.facts, to_key)

    def _key(self, text: str | None, asked: ExplainParams, config: Config, missing: str) -> str:
        """The key that is meant, also of an agent that is no longer configured."""
        if text is None:
            raise InvalidRequest(missing)
        owner = asked.agent_id or views.default_agent_id(config)
        return format_key(canonical_key(text, agent_id=owner, settings=views.key_settings(config)))


def _envelope(asked: ExplainParams) -> Envelope:
    assert asked.channel is not None and asked.peer_kind is not None and asked.peer_id is not None
    return Envelope(
        channel=asked.channel,
        peer_kind=CHAT_WORDS[asked.peer_kind],
        peer_id=asked.peer_id,
        account_id=asked.account_id or "default",
        parent_peer_id=asked.parent_peer_id,
        thread_id=asked.thread_id,
        thread_kind=(asked.thread_kind or "thread") if asked.thread_id is not None else None,
        guild_id=asked.guild_id,
        team_id=asked.team_id,
        roles=asked.roles,
        sender_id=asked.sender_id,
        was_mentioned=asked.mentioned,
    )
