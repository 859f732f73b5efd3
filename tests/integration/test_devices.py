"""Devices over the wire: paired on this machine, approved from afar, revoked at once."""

from __future__ import annotations

import logging
from typing import Any

import pytest

from openclaw.app import Gateway
from openclaw.protocol.auth import digest_secret
from openclaw.store.devices import REQUEST_LIFE_MS
from tests.conformance.making import select
from tests.fakes.clock import MovableClock
from tests.fakes.device import TestDevice
from tests.fakes.device_client import FROM_AFAR, DeviceClient
from tests.fakes.wire_client import RefusedError
from tests.integration.conftest import TOKEN, House

Json = dict[str, Any]
READ, WRITE, ADMIN, PAIRING = (f"operator.{word}" for word in ("read", "write", "admin", "pairing"))
PHONE = TestDevice(3)


def come(gateway: Gateway, device: TestDevice | None = PHONE, **options: Any) -> DeviceClient:
    auth = options.pop("auth", {"token": TOKEN})
    options = {"scopes": (ADMIN, PAIRING)} | options
    return DeviceClient(f"ws://127.0.0.1:{gateway.port}", auth, device=device, **options)


async def turned_away(client: DeviceClient) -> Json:
    with pytest.raises(RefusedError) as caught:
        await client.__aenter__()
    return caught.value.error


async def token_of(gateway: Gateway, **options: Any) -> str:
    async with come(gateway, **options) as client:
        token: str = client.granted["deviceToken"]
        return token


@pytest.mark.spec("RPC-3", "DB-1")
class TestTokens:
    async def test_a_token_stands_for_the_secret_and_survives_a_restart(self, house: House) -> None:
        async with house.gateway() as gateway:
            token = await token_of(gateway, scopes=(READ, WRITE))
        async with house.gateway() as gateway:
            for auth in ({"token": token}, {"deviceToken": token}):
                async with come(gateway, auth=auth, scopes=(ADMIN, WRITE, READ)) as client:
                    granted = client.granted
                    assert (granted["method"], granted["scopes"]) == ("device-token", [WRITE, READ])
                    assert granted["deviceToken"] == token
                    with pytest.raises(RefusedError, match=r"missing scope: operator\.pairing"):
                        await client.call("device.pair.list")

    async def test_only_hashes_are_kept(self, house: House) -> None:
        async with house.gateway() as gateway:
            token = await token_of(gateway)
            database = gateway.services.door.book.database
            assert await select(database, "SELECT token_hash FROM device_tokens") == [
                (digest_secret(token).hex(),)
            ]
        for file in (house.home / "state").rglob("*"):
            assert not file.is_file() or token.encode() not in file.read_bytes(), file

    async def test_it_is_worth_nothing_to_another_device_or_in_another_role(self, gateway: Gateway) -> None:
        token = await token_of(gateway)
        for options in (
            {"device": TestDevice(4)},
            {"role": "node"},
        ):
            error = await turned_away(come(gateway, auth={"deviceToken": token}, **options))
            assert error["details"]["code"] == "AUTH_DEVICE_TOKEN_MISMATCH"
        bare = await turned_away(come(gateway, auth={"deviceToken": token}, device=None))
        assert bare["code"] == "NOT_PAIRED"

    async def test_the_same_token_beside_the_secret_is_kept_and_a_few_live_together(
        self, gateway: Gateway
    ) -> None:
        tokens = [await token_of(gateway) for _ in range(4)]
        again = await token_of(gateway, auth={"token": TOKEN, "deviceToken": tokens[0]})
        assert again == tokens[0] and len(set(tokens)) == 4
        fifth = await token_of(gateway)
        error = await turned_away(come(gateway, auth={"deviceToken": tokens[1]}))
        assert error["details"]["code"] == "AUTH_DEVICE_TOKEN_MISMATCH"
        for token in (tokens[0], tokens[2], tokens[3], fifth):
            assert await token_of(gateway, auth={"deviceToken": token}) == token

    async def test_a_spoiled_claim_changes_nothing(self, gateway: Gateway) -> None:
        def spoil(params: Json) -> Json:
            return params | {"scopes": [ADMIN, READ]}

        error = await turned_away(come(gateway, change=spoil))
        assert error["details"]["code"] == "DEVICE_AUTH_SIGNATURE_INVALID"
        async with come(gateway, device=None) as owner:
            assert await owner.call("device.pair.list") == {"pending": [], "paired": []}

    async def test_no_secret_reaches_the_log(
        self, gateway: Gateway, caplog: pytest.LogCaptureFixture
    ) -> None:
        caplog.set_level(logging.DEBUG, logger="openclaw.gateway")
        token = await token_of(gateway)
        await turned_away(come(gateway, auth={"token": "a wrong guess", "deviceToken": "another one"}))
        await turned_away(come(gateway, TestDevice(5), headers=FROM_AFAR))
        assert "device token mismatch" in caplog.text and "openclaw devices approve" in caplog.text
        for secret in (token, TOKEN, "a wrong guess", "another one"):
            assert secret not in caplog.text


@pytest.mark.spec("RPC-3")
class TestPairing:
    async def test_from_afar_the_owner_is_asked_once(self, gateway: Gateway) -> None:
        async with come(gateway, device=None) as owner, come(gateway, device=None, scopes=(READ,)) as reader:
            error = await turned_away(come(gateway, headers=FROM_AFAR, scopes=(READ, WRITE)))
            request_id = error["details"]["requestId"]
            assert error["code"] == "NOT_PAIRED"
            assert error["details"] == {
                "code": "PAIRING_REQUIRED", "requestId": request_id, "reason": "not-paired",
            }  # fmt: skip
            told = await owner.wait_for(lambda event: event["event"] == "device.pair.requested")
            (pending,) = (await owner.call("device.pair.list"))["pending"]
            assert told["payload"] == pending
            assert (pending["deviceId"], pending["scopes"], pending["role"]) == (
                PHONE.device_id, [READ, WRITE], "operator",
            )  # fmt: skip
            assert pending["expiresAtMs"] - pending["ts"] == REQUEST_LIFE_MS
            again = await turned_away(come(gateway, headers=FROM_AFAR, scopes=(READ, WRITE)))
            assert again["details"]["requestId"] == request_id

            approved = await owner.call("device.pair.approve", {"requestId": request_id})
            assert approved["device"]["approvedVia"] == "owner" and approved["device"]["tokens"] == []
            resolved = await owner.wait_for(lambda event: event["event"] == "device.pair.resolved")
            assert (resolved["payload"]["requestId"], resolved["payload"]["decision"]) == (
                request_id,
                "approved",
            )
            async with come(gateway, headers=FROM_AFAR, scopes=(READ, WRITE)) as phone:
                assert phone.granted["scopes"] == [READ, WRITE]
                (device,) = (await owner.call("device.pair.list"))["paired"]
                assert (device["connected"], device["lastSeenReason"]) == (True, "connect")
                assert [token["scopes"] for token in device["tokens"]] == [[READ, WRITE]]
            requests = [event for event in owner.events if event["event"] == "device.pair.requested"]
            assert len(requests) == 1
            await reader.call("health")
            assert not [event for event in reader.events if event["event"].startswith("device.")]

    @pytest.mark.parametrize(
        ("options", "reason"),
        [
            ({"role": "node", "scopes": ()}, "role-upgrade"),
            ({"scopes": (READ, ADMIN)}, "scope-upgrade"),
            ({"client": {"platform": "ios"}}, "metadata-upgrade"),
        ],
    )
    async def test_asking_for_more_is_asking_again(
        self, gateway: Gateway, options: Json, reason: str
    ) -> None:
        token = await token_of(gateway, scopes=(READ,))
        more: Json = {"scopes": (READ,)} | options
        error = await turned_away(come(gateway, headers=FROM_AFAR, **more))
        assert error["details"]["reason"] == reason
        async with come(gateway, headers=FROM_AFAR, scopes=(READ,), auth={"deviceToken": token}) as phone:
            assert phone.granted["method"] == "device-token"
        async with come(gateway, device=None) as owner:
            await owner.call("device.pair.approve", {"requestId": error["details"]["requestId"]})
        async with come(gateway, headers=FROM_AFAR, **more) as phone:
            assert phone.granted["role"] == more.get("role", "operator")
            assert tuple(phone.granted["scopes"]) == more["scopes"]

    async def test_nobody_approves_what_they_did_not_see(self, gateway: Gateway) -> None:
        first = await turned_away(come(gateway, headers=FROM_AFAR, scopes=(READ,)))
        second = await turned_away(come(gateway, headers=FROM_AFAR, scopes=(ADMIN,)))
        assert first["details"]["requestId"] != second["details"]["requestId"]
        async with come(gateway, device=None) as owner:
            with pytest.raises(RefusedError, match="unknown requestId"):
                await owner.call("device.pair.approve", {"requestId": first["details"]["requestId"]})
            assert (await owner.call("device.pair.list"))["paired"] == []

    async def test_an_approver_gives_no_more_than_it_holds(self, gateway: Gateway) -> None:
        error = await turned_away(come(gateway, headers=FROM_AFAR, scopes=(READ, ADMIN)))
        request = {"requestId": error["details"]["requestId"]}
        async with come(gateway, device=None, scopes=(PAIRING, READ)) as helper:
            with pytest.raises(RefusedError, match=r"FORBIDDEN: missing scope: operator\.admin"):
                await helper.call("device.pair.approve", request)
            assert len((await helper.call("device.pair.list"))["pending"]) == 1
            assert await helper.call("device.pair.reject", request) == request | {"deviceId": PHONE.device_id}
            resolved = await helper.wait_for(lambda event: event["event"] == "device.pair.resolved")
            assert resolved["payload"]["decision"] == "rejected"
            with pytest.raises(RefusedError, match="unknown requestId"):
                await helper.call("device.pair.reject", request)

    async def test_a_request_does_not_wait_for_ever(self, house: House) -> None:
        clock = MovableClock()
        async with house.gateway(clock) as gateway, come(gateway, device=None) as owner:
            error = await turned_away(come(gateway, headers=FROM_AFAR))
            clock.move(REQUEST_LIFE_MS / 1000)
            assert (await owner.call("device.pair.list"))["pending"] == []
            with pytest.raises(RefusedError, match="has expired"):
                await owner.call("device.pair.approve", {"requestId": error["details"]["requestId"]})

    async def test_a_wrong_secret_asks_for_nothing(self, gateway: Gateway) -> None:
        error = await turned_away(come(gateway, headers=FROM_AFAR, auth={"token": "x"}))
        assert error["details"]["code"] == "AUTH_TOKEN_MISMATCH"
        async with come(gateway, device=None) as owner:
            assert (await owner.call("device.pair.list"))["pending"] == []
