"""read, write, edit and list: the files of a workspace as an agent works with them."""

from __future__ import annotations

import asyncio
import base64
import io
import os
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from openclaw.domain.transcript import ImageBlock
from openclaw.engine.tools.workspace.access import WriteLocks
from openclaw.engine.tools.workspace.edit import EditTool, find_once
from openclaw.engine.tools.workspace.list import MAX_SHOWN, ListTool
from openclaw.engine.tools.workspace.read import (
    MAX_LINE_BYTES,
    MAX_TEXT_BYTES,
    ReadTool,
    read_page,
)
from openclaw.engine.tools.workspace.write import MAX_FILE_BYTES, WriteTool
from openclaw.errors import InvalidRequest
from tests.unit.engine.tools.workspace.doing import call, context_of, refused, said

LOCKS = WriteLocks()
READ, WRITE, EDIT, LIST = ReadTool(), WriteTool(LOCKS), EditTool(LOCKS), ListTool()


# -- read ----------------------------------------------------------------------------------------


async def test_a_file_is_read_as_it_is(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_bytes("one\r\ntwö\n".encode())
    outcome = await call(READ, context_of(tmp_path), path="a.txt")
    assert said(outcome) == "one\r\ntwö\n"
    assert outcome.details == {"path": "a.txt", "bytes": 10, "firstLine": 1, "lines": 2, "truncated": False}
    (tmp_path / "empty").touch()
    assert said(await call(READ, context_of(tmp_path), path="empty")) == "(the file is empty)"


async def test_a_file_is_read_by_pages_that_join_to_the_whole(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("".join(f"line {n}\n" for n in range(1, 11)))
    first = await call(READ, context_of(tmp_path), path="a.txt", limit=4)
    assert said(first) == "line 1\nline 2\nline 3\nline 4\n[lines 1 to 4; go on with offset 5]"
    second = await call(READ, context_of(tmp_path), path="a.txt", offset=5, limit=6)
    assert said(second) == "".join(f"line {n}\n" for n in range(5, 11))
    assert second.details is not None
    assert (second.details["firstLine"], second.details["lines"], second.details["truncated"]) == (
        5,
        6,
        False,
    )
    past = await call(READ, context_of(tmp_path), path="a.txt", offset=11)
    assert refused(past) == "a.txt has fewer than 11 lines"


async def test_long_lines_and_large_files_are_cut_and_say_so(tmp_path: Path) -> None:
    (tmp_path / "long").write_text("x" * 1_000_000 + "\nshort\n")
    text = said(await call(READ, context_of(tmp_path), path="long"))
    assert text == "x" * MAX_LINE_BYTES + f"\nshort\n[1 long lines were cut at {MAX_LINE_BYTES} bytes]"
    (tmp_path / "many").write_text("y" * 99 + "\n" + ("z" * 99 + "\n") * 5000)
    outcome = await call(READ, context_of(tmp_path), path="many")
    assert outcome.details is not None
    assert (outcome.details["lines"], outcome.details["truncated"]) == (MAX_TEXT_BYTES // 100, True)
    assert said(outcome).endswith(f"[lines 1 to 500; go on with offset {MAX_TEXT_BYTES // 100 + 1}]")


async def test_images_come_as_images(tmp_path: Path) -> None:
    data = b"\x89PNG\r\n\x1a\n" + bytes(1000)
    (tmp_path / "p.png").write_bytes(data)
    outcome = await call(READ, context_of(tmp_path), path="p.png")
    assert said(outcome) == f"p.png: image/png, {len(data)} bytes"
    assert outcome.content[1] == ImageBlock(base64.b64encode(data).decode(), "image/png")
    (tmp_path / "big.png").write_bytes(data + bytes(6_291_456))
    assert "at most 6291456" in refused(await call(READ, context_of(tmp_path), path="big.png"))


async def test_what_is_not_text_is_refused(tmp_path: Path) -> None:
    (tmp_path / "bin").write_bytes(b"\x7fELF\x00\x00")
    assert refused(await call(READ, context_of(tmp_path), path="bin")) == (
        "bin is not text (6 bytes); use exec to look at it"
    )
    (tmp_path / "latin").write_bytes(b"caf\xe9")
    assert said(await call(READ, context_of(tmp_path), path="latin")) == "caf\ufffd"


@pytest.mark.spec("DB-19")
async def test_a_path_that_leads_out_is_a_refusal_that_a_model_can_read(tmp_path: Path) -> None:
    place = tmp_path / "w"
    place.mkdir()
    (place / "l").symlink_to("/etc/passwd")
    context = context_of(place)
    assert "relative to the workspace" in refused(await call(READ, context, path="/etc/passwd"), "forbidden")
    assert "`..` is not allowed" in refused(await call(READ, context, path="../x"), "forbidden")
    assert "leads out" in refused(await call(READ, context, path="l"), "forbidden")
    assert "control character" in refused(await call(READ, context, path="a\0b"))
    assert "does not exist" in refused(await call(READ, context, path="none"))


@settings(max_examples=150, deadline=None)
@given(st.binary(max_size=400).map(lambda data: data.replace(b"\0", b"")), st.integers(1, 8))
def test_pages_in_a_row_are_the_file(data: bytes, limit: int) -> None:
    pieces, offset = [], 1
    file = io.BytesIO(data)
    while True:
        file.seek(0)
        page = read_page(file, offset, limit)
        pieces.append(page.text)
        assert page.first == offset
        offset += page.count
        if page.complete:
            break
        assert page.count == limit
    whole = "".join(line.decode("utf-8", "replace") for line in io.BytesIO(data).readlines())
    assert "".join(pieces).replace("\ufffd", "") == whole.replace("\ufffd", "")


def test_a_place_too_far_into_a_file_is_refused() -> None:
    class Endless(io.BytesIO):
        end = b"\n"

        def readline(self, size: int | None = -1, /) -> bytes:
            return b"x" * ((size or 0) - 1) + self.end

    with pytest.raises(InvalidRequest, match="too far into the file"):
        read_page(Endless(), 1 << 30, 1)
    Endless.end = b"x"
    with pytest.raises(InvalidRequest, match="a line is longer than"):
        read_page(Endless(), 1, 1)


# -- write and edit --------------------------------------------------------------------------------


async def test_a_file_is_made_and_replaced(tmp_path: Path) -> None:
    context = context_of(tmp_path / "new" / "workspace")
    made = await call(WRITE, context, path="notes/a.md", content="één\n")
    assert said(made) == "made notes/a.md (6 bytes)"
    assert made.details == {"path": "notes/a.md", "bytes": 6, "created": True}
    again = await call(WRITE, context, path="notes/a.md", content="two")
    assert said(again) == "replaced notes/a.md (3 bytes)"
    assert (tmp_path / "new" / "workspace" / "notes" / "a.md").read_text() == "two"


async def test_what_must_not_get_into_a_file_is_refused(tmp_path: Path) -> None:
    context = context_of(tmp_path)
    assert "surrogate" in refused(await call(WRITE, context, path="a", content="x\ud800"))
    too_large = "x" * (MAX_FILE_BYTES + 1)
    assert f"a file may have {MAX_FILE_BYTES}" in refused(
        await call(WRITE, context, path="a", content=too_large)
    )
    masked = "key: sk-abc…wxyz\n[1 secret masked before this text was stored]"
    assert "masked when it was read" in refused(await call(WRITE, context, path="a", content=masked))
    assert os.listdir(tmp_path) == []
    fits = await call(WRITE, context, path="a", content=too_large[:-1])
    assert not fits.is_error


async def test_an_edit_replaces_the_one_place(tmp_path: Path) -> None:
    (tmp_path / "a.py").write_bytes(b"x = 1\ny = 2\r\nz = 3\n")
    outcome = await call(EDIT, context_of(tmp_path), path="a.py", oldText="y = 2\r\nz", newText="y = 22\r\nz")
    assert said(outcome) == "changed a.py at line 2 (20 bytes)"
    assert (tmp_path / "a.py").read_bytes() == b"x = 1\ny = 22\r\nz = 3\n"
    removed = await call(EDIT, context_of(tmp_path), path="a.py", oldText="x = 1\n", newText="")
    assert not removed.is_error
    assert (tmp_path / "a.py").read_bytes() == b"y = 22\r\nz = 3\n"


@pytest.mark.parametrize(
    ("text", "old", "new", "words"),
    [
        ("abc", "x", "y", "occurs 0 times"),
        ("abcabc", "bc", "y", "occurs 2 times"),
        ("aaaa", "a", "b", "occurs 4 times"),
        ("aaa", "aa", "b", "occurs 2 times"),
        ("abc", "", "y", "oldText is empty"),
        ("abc", "b", "b", "the same"),
        ("a\r\nb", "a\nb", "c", "end with \\\\r\\\\n"),
    ],
)
def test_an_edit_without_exactly_one_place_says_why(text: str, old: str, new: str, words: str) -> None:
    with pytest.raises(InvalidRequest, match=words):
        find_once(text, old, new)


@settings(max_examples=200, deadline=None)
@given(st.text("ab", max_size=12), st.text("ab", min_size=1, max_size=3))
def test_the_place_is_found_exactly_when_there_is_one(text: str, old: str) -> None:
    places = [at for at in range(len(text)) if text.startswith(old, at)]
    if len(places) == 1:
        assert find_once(text, old, "c") == places[0]
    else:
        with pytest.raises(InvalidRequest):
            find_once(text, old, "c")


async def test_an_edit_refuses_what_it_cannot_read_exactly(tmp_path: Path) -> None:
    (tmp_path / "latin").write_bytes(b"caf\xe9")
    (tmp_path / "big").write_bytes(b"x" * (MAX_FILE_BYTES + 1))
    (tmp_path / "masked").write_text("[1 secret masked before this text was stored] ok")
    context = context_of(tmp_path)
    assert "not UTF-8" in refused(await call(EDIT, context, path="latin", oldText="caf", newText="x"))
    assert "larger than" in refused(await call(EDIT, context, path="big", oldText="x", newText="y"))
    assert "does not exist" in refused(await call(EDIT, context, path="none", oldText="x", newText="y"))
    assert not (await call(EDIT, context, path="masked", oldText="ok", newText="fine")).is_error
    bad = await call(
        EDIT, context, path="masked", oldText="fine", newText="[2 secrets masked before this text was stored]"
    )
    assert "masked when it was read" in refused(bad)


async def test_edits_of_one_answer_do_not_undo_one_another(tmp_path: Path) -> None:
    (tmp_path / "a").write_text("".join(f"<{n}>\n" for n in range(40)))
    context = context_of(tmp_path)
    outcomes = await asyncio.gather(
        *(call(EDIT, context, path="a", oldText=f"<{n}>", newText=f"({n})") for n in range(40))
    )
    assert not any(outcome.is_error for outcome in outcomes)
    assert (tmp_path / "a").read_text() == "".join(f"({n})\n" for n in range(40))


# -- list ------------------------------------------------------------------------------------------


async def test_a_listing_shows_kinds_and_sizes(tmp_path: Path) -> None:
    (tmp_path / "d" / "e").mkdir(parents=True)
    (tmp_path / "d" / "f.txt").write_text("123")
    (tmp_path / "a.txt").write_text("12345")
    (tmp_path / "l").symlink_to("/etc")
    (tmp_path / "odd\nname").touch()
    (tmp_path / ".openclaw-x.tmp").touch()
    outcome = await call(LIST, context_of(tmp_path))
    assert said(outcome).splitlines() == ["a.txt  5 bytes", "d/", "l  (link)", "odd?name  0 bytes"]
    assert outcome.details == {"path": ".", "count": 4, "truncated": False}
    deep = await call(LIST, context_of(tmp_path), depth=2)
    assert said(deep).splitlines()[1:4] == ["d/", "d/e/", "d/f.txt  3 bytes"]
    below = await call(LIST, context_of(tmp_path), path="d/e")
    assert said(below) == "(empty)"


async def test_a_long_listing_is_cut(tmp_path: Path) -> None:
    for number in range(MAX_SHOWN + 1):
        (tmp_path / f"{number:05}").touch()
    outcome = await call(LIST, context_of(tmp_path))
    lines = said(outcome).splitlines()
    assert len(lines) == MAX_SHOWN + 1
    assert lines[-1].startswith("[more is here")
    assert outcome.details == {"path": ".", "count": MAX_SHOWN, "truncated": True}
    (tmp_path / "00000").unlink()
    again = await call(LIST, context_of(tmp_path))
    assert again.details == {"path": ".", "count": MAX_SHOWN, "truncated": False}


async def test_a_directory_that_cannot_be_asked_for_does_not_hide_the_rest(tmp_path: Path) -> None:
    (tmp_path / "a\nb").mkdir()
    (tmp_path / "z").mkdir()
    (tmp_path / "z" / "f").touch()
    outcome = await call(LIST, context_of(tmp_path), depth=5)
    assert said(outcome).splitlines() == ["a?b/", "z/", "z/f  0 bytes"]
