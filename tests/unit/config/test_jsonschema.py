"""The generated JSON Schema: closed, complete, and in step with the examples."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest

from openclaw.config.foreign import FOREIGN_KEYS
from openclaw.config.json5 import parse
from openclaw.config.jsonschema import config_schema
from openclaw.config.nodes import plain
from tests.unit.config.reading import founding_examples
from tests.unit.config.test_other_keys import FULL_AGENTS
from tests.unit.config.test_views import AGENTS, CHANNELS

SCHEMA = config_schema()


def accepts(schema: dict[str, Any], value: Any) -> bool:
    """As much of a JSON Schema validator as this schema needs."""
    if "$ref" in schema:
        return accepts(SCHEMA["$defs"][schema["$ref"].removeprefix("#/$defs/")], value)
    if "anyOf" in schema:
        return any(accepts(option, value) for option in schema["anyOf"])
    if "enum" in schema:
        return value in schema["enum"]
    if "type" in schema and not any(
        fits_type(value, name) for name in [schema["type"]] if isinstance(name, str)
    ):
        return isinstance(schema["type"], list) and any(fits_type(value, name) for name in schema["type"])
    if isinstance(value, dict):
        return accepts_object(schema, value)
    if isinstance(value, list):
        return all(accepts(schema.get("items", {}), item) for item in value)
    if isinstance(value, str):
        return len(value) >= schema.get("minLength", 0) and bool(re.search(schema.get("pattern", ""), value))
    if isinstance(value, int | float) and not isinstance(value, bool):
        return bool(schema.get("minimum", value) <= value <= schema.get("maximum", value))
    return True


def accepts_object(schema: dict[str, Any], value: dict[str, Any]) -> bool:
    properties = schema.get("properties", {})
    rest = schema.get("additionalProperties", True)
    if any(name not in value for name in schema.get("required", ())):
        return False
    for key, part in value.items():
        if key in properties:
            if not accepts(properties[key], part):
                return False
        elif rest is False or (isinstance(rest, dict) and not accepts(rest, part)):
            return False
    return True


def fits_type(value: Any, name: str) -> bool:
    kinds: dict[str, Any] = {
        "object": dict,
        "array": list,
        "string": str,
        "boolean": bool,
        "null": type(None),
        "integer": int,
        "number": (int, float),
    }
    if isinstance(value, bool) and name != "boolean":
        return False
    return isinstance(value, kinds[name])


@pytest.mark.spec("CFG-3", "CFG-10")
@pytest.mark.parametrize(
    "text",
    [*founding_examples().values(), FULL_AGENTS, AGENTS, CHANNELS, '{$schema: "x"}', "{plugins: {a: [1]}}"],
)
def test_accepts_what_validation_accepts(text: str) -> None:
    assert accepts(SCHEMA, plain(parse(text).root))


@pytest.mark.spec("CFG-3")
@pytest.mark.parametrize(
    "text",
    [
        "{sesion: {}}",
        "{session: {dmScope: 'x'}}",
        "{session: {reset: {atHour: 24}}}",
        "{session: {maintenance: {pruneAfter: '5w'}}}",
        "{gateway: {port: '1'}}",
        "{gateway: {auth: {tokn: 'x'}}}",
        "{agents: {list: [{}]}}",
        "{agents: {list: [{id: '!'}]}}",
        "{tools: {sessions: {visibility: 'everyone'}}}",
        "{channels: {x: {groupPolicy: 'maybe'}}}",
    ],
)
def test_refuses_what_validation_refuses(text: str) -> None:
    assert not accepts(SCHEMA, plain(parse(text).root))


def keys_at(*path: str) -> set[str]:
    schema: dict[str, Any] = SCHEMA
    for step in path:
        schema = schema["properties"][step]
        options = [schema, *schema.get("anyOf", ())]
        refs = [option["$ref"] for option in options if "$ref" in option]
        schema = SCHEMA["$defs"][refs[0].removeprefix("#/$defs/")]
    return set(schema["properties"])


@pytest.mark.spec("CFG-10", "CFG-20", "CFG-21")
def test_has_every_documented_key() -> None:
    assert keys_at("session") == {
        "scope",
        "dmScope",
        "identityLinks",
        "reset",
        "resetByType",
        "resetByChannel",
        "idleMinutes",
        "resetTriggers",
        "store",
        "mainKey",
        "agentToAgent",
        "sendPolicy",
        "maintenance",
        "threadBindings",
        "writeLock",
    }
    assert keys_at("session", "reset") == {"mode", "atHour", "idleMinutes"}
    assert keys_at("session", "resetByType") == {"direct", "dm", "group", "thread"}
    assert keys_at("session", "agentToAgent") == {"maxPingPongTurns"}
    assert keys_at("session", "sendPolicy") == {"rules", "default"}
    assert keys_at("session", "threadBindings") == {
        "enabled",
        "idleHours",
        "maxAgeHours",
        "spawnSessions",
        "defaultSpawnContext",
    }
    assert keys_at("session", "writeLock") == {"acquireTimeoutMs"}
    assert keys_at("session", "maintenance") == {
        "mode",
        "pruneAfter",
        "maxEntries",
        "resetArchiveRetention",
        "maxDiskBytes",
        "highWaterBytes",
    }
    assert {"allowAgents", "archiveAfterMinutes", "maxSpawnDepth"} <= keys_at(
        "agents", "defaults", "subagents"
    )
    assert "sessionToolsVisibility" in keys_at("agents", "defaults", "sandbox")
    assert {"profile", "alsoAllow", "sessions", "subagents", "sessions_spawn"} <= keys_at("tools")
    assert keys_at("tools", "subagents") == {"tools"}
    assert keys_at("tools", "sessions") == {"visibility"}
    assert keys_at("commands") == {
        "text",
        "native",
        "config",
        "debug",
        "restart",
        "bash",
        "allowFrom",
        "ownerAllowFrom",
        "useAccessGroups",
    }
    assert {"mode", "port", "bind", "auth", "remote", "reload"} <= keys_at("gateway")


@pytest.mark.spec("CFG-3")
def test_every_object_is_closed_unless_it_belongs_to_a_connector() -> None:
    is_open = {name for name, schema in SCHEMA["$defs"].items() if schema["additionalProperties"]}
    assert is_open == {"ChannelConfig", "AccountConfig", "GroupConfig"}
    assert SCHEMA["additionalProperties"] is False
    assert "extra" not in SCHEMA["$defs"]["ChannelConfig"]["properties"]
    for section in FOREIGN_KEYS[()]:
        assert SCHEMA["properties"][section]["deprecated"]


@pytest.mark.spec("CFG-3")
def test_says_defaults_units_and_secrets() -> None:
    definitions = SCHEMA["$defs"]
    assert definitions["MaintenanceConfig"]["properties"]["pruneAfter"]["default"] == "30d"
    assert definitions["CronConfig"]["properties"]["sessionRetention"]["default"] == "1d"
    assert definitions["WriteLockConfig"]["properties"]["acquireTimeoutMs"]["default"] == 60_000
    assert definitions["GatewayConfig"]["properties"]["port"]["default"] == 18789
    token = definitions["GatewayAuthConfig"]["properties"]["token"]["anyOf"][0]
    assert token == {"type": "string", "minLength": 1, "writeOnly": True}
    assert definitions["AgentConfig"]["required"] == ["id"]
    assert definitions["ResetByTypeConfig"]["properties"]["dm"]["deprecated"]
    assert "dm" in definitions["SendMatchConfig"]["properties"]["chatType"]["anyOf"][0]["enum"]
    assert SCHEMA["title"] == "OpenClaw configuration"


@pytest.mark.spec("CFG-3")
def test_is_plain_json_and_always_the_same() -> None:
    assert json.loads(json.dumps(SCHEMA)) == SCHEMA
    assert json.dumps(config_schema()) == json.dumps(SCHEMA)
    for schema in SCHEMA["$defs"].values():
        assert not schema.get("description", "").startswith(schema["title"] + "(")
