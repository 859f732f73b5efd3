"""The suite against the smallest platform: the contract itself, without anybody's HTTP."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from openclaw.channels import registry
from tests.channels.suite import *  # noqa: F403
from tests.fakes.pigeon import Loft


@pytest.fixture
def platform(monkeypatch: pytest.MonkeyPatch) -> Iterator[Loft]:
    monkeypatch.setattr(registry, "BUILT_IN", {"pigeon": "tests.fakes.pigeon:build"})
    monkeypatch.setattr("openclaw.channels.supervisor.FIRST_PAUSE_S", 0.02)
    yield Loft("loft")
    Loft.lofts.clear()
