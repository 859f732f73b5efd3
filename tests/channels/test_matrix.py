"""The suite against a small homeserver of the tests' own, over real HTTP."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

from tests.channels.suite import *  # noqa: F403
from tests.fakes.matrix_fake_platform import FakeMatrixPlatform
from tests.fakes.matrix_server import FakeMatrix, Requests


@pytest.fixture
async def platform(monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[FakeMatrixPlatform]:
    async def requests() -> Requests:
        return Requests()

    monkeypatch.setattr("openclaw.channels.matrix.connector.load_requests", requests)
    monkeypatch.setattr("openclaw.channels.supervisor.FIRST_PAUSE_S", 0.05)
    monkeypatch.setattr("openclaw.channels.matrix.connector.HICCUP_PAUSES_S", (0.02,))
    monkeypatch.setattr("openclaw.channels.matrix.sending.WAIT_S", 0.1)
    async with FakeMatrix() as server:
        yield FakeMatrixPlatform(server)
