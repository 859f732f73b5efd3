"""The real homeserver that the Matrix tests share; it is started when the first of them runs.

Test modules import these fixtures by name.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator

import pytest

from tests.fakes.matrix_door import MatrixDoor
from tests.fakes.matrix_platform import MatrixPlatform
from tests.fakes.synapse import Synapse

_running: list[Synapse] = []


@pytest.fixture(scope="session")
def synapse(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Synapse]:
    if _running:  # another module has begun, and ends it
        yield _running[0]
        return
    server = Synapse(tmp_path_factory.mktemp("synapse"))
    server.start()
    _running.append(server)
    yield server
    _running.clear()
    server.stop()


@pytest.fixture
async def matrix(synapse: Synapse, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[MatrixPlatform]:
    """Three fresh accounts, a direct chat for each person, and a room with everybody."""
    monkeypatch.setattr("openclaw.channels.supervisor.FIRST_PAUSE_S", 0.05)
    monkeypatch.setattr("openclaw.channels.matrix.sending.WAIT_S", 0.2)
    async with MatrixDoor(synapse.root) as door, MatrixPlatform(synapse, door) as platform:
        yield platform
