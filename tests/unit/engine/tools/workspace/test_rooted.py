"""Paths below one directory: what is reached, what is refused, and races that do not help an attacker."""

from __future__ import annotations

import os
import socket
import stat
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from openclaw.engine.tools.workspace import rooted
from openclaw.engine.tools.workspace.rooted import (
    MAX_LINKS,
    TEMP_PREFIX,
    Content,
    Root,
    check_path,
    shown,
)
from openclaw.errors import Forbidden, InvalidRequest, OpenClawError, Unavailable


def text_of(root: Root, path: str) -> str:
    return root.read(path, 1000).data.decode()


def test_a_file_is_read_up_to_a_limit_with_its_facts(place: Path, root: Root) -> None:
    (place / "a.txt").write_text("hello")
    found = root.read("a.txt", 3)
    facts = (place / "a.txt").stat()
    assert found == Content(b"hel", root.read("./a.txt", 9).facts)
    assert (found.facts.size, found.facts.inode) == (5, facts.st_ino)
    assert found.facts == root.stat("a.txt")
    assert root.stat("none") is None
    assert root.stat(".") is None


def test_where_a_file_really_lies(place: Path, root: Root) -> None:
    (place / "deep").mkdir()
    (place / "deep" / "a.txt").write_text("hello")
    (place / "link").symlink_to("deep/a.txt")
    facts = root.read("link", 9).facts
    assert root.where() == os.path.realpath(place)
    assert root.where("link", facts) == root.where("deep/a.txt", facts) == f"{root.where()}/deep/a.txt"
    (place / "b.txt").write_text("another")
    (place / "link").unlink()
    (place / "link").symlink_to("b.txt")
    with pytest.raises(Unavailable, match="changed while"):
        root.where("link", facts)
    (place / "link").unlink()
    with pytest.raises(InvalidRequest, match="link does not exist"):
        root.where("link", facts)


@pytest.mark.spec("DB-19")
@pytest.mark.parametrize("path", ["/etc/passwd", "//x", "~/x", "~", "../x", "a/../../x", "a/..", ".."])
def test_paths_that_point_elsewhere_are_refused_with_the_way_out(root: Root, path: str) -> None:
    with pytest.raises(Forbidden, match="workspace"):
        root.read(path, 1)
    with pytest.raises(Forbidden, match="workspace"):
        root.write(path, b"x")
    with pytest.raises(Forbidden, match="workspace"):
        root.list(path)


@pytest.mark.spec("DB-19")
@pytest.mark.parametrize(
    ("path", "words"),
    [
        ("a\x00b", "control character"),
        ("a\nb", "control character"),
        ("a\x7f", "control character"),
        ("a\ud800", "surrogate"),
        ("x" * 1025, "longer than 1024"),
        ("/".join("d" * 65), "deeper than 64"),
        ("n" * 300, "too long"),
    ],
)
def test_odd_paths_are_refused_and_never_crash(root: Root, path: str, words: str) -> None:
    with pytest.raises(InvalidRequest, match=words) as caught:
        root.read(path, 1)
    assert len(caught.value.message) < 300
    with pytest.raises(InvalidRequest, match=words):
        root.write(path, b"x")


def test_the_longest_and_deepest_allowed_path_passes() -> None:
    assert check_path("x" * 1024) == ("x" * 1024,)
    assert len(check_path("/".join("d" * 64))) == 64
    assert check_path("./a//b/./c") == ("a", "b", "c")
    assert check_path("..a/b..") == ("..a", "b..")
    assert check_path("") == check_path(".") == ()


def test_errors_name_a_path_on_one_short_line() -> None:
    assert shown("a\nb\x1b") == "a?b?"
    assert shown("x" * 121) == "x" * 120 + "…"
    assert shown("x" * 120) == "x" * 120
    assert shown("\udcff") == "\\udcff"


@pytest.mark.spec("DB-19")
@pytest.mark.parametrize(
    "target",
    [
        "../outside/secret.txt",
        "/etc/passwd",
        "sub/../../outside/secret.txt",
        "{outside}",
        "{sibling}",
        "../../..",
    ],
)
def test_a_link_that_leads_out_is_refused(place: Path, root: Root, target: str) -> None:
    (place / "sub").mkdir()
    named = target.format(
        outside=place.parent / "outside" / "secret.txt", sibling=place.parent / "work-2" / "secret.txt"
    )
    (place / "link").symlink_to(named)
    (place / "sub" / "link").symlink_to("../link")
    for path in ("link", "sub/link"):
        with pytest.raises(Forbidden, match="leads out of the workspace"):
            root.read(path, 10)
        with pytest.raises(Forbidden, match="leads out of the workspace"):
            root.write(path, b"x")
        with pytest.raises(Forbidden, match="leads out of the workspace"):
            root.list(path)
    assert (place.parent / "outside" / "secret.txt").read_text() == "secret"


@pytest.mark.spec("DB-19")
def test_a_linked_directory_that_leads_out_is_refused_on_the_way(place: Path, root: Root) -> None:
    (place / "door").symlink_to(place.parent / "outside")
    for path in ("door/secret.txt", "door/new.txt", "door/new/deep.txt"):
        with pytest.raises(Forbidden, match="leads out"):
            root.write(path, b"x")
    assert sorted(os.listdir(place.parent / "outside")) == ["secret.txt"]


def test_a_link_that_stays_inside_is_followed(place: Path, root: Root) -> None:
    (place / "real" / "deep").mkdir(parents=True)
    (place / "real" / "a.txt").write_text("inside")
    (place / "relative").symlink_to("real/a.txt")
    (place / "absolute").symlink_to(place / "real" / "a.txt")
    (place / "directory").symlink_to("real")
    (place / "real" / "deep" / "up").symlink_to("../a.txt")
    for path in ("relative", "absolute", "directory/a.txt", "real/deep/up", "directory/deep/up"):
        assert text_of(root, path) == "inside"
    root.write("relative", b"changed")
    assert (place / "real" / "a.txt").read_text() == "changed"
    assert (place / "relative").is_symlink()
    root.write("directory/deep/new.txt", b"n")
    assert (place / "real" / "deep" / "new.txt").read_text() == "n"


def test_a_link_to_nothing_inside_makes_the_file_that_it_names(place: Path, root: Root) -> None:
    (place / "dangling").symlink_to("later.txt")
    with pytest.raises(InvalidRequest, match="does not exist"):
        root.read("dangling", 1)
    root.write("dangling", b"now")
    assert (place / "later.txt").read_text() == "now"


@pytest.mark.spec("DB-19")
def test_links_in_a_circle_end(place: Path, root: Root) -> None:
    (place / "a").symlink_to("b")
    (place / "b").symlink_to("a")
    with pytest.raises(InvalidRequest, match="too many links"):
        root.read("a", 1)
    (place / "end").write_text("end")
    for number in range(MAX_LINKS + 1):
        (place / f"l{number}").symlink_to("end" if number == 0 else f"l{number - 1}")
    assert text_of(root, f"l{MAX_LINKS - 1}") == "end"
    with pytest.raises(InvalidRequest, match="too many links"):
        root.read(f"l{MAX_LINKS}", 1)


def test_the_workspace_itself_may_be_a_link(place: Path, tmp_path: Path) -> None:
    (place / "a.txt").write_text("x")
    (place / "self").symlink_to(place / "a.txt")
    (tmp_path / "way").symlink_to(place)
    (place / "through").symlink_to(tmp_path / "way" / "a.txt")
    with Root(str(tmp_path / "way")) as root:
        assert text_of(root, "self") == "x"
        assert text_of(root, "through") == "x"


@pytest.mark.parametrize("kind", ["fifo", "socket", "device"])
def test_only_regular_files_are_opened(place: Path, root: Root, kind: str) -> None:
    made: list[Callable[[], object]] = []
    if kind == "fifo":
        os.mkfifo(place / "odd")
    elif kind == "socket":
        listener = socket.socket(socket.AF_UNIX)
        listener.bind(str(place / "odd"))
        made.append(listener.close)
    else:
        (place / "odd").symlink_to("/dev/zero")
    with pytest.raises(Forbidden):
        root.read("odd", 10)
    with pytest.raises(Forbidden):
        root.write("odd", b"x")
    for undo in made:
        undo()
    assert root.stat("odd") is None if kind != "device" else True


def test_directories_are_not_files_and_files_not_directories(place: Path, root: Root) -> None:
    (place / "d").mkdir()
    (place / "f").write_text("x")
    for path in ("d", "."):
        with pytest.raises(InvalidRequest, match="is a directory"):
            root.read(path, 1)
        with pytest.raises(InvalidRequest, match="is a directory"):
            root.write(path, b"x")
    with pytest.raises(InvalidRequest, match="not a directory"):
        root.list("f")
    with pytest.raises(InvalidRequest, match="not a directory"):
        root.write("f/x", b"x")
    with pytest.raises(InvalidRequest, match="does not exist"):
        root.list("none")


def test_a_listing_is_sorted_typed_and_bounded(place: Path, root: Root) -> None:
    (place / "b").mkdir()
    (place / "a.txt").write_text("12345")
    (place / "l").symlink_to("/etc")
    os.mkfifo(place / "p")
    listing = root.list(".")
    assert [(entry.name, entry.kind, entry.size) for entry in listing.entries] == [
        ("a.txt", "file", 5),
        ("b", "directory", 0),
        ("l", "link", 0),
        ("p", "other", 0),
    ]
    assert listing.complete is True
    assert root.list(".") == listing


def test_a_crowded_directory_is_cut(place: Path, root: Root, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rooted, "MAX_ENTRIES", 40)
    for number in range(41):
        (place / f"{number}").touch()
    listing = root.list(".")
    assert (len(listing.entries), listing.complete) == (40, False)
    (place / "0").unlink()
    assert root.list(".").complete is True


def test_a_missing_workspace_says_what_to_do(tmp_path: Path) -> None:
    with pytest.raises(InvalidRequest, match="not there yet"):
        Root(str(tmp_path / "none"))
    with pytest.raises(InvalidRequest, match="no workspace"):
        Root("")
    (tmp_path / "file").write_text("x")
    with pytest.raises(Unavailable, match="cannot be opened"):
        Root(str(tmp_path / "file"))
    with Root(str(tmp_path / "made" / "deep"), create=True) as root:
        assert root.list(".").entries == ()
    assert stat.S_IMODE((tmp_path / "made" / "deep").stat().st_mode) == 0o700


def test_the_real_path_of_a_directory_is_given_to_processes(place: Path, root: Root) -> None:
    (place / "d").mkdir()
    (place / "link").symlink_to("d")
    (place / "out").symlink_to(place.parent / "outside")
    assert root.absolute(".") == os.path.realpath(place)
    assert root.absolute("link") == os.path.realpath(place / "d")
    with pytest.raises(Forbidden):
        root.absolute("out")
    with pytest.raises(InvalidRequest):
        root.absolute("none")


def test_no_descriptor_stays_open(place: Path, root: Root) -> None:
    (place / "a" / "b").mkdir(parents=True)
    (place / "a" / "f").write_text("x")
    (place / "out").symlink_to("/etc")
    before = len(os.listdir("/proc/self/fd"))
    for _ in range(20):
        root.read("a/f", 1)
        root.write("a/b/new", b"x")
        root.list("a/b")
        for path in ("out/passwd", "a/none/x", "a"):
            with pytest.raises(OpenClawError):
                root.read(path, 1)
    assert len(os.listdir("/proc/self/fd")) == before
    assert not [name for name in os.listdir(place / "a" / "b") if name.startswith(TEMP_PREFIX)]


@pytest.mark.spec("DB-19")
@settings(max_examples=150, deadline=None)
@given(path=st.text(st.characters(codec=None), max_size=40) | st.text("./~a\x00\\", max_size=20))
def test_any_path_reads_inside_or_is_refused(tmp_path_factory: pytest.TempPathFactory, path: str) -> None:
    place = tmp_path_factory.getbasetemp() / "any"
    place.mkdir(exist_ok=True)
    with Root(str(place)) as root:
        try:
            root.write(path, b"x")
        except OpenClawError as error:
            assert error.message
            return
        assert root.read(path, 1).data == b"x"
    assert ".." not in check_path(path)
