"""The mutation report: what counts as caught, and when it fails."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from scripts.check_mutants import count_caught, main


def write_run(folder: Path, module: str, codes: dict[str, int | None]) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    (folder / f"{module}.py.meta").write_text(json.dumps({"exit_code_by_key": codes}), encoding="utf-8")


def test_a_timeout_is_caught_and_an_untested_change_is_not() -> None:
    caught, total, missed = count_caught({"a": 1, "b": -24, "c": 0, "d": 33, "e": None})
    assert (caught, total, missed) == (2, 5, ["c", "d", "e"])


def test_a_module_below_the_bar_fails(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write_run(tmp_path, "strong", {"s1": 1, "s2": 1, "s3": 1, "s4": 1, "kept": 0})
    assert main([str(tmp_path)]) == 0
    write_run(tmp_path, "weak", {"w1": 1, "w2": 1, "w3": 1, "w4": 0})
    assert main([str(tmp_path)]) == 1
    printed = capsys.readouterr().out
    assert "80.0%  ok" in printed
    assert "75.0%  below 80%" in printed
    assert "missed w4" in printed


def test_nothing_to_read_is_a_failure(tmp_path: Path) -> None:
    assert main([str(tmp_path / "nothing")]) == 1
