"""The module check finds what nothing uses, and follows every honest way of using a module."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pytest

from scripts.check_imports import find_problems, main
from tests.tooling.trees import plant

DOORS = {
    "openclaw/__init__.py": "",
    "openclaw/__main__.py": "from openclaw.cli.main import main\n",
    "openclaw/cli/__init__.py": '"""The commands."""\n',
}


def problems_of(tmp_path: Path, main_module: str, others: Mapping[str, str]) -> list[str]:
    """The problems of a package with this command module and these other files."""
    files = {f"openclaw/{name}.py": text for name, text in others.items()}
    root = plant(tmp_path, {**DOORS, "openclaw/cli/main.py": main_module, **files})
    return [problem.replace(f"{root}/", "") for problem in find_problems(root, {})]


def test_a_module_that_nothing_imports_is_found(tmp_path: Path) -> None:
    found = problems_of(tmp_path, "import openclaw.used\n", {"used": "x = 1\n", "forgotten": "x = 1\n"})
    assert found == ["openclaw/forgotten.py: nothing imports openclaw.forgotten"]


def test_use_by_an_unused_module_is_no_use(tmp_path: Path) -> None:
    found = problems_of(tmp_path, "", {"first": "from openclaw import second\n", "second": "x = 1\n"})
    assert [line.partition(":")[0] for line in found] == ["openclaw/first.py", "openclaw/second.py"]


@pytest.mark.parametrize(
    "source",
    [
        "import openclaw.store.rows\n",
        "import openclaw.store.rows as rows\n",
        "from openclaw.store import rows\n",
        "from openclaw.store.rows import Row\n",
        "from ..store import rows\n",
        "from ..store.rows import Row\n",
        "def late():\n    from openclaw.store.rows import Row\n",
        "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    from openclaw.store.rows import Row\n",
        'COMMANDS = {"rows": "openclaw.store.rows:command"}\n',
        'import importlib\n\ndef late():\n    importlib.import_module("openclaw.store.rows")\n',
    ],
)
def test_every_way_of_importing_counts(tmp_path: Path, source: str) -> None:
    assert problems_of(tmp_path, source, {"store/__init__": "", "store/rows": "x = 1\n"}) == []


def test_a_relative_entry_counts_from_its_package(tmp_path: Path) -> None:
    assert problems_of(tmp_path, 'LAZY = {"status": ".status:command"}\n', {"cli/status": "x = 1\n"}) == []


@pytest.mark.parametrize(
    "source",
    ['"""See openclaw.rows for more."""\n', '"""openclaw.rows"""\n', '# openclaw.rows\nNAME = "rows"\n'],
)
def test_words_about_a_module_are_no_use(tmp_path: Path, source: str) -> None:
    assert problems_of(tmp_path, source, {"rows": "x = 1\n"}) == [
        "openclaw/rows.py: nothing imports openclaw.rows"
    ]


def test_an_entry_that_leads_nowhere_is_found(tmp_path: Path) -> None:
    found = problems_of(tmp_path, 'x = 1\nLAZY = {"gone": "openclaw.cli.gone:command"}\n', {})
    assert found == ["openclaw/cli/main.py:2: no module is called openclaw.cli.gone"]


def test_a_package_counts_only_if_it_holds_code(tmp_path: Path) -> None:
    found = problems_of(tmp_path, "", {"empty/__init__": '"""A room."""\n', "full/__init__": "x = 1\n"})
    assert found == ["openclaw/full/__init__.py: nothing imports openclaw.full"]


def test_waiting_modules_are_named_and_carry_what_they_import(tmp_path: Path) -> None:
    files = {
        "openclaw/lanes.py": "import openclaw.slots\n",
        "openclaw/slots.py": "",
        "openclaw/cli/main.py": "",
    }
    root = plant(tmp_path, {**DOORS, **files})
    assert len(find_problems(root, {})) == 2
    assert find_problems(root, {"openclaw.lanes": "the engine"}) == []


def test_a_module_that_no_longer_waits_must_leave_the_list(tmp_path: Path) -> None:
    root = plant(
        tmp_path, {**DOORS, "openclaw/cli/main.py": "import openclaw.lanes\n", "openclaw/lanes.py": ""}
    )
    found = find_problems(root, {"openclaw.lanes": "the engine", "openclaw.gone": "the engine"})
    assert [line.partition(":")[0] for line in found] == ["openclaw.gone", "openclaw.lanes"]


def test_the_exit_code_tells(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    files = {f"src/{name}": text for name, text in DOORS.items()}
    plant(tmp_path, {**files, "src/openclaw/cli/main.py": "", "src/openclaw/spare.py": "x = 1\n"})
    assert main([str(tmp_path)]) == 1
    assert "nothing imports openclaw.spare" in capsys.readouterr().out
