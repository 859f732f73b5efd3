"""What a gateway notes of its own life, and who can look at it (DB-1)."""

from __future__ import annotations

import asyncio
import json
import socket
import sys

import pytest

from openclaw.app import Gateway
from openclaw.app.checkup import check
from openclaw.config.load import load_or_raise
from openclaw.errors import Unavailable
from openclaw.store.diagnostics import Diagnostic, Diagnostics
from openclaw.store.sqlite import SqliteDatabase
from tests.fakes.wire_client import RefusedError
from tests.integration.conftest import House, client_of


async def kept(house: House) -> list[Diagnostic]:
    database = await SqliteDatabase.open(house.home / "state" / "openclaw.sqlite")
    try:
        return list(await Diagnostics(database).newest())
    finally:
        await database.close()


async def say(house: House, *words: str) -> tuple[int, str]:
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-m", "openclaw", *words, env=house.env, stdout=asyncio.subprocess.PIPE
    )
    out, _ = await process.communicate()
    return process.returncode or 0, out.decode()


@pytest.mark.spec("DB-1")
class TestNoting:
    async def test_a_start_and_a_stop(self, house: House) -> None:
        for _ in range(2):
            async with house.gateway():
                pass
        found = await kept(house)
        assert [one.kind for one in found] == ["start", "stop", "start", "stop"]
        assert found[0].detail.startswith("openclaw ") and "process " in found[0].detail
        assert found[1].detail == "in order"

    async def test_a_crash_is_told_by_the_next_start_with_what_it_recovered(self, house: House) -> None:
        async with house.gateway() as gateway:
            # As after a kill: the start stands, and nothing says that it ended.
            database = gateway.services.door.book.database
            await Diagnostics(database).note("start", "openclaw 0, process 1", now_ms=1000)
            gateway._diary = None
        async with house.gateway() as gateway, client_of(gateway) as client:
            told = (await client.call("diagnostics.list", {"limit": 2}))["events"]
            assert [one["kind"] for one in told] == ["crash", "start"]
            assert "1970-01-01T00:00:01+00:00 did not stop in order: openclaw 0" in told[0]["detail"]

    async def test_a_refused_start(self, house: House) -> None:
        with socket.socket() as taken:
            taken.bind(("127.0.0.1", 0))
            taken.listen()
            house.gateway()  # writes the config
            loaded = load_or_raise(house.home / "state" / "openclaw.json", house.env)
            refused = Gateway(loaded, house.env, port=taken.getsockname()[1])
            with pytest.raises(Unavailable, match="cannot listen"):
                await refused.__aenter__()
        (found,) = await kept(house)
        assert found.kind == "refused" and "choose one with --port" in found.detail

    async def test_what_doctor_found(self, house: House) -> None:
        house.gateway()
        jobs = house.home / "state" / "cron" / "jobs.json"
        jobs.parent.mkdir()
        (house.home / "state").chmod(0o700)
        job = {"id": "j", "name": "tea", "schedule": {"kind": "every", "everyMs": 60_000},
               "payload": {"kind": "agentTurn", "message": "x"}}  # fmt: skip
        jobs.write_text(json.dumps({"jobs": [job]}))
        loaded = load_or_raise(house.home / "state" / "openclaw.json", house.env)
        for fix in (False, True):
            report = await check(loaded, house.env, fix=fix)
            assert "jobs" in [one.name for one in report.checks if not one.ok]
        (found,) = await kept(house)
        assert found.kind == "doctor" and found.detail == f"jobs: not imported: {jobs}"


@pytest.mark.spec("DB-1")
class TestLooking:
    async def test_over_the_wire_for_the_owner(self, gateway: Gateway) -> None:
        async with client_of(gateway, scopes=("operator.write",)) as writer:
            with pytest.raises(RefusedError, match=r"missing scope: operator\.admin"):
                await writer.call("diagnostics.list")
        async with client_of(gateway) as owner:
            (told,) = (await owner.call("diagnostics.list"))["events"]
            assert told["kind"] == "start" and told["at"] > 0
            for limit in (0, 501):
                with pytest.raises(RefusedError, match="limit"):
                    await owner.call("diagnostics.list", {"limit": limit})

    async def test_on_the_command_line_with_a_gateway_and_without(self, house: House) -> None:
        async with house.gateway() as gateway:
            house.config["gateway"]["port"] = gateway.port
            house.gateway()  # where the command finds it
            code, out = await say(house, "logs", "--events")
            assert code == 0 and out.splitlines()[0].split()[2] == "start" and len(out.splitlines()) == 1
        code, out = await say(house, "logs", "--events", "--json")
        assert code == 0 and [one["kind"] for one in json.loads(out)] == ["start", "stop"]
        code, _ = await say(house, "logs", "--events", "--follow")
        assert code != 0
        code, out = await say(house, "doctor")
        assert "history" in out and "the last gateway stopped at " in out

    async def test_doctor_tells_of_crashes(self, house: House) -> None:
        house.gateway()
        loaded = load_or_raise(house.home / "state" / "openclaw.json", house.env)
        database = await SqliteDatabase.open(house.home / "state" / "openclaw.sqlite")
        for number in range(3):
            await Diagnostics(database).note_start("x", now_ms=number * 1000)
        await database.close()
        report = await check(loaded, house.env, fix=False)
        (history,) = [one for one in report.checks if one.name == "history"]
        assert history.ok
        assert history.detail == (
            "the gateway that began at 1970-01-01T00:00:02+00:00 did not stop in order; "
            "2 crashes among the last 5 events: openclaw logs --events"
        )
