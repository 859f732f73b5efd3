"""One table of every bar: what it names is there, a bar that is missed is said, and so is one not tried."""

from __future__ import annotations

from pathlib import Path

import pytest

from scripts import prove
from scripts.prove import CAMPAIGNS, PARTS, SUITES, Campaign, Row, format_rows, main, pytest_command
from scripts.run_checks import ROOT


def test_what_is_named_is_there() -> None:
    for one in CAMPAIGNS:
        assert one.part in PARTS
        for path in (*one.slice, *one.whole):
            assert (ROOT / path).exists(), path
        # A whole campaign is longer than its slice: somewhere in it is a test that CI leaves out.
        found = [file for path in one.whole for file in _files(ROOT / path)]
        assert not one.whole or any("mark.long" in file.read_text() for file in found), one.what
    for suite in SUITES:
        assert suite.part in PARTS
        assert (ROOT / "scripts" / suite.script).stat().st_mode & 0o100


def _files(path: Path) -> list[Path]:
    return sorted(path.rglob("test_*.py")) if path.is_dir() else [path]


def test_a_campaign_runs_its_slice_or_the_whole() -> None:
    one = Campaign("store", "what", "bar", ("a.py",), ("b.py",))
    assert pytest_command(one, whole=False)[-2:] == ["not long and not web and not interop", "a.py"]
    assert pytest_command(one, whole=True)[-2:] == ["long", "b.py"]
    assert pytest_command(one._replace(whole=()), whole=True)[-1] == "a.py"


def test_what_was_held_missed_and_not_tried(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    for name, held in (("good", True), ("bad", False)):
        (tmp_path / f"test_{name}.py").write_text(f"def test_{name}():\n    assert {held}\n")
    good = Campaign("store", "a good thing", "0 lost", (str(tmp_path / "test_good.py"),), ("elsewhere",))
    bad = Campaign("engine", "a bad thing", "0 lost", (str(tmp_path / "test_bad.py"),))
    monkeypatch.setattr(prove, "CAMPAIGNS", (good, bad))
    monkeypatch.setattr(prove, "ROOT", tmp_path)
    out = tmp_path / "table.md"
    assert main(["--only", "store", "surfaces", "--out", str(out)]) == 0
    table = capsys.readouterr()
    assert (
        "| store | a good thing | 0 lost | 1 passed in " in table.out
        and ", the slice of CI | ok |" in table.out
    )
    assert (
        "| surfaces | the page in a real browser | all green | `scripts/test-web` | not tried |" in table.out
    )
    assert "a bad thing" not in table.out and "1 held, 0 missed, 1 not tried" in table.err
    assert out.read_text() == table.out
    assert main(["--only", "engine"]) == 1
    table = capsys.readouterr()
    assert "| engine | a bad thing | 0 lost | 1 failed in " in table.out and "| MISSED |" in table.out
    assert "0 held, 1 missed, 0 not tried" in table.err


def test_the_list_runs_nothing(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--list"]) == 0
    told = capsys.readouterr().out.splitlines()
    assert len(told) == len(CAMPAIGNS) + len(SUITES)
    assert told[-1] == "proof     soak of 200,000 turns: scripts/soak (with --long)"


def test_a_row_says_how_long_it_took_once() -> None:
    told = format_rows(
        [Row("a", "b", "c", "12 passed in 3.00s", "ok", 4.0), Row("a", "b", "c", "d", "ok", 4.0)]
    )
    assert told.splitlines()[2:] == [
        "| a | b | c | 12 passed in 3.00s | ok |",
        "| a | b | c | d in 4 s | ok |",
    ]
