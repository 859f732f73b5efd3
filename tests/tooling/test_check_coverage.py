"""The coverage check reads a real measurement and names what no test reaches."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from scripts.check_coverage import by_package, find_problems, main
from tests.tooling.trees import plant

SETTINGS = "[run]\nbranch = true\nsource = src\n"
FULL = "def pick(x):\n    return 1 if x else 2\n"
HALF = "def half(x):\n    if x:\n        x = 2\n    return x\n\n\ndef unused():\n    return 3\n"


def measure(root: Path, call: str) -> None:
    """Runs `call` with coverage in the tree, as the tests would."""
    code = f"import sys; sys.path.insert(0, 'src'); {call}"
    plant(root, {"go.py": code})
    command = [sys.executable, "-m", "coverage", "run", "go.py"]
    subprocess.run(command, cwd=root, check=True)


def tree(root: Path, domain: str, store: str = FULL) -> Path:
    package = {"src/openclaw/__init__.py": "", "src/openclaw/domain/__init__.py": ""}
    files = {"src/openclaw/domain/a.py": domain, "src/openclaw/store/b.py": store, ".coveragerc": SETTINGS}
    return plant(root, {**package, "src/openclaw/store/__init__.py": "", **files})


@pytest.fixture(autouse=True)
def alone(monkeypatch: pytest.MonkeyPatch) -> None:
    """The measurement of the surrounding run must not reach into these."""
    for name in [name for name in os.environ if name.startswith("COV")]:
        monkeypatch.delenv(name)


def test_a_gap_in_the_domain_fails_with_its_lines(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    measure(
        tree(tmp_path, HALF),
        "from openclaw.domain.a import half; import openclaw.store.b as b; half(1); b.pick(1)",
    )
    assert main([str(tmp_path)]) == 1
    shown = capfd.readouterr().out
    assert "openclaw/domain: " in shown
    assert "at least 100 % is needed" in shown
    assert "src/openclaw/domain/a.py:8: never run" in shown
    assert "src/openclaw/domain/a.py:2: never goes on to line 4" in shown
    assert "src/openclaw/store/b.py:" not in shown


def test_full_coverage_passes_and_shows_the_table(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    measure(
        tree(tmp_path, FULL), "import openclaw.domain.a as a, openclaw.store.b as b; a.pick(1); b.pick(1)"
    )
    assert main([str(tmp_path)]) == 0
    rows = capfd.readouterr().out.splitlines()
    assert [row.split()[0] for row in rows] == [
        "package",
        "openclaw",
        "openclaw/domain",
        "openclaw/store",
        "together",
    ]
    assert rows[2].split()[-4:] == ["100.00", "%", "100", "%"]


def test_without_a_measurement_it_fails(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    assert main([str(plant(tmp_path, {".coveragerc": SETTINGS}))]) == 1
    assert "no coverage data" in capfd.readouterr().out


def report(covered: int, *, branch: bool = True, package: str = "store") -> dict[str, object]:
    summary = {"num_statements": 80, "covered_lines": covered, "num_branches": 20, "covered_branches": 20}
    data = {"summary": summary, "missing_lines": [7], "missing_branches": [[3, -1]]}
    return {
        "meta": {"branch_coverage": branch},
        "files": {f"src/openclaw/{package}/a.py": data, "src/openclaw/errors.py": data},
        "totals": summary,
    }


def test_a_gate_holds_exactly_at_its_figure() -> None:
    gates = {"openclaw/store": 95.0}
    assert by_package(report(75))["openclaw/store"].percent == 95.0
    assert find_problems(report(75), gates) == []
    assert find_problems(report(74), gates) == [
        "openclaw/store: 94.00 %, at least 95 % is needed",
        "src/openclaw/store/a.py:7: never run",
        "src/openclaw/store/a.py:3: never goes on to the exit",
    ]


def test_an_unmeasured_package_or_missing_branches_fail() -> None:
    gates = {"openclaw/store": 95.0}
    assert find_problems(report(80, package="config"), gates) == ["openclaw/store: nothing was measured"]
    assert find_problems(report(80, branch=False), gates) == ["the run measured lines only, not branches"]
