"""Small project trees for the tests of the checks: a violation is planted, the check must find it."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

PROJECT = Path(__file__).resolve().parent.parent.parent


def plant(root: Path, files: Mapping[str, str]) -> Path:
    """Writes the files below `root` and returns it."""
    for name, text in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    return root
