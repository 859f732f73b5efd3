"""The docs check finds dead links, pages nobody reaches, and commands that do not exist."""

from __future__ import annotations

from pathlib import Path

import pytest

from scripts.check_docs import check_commands, check_links, check_reach, main
from tests.tooling.trees import plant

GOOD = {
    "README.md": "# Product\n\n[docs](docs/index.md), [a part](docs/topics/a.md#two-words), [web](https://x.test/)\n",
    "docs/index.md": "# Index\n\n- [A](topics/a.md)\n- [Commands](reference/cli.md)\n",
    "docs/topics/a.md": "# A\n\n## Two words\n\n[up](#a) [list](../reference/)\n",
    "docs/reference/cli.md": "# Commands\n\n## `openclaw`\n\n## `openclaw status`\n",
    "Makefile": ".PHONY: test unit\n",
    "scripts/test": "#!/bin/sh\n",
}


def test_pages_in_order_pass(tmp_path: Path) -> None:
    assert main([str(plant(tmp_path, GOOD))]) == 0


@pytest.mark.parametrize(
    ("page", "text", "problem"),
    [
        ("README.md", "[x](docs/gone.md)", "README.md:1: docs/gone.md leads nowhere"),
        ("docs/topics/a.md", "\n[x](b.md)", "docs/topics/a.md:2: b.md leads nowhere"),
        (
            "docs/topics/a.md",
            "[x](../index.md#none)",
            "docs/topics/a.md:1: ../index.md has no heading for #none",
        ),
        ("docs/topics/a.md", "[x](#none)", "docs/topics/a.md:1: this page has no heading for #none"),
        ("docs/topics/a.md", "![p](p.svg)", "docs/topics/a.md:1: p.svg leads nowhere"),
        ("docs/topics/a.md", '<img src="p.svg">', "docs/topics/a.md:1: p.svg leads nowhere"),
        ("docs/topics/a.md", "[x][y]\n\n[y]: b.md", "docs/topics/a.md:3: b.md leads nowhere"),
        ("CONTRIBUTING.md", "[x](../../etc)", "CONTRIBUTING.md:1: ../../etc leads"),
    ],
)
def test_dead_links_are_found(tmp_path: Path, page: str, text: str, problem: str) -> None:
    plant(tmp_path, {**GOOD, page: f"{text}\n"})
    assert any(line.startswith(problem) for line in check_links(tmp_path))
    assert main([str(tmp_path)]) == 1


def test_links_inside_code_are_no_links(tmp_path: Path) -> None:
    text = "# A\n\n## Two words\n\n`[x](gone.md)`\n\n```\n[y](gone.md)\n```\n\n~~~sh\n# [z](gone.md)\n~~~\n"
    assert check_links(plant(tmp_path, {**GOOD, "docs/topics/a.md": text})) == []


def test_repeated_headings_get_numbers(tmp_path: Path) -> None:
    text = "# A\n\n## Two words\n\n## Two words\n\n[x](#two-words-1)\n\n[y](#two-words-2)\n"
    found = check_links(plant(tmp_path, {**GOOD, "docs/topics/a.md": text}))
    assert found == ["docs/topics/a.md:9: this page has no heading for #two-words-2"]


def test_a_page_that_no_link_reaches_is_found(tmp_path: Path) -> None:
    plant(tmp_path, {**GOOD, "docs/howto/lost.md": "[me](lost.md)\n", "docs/topics/b.md": "x\n"})
    plant(tmp_path, {"docs/topics/a.md": "[b](b.md)\n"})
    assert check_reach(tmp_path) == ["docs/howto/lost.md: no path of links from docs/index.md"]


@pytest.mark.parametrize(
    ("line", "problem"),
    [
        ("scripts/gone --fast", "there is no scripts/gone"),
        ("./scripts/gone", "there is no scripts/gone"),
        ("$ CI=true scripts/gone", "there is no scripts/gone"),
        ("make gone", "make has no target gone"),
        ("openclaw gone --json", "openclaw has no command gone"),
        (".venv/bin/openclaw gone", "openclaw has no command gone"),
        ("openclaw status --json   # a comment", ""),
        ("openclaw", ""),
        ("openclaw --version", ""),
        ("make test", ""),
        ("scripts/test", ""),
        ("git clone https://x.test/y", ""),
        ("echo 'an open quote", ""),
        ("# only a comment", ""),
    ],
)
def test_commands_that_do_not_exist_are_found(tmp_path: Path, line: str, problem: str) -> None:
    plant(
        tmp_path, {**GOOD, "docs/topics/a.md": f"# A\n\n```sh\n{line}\n```\n\n```text\nopenclaw any\n```\n"}
    )
    assert check_commands(tmp_path) == ([f"docs/topics/a.md:4: {problem}"] if problem else [])
