"""The configuration examples in the pages load without a problem, as they stand there."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from openclaw.config.load import check_text
from scripts.check_docs import list_pages
from tests.tooling.trees import PROJECT

EXAMPLE = re.compile(r"^```json5\n(.*?)^```", re.MULTILINE | re.DOTALL)
EXAMPLES = [
    pytest.param(text, id=f"{page.relative_to(PROJECT)}-{number}")
    for page in list_pages(PROJECT)
    for number, text in enumerate(EXAMPLE.findall(page.read_text(encoding="utf-8")), 1)
]


# What the examples refer to with `${NAME}`.
ENVIRONMENT = {
    "OPENCLAW_DB_PASSWORD": "example",
    "ANTHROPIC_API_KEY": "example",
    "WORK_KEY": "example",
    "TELEGRAM_BOT_TOKEN": "12345:example-example-example-example-1",
}


def test_there_are_examples() -> None:
    assert len(EXAMPLES) >= 4


@pytest.mark.parametrize("text", EXAMPLES)
def test_each_example_loads(text: str, tmp_path: Path) -> None:
    checked = check_text(text, ENVIRONMENT | {"HOME": str(tmp_path)}, "openclaw.json")
    assert [str(problem) for problem in (*checked.problems, *checked.warnings)] == []
