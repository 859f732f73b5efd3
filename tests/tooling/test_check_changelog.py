"""The changelog check compares the newest release with the package."""

from __future__ import annotations

from pathlib import Path

import pytest

from scripts.check_changelog import find_problems, main
from tests.tooling.trees import plant

GOOD = "# Changelog\n\n## [Unreleased]\n\n## [0.2.0] - 2026-01-02\n\n## [0.1.0] - 2026-01-01\n"


def problems_of(tmp_path: Path, changelog: str, package: str = '__version__ = "0.2.0"\n') -> list[str]:
    return find_problems(plant(tmp_path, {"CHANGELOG.md": changelog, "src/openclaw/__init__.py": package}))


def test_a_changelog_in_order_passes(tmp_path: Path) -> None:
    assert problems_of(tmp_path, GOOD) == []
    assert main([str(tmp_path)]) == 0


@pytest.mark.parametrize(
    ("changelog", "problem"),
    [
        (GOOD.replace("0.2.0", "0.3.0"), "newest release is 0.3.0, the package is 0.2.0"),
        (GOOD.replace("## [Unreleased]\n", ""), "the first heading is not ## [Unreleased]"),
        (GOOD.replace(" - 2026-01-02", ""), "[0.2.0] has no date"),
        (GOOD.replace("[0.1.0]", "[0.2.0]"), "[0.2.0] stands there twice"),
        ("# Changelog\n\n## [Unreleased]\n", "newest release is none"),
    ],
)
def test_each_disorder_is_named(tmp_path: Path, changelog: str, problem: str) -> None:
    assert any(problem in line for line in problems_of(tmp_path, changelog))
    assert main([str(tmp_path)]) == 1


def test_a_package_without_a_version_is_named(tmp_path: Path) -> None:
    assert problems_of(tmp_path, GOOD, "x = 1\n") == ['src/openclaw/__init__.py: no line __version__ = "…"']
