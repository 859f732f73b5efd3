"""channels.* and pairing.*: connectors of other processes, how all of them do, and who is let in."""

from __future__ import annotations

from typing import Any

from openclaw.channels.base import Abilities, Message
from openclaw.channels.inbound import inbound_of, route_of
from openclaw.channels.remote import RemoteConnector
from openclaw.domain.groups import fold_channel, normalise_account_id, normalise_chat_type
from openclaw.domain.routing import Envelope
from openclaw.engine.seeds import seed_for_key
from openclaw.errors import InvalidRequest
from openclaw.gateway.client import Client
from openclaw.gateway.services import Caller, GatewayServices, Json
from openclaw.protocol import params_channels as params
from openclaw.protocol import results_channels as results
from openclaw.protocol.events import ChannelOutbound
from openclaw.protocol.frames import PreparedEvent
from openclaw.store.senders import SenderRow

_STATUS = {"taken": "started", "duplicate": "ok"}


async def attach(
    services: GatewayServices, caller: Caller, asked: params.ChannelsAttachParams
) -> results.ChannelAttached:
    """This connection carries what the account has to send, until it goes or another one attaches."""
    channel, account_id = fold_channel(asked.channel), normalise_account_id(asked.account_id)
    postman, client = services.channels.postman, caller.client
    before = postman.connector(channel, account_id)
    if before is not None and not isinstance(before, RemoteConnector):
        raise InvalidRequest(f"{channel} ({account_id}) has a connector inside the gateway already")
    connector = RemoteConnector(
        channel,
        account_id,
        lambda payload: _tell(client, payload),
        acknowledges=asked.acknowledges,
        abilities=Abilities(
            longest_text=asked.longest_text,
            typing=asked.typing,
            threads=asked.threads,
            case_sensitive_ids=asked.case_sensitive_ids,
        ),
        credentials_refreshed_at=asked.credentials_refreshed_at,
    )
    postman.attach(connector)
    client.when_gone(lambda: postman.detach(connector))
    return results.ChannelAttached(attached=True, channel=channel, account_id=account_id)


def _tell(client: Client, payload: dict[str, Any]) -> bool:
    if client.is_gone:
        return False
    client.send_event(PreparedEvent("channels.outbound", ChannelOutbound(**_snake(payload))))
    return True


def _snake(payload: dict[str, Any]) -> dict[str, Any]:
    names = {"accountId": "account_id", "threadId": "thread_id"}
    return {names.get(name, name): value for name, value in payload.items()}


async def detach(
    services: GatewayServices, _caller: Caller, asked: params.ChannelsDetachParams
) -> results.ChannelAttached:
    channel, account_id = fold_channel(asked.channel), normalise_account_id(asked.account_id)
    connector = services.channels.postman.connector(channel, account_id)
    if isinstance(connector, RemoteConnector):
        services.channels.postman.detach(connector)
    return results.ChannelAttached(attached=False, channel=channel, account_id=account_id)


async def settle(
    services: GatewayServices, _caller: Caller, asked: params.ChannelsSettleParams
) -> results.ChannelSettled:
    account_id = normalise_account_id(asked.account_id)
    connector = services.channels.postman.connector(fold_channel(asked.channel), account_id)
    known = isinstance(connector, RemoteConnector) and connector.settle(
        asked.key, asked.message_ids, asked.error
    )
    return results.ChannelSettled(ok=True, known=known)


async def take_inbound(
    services: GatewayServices, _caller: Caller, asked: params.ChannelsInboundParams
) -> results.ChannelInbound:
    """A message of a platform, from a connector in another process: the same door as for all others."""
    envelope = envelope_of(asked)
    if asked.update_only:
        return await _observe(services, envelope)
    answer = await services.channels.reception.accept(Message(envelope=envelope))
    return results.ChannelInbound(
        status=_STATUS.get(answer.status, answer.status),
        run_id=answer.run_id,
        session_key=answer.session_key,
        # The code goes to the stranger and to the owner's list, not to whoever carries the message.
        reason=None if answer.status == "asked" else answer.reason,
    )


async def _observe(services: GatewayServices, envelope: Envelope) -> results.ChannelInbound:
    """Refresh what a session knows about its place; one that does not exist is not created (ORG-9)."""
    config = services.config()
    route = route_of(envelope, config)
    seed = seed_for_key(route.key, route.agent.agent_id, services.settings().keys, envelope.channel)
    row = await services.store.record_inbound(
        seed,
        inbound_of(envelope, config),
        session_id=services.ids.uuid(),
        now_ms=services.clock.now_ms(),
        update_only=True,
    )
    return results.ChannelInbound(
        status="updated" if row is not None else "unknown", session_key=seed.session_key
    )


def envelope_of(asked: params.ChannelsInboundParams) -> Envelope:
    kind = normalise_chat_type(asked.peer.kind)
    if kind is None:
        raise InvalidRequest("peer.kind must be direct, group or channel")
    return Envelope(
        channel=fold_channel(asked.channel),
        account_id=normalise_account_id(asked.account_id),
        peer_kind=kind,
        peer_id=asked.peer.id,
        thread_id=asked.thread_id,
        thread_kind="thread" if asked.thread_id else None,
        sender_id=asked.sender_id,
        sender_name=asked.sender_name,
        from_=asked.from_,
        to=asked.to,
        provider=asked.provider,
        chat_type=asked.chat_type,
        message_id=asked.message_id,
        text=asked.text,
        was_mentioned=asked.mentioned,
        conversation_label=asked.conversation_label,
        group_subject=asked.group_subject,
        group_channel=asked.group_channel,
        group_space=asked.group_space,
    )


# -- letting people in -----------------------------------------------------------------------------


async def list_pairings(
    services: GatewayServices, _caller: Caller, asked: params.PairingListParams
) -> results.PairingList:
    channel = fold_channel(asked.channel) if asked.channel else ""
    rows = await services.channels.senders.list(channel, now_ms=services.clock.now_ms())
    return results.PairingList(
        pending=[_person(row) for row in rows if row.state == "asking"],
        admitted=[_person(row) for row in rows if row.state == "admitted"],
    )


def _person(row: SenderRow) -> Json:
    shown: Json = {
        "channel": row.channel,
        "accountId": row.account_id,
        "senderId": row.sender_id,
        "name": row.name,
        "askedAt": row.asked_at,
    }
    if row.state == "asking":
        return shown | {"code": row.code, "expiresAt": row.expires_at}
    return shown | {"owner": bool(row.is_owner), "approvedAt": row.decided_at}


async def approve_pairing(
    services: GatewayServices, _caller: Caller, asked: params.PairingApproveParams
) -> results.PairingApproved:
    found = await services.channels.senders.approve(
        fold_channel(asked.channel),
        asked.code.strip().upper(),
        owner=asked.owner,
        now_ms=services.clock.now_ms(),
    )
    if found is None:
        raise InvalidRequest(
            f"no one on {asked.channel} holds the code {asked.code[:32]!r}; codes live for an hour "
            "(see openclaw pairing list)"
        )
    return results.PairingApproved(
        ok=True,
        channel=found.channel,
        account_id=found.account_id,
        sender_id=found.sender_id,
        name=found.name,
        owner=asked.owner,
    )


async def remove_pairing(
    services: GatewayServices, _caller: Caller, asked: params.PairingRemoveParams
) -> results.PairingRemoved:
    removed = await services.channels.senders.remove(
        fold_channel(asked.channel),
        asked.sender_id,
        normalise_account_id(asked.account_id) if asked.account_id else "",
    )
    return results.PairingRemoved(ok=True, removed=removed)
