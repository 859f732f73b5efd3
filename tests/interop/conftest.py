"""A gateway process with a scripted model server, and the published client with its own home."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.e2e.gateway_process import GatewayProcess
from tests.fakes.in_thread import served
from tests.fakes.openai_server import FakeOpenAIServer, FakeReply
from tests.fakes.ports import free_port
from tests.interop.clients import NpmClient

# As slow as a quick real model: the terminal UI loses its own run when the whole of it, acknowledgement
# included, arrives before it has drawn the message that began it.
ANSWER = FakeReply(texts=("The walrus ", "answers ", "politely."), usage={"prompt_tokens": 7}, delay_s=0.2)


@pytest.fixture
def model() -> Iterator[FakeOpenAIServer]:
    with served(FakeOpenAIServer(then=ANSWER)) as server:
        yield server


@pytest.fixture
def gateway(tmp_path: Path, model: FakeOpenAIServer) -> Iterator[GatewayProcess]:
    process = GatewayProcess(tmp_path / "ours", model.base_url, free_port())
    asyncio.run(process.start())
    yield process
    process.stop()


@pytest.fixture
def client(tmp_path: Path, gateway: GatewayProcess) -> NpmClient:
    return NpmClient(tmp_path / "theirs", gateway)
