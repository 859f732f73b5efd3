"""`openclaw devices` against a gateway of the test: what is asked, what is shown, what is refused."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest

from openclaw.cli.place import Flags, find_place
from openclaw.cli.refusals import connection_refused, read_refusal
from openclaw.errors import Forbidden
from openclaw.protocol.auth import refuse_locked_out
from openclaw.protocol.pairing import refuse_unpaired
from tests.unit.cli.conftest import Command
from tests.unit.cli.fake_gateway import FakeGateway, Json, running

DEVICE, OTHER = "4b5c5232fc6e" + "0" * 52, "4b5cffffffff" + "1" * 52
REQUEST = "6f1c2e0a-0000-4000-8000-000000000001"


def described(device_id: str, **extra: Any) -> Json:
    return {
        "deviceId": device_id, "publicKey": "k", "platform": "linux", "clientId": "openclaw-tui",
        "clientMode": "ui", "role": "operator", "roles": ["operator"], "scopes": ["operator.read"],
    } | extra  # fmt: skip


def listed(_params: Json) -> Json:
    now_ms = time.time_ns() // 1_000_000
    pending = [
        described(
            OTHER, requestId=REQUEST, reason="scope-upgrade", remoteIp="203.0.113.7", ts=now_ms - 65_000
        ),
        described(
            DEVICE, requestId="70000000", reason="not-paired", remoteIp="203.0.113.8", ts=now_ms - 5000
        ),
    ]
    paired = [
        described(
            DEVICE, displayName="my\x1b[31m desk", approvedVia="owner", lastSeenAtMs=now_ms - 7_300_000,
            connected=True, roles=["operator", "node"],
        ),
        described(OTHER, approvedVia="silent", lastSeenAtMs=now_ms - 1000, connected=False, scopes=[]),
    ]  # fmt: skip
    return {"pending": pending, "paired": paired}


@pytest.fixture
def gateway(point_at: Callable[[FakeGateway], Path]) -> Iterator[FakeGateway]:
    answers = {
        "device.pair.list": listed,
        "device.pair.approve": lambda params: params | {"device": described(DEVICE)},
        "device.pair.reject": lambda params: params | {"deviceId": DEVICE},
        "device.pair.remove": lambda params: params,
        "device.token.revoke": lambda params: params | {"revokedAtMs": 1},
    }
    with running(FakeGateway(answers)) as fake:
        point_at(fake)
        yield fake


def test_the_list_shows_who_waits_and_who_is_paired(gateway: FakeGateway, command: Command) -> None:
    shown = command("devices", "list")
    assert shown.code == 0 and "\x1b" not in shown.out
    lines = shown.out.splitlines()
    assert lines[0] == "Waiting for approval (openclaw devices approve REQUEST)"
    waiting, paired = shown.out.split("Paired\n")
    assert REQUEST in waiting and "read (scope-upgrade)" in waiting and "1m" in waiting
    assert "not-paired" not in waiting and "203.0.113.8" in waiting
    first, second = paired.splitlines()[1:]
    assert first.split()[0] == DEVICE[:12]
    for words in ("openclaw-tui on linux", "node, read", "by the owner", "2h", "connected"):
        assert words in first
    assert "nothing" in second and "by itself" in second and "connected" not in second
    assert gateway.connects[0].scopes == ("operator.admin",)


def test_the_list_as_json_is_what_the_gateway_said(gateway: FakeGateway, command: Command) -> None:
    assert command("devices", "list", "--json").json()["pending"][0]["requestId"] == REQUEST


def test_an_empty_list_says_what_to_expect(gateway: FakeGateway, command: Command) -> None:
    gateway.answers["device.pair.list"] = lambda _params: {"pending": [], "paired": []}
    assert command("devices", "list").out.startswith("No devices yet.")
    refused = command("devices", "approve", "--latest")
    assert refused.code == 1 and "no device waits for approval" in refused.err


@pytest.mark.parametrize(
    ("arguments", "request_id"),
    [(["6f1c"], REQUEST), ([REQUEST.upper()], REQUEST), (["--latest"], "70000000")],
)
def test_approve(gateway: FakeGateway, command: Command, arguments: list[str], request_id: str) -> None:
    shown = command("devices", "approve", *arguments)
    assert (shown.code, shown.out) == (0, f"Approved {DEVICE[:12]} (openclaw-tui on linux) for: read\n")
    assert gateway.called("device.pair.approve") == [{"requestId": request_id}]


def test_reject(gateway: FakeGateway, command: Command) -> None:
    assert command("devices", "reject", "7").out == f"Rejected the request of {DEVICE[:12]}\n"
    assert command("devices", "reject", "7", "--json").json() == {"requestId": "70000000", "deviceId": DEVICE}


def test_revoke(gateway: FakeGateway, command: Command) -> None:
    assert command("devices", "revoke", "4b5c52").out == f"Revoked {DEVICE[:12]}\n"
    assert command("devices", "revoke", DEVICE, "--tokens").out == f"Revoked the tokens of {DEVICE[:12]}\n"
    command("devices", "revoke", OTHER, "--tokens", "--role", "node")
    assert gateway.called("device.pair.remove") == [{"deviceId": DEVICE}]
    assert gateway.called("device.token.revoke") == [
        {"deviceId": DEVICE, "role": "operator"},
        {"deviceId": OTHER, "role": "node"},
    ]


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["approve"], "name a request, or use --latest"),
        (["approve", "x", "--latest"], "name a request, or use --latest"),
        (["approve", "zz"], "no request begins with 'zz'"),
        (["reject", " "], "no request begins with"),
        (["revoke", "4b5c"], "2 devices begin with '4b5c'"),
        (["revoke", DEVICE, "--role", "node"], "--role narrows --tokens"),
    ],
)
def test_mistakes_name_the_fix(
    gateway: FakeGateway, command: Command, arguments: list[str], words: str
) -> None:
    shown = command("devices", *arguments)
    assert (shown.code, shown.out) == (1, "") and words in shown.err
    told = command("devices", *arguments, "--json")
    assert told.code == 1 and words in told.json()["error"]["message"]
    assert {name for name, _ in gateway.calls} <= {"device.pair.list"}


def test_what_the_gateway_refuses_is_told(gateway: FakeGateway, command: Command) -> None:
    def forbid(_params: Json) -> Json:
        raise Forbidden("missing scope: operator.talk")

    gateway.answers["device.pair.approve"] = forbid
    shown = command("devices", "approve", "--latest")
    assert shown.code == 1 and "missing scope: operator.talk" in shown.err


def test_a_lockout_and_a_pairing_are_told_as_what_they_are() -> None:
    place = find_place(Flags("ws://127.0.0.1:1", "t", None), {})
    locked = read_refusal(msgspec.to_builtins(refuse_locked_out(299_500).error))
    told = connection_refused(place, locked)
    assert (told.type, told.wire_code, told.may_retry) == ("auth", "AUTH_RATE_LIMITED", True)
    assert "too many wrong secrets" in told.message and told.message.endswith("try again in 4m")
    waits = connection_refused(
        place, read_refusal(msgspec.to_builtins(refuse_unpaired("not-paired", "r-1").error))
    )
    assert (waits.type, waits.wire_code, waits.may_retry) == ("auth", "PAIRING_REQUIRED", False)
    assert "openclaw devices approve r-1" in waits.message
