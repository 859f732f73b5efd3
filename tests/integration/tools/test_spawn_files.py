"""Files for helpers: handed over, read, never in the caller's transcript, taken away."""

from __future__ import annotations

import base64
import hashlib
import json
from pathlib import Path
from typing import Any

import pytest

from openclaw.app import Gateway
from openclaw.engine.children import Children
from openclaw.engine.handedfiles import GRACE_MS, HandedFiles
from openclaw.store.attachments import Attachments
from openclaw.store.spawns import Spawns
from tests.fakes.clock import MovableClock
from tests.fakes.openai_server import FakeReply
from tests.fakes.wire_client import WireClient
from tests.integration.conftest import House, client_of
from tests.integration.tools.test_subagents import KEY, Play, call, is_child, last_said, results, until
from tests.integration.tools.test_subagents_details import OK, spawn

SECRET = "the sheep are called Dolly, Molly and Polly"
PICTURE = bytes(range(256))
FILES = [
    {"name": "names.txt", "content": SECRET},
    {"name": "raw.bin", "content": base64.b64encode(PICTURE).decode(), "encoding": "base64"},
]


async def _true(value: bool) -> bool:
    return value


def turn_on(house: House, **more: Any) -> None:
    house.config["tools"] = {"sessions_spawn": {"attachments": {"enabled": True, **more}}}


def folder(house: House) -> Path:
    return house.home / "state" / "workspace" / ".openclaw" / "attachments"


def keeper(gateway: Gateway, clock: MovableClock) -> Children:
    database, settings = gateway.services.store._database, gateway.services.settings
    spawns = Spawns(database)
    files = HandedFiles(Attachments(database), spawns, settings, clock)
    return Children(spawns, settings, clock, gateway.services.workers.wake, files)


class Reading(Play):
    """A helper that reads the first file that it is told of."""

    def decide(self, body: dict[str, Any]) -> FakeReply | None:
        if is_child(body) and "[Subagent Task]" in last_said(body):
            self.children.append(body)
            note = str(body["messages"][-2]["content"])
            path = next(line for line in note.splitlines() if line.startswith("- "))[2:].rpartition(" (")[0]
            return FakeReply(calls=(call("read", "read_1", path=path),))
        return super().decide(body)


@pytest.mark.spec("SPAWN-17")
async def test_a_helper_reads_what_it_was_given_and_the_caller_keeps_only_the_receipt(house: House) -> None:
    turn_on(house)
    clock = MovableClock()
    async with house.gateway(clock) as gateway, client_of(gateway) as client:
        play = Reading(house, spawn(attachments=FILES, attachAs={"mountPath": "in"}), OK)
        play.announcement = FakeReply(texts=("ANNOUNCE_SKIP",))
        await client.say(KEY, "go", "run-1")
        accepted = results(play.parents[1])[0]
        child_id = accepted["childSessionKey"].rpartition(":")[2]
        assert accepted["attachments"] == {
            "count": 2, "totalBytes": len(SECRET) + 256, "relDir": f".openclaw/attachments/{child_id}",
            "files": [
                {"name": "in/names.txt", "bytes": len(SECRET),
                 "sha256": hashlib.sha256(SECRET.encode()).hexdigest()},
                {"name": "in/raw.bin", "bytes": 256, "sha256": hashlib.sha256(PICTURE).hexdigest()},
            ],
        }  # fmt: skip
        await until(lambda: _true(len(play.children) == 3))
        assert SECRET in json.dumps(play.children[1]["messages"])  # what the tool told it
        assert SECRET not in json.dumps(play.children[0]["messages"])  # the task has no contents
        place = folder(house) / child_id / "in"
        # The announce turn is over when the row is settled; then the rows go, and the folder with them.
        spawns = Spawns(gateway.services.store._database)

        async def settled() -> bool:
            return await spawns.count_active(KEY) == 0

        await until(settled)
        assert (place / "raw.bin").read_bytes() == PICTURE
        assert await Attachments(gateway.services.store._database).children() == frozenset()
        assert await keeper(gateway, clock).sweep() == (0, 0)
        assert list(folder(house).iterdir()) == []
        parents = json.dumps([body["messages"] for body in play.parents])
        history = json.dumps(await client.call("chat.history", {"sessionKey": KEY, "limit": 1000}))
        told = json.dumps(client.events)
        for text in (parents, history, told):
            assert "Dolly" not in text and FILES[1]["content"] not in text
        assert "names.txt" in parents and '"leftOut"' in parents.replace("\\", "")


@pytest.mark.spec("SPAWN-17", "ANN-11")
@pytest.mark.parametrize("cleanup", ["keep", "delete"])
async def test_files_that_shall_stay_stay_until_the_helper_is_archived(house: House, cleanup: str) -> None:
    turn_on(house, retainOnSessionKeep=True)
    clock = MovableClock()
    async with house.gateway(clock) as gateway, client_of(gateway) as client:
        play = Reading(house, spawn(attachments=FILES, cleanup=cleanup), OK)
        await client.say(KEY, "go", "run-1")
        children = keeper(gateway, clock)
        spawns = Spawns(gateway.services.store._database)

        async def settled() -> bool:
            return len(play.children) == 3 and await spawns.count_active(KEY) == 0

        await until(settled)
        await children.sweep()
        if cleanup == "delete":
            assert list(folder(house).iterdir()) == []
            return
        (kept,) = folder(house).iterdir()
        # A folder that got lost is written again from the rows.
        for file in kept.iterdir():
            file.unlink()
        kept.rmdir()
        await children.sweep()
        assert (kept / "names.txt").read_text() == SECRET
        clock.move(61 * 60)
        await children.sweep()
        assert list(folder(house).iterdir()) == []


@pytest.mark.spec("SPAWN-17")
async def test_a_folder_that_nobody_claims_goes_after_a_while_and_a_link_is_left_alone(house: House) -> None:
    turn_on(house)
    clock = MovableClock()
    elsewhere = house.home / "elsewhere"
    elsewhere.mkdir()
    (elsewhere / "mine.txt").write_text("keep me")
    async with house.gateway(clock) as gateway:
        orphan = folder(house) / "0f1e"
        orphan.mkdir(parents=True)
        (orphan / "x").write_text("x")
        (folder(house) / "link").symlink_to(elsewhere)
        children = keeper(gateway, clock)
        await children.sweep()
        assert orphan.exists()  # its commit may be on its way
        clock.move(GRACE_MS / 1000 + 1)
        await children.sweep()
        assert not orphan.exists()
        assert (elsewhere / "mine.txt").read_text() == "keep me"


@pytest.mark.spec("SPAWN-17", "TOOL-7")
async def test_what_cannot_be_handed_over_starts_nobody(house: House) -> None:
    turn_on(house, maxFiles=2, maxFileBytes=100, maxTotalBytes=120)
    house.config["agents"]["list"].append({"id": "boxed", "sandbox": {"mode": "all"}})
    house.config["agents"]["defaults"]["subagents"] = {"allowAgents": ["*"]}
    one = {"name": "a", "content": "x"}
    bad: list[tuple[dict[str, Any], str, str]] = [
        ({"attachments": [{"name": "../x", "content": "x"}]}, "error", "plain file name"),
        ({"attachments": [{"name": "a", "content": "x" * 101}]}, "error", "larger than 100"),
        ({"attachments": [one, {"name": "b", "content": "x"}, {"name": "c", "content": "x"}]}, "error", "2"),
        ({"attachments": [{**one, "content": "x" * 90}, {"name": "b", "content": "x" * 90}]}, "error", "120"),
        ({"attachments": [{**one, "encoding": "base64"}]}, "error", "base64"),
        ({"attachments": [one], "attachAs": {"mountPath": "../up"}}, "error", "mountPath"),
        ({"attachments": [one], "attachAs": {"mountPath": 5}}, "error", "attachAs"),
        ({"attachments": [one], "attachAs": {"where": "x"}}, "error", "attachAs"),
        ({"attachments": "x"}, "error", "attachments"),
        ({"attachments": ["x"]}, "error", "attachments"),
        ({"attachments": [one], "agentId": "boxed"}, "forbidden", "sandbox"),
    ]
    async with house.gateway() as gateway, client_of(gateway) as client:
        calls = tuple(
            call("sessions_spawn", f"c{number}", task="x", **arguments)
            for number, (arguments, _, _) in enumerate(bad)
        )
        play = Play(house, FakeReply(calls=calls), OK)
        await client.say(KEY, "go", "run-1")
        for result, (arguments, status, words) in zip(results(play.parents[1]), bad, strict=True):
            assert (result["status"], words in result["error"]) == (status, True), (arguments, result)
        assert await Spawns(gateway.services.store._database).of_parent(KEY, settled_since=0) == ()
        assert not folder(house).exists()


@pytest.mark.spec("SPAWN-17")
async def test_without_the_setting_no_files_are_taken(house: House, client: WireClient) -> None:
    play = Play(house, spawn(attachments=FILES), OK)
    await client.say(KEY, "go", "run-1")
    (result,) = results(play.parents[1])
    assert result["status"] == "forbidden"
    assert "tools.sessions_spawn.attachments.enabled" in result["error"]
    assert play.children == []
