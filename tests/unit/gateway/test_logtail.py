"""Reading the log: pages that neither lose nor repeat a line, across rotations too."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from openclaw.gateway.logtail import CURRENT, LogPage, old_name, read_page, segments


def follow(folder: Path, cursor: int, **options: int) -> tuple[list[str], LogPage]:
    """Every line from a place on, page by page."""
    found: list[str] = []
    while True:
        page = read_page(folder, cursor=cursor, **options)
        assert not page.reset
        found += page.lines
        if page.cursor == cursor:
            return found, page
        cursor = page.cursor


def test_a_log_that_does_not_exist_is_empty(tmp_path: Path) -> None:
    page = read_page(tmp_path / "logs")
    assert (page.cursor, page.size, page.lines) == (0, 0, ())
    assert (page.truncated, page.reset) == (False, False)
    assert page.file.endswith(CURRENT)


def test_the_newest_lines_come_first_to_mind(tmp_path: Path) -> None:
    (tmp_path / CURRENT).write_bytes(b"one\ntwo\nthree\n")
    page = read_page(tmp_path, limit=2)
    assert page.lines == ("two", "three")
    assert page.truncated
    assert page.cursor == page.size == 14
    whole = read_page(tmp_path, limit=3)
    assert whole.lines == ("one", "two", "three") and not whole.truncated


def test_a_half_written_line_waits(tmp_path: Path) -> None:
    file = tmp_path / CURRENT
    file.write_bytes(b"one\ntw")
    page = read_page(tmp_path)
    assert (page.lines, page.cursor, page.size) == (("one",), 4, 6)
    assert not page.truncated
    assert read_page(tmp_path, cursor=4).lines == ()
    file.write_bytes(b"one\ntwo\n")
    assert read_page(tmp_path, cursor=4).lines == ("two",)


def test_a_page_is_bounded_in_bytes_and_begins_with_a_whole_line(tmp_path: Path) -> None:
    (tmp_path / CURRENT).write_bytes(b"".join(b"line %03d\n" % number for number in range(100)))
    page = read_page(tmp_path, max_bytes=30)
    assert page.lines == ("line 097", "line 098", "line 099")
    assert page.truncated
    bounded = read_page(tmp_path, cursor=0, max_bytes=30)
    assert bounded.lines == ("line 000", "line 001", "line 002")
    assert bounded.truncated and bounded.cursor == 27


def test_a_line_longer_than_a_page_comes_in_pieces(tmp_path: Path) -> None:
    (tmp_path / CURRENT).write_bytes(b"x" * 100 + b"\nend\n")
    found, _ = follow(tmp_path, 0, max_bytes=40)
    assert "".join(found) == "x" * 100 + "end"


def test_a_place_survives_rotation(tmp_path: Path) -> None:
    (tmp_path / CURRENT).write_bytes(b"one\ntwo\n")
    cursor = read_page(tmp_path, limit=1, cursor=0).cursor
    assert cursor == 4
    (tmp_path / CURRENT).rename(tmp_path / old_name(0))
    assert read_page(tmp_path, cursor=cursor).lines == ("two",)
    (tmp_path / CURRENT).write_bytes(b"three\n")
    page = read_page(tmp_path, cursor=cursor)
    assert page.lines == ("two", "three")
    assert (page.cursor, page.size, page.reset) == (14, 14, False)
    assert [part.start for part in segments(tmp_path)] == [0, 8]


@pytest.mark.parametrize("cursor", [3, 100])
def test_a_place_that_is_gone_is_told_with_the_newest_lines(tmp_path: Path, cursor: int) -> None:
    (tmp_path / old_name(8)).write_bytes(b"three\n")
    (tmp_path / CURRENT).write_bytes(b"four\n")
    page = read_page(tmp_path, cursor=cursor)
    assert page.reset
    assert page.lines == ("three", "four")
    assert page.cursor == page.size == 19


@pytest.mark.parametrize("cursor", [8, 19])
def test_the_edges_of_the_log_are_places(tmp_path: Path, cursor: int) -> None:
    (tmp_path / old_name(8)).write_bytes(b"three\n")
    (tmp_path / CURRENT).write_bytes(b"four\n")
    assert not read_page(tmp_path, cursor=cursor).reset


def test_foreign_files_and_broken_bytes_do_no_harm(tmp_path: Path) -> None:
    (tmp_path / "gateway.12.log").write_bytes(b"not ours\n")
    (tmp_path / "notes.txt").write_bytes(b"not ours\n")
    (tmp_path / CURRENT).write_bytes(b"caf\xe9\n")
    page = read_page(tmp_path)
    assert page.lines == ("caf\ufffd",)
    assert len(segments(tmp_path)) == 1


LINES = st.lists(st.text(st.characters(codec="utf-8", exclude_characters="\n"), max_size=12), max_size=20)


@settings(max_examples=100, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(LINES, st.sets(st.integers(0, 20)), st.integers(1, 5), st.integers(8, 60), st.data())
def test_following_gives_every_line_once_wherever_files_end(
    tmp_path: Path, lines: list[str], cuts: set[int], limit: int, max_bytes: int, data: st.DataObject
) -> None:
    folder = tmp_path / str(len(list(tmp_path.iterdir())))
    folder.mkdir()
    encoded = [line.encode() + b"\n" for line in lines]
    start, piece = 0, b""
    for number, line in enumerate(encoded):
        if number in cuts and piece:
            (folder / old_name(start)).write_bytes(piece)
            start, piece = start + len(piece), b""
        piece += line
    (folder / CURRENT).write_bytes(piece)
    longest = max((len(line) for line in encoded), default=0)
    found, last = follow(folder, 0, limit=limit, max_bytes=max(max_bytes, longest))
    assert found == lines
    assert last.cursor == last.size == sum(map(len, encoded))
    tail = read_page(folder, limit=limit, max_bytes=1 << 20)
    assert list(tail.lines) == lines[-limit:]
