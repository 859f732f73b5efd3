"""Writes a generated page, or says that it is out of date. The one place that touches such files."""

from __future__ import annotations

import difflib
from pathlib import Path


def settle(page: Path, text: str, *, check: bool) -> int:
    """Writes `text` to `page`; with `check` only compares. Returns the exit code of the calling script."""
    current = page.read_text(encoding="utf-8") if page.exists() else ""
    if not check:
        page.parent.mkdir(parents=True, exist_ok=True)
        page.write_text(text, encoding="utf-8")
        print(f"{page}: {'unchanged' if current == text else 'written'}")
        return 0
    if current == text:
        print(f"{page}: up to date")
        return 0
    difference = difflib.unified_diff(
        current.splitlines(), text.splitlines(), "now", "should be", lineterm="", n=0
    )
    for _, line in zip(range(20), difference, strict=False):
        print(line)
    print(f"{page}: out of date; run scripts/docs")
    return 1
