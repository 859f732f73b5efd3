"""A gateway that dies in the middle of a reply on a real Synapse: right sessions, one reply each."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from tests.channels.matrix_house import matrix, synapse
from tests.channels.platform import Chat
from tests.channels.suite import texts_in, until
from tests.e2e.gateway_process import GatewayProcess
from tests.fakes.matrix_platform import MatrixPlatform
from tests.fakes.openai_server import FakeOpenAIServer, FakeReply
from tests.fakes.ports import free_port

__all__ = ["matrix", "synapse"]
pytestmark = pytest.mark.interop
BEGINNING = "This is how a long answer begins, and "


@pytest.fixture
async def gateway(
    tmp_path: Path, matrix: MatrixPlatform
) -> AsyncIterator[tuple[GatewayProcess, FakeOpenAIServer]]:
    async with FakeOpenAIServer() as model:
        process = GatewayProcess(tmp_path, model.base_url, free_port())
        prepare(process, matrix)
        yield process, model
        if process.is_running:
            process.kill()


def prepare(gateway: GatewayProcess, matrix: MatrixPlatform) -> None:
    path = gateway.home / "state" / "openclaw.json"
    config = json.loads(path.read_text(encoding="utf-8"))
    config["session"] = {"dmScope": "per-channel-peer"}
    config["channels"] = {
        "matrix": matrix.options | {"dmPolicy": "open", "groupPolicy": "open", "streaming": "partial"}
    }
    path.write_text(json.dumps(config), encoding="utf-8")


def asked(body: dict[str, Any]) -> str:
    said = next(part["content"] for part in reversed(body["messages"]) if part["role"] == "user")
    return str(said if isinstance(said, str) else said[0]["text"]).rpartition("for ")[2].splitlines()[0]


async def keys_of(gateway: GatewayProcess) -> set[str]:
    async with gateway.client() as client:
        return {row["key"] for row in (await client.call("sessions.list"))["sessions"]}


async def states_of(gateway: GatewayProcess) -> dict[str, int]:
    async with gateway.client() as client:
        found: dict[str, int] = (await client.call("outbox.list", {"limit": 1}))["states"]
        return found


@pytest.mark.spec("KEY-5", "KEY-11", "KEY-20", "ROUTE-2", "ROUTE-4", "REST-7")
async def test_a_death_while_three_replies_are_being_written(
    gateway: tuple[GatewayProcess, FakeOpenAIServer], matrix: MatrixPlatform
) -> None:
    process, model = gateway
    thread = matrix.thread()
    assert thread is not None
    places = {"direct": matrix.direct(matrix.ann), "room": matrix.group(), "thread": thread}
    model.decide = lambda body: FakeReply(texts=(BEGINNING, "then"), hang_after=2)
    await process.start()
    for name, chat in places.items():
        await matrix.says(matrix.ann, chat, f"a question for {name}", mention=chat.kind == "group")
    await until(lambda: len(matrix.posts) == 3, "three drafts")
    drafts = {post.event_id for post in matrix.posts.values()}
    process.kill()
    model.decide = lambda body: FakeReply(texts=(BEGINNING, f"ends for {asked(body)}"))
    await process.start()
    ends = {chat: [f"{BEGINNING}ends for {name}"] for name, chat in places.items()}
    await until(lambda: all(texts_in(matrix, chat) == text for chat, text in ends.items()), "three ends")
    await asyncio.sleep(1)
    assert {chat: texts_in(matrix, chat) for chat in ends} == ends
    assert {post.event_id for post in matrix.posts.values()} == drafts, "the drafts became the replies"
    assert await keys_of(process) == {f"agent:main:{matrix.session_key(chat)}" for chat in ends}
    assert await states_of(process) == {"sent": 3}
    assert process.stop() == 0


@pytest.mark.spec("ROUTE-2", "REST-7")
async def test_a_death_between_sending_and_knowing_it(
    gateway: tuple[GatewayProcess, FakeOpenAIServer], matrix: MatrixPlatform
) -> None:
    process, model = gateway
    chat: Chat = matrix.direct(matrix.ann)
    model.decide = lambda body: FakeReply(texts=("short",))
    await process.start()
    matrix.door.hold_answers = True
    await matrix.says(matrix.ann, chat, "hello")
    await until(lambda: texts_in(matrix, chat), "the reply")
    process.kill()
    matrix.door.hold_answers = False
    await process.start()
    await until(lambda: len(matrix.door.sends) >= 2, "the second try")
    for _ in range(600):
        if await states_of(process) == {"sent": 1}:
            break
        await asyncio.sleep(0.1)
    assert await states_of(process) == {"sent": 1}
    assert len(set(matrix.door.sends)) == 1, "the same transaction"
    await matrix.says(matrix.ann, chat, "and now?")
    await until(lambda: len(texts_in(matrix, chat)) >= 2, "the next reply")
    assert texts_in(matrix, chat) == ["short", "short"]
    assert process.stop() == 0
