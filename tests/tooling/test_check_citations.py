"""The citation check finds codes that stand in no list, and only those."""

from __future__ import annotations

from pathlib import Path

import pytest

from scripts.check_citations import find_problems, main
from tests.tooling.trees import plant

LISTS = {
    "docs/reference/spec_ids.txt": "# a comment\nKEY\tsection\t-\tKeys\nKEY-1\tseed\tP0\tMain\n",
    "docs/reference/settled.md": "| AMB-8 | which? | this |\n",
    "docs/topics/pitfalls.md": "| A3 | wrong | rule |\n| B1 | wrong | rule |\n",
}


@pytest.mark.parametrize(
    ("text", "missing"),
    [
        ("# (KEY-1, AMB-8)", []),
        ("# (PITFALLS A3, B1)", []),
        ("# SHA-256, UTF-8, X-KEY-9, KEY-9x, RFC-1", []),
        ("# (KEY-2)", ["KEY-2"]),
        ("# KEY-1..KEY-3", ["KEY-3"]),
        ("# (AMB-9)", ["AMB-9"]),
        ("# PITFALLS A3 and B2", ["PITFALLS B2"]),
        ("# PITFALLS A30", ["PITFALLS A30"]),
    ],
)
@pytest.mark.parametrize(
    "name", ["src/openclaw/a.py", "src/openclaw/sql/a.sql", "tests/test_a.py", "docs/a.md"]
)
def test_only_codes_that_stand_nowhere_are_found(
    tmp_path: Path, name: str, text: str, missing: list[str]
) -> None:
    plant(tmp_path, {**LISTS, name: f"\n{text}\n"})
    assert find_problems(tmp_path) == [f"{name}:2: there is no {code}" for code in missing]
    assert main([str(tmp_path)]) == (1 if missing else 0)
