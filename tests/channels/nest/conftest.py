"""A house whose only channel is the pigeon platform, with Ann as its owner."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest

from openclaw.channels import registry
from tests.fakes.openai_server import FakeOpenAIServer
from tests.fakes.pigeon import Loft
from tests.integration.conftest import House


@pytest.fixture
def loft(monkeypatch: pytest.MonkeyPatch) -> Iterator[Loft]:
    monkeypatch.setattr(registry, "BUILT_IN", {"pigeon": "tests.fakes.pigeon:build"})
    monkeypatch.setattr("openclaw.channels.supervisor.FIRST_PAUSE_S", 0.02)
    monkeypatch.setattr("openclaw.channels.live.DRAFT_EVERY_S", 0.02)
    yield Loft("loft")
    Loft.lofts.clear()


@pytest.fixture
async def nest(tmp_path: Path, loft: Loft) -> AsyncIterator[House]:
    async with FakeOpenAIServer() as model:
        house = House(tmp_path, model)
        house.config["session"] = {"dmScope": "per-channel-peer"}
        house.config["commands"] = {"ownerAllowFrom": ["pigeon:101"], "allowFrom": ["*"]}
        house.config["channels"] = {
            "pigeon": loft.options
            | {"dmPolicy": "open", "groupPolicy": "open", "groups": {"*": {"requireMention": True}}}
        }
        yield house


def said(loft: Loft) -> list[str]:
    """The texts that people on the platform can read, in order."""
    return [one.text for one in loft.shown()]
