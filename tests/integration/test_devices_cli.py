"""`openclaw devices` as a person runs it, against a real gateway: see, approve, revoke."""

from __future__ import annotations

import asyncio
import json
import sys
from typing import Any

import pytest

from openclaw.app import Gateway
from tests.fakes.device_client import FROM_AFAR
from tests.integration.conftest import TOKEN, House
from tests.integration.test_devices import PHONE, READ, come, turned_away


async def openclaw(house: House, gateway: Gateway, *arguments: str) -> str:
    place = ("--url", f"ws://127.0.0.1:{gateway.port}", "--token", TOKEN, "--timeout", "60000")
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-m", "openclaw", "devices", *arguments, *place,
        env=house.env, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.PIPE,
    )  # fmt: skip
    out, err = await process.communicate()
    assert process.returncode == 0, err.decode()
    return out.decode()


@pytest.mark.spec("RPC-3")
async def test_from_the_first_refusal_to_the_last(house: House, gateway: Gateway) -> None:
    far: dict[str, Any] = {"headers": FROM_AFAR, "scopes": (READ,)}
    error = await turned_away(come(gateway, **far))
    shown = await openclaw(house, gateway, "list")
    assert error["details"]["requestId"] in shown and PHONE.device_id[:12] in shown
    approved = await openclaw(house, gateway, "approve", "--latest")
    assert approved == f"Approved {PHONE.device_id[:12]} (cli on test) for: read\n"
    async with come(gateway, **far) as phone:
        (device,) = json.loads(await openclaw(house, gateway, "list", "--json"))["paired"]
        assert device["connected"] and device["deviceId"] == PHONE.device_id
        assert await openclaw(house, gateway, "revoke", PHONE.device_id[:8]) == (
            f"Revoked {PHONE.device_id[:12]}\n"
        )
        assert await phone.closed() == (1008, "device removed")
    assert (await turned_away(come(gateway, **far)))["details"]["reason"] == "not-paired"
