"""The figures of the README and the pictures come from the last results, and a worse ratio is found."""

from __future__ import annotations

from pathlib import Path
from xml.etree import ElementTree

import pytest

from benchmarks.measuring import OUT, Figure, Result, at_least, at_most, show
from benchmarks.pictures import pictures
from benchmarks.plots import Bar, Line, bar_chart, line_chart, number_text, ticks
from benchmarks.results import Machine, Results, comparable, compare, read_baseline, read_results, write
from scripts import gen_figures
from scripts.gen_figures import BEGIN, END, MarksError, block, render

MACHINE = Machine(2, "3.11.7", "3.54.1", "Linux")


def results(*figures: Figure, name: str = "wire", soak: Result | None = None) -> Results:
    return Results("2026-11-16", MACHINE, {name: Result("turns", 1.5, figures)}, soak)


RATIO = Figure("turn over the wire / spike", 2.0, "x")


# -- the baseline ----------------------------------------------------------------------------------


@pytest.mark.parametrize(("now", "found"), [(2.5, 0), (2.501, 1), (1.0, 0)])
def test_a_ratio_may_get_worse_by_a_quarter_and_not_by_more(now: float, found: int) -> None:
    worse = compare({"wire: turn over the wire / spike": 2.0}, results(Figure(RATIO.name, now, "x")))
    assert len(worse) == found
    if worse:
        assert str(worse[0]) == "wire: turn over the wire / spike: was 2, is 2.501 (1.25 times as much)"


def test_a_figure_that_nobody_measures_any_more_is_worse_but_a_benchmark_not_run_is_not() -> None:
    baseline = {"wire: gone": 1.0, "store: append / bare insert, CPU": 1.0}
    assert [str(one) for one in compare(baseline, results(RATIO))] == [
        "wire: gone: was 1, is not measured any more"
    ]


def test_only_ratios_of_cost_and_counts_are_comparable() -> None:
    found = comparable(
        results(
            RATIO,
            Figure("turn over the wire", 2.2, "ms CPU"),
            Figure("cold start", 0.7, "s"),
            Figure("32 callers / one caller, rate", 4.0, "x"),
            Figure("beside maintenance / alone, p99", 2.0, "x"),
            Figure("system calls per turn", 120.1234, ""),
            Figure("written per plain turn", 38.0, "kB"),
            Figure("idle memory", 60.0, "MiB"),
        )
    )
    assert found == {
        "wire: turn over the wire / spike": 2.0,
        "wire: system calls per turn": 120.123,
        "wire: written per plain turn": 38.0,
        "wire: idle memory": 60.0,
    }


def test_results_and_baselines_survive_a_round_trip(tmp_path: Path) -> None:
    soak = Result("soak", 2.0, (Figure("turns", 200.0, ""),))
    kept = results(RATIO, soak=soak)
    write(tmp_path / "r.json", kept)
    write(tmp_path / "b.json", comparable(kept))
    assert read_results(tmp_path / "r.json") == kept
    assert read_baseline(tmp_path / "b.json") == {"wire: turn over the wire / spike": 2.0}
    assert kept.find("soak", "turns") == Figure("turns", 200.0, "")
    assert kept.find("wire", "nothing") is None
    assert kept.find("nothing", "turns") is None


def test_a_table_says_what_was_missed_and_is_kept_where_it_was_asked_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert show("quiet", [Figure("a", 1.0, "ms")])
    monkeypatch.setenv(OUT, str(tmp_path / "out.json"))
    assert not show("title", [at_most("a", 1.0, 1.0, "x"), at_least("b", 0.9, 1.0, "x")])
    lines = capsys.readouterr().out.splitlines()
    assert lines[-2].split()[-1] == "ok" and lines[-1].split()[-1] == "MISSED"
    kept = (tmp_path / "out.json").read_text()
    assert '"title":"title"' in kept and '"bar":">= 1"' in kept


# -- the README ------------------------------------------------------------------------------------


def test_the_block_shows_what_was_measured_and_nothing_else() -> None:
    text = block(results(RATIO, Figure("written per plain turn", 38.21, "kB")))
    assert text.splitlines()[2:] == [
        "| the same, beside a bare gateway without any rules | 2 x | `scripts/bench wire` |",
        "| written to disk per turn | 38.2 kB | `scripts/bench wire` |",
        "",
        "2026-11-16, 2 cores, Python 3.11.7, SQLite 3.54.1, load 1.5 to 1.5. `x`: times as much CPU, "
        "in the same run.",
    ]


def test_the_page_keeps_what_stands_around_its_marks() -> None:
    page = render(f"before\n{BEGIN}\nold\n{END}\nafter\n", results(RATIO))
    assert page.startswith(f"before\n{BEGIN}\n\n| what |") and page.endswith(f"\n\n{END}\nafter\n")
    assert "old" not in page
    assert render(page, results(RATIO)) == page
    with pytest.raises(MarksError, match="needs the lines"):
        render("no marks\n", results(RATIO))


def test_the_check_finds_an_edited_page_and_a_worse_ratio(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "README.md").write_text(f"{BEGIN}\n{END}\n", encoding="utf-8")
    monkeypatch.setattr(gen_figures, "README", tmp_path / "README.md")
    monkeypatch.setattr(gen_figures, "PICTURES", tmp_path)
    monkeypatch.setattr(
        gen_figures, "read_results", lambda: results(RATIO, Figure("turn over the wire", 2, "ms"))
    )
    monkeypatch.setattr(gen_figures, "read_baseline", lambda: {"wire: turn over the wire / spike": 2.0})
    assert gen_figures.main(["--check"]) == 1
    assert gen_figures.main([]) == 0
    assert gen_figures.main(["--check"]) == 0
    assert (tmp_path / "bench-turn.svg").exists()
    monkeypatch.setattr(gen_figures, "read_baseline", lambda: {"wire: turn over the wire / spike": 1.0})
    capsys.readouterr()
    assert gen_figures.main(["--check"]) == 1
    assert "by more than a quarter: wire: turn over the wire / spike" in capsys.readouterr().out


# -- the pictures ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("highest", "last", "count"), [(0, 1, 2), (10, 10, 6), (7, 8, 5), (0.3, 0.3, 4), (1001, 1200, 7)]
)
def test_ticks_are_round_and_reach_the_top(highest: float, last: float, count: int) -> None:
    found = ticks(highest)
    assert found[0] == 0 and len(found) == count
    assert found[-1] == pytest.approx(last)


def test_numbers_are_said_shortly() -> None:
    assert [number_text(one) for one in (12000.0, 123.4, 5.0, 2.567, 0.25)] == [
        "12,000", "123", "5", "2.57", "0.25",
    ]  # fmt: skip


def test_charts_are_well_formed_and_escape_names() -> None:
    line = line_chart(
        "a & b", [Line("<x>", [0, 5, 10], [1, 2, 3]), Line("y", [0], [9])], x_name="s", y_name=""
    )
    bars = bar_chart("t", [Bar("one", 1.0), Bar("two <2>", 4.0)], unit="us")
    for text in (line, bars):
        assert ElementTree.fromstring(text).tag.endswith("svg")
    assert "&lt;x&gt;" in line and "a &amp; b" in line and line.count("<polyline") == 2
    assert bars.count("<rect") == 2 and "4 us" in bars


def test_a_long_line_is_thinned() -> None:
    many = [float(number) for number in range(10_000)]
    assert len(line_chart("t", [Line("y", many, many)], x_name="", y_name="")) < 20_000


def test_pictures_are_drawn_of_what_was_measured() -> None:
    assert pictures(results(RATIO)) == {}
    assert set(pictures(results(Figure("append, ours", 3.0, "us CPU"), name="peers"))) == {"bench-peers.svg"}
    grown = [Figure(f"newest 100 sessions, at {size:,}", 2.0, "ms CPU") for size in (1_000, 10_000)]
    assert set(pictures(results(*grown, name="growth"))) == {"bench-growth.svg"}
