"""What is known about the config file, for `--json` of several commands."""

from __future__ import annotations

from typing import Any

from openclaw.config.load import LoadedConfig
from openclaw.config.problems import Problem

Json = dict[str, Any]


def config_report(loaded: LoadedConfig) -> Json:
    """Where the file is, whether it is valid, and every mistake and warning with its place."""
    return {
        "ok": not loaded.problems,
        "path": str(loaded.path),
        "exists": loaded.exists,
        "valid": not loaded.problems,
        "problems": _listed(loaded.problems),
        "warnings": _listed(loaded.warnings),
    }


def _listed(problems: tuple[Problem, ...]) -> list[Json]:
    return [
        {"file": found.file, "line": found.line, "path": found.path, "reason": found.reason}
        for found in problems
    ]
