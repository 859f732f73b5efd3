"""The wire's JSON Schema, kept as a snapshot. Run with UPDATE_SNAPSHOTS=1 after an intended change."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest

from openclaw.protocol.events import EVENTS
from openclaw.protocol.methods import METHODS
from openclaw.protocol.schema import protocol_schema

SNAPSHOT = Path(__file__).parents[2] / "snapshots" / "protocol_schema.json"


def rendered() -> str:
    return json.dumps(protocol_schema(), indent=1, sort_keys=True, ensure_ascii=False) + "\n"


@pytest.mark.spec("RPC-1", "RPC-2")
def test_the_wire_has_not_changed_by_accident() -> None:
    if os.environ.get("UPDATE_SNAPSHOTS") == "1":
        SNAPSHOT.write_text(rendered(), encoding="utf-8")
    assert rendered() == SNAPSHOT.read_text(encoding="utf-8"), "run again with UPDATE_SNAPSHOTS=1 if intended"


@pytest.mark.spec("RPC-2")
def test_everything_a_client_sends_is_closed() -> None:
    schema = protocol_schema()
    definitions: dict[str, Any] = schema["$defs"]

    def closed(node: Any) -> bool:
        if "$ref" in node:
            return definitions[node["$ref"].rsplit("/", 1)[-1]].get("additionalProperties") is False
        return False

    assert closed(schema["schemas"]["connect"]) and closed(schema["schemas"]["error"])
    assert all(closed(schema["schemas"][f"{name} params"]) for name in METHODS)
    assert set(schema["scopes"]) == set(METHODS)
    assert set(schema["audiences"]) == set(EVENTS)
    assert "agent second result" in schema["schemas"]
    assert all(f"{name} payload" in schema["schemas"] for name in EVENTS)
