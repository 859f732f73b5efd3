"""How the config tests read a text: the same door as the product, a fixed name and environment."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from openclaw.config.load import check_text
from openclaw.config.schema import Config
from openclaw.config.validate import Validated

NAME = "openclaw.json"
FOUNDING = Path(__file__).parent / "founding"


def check(text: str, env: Mapping[str, str] | None = None) -> Validated:
    return check_text(text, env or {}, NAME)


def config_of(text: str, env: Mapping[str, str] | None = None) -> Config:
    """The config of a text that must be without fault."""
    checked = check(text, env)
    assert [str(problem) for problem in checked.problems] == []
    return checked.config


def problems_of(text: str, env: Mapping[str, str] | None = None) -> list[str]:
    """The problems of a text, without the file name and line in front."""
    return [f"{problem.path}: {problem.reason}" for problem in check(text, env).problems]


def warnings_of(text: str, env: Mapping[str, str] | None = None) -> list[str]:
    return [f"{warning.path}: {warning.reason}" for warning in check(text, env).warnings]


def founding_examples() -> dict[str, str]:
    return {file.name: file.read_text(encoding="utf-8") for file in sorted(FOUNDING.iterdir())}
