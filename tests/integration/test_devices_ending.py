"""The end of a device's rights: sockets close at once, tokens stop, and nobody oversteps."""

from __future__ import annotations

import logging
from typing import Any

import aiohttp
import pytest

from openclaw.app import Gateway
from openclaw.errors import ConfigInvalid
from openclaw.gateway.doorkeeper import NOTES_BURST
from tests.fakes.clock import MovableClock
from tests.fakes.device import TestDevice
from tests.fakes.device_client import FROM_AFAR
from tests.fakes.wire_client import RefusedError
from tests.integration.conftest import House, client_of
from tests.integration.test_devices import ADMIN, PAIRING, PHONE, READ, WRITE, come, token_of, turned_away

PAGE = {"Origin": "http://localhost:5173"}


@pytest.mark.spec("RPC-3")
class TestRevoking:
    async def test_removing_closes_every_socket_and_ends_the_tokens(self, gateway: Gateway) -> None:
        async with come(gateway, device=None) as owner, come(gateway, TestDevice(6)) as other:
            async with come(gateway) as one, come(gateway, role="node", scopes=()) as two:
                token = one.granted["deviceToken"]
                answer = await owner.call("device.pair.remove", {"deviceId": PHONE.device_id})
                assert answer == {"deviceId": PHONE.device_id}
                assert await one.closed() == (1008, "device removed")
                assert await two.closed() == (1008, "device removed")
            error = await turned_away(come(gateway, auth={"deviceToken": token}))
            assert error["details"]["code"] == "AUTH_DEVICE_TOKEN_MISMATCH"
            assert [one["deviceId"] for one in (await other.call("device.pair.list"))["paired"]] == [
                TestDevice(6).device_id
            ]
            with pytest.raises(RefusedError, match="unknown deviceId"):
                await owner.call("device.pair.remove", {"deviceId": PHONE.device_id})
            again = await turned_away(come(gateway, headers=FROM_AFAR))
            assert again["details"]["reason"] == "not-paired"

    async def test_revoking_ends_one_role(self, gateway: Gateway) -> None:
        async with come(gateway, device=None) as owner:
            async with come(gateway) as phone, come(gateway, role="node", scopes=()) as node:
                node_token = node.granted["deviceToken"]
                answer = await owner.call("device.token.revoke", {"deviceId": PHONE.device_id})
                assert (answer["deviceId"], answer["role"]) == (PHONE.device_id, "operator")
                assert await phone.closed() == (1008, "device token revoked")
                (device,) = (await owner.call("device.pair.list"))["paired"]
                assert [token["role"] for token in device["tokens"]] == ["node"]
                assert device["connected"]
            assert await token_of(gateway, role="node", scopes=(), auth={"deviceToken": node_token})
            error = await turned_away(come(gateway, auth={"deviceToken": phone.granted["deviceToken"]}))
            assert error["details"]["code"] == "AUTH_DEVICE_TOKEN_MISMATCH"
            await token_of(gateway, device=TestDevice(8))
            with pytest.raises(RefusedError, match="is not paired as node; it is operator"):
                await owner.call("device.token.revoke", {"deviceId": TestDevice(8).device_id, "role": "node"})

    async def test_rotating_gives_a_new_token_once(self, gateway: Gateway) -> None:
        async with come(gateway, scopes=(PAIRING, READ, WRITE)) as phone, come(gateway) as other_window:
            old = phone.granted["deviceToken"]
            asked = {"deviceId": PHONE.device_id, "scopes": [READ, WRITE]}
            answer = await phone.call("device.token.rotate", asked)
            assert answer["scopes"] == [READ, WRITE] and len(answer["token"]) == 43
            assert await other_window.closed() == (1008, "device token rotated")
            assert (await phone.call("device.pair.list"))["paired"][0]["tokens"][0]["scopes"] == [READ, WRITE]
        error = await turned_away(come(gateway, auth={"deviceToken": old}))
        assert error["details"]["code"] == "AUTH_DEVICE_TOKEN_MISMATCH"
        async with come(gateway, auth={"deviceToken": answer["token"]}, scopes=(ADMIN, WRITE)) as again:
            assert again.granted["scopes"] == [WRITE]

    async def test_rotating_keeps_the_scopes_that_there_were(self, gateway: Gateway) -> None:
        await token_of(gateway, scopes=(READ,))
        async with come(gateway, device=None) as owner:
            kept = await owner.call("device.token.rotate", {"deviceId": PHONE.device_id})
            assert kept["scopes"] == [READ]
            with pytest.raises(
                RefusedError, match=r"no more than its device is allowed, which is: operator\.read"
            ):
                wanted = {"deviceId": PHONE.device_id, "scopes": [ADMIN]}
                await owner.call("device.token.rotate", wanted)

    async def test_nobody_oversteps(self, gateway: Gateway) -> None:
        await token_of(gateway, scopes=(ADMIN,))
        target = {"deviceId": PHONE.device_id}
        async with come(gateway, TestDevice(7), scopes=(PAIRING, WRITE)) as helper:
            for method in ("device.pair.remove", "device.token.revoke", "device.token.rotate"):
                with pytest.raises(RefusedError, match=r"FORBIDDEN: missing scope: operator\.admin"):
                    await helper.call(method, target)
            # Its own rights are its own to end; the answer comes before the close.
            own = {"deviceId": TestDevice(7).device_id}
            assert await helper.call("device.pair.remove", own) == own
            assert await helper.closed() == (1008, "device removed")
        assert await token_of(gateway, scopes=(ADMIN,))

    async def test_a_device_that_is_removed_while_it_connects_stays_out(
        self, gateway: Gateway, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        server, door = gateway._server, gateway.services.door
        greet = server._hello

        async def remove_meanwhile(*args: Any) -> Any:
            hello = await greet(*args)
            door.disconnect(PHONE.device_id, "device removed")
            return hello

        async with come(gateway, device=None) as owner:
            monkeypatch.setattr(server, "_hello", remove_meanwhile)
            error = await turned_away(come(gateway))
            assert (error["code"], error["retryable"]) == ("UNAVAILABLE", True)
            assert "try again" in error["message"]
            async with client_of(gateway) as secret_alone:  # a client without a device is not concerned
                await secret_alone.call("health")
            assert (await owner.call("health"))["ok"]


@pytest.mark.spec("RPC-3")
class TestLockout:
    async def test_ten_wrong_guesses_from_afar(self, house: House) -> None:
        clock = MovableClock()
        async with house.gateway(clock) as gateway:
            far: dict[str, Any] = {"device": None, "headers": FROM_AFAR}
            for _ in range(12):  # nothing was guessed
                assert (await turned_away(come(gateway, auth=None, **far)))["code"] == "NOT_PAIRED"
            for _ in range(10):
                error = await turned_away(come(gateway, auth={"token": "x"}, **far))
                assert error["details"]["code"] == "AUTH_TOKEN_MISMATCH"
            for options in (far, far | {"auth": {"token": "x"}}, far | {"auth": None}):
                client = come(gateway, **options)
                error = await turned_away(client)
                assert error["details"]["code"] == "AUTH_RATE_LIMITED"
                assert 290_000 < error["retryAfterMs"] <= 300_000 and error["retryable"]
                assert client.close_code == 1008
            async with client_of(gateway) as owner:  # this machine is not shut out
                await owner.call("health")
            clock.move(300)
            async with come(gateway, **far) as back:
                assert back.granted["method"] == "token"

    async def test_programs_here_are_exempt_and_pages_are_not(self, gateway: Gateway) -> None:
        for _ in range(11):
            error = await turned_away(come(gateway, auth={"token": "x"}, device=None))
            assert error["details"]["code"] == "AUTH_TOKEN_MISMATCH"
        for _ in range(10):
            await turned_away(come(gateway, auth={"token": "x"}, device=None, headers=PAGE))
        error = await turned_away(come(gateway, device=None, headers=PAGE))
        assert error["details"]["code"] == "AUTH_RATE_LIMITED"
        async with come(gateway, device=None) as owner:
            assert owner.granted["method"] == "token"

    async def test_plain_requests_and_sockets_count_together(self, gateway: Gateway) -> None:
        url = f"http://127.0.0.1:{gateway.port}/v1/models"
        wrong = {"Authorization": "Bearer x"} | FROM_AFAR
        async with aiohttp.ClientSession() as session:
            for status in [401] * 10 + [429]:
                async with session.get(url, headers=wrong) as answer:
                    assert answer.status == status
            assert 290 < int(answer.headers["Retry-After"]) <= 300
        error = await turned_away(come(gateway, device=None, headers=FROM_AFAR))
        assert error["details"]["code"] == "AUTH_RATE_LIMITED"

    async def test_a_flood_of_refusals_is_noted_in_a_few_lines(
        self, house: House, caplog: pytest.LogCaptureFixture
    ) -> None:
        caplog.set_level(logging.WARNING, logger="openclaw.gateway")
        clock = MovableClock()
        async with house.gateway(clock) as gateway:
            for _ in range(NOTES_BURST + 5):
                await turned_away(come(gateway, auth=None, device=None))
            assert caplog.text.count("refused a connection") <= NOTES_BURST + 2
            clock.move(11)
            await turned_away(come(gateway, auth=None, device=None))
            assert "more refused connections were not noted" in caplog.text

    async def test_the_limits_are_settings(self, house: House) -> None:
        limits = {"maxAttempts": 2, "windowMs": "1m", "lockoutMs": "1h", "exemptLoopback": False}
        house.config["gateway"]["auth"]["rateLimit"] = limits
        async with house.gateway() as gateway:
            for code in ("AUTH_TOKEN_MISMATCH", "AUTH_TOKEN_MISMATCH", "AUTH_RATE_LIMITED"):
                error = await turned_away(come(gateway, auth={"token": "x"}, device=None))
                assert error["details"]["code"] == code
            assert error["retryAfterMs"] > 3_500_000


@pytest.mark.parametrize("auth", [{}, {"mode": "none"}, {"mode": "token", "password": "p"}])
def test_no_secret_no_network(house: House, auth: dict[str, str]) -> None:
    house.config["gateway"] = {"bind": "lan", "auth": auth}
    with pytest.raises(ConfigInvalid, match=r"gateway\.auth\.token"):
        house.gateway()


@pytest.mark.spec("DB-3")
async def test_device_files_of_other_programs_are_left_alone(house: House) -> None:
    folder = house.home / "state" / "devices"
    folder.mkdir(parents=True)
    paired = folder / "paired.json"
    paired.write_text('{"x": {"deviceId": "x", "publicKey": "y", "approvedScopes": ["operator.admin"]}}')
    before = paired.read_bytes()
    async with house.gateway() as gateway:
        await token_of(gateway)
        async with come(gateway, device=None) as owner:
            assert [one["deviceId"] for one in (await owner.call("device.pair.list"))["paired"]] == [
                PHONE.device_id
            ]
    assert [path.name for path in folder.iterdir()] == ["paired.json"] and paired.read_bytes() == before
