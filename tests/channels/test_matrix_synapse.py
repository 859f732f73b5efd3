"""The suite against a real Synapse, and what is Matrix's own. Run with `scripts/test-matrix`, not in CI."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator

import pytest

from tests.channels.suite import *  # noqa: F403
from tests.fakes.matrix_door import MatrixDoor
from tests.fakes.matrix_platform import MatrixPlatform
from tests.fakes.synapse import Synapse

pytestmark = pytest.mark.interop


@pytest.fixture(scope="session")
def synapse(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Synapse]:
    server = Synapse(tmp_path_factory.mktemp("synapse"))
    server.start()
    yield server
    server.stop()


@pytest.fixture
async def platform(synapse: Synapse, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[MatrixPlatform]:
    monkeypatch.setattr("openclaw.channels.supervisor.FIRST_PAUSE_S", 0.05)
    monkeypatch.setattr("openclaw.channels.matrix.sending.WAIT_S", 0.2)
    async with MatrixDoor(synapse.root) as door, MatrixPlatform(synapse, door) as matrix:
        yield matrix
