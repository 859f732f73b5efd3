"""The suite against a Bot API server of the tests' own, over real HTTP."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

from tests.channels.suite import *  # noqa: F403
from tests.fakes.telegram_platform import TelegramPlatform
from tests.fakes.telegram_server import FakeTelegram


@pytest.fixture
async def platform(monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[TelegramPlatform]:
    monkeypatch.setattr("openclaw.channels.supervisor.FIRST_PAUSE_S", 0.05)
    monkeypatch.setattr("openclaw.channels.telegram.connector.HICCUP_PAUSES_S", (0.02,))
    monkeypatch.setattr("openclaw.channels.telegram.sending.WAIT_S", 0.1)
    async with FakeTelegram() as server:
        yield TelegramPlatform(server)
