"""The suite against a real Synapse. Run with `scripts/test-matrix`, not in CI."""

from __future__ import annotations

import pytest

from tests.channels.matrix_house import matrix, synapse
from tests.channels.suite import *  # noqa: F403
from tests.fakes.matrix_platform import MatrixPlatform

__all__ = ["matrix", "synapse"]
pytestmark = pytest.mark.interop


@pytest.fixture
def platform(matrix: MatrixPlatform) -> MatrixPlatform:
    return matrix
