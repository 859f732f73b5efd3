"""node.event and node.list: paired devices that bring words into a session of their own (AUTO-9).

A node speaks in `node-<nodeId>` of the default agent unless its event names a session. It is
answered there: it hears the chat of its own session and of no other, its words never have an
owner's rights, and a reply leaves the gateway only by a route that the session already has.
"""

from __future__ import annotations

from typing import TypeVar

import msgspec

from openclaw.domain.addressing import node_key
from openclaw.domain.commandcallers import operator_caller
from openclaw.domain.keys import format_key
from openclaw.domain.origin import InboundContext
from openclaw.engine.turns import Incoming
from openclaw.errors import Forbidden, InvalidRequest
from openclaw.gateway.handlers.chat import last_route, message_text
from openclaw.gateway.services import Caller, GatewayServices, Json, resolve_seed
from openclaw.protocol import nodes
from openclaw.protocol.connect import NODE
from openclaw.protocol.intake import contains_nul
from openclaw.protocol.params_system import NoParams
from openclaw.protocol.results_system import NodeList, NodePairs
from openclaw.protocol.violations import describe_violation
from openclaw.store.devices import Device
from openclaw.store.inbox import Inbound
from openclaw.store.records import SessionSeed, UserInput

_CHANNEL = "internal"
Payload = TypeVar("Payload", bound=msgspec.Struct)


async def take_event(
    services: GatewayServices, caller: Caller, asked: nodes.NodeEventParams
) -> nodes.NodeEventTaken:
    match asked.event:
        case "agent.request":
            request = _read(asked, nodes.AgentRequest)
            return await _run(services, caller, asked.event, request)
        case "voice.transcript":
            said = _read(asked, nodes.VoiceTranscript)
            spoken = nodes.AgentRequest(message=said.text, session_key=said.session_key)
            return await _run(services, caller, asked.event, spoken)
        case "chat.subscribe" | "chat.unsubscribe":
            return _follow(services, caller, asked)
    return nodes.NodeEventTaken(ok=True, event=asked.event, handled=False)


def _read(asked: nodes.NodeEventParams, kind: type[Payload]) -> Payload:
    """The payload, whichever way it was sent. InvalidRequest says what is wrong with it."""
    try:
        if asked.payload_json is None:
            return msgspec.convert(asked.payload or {}, kind)
        encoded = asked.payload_json.encode()
        if contains_nul(encoded):
            raise InvalidRequest(f"invalid {asked.event} payload: text must not contain NUL characters")
        return msgspec.json.decode(encoded, type=kind)
    except msgspec.ValidationError as error:
        raise InvalidRequest(f"invalid {asked.event} payload: {describe_violation(error)}")
    except (msgspec.DecodeError, UnicodeError, RecursionError):
        raise InvalidRequest(f"invalid {asked.event} payload: payloadJSON must be a JSON object")


async def _run(
    services: GatewayServices, caller: Caller, event: str, asked: nodes.AgentRequest
) -> nodes.NodeEventTaken:
    seed, node_id = _seed(services, caller, asked.session_key), _node_id(caller)
    route = await last_route(services, seed) if asked.deliver else None
    body = UserInput(
        message_text(asked.message),
        services.clock.now_ms(),
        route=route,
        thinking=asked.thinking,
        deliver=route is not None,
    )
    # Two nodes may count their requests alike: an id counts for one of them only.
    run_id = services.ids.uuid() if asked.idempotency_key is None else f"{node_id}:{asked.idempotency_key}"
    receipt = await services.turns.accept(
        Incoming(
            run_id,
            seed,
            "node",
            f"node:{node_id}",
            body,
            timeout_s=asked.timeout_seconds,
            caller=operator_caller((), sender=f"node:{node_id}", channel=_CHANNEL),
            inbound=Inbound(InboundContext(source="node", provider=_CHANNEL)),
        )
    )
    return nodes.NodeEventTaken(
        ok=True, event=event, handled=True, run_id=receipt.run_id, session_key=receipt.session_key
    )


def _follow(services: GatewayServices, caller: Caller, asked: nodes.NodeEventParams) -> nodes.NodeEventTaken:
    seed = _seed(services, caller, _read(asked, nodes.ChatFollowed).session_key)
    own = _seed(services, caller, None).session_key
    if seed.session_key != own:
        raise Forbidden(f"a node follows its own session {own} only; follow others as an operator")
    if asked.event == "chat.subscribe":
        caller.client.hears_chat_of.add(own)
    else:
        caller.client.hears_chat_of.discard(own)
    return nodes.NodeEventTaken(ok=True, event=asked.event, handled=True, session_key=own)


def _seed(services: GatewayServices, caller: Caller, named: str | None) -> SessionSeed:
    settings = services.settings()
    agent_id = settings.default_agent
    key = node_key(agent_id, _node_id(caller), settings.keys, named)
    return resolve_seed(services, format_key(key), agent_id, _CHANNEL)


def _node_id(caller: Caller) -> str:
    device_id = caller.client.connection.device_id
    assert device_id is not None, "a node without a device is not let in"
    return device_id


# -- looking at nodes ------------------------------------------------------------------------------


async def list_nodes(services: GatewayServices, _caller: Caller, _asked: NoParams) -> NodeList:
    """Every device that is paired as a node, and whether it is connected as one now."""
    connected = {
        client.connection.device_id
        for client in services.hub.clients()
        if client.connection.role == NODE and client.connection.device_id is not None
    }
    paired = [one for one in await services.door.book.paired() if NODE in one.grant.roles]
    return NodeList(
        ts=services.clock.now_ms(),
        nodes=[_shown(one, connected=one.device_id in connected) for one in paired],
    )


def _shown(device: Device, *, connected: bool) -> Json:
    facts = device.facts
    shown: Json = {
        "nodeId": device.device_id,
        "displayName": facts.display_name,
        "platform": facts.platform,
        "deviceFamily": facts.device_family,
        "paired": True,
        "connected": connected,
        "approvedAtMs": device.approved_at,
        "lastSeenAtMs": device.last_seen_at,
    }
    return {name: value for name, value in shown.items() if value is not None}


async def list_pairs(_services: GatewayServices, _caller: Caller, _asked: NoParams) -> NodePairs:
    """Nodes are paired like every device, so `device.pair.list` has them; there is no list of their own."""
    return NodePairs(pending=[], paired=[])
