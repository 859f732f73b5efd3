"""JSON Schemas of the whole wire, generated from the types so that they cannot drift."""

from __future__ import annotations

from typing import Any

import msgspec

from openclaw.protocol.connect import PROTOCOL_VERSION, ConnectParams
from openclaw.protocol.errors import ErrorShape
from openclaw.protocol.events import EVENTS
from openclaw.protocol.frames import StateVersion
from openclaw.protocol.hello import HelloOk
from openclaw.protocol.methods import METHODS, WRITE_PATCH_FIELDS
from openclaw.protocol.nodes import NODE_METHODS

Json = dict[str, Any]


def protocol_schema() -> Json:
    """Every method with its scope, parameters and answers; every event with its audience and payload."""
    kinds: dict[str, Any] = {
        "connect": ConnectParams,
        "helloOk": HelloOk,
        "error": ErrorShape,
        "stateVersion": StateVersion,
    }
    for name, spec in METHODS.items():
        kinds |= {f"{name} params": spec.params, f"{name} result": spec.result}
        if spec.second_result is not None:
            kinds[f"{name} second result"] = spec.second_result
    for name, own in NODE_METHODS.items():
        kinds |= {f"{name} params": own.params, f"{name} result": own.result}
    kinds |= {f"{name} payload": event.payload for name, event in EVENTS.items()}
    schemas, components = msgspec.json.schema_components(kinds.values(), ref_template="#/$defs/{name}")
    return {
        "protocol": PROTOCOL_VERSION,
        "scopes": {name: spec.scope for name, spec in METHODS.items()},
        "nodeMethods": sorted(NODE_METHODS),
        "writePatchFields": sorted(WRITE_PATCH_FIELDS),
        "audiences": {
            name: {"scope": event.scope, "subscriptions": list(event.subscriptions)}
            for name, event in EVENTS.items()
        },
        "schemas": dict(zip(kinds, schemas, strict=True)),
        "$defs": components,
    }
