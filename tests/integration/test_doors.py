"""Who gets in, what a bad frame does, and what the HTTP side says."""

from __future__ import annotations

import json

import aiohttp
import pytest
from websockets.asyncio.client import connect

from openclaw.app import Gateway
from openclaw.errors import StoreLocked, Unavailable
from tests.fakes.wire_client import RefusedError, WireClient
from tests.integration.conftest import House, client_of


@pytest.mark.spec("RPC-1")
async def test_hello_says_what_there_is(gateway: Gateway, client: WireClient) -> None:
    hello = client.hello
    assert (hello["type"], hello["protocol"]) == ("hello-ok", 4)
    assert {"chat.send", "chat.history", "sessions.list", "sessions.patch", "agent", "agent.wait"} <= set(
        hello["features"]["methods"]
    )
    assert hello["snapshot"]["sessionDefaults"]["mainSessionKey"] == "agent:main:main"
    assert hello["auth"]["scopes"] == ["operator.admin", "operator.read", "operator.write"]


@pytest.mark.spec("RPC-2")
@pytest.mark.parametrize("token", ["wrong", "", None])
async def test_a_wrong_token_is_refused_with_the_fix(gateway: Gateway, token: str | None) -> None:
    stranger = client_of(gateway, token=token)
    with pytest.raises(RefusedError) as refused:
        await stranger.__aenter__()
    if token == "wrong":
        assert "gateway token mismatch" in str(refused.value)
        assert refused.value.error["details"]["code"] == "AUTH_TOKEN_MISMATCH"
    else:
        assert refused.value.error["code"] == "NOT_PAIRED"
    assert stranger.close_code == 1008


@pytest.mark.spec("RPC-3")
async def test_scopes_are_enforced(gateway: Gateway) -> None:
    async with client_of(gateway, scopes=("operator.read",)) as reader:
        await reader.call("sessions.list")
        with pytest.raises(RefusedError) as refused:
            await reader.call("chat.send", {"sessionKey": "x", "message": "hi", "idempotencyKey": "1"})
        assert refused.value.error["details"]["missingScope"] == "operator.write"
    async with client_of(gateway, scopes=("operator.write",)) as writer:
        await writer.call("sessions.patch", {"key": "x", "label": "mine"})
        with pytest.raises(RefusedError, match=r"missing scope: operator\.admin"):
            await writer.call("sessions.patch", {"key": "x", "sendPolicy": "deny"})


@pytest.mark.spec("RPC-3")
async def test_without_read_scope_nothing_is_overheard(
    house: House, gateway: Gateway, client: WireClient
) -> None:
    async with client_of(gateway, mode="probe") as probe:
        assert probe.hello["auth"]["scopes"] == []
        await client.say("proj", "secret words", "run-1")
        with pytest.raises(RefusedError, match="missing scope"):
            await probe.call("sessions.list")
        assert "secret" not in json.dumps(probe.frames)


@pytest.mark.spec("RPC-2")
async def test_bad_requests_are_named_and_the_connection_lives(client: WireClient) -> None:
    cases: dict[str, tuple[dict[str, object], str]] = {
        "no.such": ({}, "unknown method: no.such"),
        "sessions.list": (
            {"kinds": ["main"]},
            "invalid sessions.list params: at root: unexpected property 'kinds'",
        ),
        "agent": ({"message": "x"}, "invalid agent params: must have required property 'idempotencyKey'"),
        "chat.history": (
            {"sessionKey": "x", "limit": "x"},
            "invalid chat.history params: at /limit: must be integer",
        ),
        "chat.send": (
            {"sessionKey": "x", "message": "  ", "idempotencyKey": "1"},
            "message must not be empty",
        ),
    }
    for method, (params, message) in cases.items():
        with pytest.raises(RefusedError) as refused:
            await client.call(method, params)
        assert refused.value.error["message"] == message
        assert refused.value.error["code"] == "INVALID_REQUEST"
    assert (await client.call("health"))["ok"] is True


@pytest.mark.spec("KEY-20", "KEY-22")
@pytest.mark.parametrize(
    "key", ["agent:main", "bad\x01key", "x" * 513, "agent:nobody:main", "\u202eevil", " ", "agent::"]
)
async def test_hostile_keys_are_refused_and_create_nothing(client: WireClient, key: str) -> None:
    with pytest.raises(RefusedError) as refused:
        await client.call("chat.send", {"sessionKey": key, "message": "hi", "idempotencyKey": "k"})
    assert refused.value.error["code"] == "INVALID_REQUEST"
    assert (await client.call("sessions.list"))["totalCount"] == 0


async def test_look_alike_letters_are_the_same_session(house: House, client: WireClient) -> None:
    await client.call("sessions.create", {"key": "agent:main:proj"})
    row = await client.call("sessions.describe", {"key": "ＡＧＥＮＴ:main:proj"})
    assert row["session"]["key"] == "agent:main:proj"


@pytest.mark.spec("RPC-1")
async def test_malformed_frames(gateway: Gateway) -> None:
    url = f"ws://127.0.0.1:{gateway.port}"
    for frame, code in (("garbage", 1000), ('{"type":"req","id":"1","method":"health"}', 1008)):
        async with connect(url) as socket:
            await socket.recv()
            await socket.send(frame)
            await socket.wait_closed()
            assert socket.close_code == code
    async with connect(url) as socket:
        await socket.recv()
        await socket.send("x" * 70_000)
        await socket.wait_closed()
        assert socket.close_code == 1009


async def test_a_foreign_host_name_is_refused(gateway: Gateway) -> None:
    async with (
        aiohttp.ClientSession() as session,
        session.get(f"http://127.0.0.1:{gateway.port}/healthz", headers={"Host": "evil.example"}) as answer,
    ):
        assert answer.status == 403
        assert "gateway.allowedHosts" in await answer.text()


async def test_http_says_that_it_lives(gateway: Gateway) -> None:
    async with aiohttp.ClientSession() as session:
        for path, field in (("healthz", "ok"), ("readyz", "ready")):
            async with session.get(f"http://127.0.0.1:{gateway.port}/{path}") as answer:
                assert answer.status == 200
                assert (await answer.json())[field] is True
        async with session.get(f"http://127.0.0.1:{gateway.port}/") as answer:
            assert "openclaw agent" in await answer.text()


@pytest.mark.spec("OWN-6")
async def test_a_second_gateway_on_the_same_state_refuses(house: House, gateway: Gateway) -> None:
    with pytest.raises(StoreLocked, match="another gateway"):
        async with house.gateway():
            pass


async def test_a_taken_port_is_named(
    house: House, gateway: Gateway, tmp_path_factory: pytest.TempPathFactory
) -> None:
    other = House(tmp_path_factory.mktemp("other"), house.model)
    second = other.gateway()
    second._port = gateway.port
    with pytest.raises(Unavailable, match="choose one with --port"):
        async with second:
            pass
