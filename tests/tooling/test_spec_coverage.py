"""The requirements page tells the truth about the tests, and contradictions stop it."""

from __future__ import annotations

from pathlib import Path

import pytest

from scripts.spec_coverage import main, read_coverage, read_requirements, render
from tests.tooling.trees import PROJECT, plant

IDS = (
    "# a comment\nKEY\tsection\t-\tSession keys\nKEY-1\tseed\tP0\tOne main session\n"
    "KEY-2\tseed\tP0\tLiteral `a|b`\nKEY-3\tupstream-may\tP1\tCase\n"
)
TEST = 'import pytest\n\n\n@pytest.mark.spec("KEY-1")\ndef test_main(): ...\n'


def tree(tmp_path: Path, *, ids: str = IDS, waiting: str = "", test: str = TEST) -> Path:
    files = {"docs/reference/spec_ids.txt": ids, "docs/reference/spec_waiting.txt": waiting}
    return plant(tmp_path, {**files, "tests/unit/test_keys.py": test})


def run(root: Path, *arguments: str) -> int:
    return main(["--root", str(root), *arguments])


def test_the_page_lists_proofs_reasons_and_gaps(tmp_path: Path) -> None:
    page = render(read_coverage(tree(tmp_path, waiting="KEY-3\tgateway\tneeds a channel\n")))
    link = "[tests/unit/test_keys.py](../../tests/unit/test_keys.py)"
    assert f"| KEY-1 | P0 | seed | One main session | {link}: test_main |" in page
    assert "| KEY-2 | P0 | seed | Literal `a\\|b` | *not yet* |" in page
    assert "| KEY-3 | P1 | upstream-may | Case | *not yet: needs a channel (gateway)* |" in page
    assert "| **all** | 1/2 | 0/1 | – |" in page
    assert "| Session keys (KEY) | 1/2 | 0/1 | – |" in page


def test_a_partly_proved_requirement_is_counted_apart(tmp_path: Path) -> None:
    root = tree(tmp_path, waiting="KEY-1\tengine\tpartly: the turn itself comes later\n")
    page = render(read_coverage(root))
    assert "test_main<br>*partly: the turn itself comes later (engine)* |" in page
    assert "| **all** | 0/2, 1 partly | 0/1 | – |" in page


def test_check_passes_only_on_the_current_page(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    root = tree(tmp_path)
    assert run(root, "--check") == 1
    assert run(root) == 0
    assert run(root, "--check") == 0
    plant(root, {"tests/unit/test_more.py": TEST.replace("KEY-1", "KEY-2")})
    capsys.readouterr()
    assert run(root, "--check") == 1
    assert "spec-coverage.md: out of date; run scripts/docs" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"test": TEST.replace("KEY-1", "KEY-11")}, "tests/unit/test_keys.py:4: unknown requirement KEY-11"),
        ({"test": TEST.replace('"KEY-1"', "NAME")}, "tests/unit/test_keys.py:4: the spec marker takes plain"),
        (
            {"waiting": "KEY-1\tengine\tlater\n"},
            "KEY-1 is proved in tests/unit/test_keys.py:4; take the line out",
        ),
        (
            {"waiting": "KEY-2\tengine\tpartly, later\n"},
            "KEY-2 is said to be proved partly, but no test names it",
        ),
        ({"waiting": "KEY-9\tengine\tlater\n"}, "spec_waiting.txt:1: KEY-9 is an unknown requirement"),
        ({"waiting": "KEY-2\ta\tb\nKEY-2\ta\tb\n"}, "spec_waiting.txt:2: KEY-2 stands here twice"),
        ({"waiting": "KEY-2 engine later\n"}, "expected 3 fields"),
        ({"ids": IDS + "KEY-1\tseed\tP0\tAgain\n"}, "KEY-1 has no section, no known priority, or stands"),
        ({"ids": IDS + "ROW-1\tseed\tP0\tNo section\n"}, "ROW-1 has no section"),
        ({"ids": IDS + "KEY-4\tseed\tP7\tOdd\n"}, "KEY-4 has no section, no known priority"),
    ],
)
def test_contradictions_are_named_with_their_place(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], change: dict[str, str], message: str
) -> None:
    assert run(tree(tmp_path, **change), "--check") == 1
    assert message in capsys.readouterr().out


def test_missing_lists_what_is_open(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    root = tree(tmp_path, waiting="KEY-3\tgateway\tneeds a channel\n")
    assert run(root, "--missing", "P0") == 0
    assert capsys.readouterr().out == "KEY-2     not yet  Literal `a|b`\n1 of 2 P0 requirements are open\n"
    assert run(root, "--missing", "P1") == 0
    assert "KEY-3     waiting  Case (gateway: needs a channel)" in capsys.readouterr().out


def test_the_projects_own_list_is_whole() -> None:
    sections, requirements = read_requirements(PROJECT / "docs/reference/spec_ids.txt")
    assert (len(sections), len(requirements)) == (35, 367)
    assert sum(1 for known in requirements.values() if known.priority == "P0") == 169
    assert all("…" not in known.title for known in requirements.values())
