"""The wheel check compares what was built with what the package holds."""

from __future__ import annotations

from pathlib import Path

from scripts.check_wheel import compare_contents, list_package_files
from tests.tooling.trees import PROJECT, plant

FILES = {"openclaw/__init__.py", "openclaw/py.typed", "openclaw/store/sql/schema.sql"}
METADATA = {"openclaw-0.1.0.dist-info/METADATA", "openclaw-0.1.0.dist-info/licenses/LICENSE"}


def test_a_whole_wheel_passes() -> None:
    assert compare_contents(FILES, FILES | METADATA) == []


def test_a_missing_data_file_is_found() -> None:
    for name in sorted(FILES):
        assert compare_contents(FILES, (FILES | METADATA) - {name}) == [f"not in the wheel: {name}"]


def test_a_stray_file_and_a_missing_licence_are_found() -> None:
    stray = FILES | METADATA | {"tests/conftest.py"}
    assert compare_contents(FILES, stray) == ["does not belong into the wheel: tests/conftest.py"]
    assert compare_contents(FILES, FILES) == ["not in the wheel: LICENSE"]


def test_caches_are_not_expected(tmp_path: Path) -> None:
    plant(tmp_path, {"openclaw/a.py": "", "openclaw/sql/x.sql": "", "openclaw/__pycache__/a.pyc": ""})
    assert list_package_files(tmp_path) == {"openclaw/a.py", "openclaw/sql/x.sql"}


def test_the_package_brings_its_type_marker() -> None:
    assert "openclaw/py.typed" in list_package_files(PROJECT / "src")
