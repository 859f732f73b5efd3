"""Workspace tools and attachments through the whole house: asked for by a model, kept in the transcript."""

from __future__ import annotations

import asyncio
import base64
import json
import time
from pathlib import Path
from typing import Any

import pytest

from openclaw.app import Gateway
from tests.fakes.openai_server import FakeCall, FakeReply
from tests.fakes.wire_client import RefusedError, WireClient
from tests.integration.conftest import TOKEN, House

KEY = "agent:main:work"
OK = FakeReply(texts=("done",))
PNG = b"\x89PNG\r\n\x1a\n" + bytes(200)


def b64(data: bytes) -> str:
    return base64.b64encode(data).decode()


def calling(name: str, **arguments: Any) -> FakeReply:
    return FakeReply(calls=(FakeCall(name, (json.dumps(arguments),)),))


def workspace_of(house: House) -> Path:
    return house.home / "state" / "workspace"


def told(house: House, request: int) -> str:
    """What the model was told last in a request: the result of its call."""
    content = house.model.requests[request].body["messages"][-1]["content"]
    assert isinstance(content, str)
    return content


async def use(house: House, client: WireClient, run_id: str, name: str, **arguments: Any) -> str:
    house.model.script(calling(name, **arguments), OK)
    final = await client.say(KEY, "go", run_id)
    assert final["state"] == "final"
    return told(house, len(house.model.requests) - 1)


async def test_an_owner_s_agent_works_on_files(house: House, client: WireClient) -> None:
    assert "made notes/a.md" in await use(
        house, client, "1", "write", path="notes/a.md", content="one\ntwo\n"
    )
    assert "changed notes/a.md at line 2" in await use(
        house, client, "2", "edit", path="notes/a.md", oldText="two", newText="three"
    )
    assert await use(house, client, "3", "read", path="notes/a.md") == "one\nthree\n"
    assert await use(house, client, "4", "grep", pattern="thr") == "notes/a.md:2: three"
    assert await use(house, client, "5", "list", path=".") == "notes/"
    assert await use(house, client, "6", "exec", command="wc -l < notes/a.md") == "2\n[exit code 0]"
    assert "noted in memory/" in await use(house, client, "7", "memory", action="append", text="likes tea")
    assert "likes tea" in await use(house, client, "8", "memory", action="search", query="TEA")
    assert (workspace_of(house) / "notes" / "a.md").read_text() == "one\nthree\n"


@pytest.mark.spec("DB-19")
async def test_a_path_out_of_the_workspace_is_a_result_that_says_why(
    house: House, client: WireClient
) -> None:
    workspace_of(house).mkdir(parents=True)
    (workspace_of(house) / "config").symlink_to(house.home / "state" / "openclaw.json")
    for number, path in enumerate(("/etc/passwd", "../openclaw.json", "config")):
        answer = json.loads(await use(house, client, f"r{number}", "read", path=path))
        assert answer["status"] == "forbidden"
        assert "workspace" in answer["error"]
        assert TOKEN not in str(answer)


@pytest.mark.spec("TRX-11")
async def test_secrets_of_the_configuration_never_reach_the_transcript(
    house: House, client: WireClient
) -> None:
    command = f"cat {house.home}/state/openclaw.json; env"
    text = await use(house, client, "1", "exec", command=command)
    assert TOKEN not in text
    assert "sk-fake-key-000000000000" not in text
    assert "secrets masked before this text was stored]" in text
    history = await client.call("chat.history", {"sessionKey": KEY, "maxChars": 100_000})
    assert TOKEN not in json.dumps(history)
    assert not [
        path
        for path in (house.home / "state").glob("openclaw.sqlite*")
        if TOKEN.encode() in path.read_bytes()
    ]


async def test_aborting_the_run_kills_its_command(house: House, client: WireClient) -> None:
    workspace_of(house).mkdir(parents=True)
    house.model.script(
        calling("exec", command="trap '' TERM; echo $$ > leader; sleep 300 & wait; sleep 300"), OK
    )
    await client.call("chat.send", {"sessionKey": KEY, "message": "go", "idempotencyKey": "run-1"})
    leader = await asyncio.to_thread(_pid_in, workspace_of(house) / "leader")
    await client.call("chat.abort", {"sessionKey": KEY, "runId": "run-1"})
    assert (await client.ended("run-1"))["state"] == "aborted"
    assert not _is_running(leader)


def _pid_in(path: Path) -> int:
    until = time.monotonic() + 60
    while not path.exists() or not path.read_text().endswith("\n"):
        assert time.monotonic() < until
        time.sleep(0.02)
    return int(path.read_text())


def _is_running(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] not in "ZX"
    except OSError:
        return False


class BareHouse(House):
    """A machine on which no program is found."""

    @property
    def env(self) -> dict[str, str]:
        return super().env | {"PATH": str(self.home)}


async def test_a_sandboxed_agent_is_told_what_is_missing(house: House) -> None:
    house = BareHouse(house.home, house.model)
    house.config["agents"]["defaults"]["sandbox"] = {"mode": "all"}
    async with house.gateway() as gateway, WireClient(f"ws://127.0.0.1:{gateway.port}", TOKEN) as client:
        answer = json.loads(await use(house, client, "1", "exec", command="touch x"))
    assert answer["status"] == "forbidden"
    assert "no sandbox backend is installed" in answer["error"]
    assert "apt install bubblewrap" in answer["error"]
    assert not list(house.home.glob("**/x"))


# -- attachments -----------------------------------------------------------------------------------


@pytest.mark.spec("RPC-12")
async def test_attachments_reach_the_model_and_stay_in_the_history(house: House, client: WireClient) -> None:
    house.model.script(OK)
    attachments = [
        {"type": "image", "mimeType": "image/png", "fileName": "p.png", "content": b64(PNG)},
        {"type": "file", "mimeType": "text/csv", "fileName": "t.csv", "content": b64(b"a,b\n")},
    ]
    final = await client.say(KEY, "look", "run-1", attachments=attachments)
    assert final["state"] == "final"
    sent = house.model.requests[0].body["messages"][-1]["content"]
    assert [part["type"] for part in sent] == ["text", "image_url", "text"]
    assert sent[0]["text"] == "look"
    assert sent[1]["image_url"]["url"] == f"data:image/png;base64,{b64(PNG)}"
    assert sent[2]["text"] == "[Attached file: t.csv (text/csv, 4 bytes)]\na,b\n\n[End of file: t.csv]"
    history = await client.call("chat.history", {"sessionKey": KEY})
    shown = history["messages"][0]["content"]
    assert [block["type"] for block in shown] == ["text", "image", "text"]
    again = await client.call(
        "chat.send",
        {"sessionKey": KEY, "message": "look", "idempotencyKey": "run-1", "attachments": attachments},
    )
    assert again == {"runId": "run-1", "status": "ok"}


@pytest.mark.spec("RPC-12")
async def test_an_attachment_may_come_without_words(house: House, client: WireClient) -> None:
    house.model.script(OK)
    final = await client.say(KEY, " ", "run-1", attachments=[{"content": b64(PNG)}])
    assert final["state"] == "final"
    sent = house.model.requests[0].body["messages"][-1]["content"]
    assert [part["type"] for part in sent] == ["image_url"]


@pytest.mark.spec("RPC-12")
@pytest.mark.parametrize(
    ("attachment", "words"),
    [
        ({"content": "@@@@"}, "not valid base64"),
        ({"content": b64(b"%PDF-1.7")}, "application/pdf"),
        ({"content": b64(PNG), "mimeType": "image/jpeg"}, "its bytes are image/png"),
        ({"content": b64(b"\x89PNG\r\n\x1a\n" + bytes(6_291_456))}, "an image may have"),
        ({}, "has no content"),
    ],
)
async def test_an_attachment_that_cannot_be_used_is_refused_and_nothing_is_stored(
    house: House, client: WireClient, gateway: Gateway, attachment: dict[str, Any], words: str
) -> None:
    with pytest.raises(RefusedError) as caught:
        await client.say(KEY, "look", "run-1", attachments=[attachment])
    assert caught.value.error["code"] == "INVALID_REQUEST"
    assert words in caught.value.error["message"]
    assert await gateway.services.store.session(KEY) is None
    assert house.model.requests == []
