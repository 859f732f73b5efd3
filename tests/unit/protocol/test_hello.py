"""What a client is told once it is in."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from openclaw.protocol.auth import AuthOk
from openclaw.protocol.events import EVENTS
from openclaw.protocol.frames import StateVersion
from openclaw.protocol.hello import ServerInfo, SessionDefaults, hello_ok
from openclaw.protocol.methods import METHODS
from openclaw.protocol.scopes import ADMIN, READ, WRITE

HEALTH = {"ok": True, "ts": 5, "sessions": {"recent": [{"key": "agent:main:secret"}]}}
DEFAULTS = SessionDefaults(
    default_agent_id="main",
    main_key="main",
    main_session_key="agent:main:main",
    scope="per-sender",
    model_configured=False,
)


def hello(*scopes: str, **changes: Any) -> dict[str, Any]:
    facts: dict[str, Any] = {
        "protocol": 4,
        "server": ServerInfo(version="0.1.0", conn_id="conn-1"),
        "auth": AuthOk("token", "operator", scopes, scopes),
        "presence": [{"host": "vm"}],
        "health": HEALTH,
        "state_version": StateVersion(presence=1, health=3),
        "uptime_ms": 113_251,
        "session_defaults": DEFAULTS,
        "auth_mode": "token",
        "max_payload": 1_048_576,
        "config_path": "/home/me/.openclaw/openclaw.json",
        "state_dir": "/home/me/.openclaw",
    }
    shown: dict[str, Any] = msgspec.json.decode(msgspec.json.encode(hello_ok(**(facts | changes))))
    return shown


@pytest.mark.spec("RPC-1")
class TestHello:
    def test_everything_that_is_required_is_there(self) -> None:
        assert hello(READ) == {
            "type": "hello-ok",
            "protocol": 4,
            "server": {"version": "0.1.0", "connId": "conn-1"},
            "features": {"methods": list(METHODS), "events": list(EVENTS)},
            "snapshot": {
                "presence": [{"host": "vm"}],
                "health": HEALTH,
                "stateVersion": {"presence": 1, "health": 3},
                "uptimeMs": 113_251,
                "sessionDefaults": {
                    "defaultAgentId": "main",
                    "modelConfigured": False,
                    "ownership": "sole",
                    "selectionRequired": False,
                    "mainKey": "main",
                    "mainSessionKey": "agent:main:main",
                    "scope": "per-sender",
                },
                "authMode": "token",
            },
            "auth": {"method": "token", "role": "operator", "scopes": [READ]},
            "policy": {
                "maxPayload": 1_048_576,
                "maxBufferedBytes": 52_428_800,
                "tickIntervalMs": 30_000,
                "attachments": {"maxBytes": 19_464_192, "maxImageBytes": 6_291_456},
            },
        }

    def test_paths_are_for_admins(self) -> None:
        snapshot = hello(ADMIN)["snapshot"]
        assert snapshot["configPath"] == "/home/me/.openclaw/openclaw.json"
        assert snapshot["stateDir"] == "/home/me/.openclaw"
        assert not {"configPath", "stateDir"} & set(hello(WRITE, READ)["snapshot"])

    def test_options(self) -> None:
        shown = hello(
            ADMIN,
            methods=["health"],
            capabilities=("x",),
            server=ServerInfo(version="1", conn_id="c", build_id="b", boot_id="o"),
        )
        assert (shown["features"]["methods"], shown["features"]["capabilities"]) == (["health"], ["x"])
        assert shown["server"] == {"version": "1", "connId": "c", "buildId": "b", "bootId": "o"}


@pytest.mark.spec("RPC-3")
def test_session_keys_need_read() -> None:
    assert hello()["snapshot"]["health"] == {"ok": True, "ts": 5}
    assert hello()["auth"]["scopes"] == []
    assert hello(WRITE)["snapshot"]["health"] == HEALTH
