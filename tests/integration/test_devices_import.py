"""Devices of an earlier layout arrive by `doctor`, and only by it (DB-3)."""

from __future__ import annotations

import asyncio
import json
import sys
from typing import Any

import pytest

from openclaw.app import Gateway
from openclaw.app.devices import import_devices, paired_file
from openclaw.config.load import LoadedConfig, load_or_raise
from openclaw.errors import InvalidRequest, StoreLocked
from tests.fakes.device_client import FROM_AFAR
from tests.integration.conftest import House
from tests.integration.test_devices import ADMIN, PHONE, READ, come

OLD = {
    PHONE.device_id: {
        "deviceId": PHONE.device_id, "publicKey": PHONE.public_key, "platform": "test", "role": "operator",
        "roles": ["operator"], "scopes": [READ], "createdAtMs": 1, "approvedAtMs": 2,
        "tokens": {"operator": {"token": "old-token", "scopes": [READ], "createdAtMs": 1}},
    }
}  # fmt: skip


def prepare(house: House, content: Any = OLD) -> LoadedConfig:
    house.gateway()  # writes the config
    path = paired_file(house.env)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(content), encoding="utf-8")
    return load_or_raise(house.home / "state" / "openclaw.json", house.env)


@pytest.mark.spec("DB-3")
async def test_an_old_device_goes_on_with_its_old_token(house: House) -> None:
    loaded = prepare(house)
    before = paired_file(house.env).read_bytes()
    done = await import_devices(loaded, house.env)
    assert (done.found, done.imported, done.already, done.problems) == (1, 1, 0, ())
    assert (await import_devices(loaded, house.env)).already == 1
    assert paired_file(house.env).read_bytes() == before
    async with house.gateway() as gateway:
        options: dict[str, Any] = {"auth": {"deviceToken": "old-token"}, "headers": FROM_AFAR}
        async with come(gateway, scopes=(READ, ADMIN), **options) as phone:
            assert (phone.granted["method"], phone.granted["scopes"]) == ("device-token", [READ])
        for file in (house.home / "state").glob("openclaw.sqlite*"):
            assert b"old-token" not in file.read_bytes()


@pytest.mark.spec("DB-3", "OWN-6")
async def test_it_is_refused_beside_a_gateway_and_without_a_file(house: House, gateway: Gateway) -> None:
    loaded = prepare(house)
    with pytest.raises(StoreLocked, match="importing devices needs the store for itself"):
        await import_devices(loaded, house.env)
    with pytest.raises(InvalidRequest, match=r"nothing\.json does not exist"):
        await import_devices(loaded, house.env, house.home / "nothing.json")
    with pytest.raises(InvalidRequest, match="cannot read"):
        await import_devices(loaded, house.env, house.home)


@pytest.mark.spec("DB-3")
async def test_doctor_does_it(house: House) -> None:
    prepare(house, OLD | {"broken": {}})
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-m", "openclaw", "doctor", "--import-devices",
        env=house.env, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.PIPE,
    )  # fmt: skip
    out, err = await process.communicate()
    assert process.returncode == 1
    assert out.decode().startswith("1 device imported, 0 known already.\n")
    assert "left out broken: " in err.decode()
    loaded = prepare(house, [])
    with pytest.raises(InvalidRequest, match="not a list of paired devices; nothing was imported"):
        await import_devices(loaded, house.env)
