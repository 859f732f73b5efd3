"""The size check finds long files and functions, and exemptions that nobody needs."""

from __future__ import annotations

from pathlib import Path

import pytest

from scripts.check_sizes import Exemption, find_problems, main
from tests.tooling.trees import plant


def function_of(lines: int, name: str = "work") -> str:
    return f"def {name}():\n" + "    x = 1\n" * (lines - 1)


def test_budgets_hold_up_to_the_line(tmp_path: Path) -> None:
    plant(
        tmp_path,
        {"src/a.py": "x = 1\n" * 400, "tests/test_a.py": function_of(60), "docs/long.md": "x\n" * 900},
    )
    assert find_problems(tmp_path, {}, {}) == []


@pytest.mark.parametrize(
    "name", ["src/a.py", "tests/deep/b.py", "scripts/c.sh", "benchmarks/d.py", "src/q.sql"]
)
def test_one_line_too_many_is_found_in_every_folder(tmp_path: Path, name: str) -> None:
    plant(tmp_path, {name: "\n" * 401})
    assert find_problems(tmp_path, {}, {}) == [f"{name}: 401 lines, allowed 400"]


def test_long_functions_are_found_wherever_they_hide(tmp_path: Path) -> None:
    method = "class Box:\n    async def fill(self):\n" + "        x = 1\n" * 60
    nested = "if True:\n    def outer():\n        def inner():\n" + "            x = 1\n" * 60
    plant(tmp_path, {"src/a.py": function_of(61), "src/b.py": method, "src/c.py": nested})
    assert find_problems(tmp_path, {}, {}) == [
        "src/a.py:1 work: 61 lines, allowed 60",
        "src/b.py:2 Box.fill: 61 lines, allowed 60",
        "src/c.py:2 outer: 62 lines, allowed 60",
        "src/c.py:3 outer.inner: 61 lines, allowed 60",
    ]


def test_decorators_do_not_count(tmp_path: Path) -> None:
    plant(tmp_path, {"src/a.py": "@staticmethod\n" + function_of(60)})
    assert find_problems(tmp_path, {}, {}) == []


def test_an_exemption_raises_the_limit_and_no_further(tmp_path: Path) -> None:
    plant(tmp_path, {"src/a.py": "\n" * 450, "src/b.py": function_of(70)})
    files = {"src/a.py": Exemption(450, "a table")}
    functions = {"src/b.py::work": Exemption(70, "one long match")}
    assert find_problems(tmp_path, files, functions) == []
    plant(tmp_path, {"src/a.py": "\n" * 451, "src/b.py": function_of(71)})
    assert find_problems(tmp_path, files, functions) == [
        "src/a.py: 451 lines, allowed 450",
        "src/b.py:1 work: 71 lines, allowed 70",
    ]


def test_an_exemption_that_nothing_needs_fails(tmp_path: Path) -> None:
    plant(tmp_path, {"src/a.py": "\n" * 400, "src/b.py": function_of(60)})
    files = {"src/a.py": Exemption(450, "was long"), "src/gone.py": Exemption(500, "was there")}
    problems = find_problems(tmp_path, files, {"src/b.py::work": Exemption(70, "was long")})
    assert [problem.split(":")[0] for problem in problems] == ["src/a.py", "src/gone.py", "src/b.py"]
    assert all("no longer needed" in problem for problem in problems)


def test_caches_and_foreign_files_are_passed_over(tmp_path: Path) -> None:
    long = "\n" * 500
    plant(tmp_path, {"src/__pycache__/a.py": long, "src/.hidden/a.py": long, "tests/big.json": long})
    assert find_problems(tmp_path, {}, {}) == []


def test_the_exit_code_tells(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    plant(tmp_path, {"src/a.py": "x = 1\n"})
    assert main([str(tmp_path)]) == 0
    plant(tmp_path, {"src/a.py": "\n" * 401})
    assert main([str(tmp_path)]) == 1
    assert "src/a.py: 401 lines" in capsys.readouterr().out
