"""Files for a helper: what may be handed over, how it is named, and what of it the caller keeps."""

from __future__ import annotations

import base64
import hashlib
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from openclaw.domain.spawnfiles import (
    MAX_MOUNT_CHARS,
    MAX_MOUNT_DEPTH,
    MAX_NAME_BYTES,
    SpawnFile,
    SpawnFileLimits,
    check_mount_path,
    left_out,
    read_spawn_files,
    without_contents,
)
from openclaw.errors import Forbidden, InvalidRequest, OpenClawError

ON = SpawnFileLimits(enabled=True)
SMALL = SpawnFileLimits(enabled=True, count=2, file_bytes=10, total_bytes=15)


def file(name: str = "a.txt", content: Any = "hello", **more: Any) -> dict[str, Any]:
    return {"name": name, "content": content, **more}


@pytest.mark.spec("SPAWN-17")
def test_they_are_off_unless_somebody_asked_and_have_the_documented_bounds() -> None:
    assert SpawnFileLimits() == SpawnFileLimits(
        enabled=False, count=50, file_bytes=1_048_576, total_bytes=5_242_880, retain=False
    )
    with pytest.raises(Forbidden, match=r"tools\.sessions_spawn\.attachments\.enabled"):
        read_spawn_files([file()], None, SpawnFileLimits())


@pytest.mark.spec("SPAWN-17")
def test_text_and_base64_become_bytes_with_their_digest() -> None:
    data = bytes(range(256))
    coded = base64.encodebytes(data).decode()  # with line breaks
    files = read_spawn_files(
        [file("grüße.txt", "schön", mimeType="text/plain"), file("b", coded, encoding="base64")], "in/put", ON
    )
    assert files == (
        SpawnFile(
            "in/put/grüße.txt", "schön".encode(), hashlib.sha256("schön".encode()).hexdigest(), "text/plain"
        ),
        SpawnFile("in/put/b", data, hashlib.sha256(data).hexdigest(), None),
    )
    assert read_spawn_files([file(encoding="utf-8", mimeType=5)], None, ON)[0].mime_type is None
    assert read_spawn_files([file(content="")], None, ON)[0].data == b""
    assert read_spawn_files([], None, ON) == ()


@pytest.mark.spec("SPAWN-17")
def test_the_bounds_are_exact() -> None:
    assert len(read_spawn_files([file("a", "x" * 10), file("b", "x" * 5)], None, SMALL)) == 2
    for files, words in (
        ([file("a", "x" * 11)], "larger than 10 bytes"),
        ([file("a", "ä" * 6)], "larger than 10 bytes"),  # twelve bytes in six characters
        ([file("a", "x" * 10), file("b", "x" * 6)], "more than 15 bytes"),
        ([file("a", base64.b64encode(b"x" * 11).decode(), encoding="base64")], "larger than 10 bytes"),
        ([file("a"), file("b"), file("c")], "3 attachments; at most 2"),
    ):
        with pytest.raises(InvalidRequest, match=words):
            read_spawn_files(files, None, SMALL)
    coded = base64.b64encode(b"x" * 10).decode()
    assert read_spawn_files([file("a", coded, encoding="base64")], None, SMALL)[0].data == b"x" * 10
    # A size is refused before anything is decoded: this is no base64 at all.
    with pytest.raises(InvalidRequest, match="larger than"):
        read_spawn_files([file("a", "!" * 1000, encoding="base64")], None, SMALL)


@pytest.mark.spec("SPAWN-17")
@pytest.mark.parametrize(
    ("item", "words"),
    [
        ({"content": "x"}, "attachment 1 has no name"),
        (file(""), "has no name"),
        ({"name": 5, "content": "x"}, "has no name"),
        (file("../a"), "no plain file name"),
        (file("a/b"), "no plain file name"),
        (file("a\\b"), "no plain file name"),
        (file("c:a"), "no plain file name"),
        (file("."), "no plain file name"),
        (file(".."), "no plain file name"),
        (file("a."), "no plain file name"),
        (file("a\n"), "cannot be seen"),
        (file("a\x00b"), "cannot be seen"),
        (file("a\u202eb"), "cannot be seen"),
        (file("\ud800"), "cannot be seen"),
        (file(" a"), "cannot be seen"),
        (file("x" * (MAX_NAME_BYTES + 1)), "longer than 200 bytes"),
        (file(content=None), "has no content"),
        (file(content=5), "has no content"),
        (file(encoding="hex"), "encoding must be utf8 or base64"),
        (file(content="@@@@", encoding="base64"), "not valid base64"),
        (file(content="QQ=", encoding="base64"), "not valid base64"),
        (file(content="ä", encoding="base64"), "not valid base64"),
        (file(content="\ud800"), "half of a surrogate pair"),
        (file(path="x"), "unknown 'path'"),
        ({"name": "a", "leftOut": 5}, "a restart lost them"),
    ],
)
def test_what_cannot_be_handed_over_is_said(item: dict[str, Any], words: str) -> None:
    with pytest.raises(InvalidRequest, match=words):
        read_spawn_files([item], None, ON)


@pytest.mark.spec("SPAWN-17")
def test_two_files_of_one_name_are_refused_in_any_case() -> None:
    with pytest.raises(InvalidRequest, match=r"two attachments are called 'A\.TXT'"):
        read_spawn_files([file("a.txt"), file("A.TXT")], None, ON)
    assert len(read_spawn_files([file("x" * MAX_NAME_BYTES), file("b")], None, ON)) == 2


@pytest.mark.spec("SPAWN-17")
@pytest.mark.parametrize(
    ("path", "folder"),
    [
        (None, ""),
        ("", ""),
        ("  ", ""),
        ("a", "a/"),
        ("./a//b/", "a/b/"),
        ("/".join("abcdefgh"), "a/b/c/d/e/f/g/h/"),
    ],
)
def test_a_mount_path_is_a_folder_below(path: str | None, folder: str) -> None:
    assert check_mount_path(path) == folder


@pytest.mark.spec("SPAWN-17")
@pytest.mark.parametrize(
    ("path", "words"),
    [
        ("/etc", "relative path"), ("~/x", "relative path"), ("a\\b", "relative"), ("c:/x", "relative"),
        ("a/../b", r"`\.\.`"), ("..", r"`\.\.`"), ("a/b\x00", "cannot be seen"), ("a/ b", "cannot be seen"),
        ("a/b*", "no plain file name"), ("x" * (MAX_MOUNT_CHARS + 1), "longer than 200"),
        ("/".join("x" * (MAX_MOUNT_DEPTH + 1)), "deeper than 8"),
    ],
)  # fmt: skip
def test_a_mount_path_never_leads_elsewhere(path: str, words: str) -> None:
    with pytest.raises(InvalidRequest, match=words):
        check_mount_path(path)
    assert check_mount_path("x" * MAX_MOUNT_CHARS) == "x" * MAX_MOUNT_CHARS + "/"


@pytest.mark.spec("SPAWN-17")
def test_the_callers_transcript_keeps_names_and_sizes() -> None:
    given_arguments = {"task": "t", "attachments": [file(content="secret"), "odd", {"name": "b"}]}
    kept = without_contents(given_arguments)
    assert kept == {
        "task": "t", "attachments": [{"name": "a.txt", "leftOut": 6}, "odd", {"name": "b"}],
    }  # fmt: skip
    assert left_out(kept) and not left_out(given_arguments)
    for plain in ({}, {"attachments": None}, {"attachments": "x"}):
        assert without_contents(plain) is plain
        assert not left_out(plain)


@pytest.mark.spec("SPAWN-17")
@given(
    st.lists(
        st.dictionaries(
            st.sampled_from(["name", "content", "encoding", "mimeType", "x"]),
            st.one_of(st.text(max_size=30), st.integers(), st.none(), st.sampled_from(["base64", "utf8"])),
        ),
        max_size=4,
    ),
    st.one_of(st.none(), st.text(max_size=30)),
)
@settings(max_examples=300, deadline=None)
def test_whatever_comes_is_a_safe_path_within_the_bounds_or_a_refusal(
    raw: list[dict[str, Any]], mount: str | None
) -> None:
    try:
        files = read_spawn_files(raw, mount, SMALL)
    except OpenClawError as error:
        assert error.message
        return
    assert len(files) <= 2 and sum(len(one.data) for one in files) <= 15
    for one in files:
        parts = one.path.split("/")
        assert all(part and part not in (".", "..") and part.isprintable() for part in parts)
        assert not one.path.startswith("/")
