"""A workspace with neighbours that nobody may reach, and its open root."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from openclaw.engine.tools.workspace.rooted import Root


@pytest.fixture
def place(tmp_path: Path) -> Path:
    """A workspace with a neighbour that nobody may reach."""
    (tmp_path / "work").mkdir()
    (tmp_path / "outside").mkdir()
    (tmp_path / "outside" / "secret.txt").write_text("secret")
    (tmp_path / "work-2").mkdir()
    (tmp_path / "work-2" / "secret.txt").write_text("secret")
    return tmp_path / "work"


@pytest.fixture
def root(place: Path) -> Iterator[Root]:
    with Root(str(place)) as opened:
        yield opened
