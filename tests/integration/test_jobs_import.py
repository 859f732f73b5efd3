"""Scheduled jobs of an earlier layout arrive by `doctor`, and only by it (DB-3)."""

from __future__ import annotations

import asyncio
import json
import sys
from typing import Any

import pytest

from openclaw.app import Gateway
from openclaw.app.checkup import Check, check
from openclaw.app.legacyjobs import import_jobs, jobs_file
from openclaw.config.load import LoadedConfig, load_or_raise
from openclaw.errors import InvalidRequest, StoreLocked
from tests.integration.conftest import House, client_of

BRIEF: dict[str, Any] = {
    "id": "0b6f9a5e-brief", "name": "briefing", "enabled": True, "createdAtMs": 5, "updatedAtMs": 6,
    "schedule": {"kind": "cron", "expr": "0 7 * * *", "tz": "Europe/Madrid"}, "sessionTarget": "isolated",
    "payload": {"kind": "agentTurn", "message": "Brief me"}, "state": {"nextRunAtMs": 1},
}  # fmt: skip
PAST = BRIEF | {"id": "past", "name": "long ago", "schedule": {"kind": "at", "at": "2020-01-01T00:00:00Z"}}
FOREIGN = BRIEF | {"id": "foreign", "name": "foreign", "agentId": "nobody"}
OFF = BRIEF | {"id": "off", "enabled": False, "schedule": {"kind": "at", "at": "2020-01-01T00:00:00Z"}}


def prepare(house: House, *jobs: Any) -> LoadedConfig:
    house.gateway()  # writes the config
    path = jobs_file(house.env)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps({"version": 1, "jobs": jobs}), encoding="utf-8")
    return load_or_raise(house.home / "state" / "openclaw.json", house.env)


async def about_jobs(loaded: LoadedConfig, house: House) -> list[Check]:
    return [one for one in (await check(loaded, house.env, fix=False)).checks if one.name == "jobs"]


@pytest.mark.spec("DB-3")
async def test_old_jobs_go_on_by_the_clock(house: House) -> None:
    loaded = prepare(house, BRIEF, PAST, FOREIGN, OFF)
    before = jobs_file(house.env).read_bytes()
    done = await import_jobs(loaded, house.env)
    assert (done.found, done.imported, done.already) == (4, 2, 0)
    assert [problem.split(":")[0] for problem in done.problems] == ["long ago", "foreign"]
    assert "its time has passed" in done.problems[0] and 'unknown agent id "nobody"' in done.problems[1]
    assert (await import_jobs(loaded, house.env)).already == 2
    assert jobs_file(house.env).read_bytes() == before
    async with house.gateway() as gateway, client_of(gateway) as client:
        listed = {job["id"]: job for job in (await client.call("cron.list"))["jobs"]}
        assert set(listed) == {BRIEF["id"], "off"}
        job = listed[BRIEF["id"]]
        assert job["payload"] == BRIEF["payload"] and job["schedule"] == BRIEF["schedule"]
        assert job["state"]["nextRunAtMs"] > gateway.services.clock.now_ms()
        assert not listed["off"]["enabled"]


@pytest.mark.spec("DB-3")
async def test_a_gateway_never_reads_the_file_and_doctor_tells_until_it_was_imported(house: House) -> None:
    loaded = prepare(house, BRIEF)
    async with house.gateway() as gateway, client_of(gateway) as client:
        assert (await client.call("cron.list"))["jobs"] == []
        with pytest.raises(StoreLocked, match="importing jobs needs the store for itself"):
            await import_jobs(loaded, house.env)
    (told,) = await about_jobs(loaded, house)
    assert not told.ok and told.fix == "openclaw doctor --import-cron"
    await import_jobs(loaded, house.env)
    assert await about_jobs(loaded, house) == []
    async with house.gateway() as gateway, client_of(gateway) as client:
        await client.call("cron.remove", {"id": BRIEF["id"]})
    # A job that its owner removed since does not come back, and nobody asks for it.
    assert await about_jobs(loaded, house) == []
    prepare(house, BRIEF, BRIEF | {"id": "new"})
    assert len(await about_jobs(loaded, house)) == 1


@pytest.mark.spec("DB-3")
async def test_what_is_not_there_or_no_such_file(house: House, gateway: Gateway) -> None:
    loaded = prepare(house)
    with pytest.raises(InvalidRequest, match=r"nothing\.json does not exist"):
        await import_jobs(loaded, house.env, house.home / "nothing.json")
    with pytest.raises(InvalidRequest, match="cannot read"):
        await import_jobs(loaded, house.env, house.home)


@pytest.mark.spec("DB-3")
async def test_doctor_does_it(house: House) -> None:
    prepare(house, BRIEF, {"id": "broken"})
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-m", "openclaw", "doctor", "--import-cron",
        env=house.env, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.PIPE,
    )  # fmt: skip
    out, err = await process.communicate()
    assert process.returncode == 1
    assert out.decode().startswith("1 job imported, 0 known already.\n")
    assert "left out job 2: " in err.decode()
    jobs_file(house.env).write_text("{}")
    loaded = load_or_raise(house.home / "state" / "openclaw.json", house.env)
    with pytest.raises(InvalidRequest, match="not a list of scheduled jobs; nothing was imported"):
        await import_jobs(loaded, house.env)
