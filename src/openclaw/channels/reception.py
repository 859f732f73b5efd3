"""The one door for messages from platforms: who may come in, to which session, and in one commit.

Every connector hands in here, in this process or over RPC. The order is fixed: is the
sender let in, is the group message meant for us, which agent and session, then the
durable accept. Whatever the answer, the same message handed in again changes nothing.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Sequence
from functools import partial

import msgspec

from openclaw.channels.base import Answer, Message
from openclaw.channels.inbound import (
    account_of,
    direct_rules,
    external_of,
    heard_in_group,
    inbound_of,
    place_of,
    route_of,
)
from openclaw.channels.sharing import SharingWatch
from openclaw.channels.words import content_of, speaker, spoken
from openclaw.config import views
from openclaw.config.schema import Config
from openclaw.domain import admission, routing
from openclaw.domain.admission import Standing, is_listed, sender_of
from openclaw.domain.bindings import place_of_route
from openclaw.domain.commandcallers import sender_caller
from openclaw.domain.commands import CommandCaller
from openclaw.domain.groups import fold_channel, fold_word
from openclaw.domain.keys import format_key
from openclaw.domain.routing import Envelope, InboundRoute
from openclaw.domain.transcript import Provenance
from openclaw.engine.errands import seed_of
from openclaw.engine.ports import Clock, Ids
from openclaw.engine.seeds import seed_for_key
from openclaw.engine.turns import Incoming, Turns
from openclaw.errors import InvalidRequest, InvalidSessionKey, SendDenied
from openclaw.store import bindings, outbox
from openclaw.store.bindings import Bindings, Bound
from openclaw.store.database import Database, Transaction
from openclaw.store.records import DeliveryDraft, SessionSeed, UserInput
from openclaw.store.senders import Heard, NewlyHeard, Place, SenderRef, Senders, forget_heard
from openclaw.store.store import Store

log = logging.getLogger("openclaw.channels")
OFF_LOOP_BYTES = 65_536
NOTICE_TTL_MS = 15 * 60 * 1000


class Reception:
    """The `Door` of every connector. A place that is bound to a session leads there (BIND-1)."""

    def __init__(
        self,
        database: Database,
        turns: Turns,
        config: Callable[[], Config],
        clock: Clock,
        ids: Ids,
        post: Callable[[str], None],
    ) -> None:
        self._database = database
        self._store = Store(database)
        self._senders = Senders(database)
        self._bindings = Bindings(database)
        self._turns = turns
        self._config = config
        self._clock = clock
        self._ids = ids
        self._post = post
        self._sharing = SharingWatch(database, clock, post)

    async def accept(self, message: Message) -> Answer:
        envelope, config = message.envelope, self._config()
        if not envelope.text.strip() and not message.attachments:
            return Answer("ignored", reason="empty")
        try:
            route = route_of(envelope, config)
        except InvalidSessionKey as error:
            log.warning("%s: a message with an unusable address was ignored: %s", envelope.channel, error)
            return Answer("ignored", reason=error.message)
        who = SenderRef(fold_channel(envelope.channel), account_of(envelope), sender_of(envelope))
        standing = await self._senders.standing(who) if who.sender_id else Standing()
        if envelope.peer_kind == "direct":
            refused = await self._admit(message, config, who, standing)
            if refused is not None:
                return refused
        caller = self._caller(message, config, standing)
        bound = await self._bound(envelope, config)
        if envelope.peer_kind != "direct":
            heard = heard_in_group(envelope, config, route.agent.agent_id)
            if heard is None:
                return Answer("ignored", reason="for_somebody_else")
            message = msgspec.structs.replace(message, envelope=heard)
            answer = await self._gate(message, config, route, caller, bound)
            if answer is not None:
                return answer
        return await self._take(message, config, route, caller, bound)

    async def wants_files(self, envelope: Envelope) -> bool:
        """A stranger makes nobody download anything; groups count by their rules alone."""
        config = self._config()
        keys = views.key_settings(config)
        if envelope.peer_kind != "direct":
            rules = views.group_rules(config, envelope.channel, envelope.peer_id, envelope.account_id)
            return not isinstance(routing.gate_group(envelope, rules, settings=keys), routing.Drop)
        who = SenderRef(fold_channel(envelope.channel), account_of(envelope), sender_of(envelope))
        standing = await self._senders.standing(who) if who.sender_id else Standing()
        decision = admission.admit_direct(envelope, direct_rules(config, envelope), standing, keys)
        return isinstance(decision, admission.Admit)

    async def _bound(self, envelope: Envelope, config: Config) -> Bound | None:
        """The session that the place of a message was given to, by a spawn or by `/focus`."""
        place, terms = place_of_route(routing.reply_route(envelope)), views.binding_terms(config)
        if place is None or not terms.enabled:
            return None
        return await self._bindings.bound(place, terms, self._clock.now_ms())

    # -- direct chats --------------------------------------------------------------------------

    async def _admit(
        self, message: Message, config: Config, who: SenderRef, standing: Standing
    ) -> Answer | None:
        rules = direct_rules(config, message.envelope)
        decision = admission.admit_direct(message.envelope, rules, standing, views.key_settings(config))
        match decision:
            case admission.Admit():
                return None
            case admission.AskToPair():
                return await self._ask(message, who)
            case admission.Refuse():
                log.info("%s: a message of %s was ignored: %s", who.channel, who.sender_id, decision.reason)
                return Answer("ignored", reason=decision.reason)

    async def _ask(self, message: Message, who: SenderRef) -> Answer:
        """A stranger gets a code, once; the same words again get silence until it has expired."""
        now_ms = self._clock.now_ms()
        code = admission.pairing_code(self._ids.uuid())
        asked = await self._senders.ask(who, message.envelope.sender_name, code, now_ms=now_ms)
        if asked is None:
            log.warning("%s: too many strangers wait for approval; one was not answered", who.channel)
            return Answer("ignored", reason="too_many_asking")
        if asked.new:
            route = routing.reply_route(message.envelope)
            body = msgspec.json.encode({"text": admission.pairing_reply(asked.code, who.channel)})
            draft = DeliveryDraft(f"pairing:{who.channel}:{asked.code}", route, body, now_ms + NOTICE_TTL_MS)
            await self._database.write(lambda tx: outbox.prepare(tx, draft, "", None, now_ms))
            self._post(who.channel)
            log.info(
                "%s: %s asks to be let in; openclaw pairing approve %s %s",
                who.channel,
                who.sender_id,
                who.channel,
                asked.code,
            )
        return Answer("asked", reason=asked.code)

    # -- groups --------------------------------------------------------------------------------

    async def _gate(
        self,
        message: Message,
        config: Config,
        route: InboundRoute,
        caller: CommandCaller,
        bound: Bound | None,
    ) -> Answer | None:
        envelope = message.envelope
        rules = views.group_rules(config, envelope.channel, envelope.peer_id, envelope.account_id)
        row = await self._store.session(format_key(route.key))
        is_command = envelope.text.lstrip().startswith("/") and caller.authorised
        decision = routing.gate_group(
            envelope,
            rules,
            settings=views.key_settings(config),
            activation=row.entry.group_activation if row else None,
            is_authorised_command=is_command,
        )
        match decision:
            case routing.Accept():
                return None
            case routing.Drop():
                return Answer("ignored", reason=decision.reason)
            case routing.Pending():
                # What is written in a session's own thread is meant for it, without calling its name.
                return None if bound is not None else await self._overhear(message)

    async def _overhear(self, message: Message) -> Answer:
        envelope = message.envelope
        said = NewlyHeard(
            place_of(envelope),
            envelope.message_id or self._ids.uuid(),
            envelope.sender_id or "",
            speaker(message),
            envelope.text.strip() or "(a file)",
        )
        new = await self._senders.hear(said, now_ms=self._clock.now_ms())
        return Answer("kept" if new else "duplicate", reason="not_mentioned")

    # -- in ------------------------------------------------------------------------------------

    async def _take(
        self,
        message: Message,
        config: Config,
        route: InboundRoute,
        caller: CommandCaller,
        bound: Bound | None,
    ) -> Answer:
        envelope = message.envelope
        place = place_of(envelope)
        heard = await self._senders.heard(place) if envelope.peer_kind != "direct" else ()
        body = await self._body(message, config, heard, is_command=envelope.text.lstrip().startswith("/"))
        incoming = Incoming(
            self._ids.uuid(),
            self._seed(route, envelope, config) if bound is None else seed_of(bound.session),
            "channel",
            "operator" if caller.owner else f"{fold_word(envelope.channel)}:{sender_of(envelope)}",
            body,
            external=external_of(envelope),
            caller=caller,
            inbound=inbound_of(envelope, config),
            also=partial(_in_the_same_commit, place, heard, bound, self._clock.now_ms()),
        )
        try:
            receipt = await self._turns.accept(incoming)
        except SendDenied as error:
            return Answer("ignored", incoming.seed.session_key, reason=error.message)
        except InvalidRequest as error:
            log.warning("%s: a message was refused: %s", envelope.channel, error)
            return Answer("ignored", incoming.seed.session_key, reason=error.message)
        if receipt.duplicate:
            return Answer("duplicate", receipt.session_key, receipt.run_id)
        await self._sharing.look(envelope, config, receipt.session_key)
        return Answer("taken", receipt.session_key, receipt.run_id)

    async def _body(
        self, message: Message, config: Config, heard: Sequence[Heard], *, is_command: bool
    ) -> UserInput:
        envelope, now_ms = message.envelope, self._clock.now_ms()
        text = envelope.text if is_command else spoken(message, heard)
        if sum(len(one.data) for one in message.attachments) > OFF_LOOP_BYTES:
            content = await asyncio.to_thread(content_of, message, text)
        else:
            content = content_of(message, text)
        wait = routing.decide_debounce(
            now_ms=now_ms,
            last_ms=None,
            channel=envelope.channel,
            settings=views.debounce_settings(config),
            is_command=is_command,
            has_media=bool(message.attachments) or envelope.has_media,
        )
        return UserInput(
            content,
            now_ms,
            route=routing.reply_route(envelope),
            # A page that shows what every channel said tells them apart (ROUTE-5).
            provenance=Provenance(kind="external_user", source_channel=fold_word(envelope.channel)),
            deliver=True,
            gather_until=wait.flush_at_ms if isinstance(wait, routing.Coalesce) else None,
        )

    def _seed(self, route: InboundRoute, envelope: Envelope, config: Config) -> SessionSeed:
        keys = views.key_settings(config)
        seed = seed_for_key(route.key, route.agent.agent_id, keys, fold_word(envelope.channel))
        if route.key.thread_id is None:
            return seed
        # A thread goes on from the session of the place it hangs on (LIFE-23).
        parent = msgspec.structs.replace(route.key, thread_kind=None, thread_id=None)
        return msgspec.structs.replace(seed, parent_session_key=format_key(parent))

    def _caller(self, message: Message, config: Config, standing: Standing) -> CommandCaller:
        envelope, keys = message.envelope, views.key_settings(config)
        sender = sender_of(envelope)
        listed = is_listed(sender, direct_rules(config, envelope).allow_from, envelope.channel, keys)
        return sender_caller(
            channel=fold_word(envelope.channel),
            sender_id=sender,
            admitted=listed or standing.admitted,
            in_group=envelope.peer_kind != "direct",
            connector_owner=standing.owner,
            allow_from=config.commands.allow_from,
            owner_allow_from=config.commands.owner_allow_from,
        )


def _in_the_same_commit(
    place: Place, heard: Sequence[Heard], bound: Bound | None, now_ms: int, tx: Transaction
) -> None:
    """What was overheard leaves with the turn that is told about it; a binding was used."""
    if heard:
        forget_heard(tx, place, max(one.overheard_no for one in heard))
    if bound is not None:
        bindings.use(tx, bound.binding.place, now_ms)
