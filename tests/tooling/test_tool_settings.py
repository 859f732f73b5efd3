"""The settings in pyproject.toml really catch what they are there for."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tomllib
from collections.abc import Sequence
from pathlib import Path

import pytest

from tests.tooling.trees import PROJECT, plant

TOOLS = Path(sys.executable).parent


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    """The project's settings over an empty house: every room of the layers, nothing inside."""
    shutil.copy(PROJECT / "pyproject.toml", tmp_path)
    settings = tomllib.loads((tmp_path / "pyproject.toml").read_text(encoding="utf-8"))["tool"][
        "importlinter"
    ]
    rooms = {name.strip() for layer in settings["contracts"][0]["layers"] for name in layer.split("|")}
    for contract in settings["contracts"][1:]:
        named = [*contract.get("source_modules", ()), *contract.get("forbidden_modules", ())]
        rooms |= {
            name.removeprefix("openclaw.").replace(".", "/") for name in named if name.startswith("openclaw.")
        }
    plant(tmp_path / "src/openclaw", {"__init__.py": "", **{f"{room}/__init__.py": "" for room in rooms}})
    return tmp_path


def run(command: Sequence[str], cwd: Path) -> subprocess.CompletedProcess[str]:
    environment = {
        name: value for name, value in os.environ.items() if not name.startswith(("COV", "PYTEST"))
    }
    environment["PYTHONPATH"] = str(cwd / "src")
    return subprocess.run(command, cwd=cwd, env=environment, capture_output=True, text=True, timeout=300)


def test_an_empty_house_keeps_every_contract(tree: Path) -> None:
    done = run([str(TOOLS / "lint-imports"), "--no-cache"], tree)
    assert done.returncode == 0
    assert ", 0 broken" in done.stdout


@pytest.mark.parametrize(
    ("contract", "file", "source"),
    [
        ("imports point down only", "store/planted.py", "import openclaw.engine\n"),
        ("imports point down only", "domain/planted.py", "import openclaw.protocol\n"),
        ("domain does no I/O", "domain/planted.py", "import asyncio\n"),
        ("domain does no I/O", "domain/planted.py", "def late():\n    import time\n"),
        ("the wire is sans-I/O", "protocol/planted.py", "import socket\n"),
        ("never name a backend", "engine/planted.py", "import openclaw.store.sqlite\n"),
    ],
)
def test_an_import_against_the_layers_is_caught(tree: Path, contract: str, file: str, source: str) -> None:
    plant(tree / "src/openclaw", {file: source})
    done = run([str(TOOLS / "lint-imports"), "--no-cache"], tree)
    assert done.returncode == 1
    broken = [line for line in done.stdout.splitlines() if contract in line and "BROKEN" in line]
    assert len(broken) == 1
    assert "planted" in done.stdout


def test_a_new_room_without_a_floor_is_caught(tree: Path) -> None:
    plant(tree / "src/openclaw", {"attic/__init__.py": ""})
    done = run([str(TOOLS / "lint-imports"), "--no-cache"], tree)
    assert done.returncode == 1
    assert "attic" in done.stdout + done.stderr


@pytest.mark.parametrize(
    ("rule", "source"),
    [
        ("T201", 'print("x")\n'),
        ("F401", "import json\n"),
        ("F821", "x = unknown\n"),
        ("PTH123", 'open("x")\n'),
    ],
)
def test_lint_catches_what_it_is_for(tree: Path, rule: str, source: str) -> None:
    plant(tree, {"src/openclaw/planted.py": source})
    done = run(
        [str(TOOLS / "ruff"), "check", "--no-cache", "--output-format=concise", "src/openclaw/planted.py"],
        tree,
    )
    assert done.returncode == 1
    assert rule in done.stdout


def test_an_unformatted_file_is_caught(tree: Path) -> None:
    plant(tree, {"src/openclaw/planted.py": "x = {  'a':1 }\n"})
    done = run([str(TOOLS / "ruff"), "format", "--no-cache", "--check", "src/openclaw/planted.py"], tree)
    assert done.returncode == 1


def test_types_are_strict(tree: Path) -> None:
    plant(tree, {"planted.py": "def untyped(x):\n    return x\n\n\nnumber: int = 'word'\n"})
    done = run([str(TOOLS / "mypy"), "--cache-dir=/dev/null", "planted.py"], tree)
    assert done.returncode == 1
    assert "planted.py:1: error: Function is missing a type annotation" in done.stdout
    assert "planted.py:5: error: Incompatible types in assignment" in done.stdout


def test_a_warning_or_an_unknown_marker_fails_a_test(tree: Path) -> None:
    warn = "import warnings\n\n\ndef test_warn():\n    warnings.warn('old', DeprecationWarning)\n"
    marker = "import pytest\n\n\n@pytest.mark.unheard\ndef test_mark(): ...\n"
    plant(tree, {"tests/test_warn.py": warn, "tests/marker/test_mark.py": marker})
    pytest_command = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider"]
    warned = run([*pytest_command, "tests/test_warn.py"], tree)
    assert warned.returncode == 1
    assert "DeprecationWarning: old" in warned.stdout
    marked = run([*pytest_command, "tests/marker"], tree)
    assert marked.returncode == 2
    assert "'unheard' not found in `markers`" in marked.stdout


def test_an_unknown_requirement_stops_the_tests(tree: Path) -> None:
    for folder in ("docs/reference", "scripts"):
        shutil.copytree(PROJECT / folder, tree / folder, ignore=shutil.ignore_patterns("__pycache__"))
    for name in ("tests/conftest.py", "tests/fakes/even_loop.py"):
        plant(tree, {name: (PROJECT / name).read_text(encoding="utf-8")})
    test = "import pytest\n\n\n@pytest.mark.spec('{}')\ndef test_a(): ...\n"
    test += "\n\n@pytest.mark.spec('KEY-2')\ndef test_b(): ...\n"
    pytest_command = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", "-q"]
    plant(tree, {"tests/test_a.py": test.format("KEY-1")})
    assert "2 passed" in run(pytest_command, tree).stdout
    assert "1 passed, 1 deselected" in run([*pytest_command, "--spec", "KEY-2"], tree).stdout
    plant(tree, {"tests/test_a.py": test.format("KEY-999")})
    stopped = run(pytest_command, tree)
    assert stopped.returncode == 4
    assert "tests/test_a.py::test_a: KEY-999" in stopped.stderr
