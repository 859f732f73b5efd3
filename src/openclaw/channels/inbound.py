"""From an envelope and the configuration to what the engine and the store are told about a message.

Values in, values out; the reception asks here and does the rest.
"""

from __future__ import annotations

import msgspec

from openclaw.config import views
from openclaw.config.agent_view import call_names
from openclaw.config.schema import Config
from openclaw.domain import routing
from openclaw.domain.admission import DirectRules, sender_of
from openclaw.domain.calling import command_in, hear_calls, is_for_another
from openclaw.domain.groups import fold_word, normalise_account_id
from openclaw.domain.origin import InboundContext, sole_concrete_owner
from openclaw.domain.routing import Envelope, InboundRoute
from openclaw.store.conversations import ConversationRef
from openclaw.store.inbox import ExternalId, Inbound
from openclaw.store.senders import Place


def route_of(envelope: Envelope, config: Config) -> InboundRoute:
    """Agent, session key and reply route of a message (ROUTE-1, ROUTE-2)."""
    return routing.route_inbound(
        envelope,
        bindings=views.bindings(config),
        agents=views.agent_refs(config),
        settings=views.address_settings(config),
    )


def heard_in_group(envelope: Envelope, config: Config, agent_id: str) -> Envelope | None:
    """What the agent hears of a group: whether it is called, and a command without the call before it.

    None: it is a command for somebody else (CMD-12).
    """
    names = call_names(config, agent_id)
    if is_for_another(envelope.text, names):
        return None
    heard = hear_calls(envelope, names)
    command = command_in(envelope.text, names)
    return heard if command is None else msgspec.structs.replace(heard, text=command)


def direct_rules(config: Config, envelope: Envelope) -> DirectRules:
    """The account's own rules, else the channel's, else pairing."""
    section = views.channel(config, envelope.channel)
    account = section.accounts.get(envelope.account_id)
    own_policy = account.dm_policy if account else None
    own_list = account.allow_from if account else None
    listed = section.allow_from if own_list is None else own_list
    return DirectRules(policy=own_policy or section.dm_policy or "pairing", allow_from=listed or ())


def external_of(envelope: Envelope) -> ExternalId | None:
    identity = routing.delivery_identity(envelope)
    if identity is None:
        return None
    return ExternalId(identity.channel, identity.account_id, identity.peer_id, identity.message_id)


def inbound_of(envelope: Envelope, config: Config) -> Inbound:
    """What the session learns about where it was reached from (ORG-4, ORG-8)."""
    reply = routing.reply_route(envelope)
    context = InboundContext(
        source="channel",
        provider=envelope.provider or envelope.channel,
        chat_type=envelope.chat_type or envelope.peer_kind,
        from_=envelope.from_ or sender_of(envelope) or None,
        to=envelope.to or envelope.peer_id,
        reply_to=reply.to,
        account_id=reply.account_id,
        thread_id=envelope.thread_id,
        sender_id=sender_of(envelope) or None,
        sender_name=envelope.sender_name,
        conversation_label=envelope.conversation_label,
        thread_label=envelope.thread_label,
        group_id=None if envelope.peer_kind == "direct" else envelope.peer_id,
        group_subject=envelope.group_subject,
        group_channel=envelope.group_channel,
        group_space=envelope.group_space,
    )
    place = ConversationRef(
        reply.channel or "",
        account_of(envelope),
        envelope.peer_kind,
        envelope.peer_id,
        envelope.thread_id or "",
        envelope.conversation_label,
        reply.to,
    )
    allow_from = views.channel(config, envelope.channel).allow_from or ()
    scope = config.session.dm_scope or "main"
    return Inbound(context, place, scope, sole_concrete_owner(allow_from))


def place_of(envelope: Envelope) -> Place:
    return Place(
        fold_word(envelope.channel), account_of(envelope), envelope.peer_id, envelope.thread_id or ""
    )


def account_of(envelope: Envelope) -> str:
    return normalise_account_id(envelope.account_id)
