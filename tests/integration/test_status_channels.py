"""/status tells of every channel in use how it does and how old its credentials are (CMD-1)."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator

import pytest

from openclaw.app.channels import MOST_LINES
from openclaw.channels import registry
from tests.fakes.clock import MovableClock
from tests.fakes.pigeon import Loft
from tests.fakes.wire_client import WireClient
from tests.integration.conftest import House, client_of


@pytest.fixture
def loft(monkeypatch: pytest.MonkeyPatch) -> Iterator[Loft]:
    monkeypatch.setattr(registry, "BUILT_IN", {"pigeon": "tests.fakes.pigeon:build"})
    yield Loft("status")
    Loft.lofts.clear()


async def status(client: WireClient, run_id: str) -> list[str]:
    answer = await client.say("main", "/status", run_id)
    lines: list[str] = answer["message"]["content"][0]["text"].splitlines()
    return lines


@pytest.mark.spec("CMD-1")
async def test_a_connector_tells_when_its_credentials_were_last_good(house: House, loft: Loft) -> None:
    house.config["channels"] = {"pigeon": {**loft.options, "accounts": {"Home": {}, "work": {}}}}
    clock = MovableClock()
    async with house.gateway(clock) as gateway, client_of(gateway) as client:
        for number in range(6000):
            lines = await status(client, f"a{number}")
            if sum("refreshed" in line for line in lines) == 2:
                break
            await asyncio.sleep(0.01)
        clock.move(7200)
        lines = await status(client, "b")
        assert lines[-3:] == [
            "Pigeon (home): running, credentials refreshed 2 h 0 min ago",
            "Pigeon (work): running, credentials refreshed 2 h 0 min ago",
            "WhatsApp: not connected to this gateway",
        ]


@pytest.mark.spec("CMD-1")
async def test_one_whose_credentials_are_refused_says_so(house: House, loft: Loft) -> None:
    loft.forget_credentials()
    house.config["channels"] = {"pigeon": loft.options}
    async with house.gateway() as gateway, client_of(gateway) as client:
        wanted = "Pigeon (default): waiting, credentials not checked yet"
        for number in range(6000):
            lines = await status(client, f"a{number}")
            if wanted in lines:
                break
            await asyncio.sleep(0.01)
        assert wanted in lines


@pytest.mark.spec("CMD-1")
async def test_whatsapp_from_another_process(house: House) -> None:
    clock = MovableClock()
    async with house.gateway(clock) as gateway, client_of(gateway) as client:
        assert (await status(client, "a"))[-1] == "WhatsApp: not connected to this gateway"
        async with client_of(gateway) as connector:
            attach = {"channel": "whatsapp", "credentialsRefreshedAt": clock.now_ms() - 7_200_000}
            await connector.call("channels.attach", attach)
            wanted = "WhatsApp (default): attached, credentials refreshed 2 h 0 min ago"
            assert (await status(client, "b"))[-1] == wanted
            attach["credentialsRefreshedAt"] = clock.now_ms() - 3_600_000
            await connector.call("channels.attach", attach)
            assert (await status(client, "c"))[-1].endswith("refreshed 1 h 0 min ago")
            shown = (await client.call("channels.status"))["channelAccounts"]["whatsapp"]
            assert shown[0]["credentialsRefreshedAt"] == attach["credentialsRefreshedAt"]


@pytest.mark.spec("CMD-1")
async def test_many_accounts_do_not_fill_the_chat(house: House) -> None:
    async with house.gateway() as gateway, client_of(gateway) as client:
        for number in range(MOST_LINES + 2):
            await client.call("channels.attach", {"channel": f"c{number:03d}"})
        lines = await status(client, "a")
        assert sum(line.startswith("C0") for line in lines) == MOST_LINES
        assert "2 more accounts: openclaw channels status" in lines
