"""The workspace files of the prompt: cut, masked, and read once."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from openclaw.engine.workspace import (
    MAX_FILE_CHARS,
    MAX_READ_BYTES,
    MAX_TOTAL_CHARS,
    NAMES,
    InjectedFile,
    WorkspaceFiles,
    is_writable,
)

SECRET = "correct-horse-battery-staple"


def by_name(files: tuple[InjectedFile, ...]) -> dict[str, InjectedFile]:
    return {file.name: file for file in files}


@pytest.mark.spec("LOOP-2", "CMD-4")
async def test_the_files_come_in_their_order_with_their_state(tmp_path: Path) -> None:
    (tmp_path / "SOUL.md").write_text("be kind")
    (tmp_path / "AGENTS.md").write_text("é" * 10)
    (tmp_path / "other.md").write_text("not this one")
    files = await WorkspaceFiles().load(str(tmp_path))
    assert [file.name for file in files] == [
        "AGENTS.md",
        "SOUL.md",
        "TOOLS.md",
        "IDENTITY.md",
        "USER.md",
        "HEARTBEAT.md",
        "BOOTSTRAP.md",
    ]
    assert files[0] == InjectedFile("AGENTS.md", "OK", 10, 10, "é" * 10)
    assert files[1] == InjectedFile("SOUL.md", "OK", 7, 7, "be kind")
    assert files[2:] == tuple(InjectedFile(name, "MISSING") for name in NAMES[2:])


@pytest.mark.spec("LOOP-2", "CMD-4")
async def test_a_file_is_cut_at_twelve_thousand_characters(tmp_path: Path) -> None:
    (tmp_path / "AGENTS.md").write_text("x" * 12_000)
    (tmp_path / "SOUL.md").write_text("y" * 12_001)
    (tmp_path / "USER.md").write_text("z" * (MAX_READ_BYTES * 2))
    files = by_name(await WorkspaceFiles().load(str(tmp_path)))
    assert (files["AGENTS.md"].state, files["AGENTS.md"].injected_chars) == ("OK", 12_000)
    soul = files["SOUL.md"]
    assert (soul.state, soul.raw_chars) == ("TRUNCATED", 12_001)
    assert soul.injected_chars == len(soul.text) <= MAX_FILE_CHARS
    assert soul.text.startswith("y" * 11_800)
    assert soul.text.endswith("more characters]")
    assert (files["USER.md"].state, files["USER.md"].raw_chars) == ("TRUNCATED", MAX_READ_BYTES * 2)
    assert f"[cut: {MAX_READ_BYTES * 2 - 11_880} more characters]" in files["USER.md"].text


@pytest.mark.spec("LOOP-2", "CMD-4")
async def test_all_files_together_have_a_limit(tmp_path: Path) -> None:
    for name in NAMES:
        (tmp_path / name).write_text("x" * 11_000)
    files = await WorkspaceFiles().load(str(tmp_path))
    assert [file.state for file in files] == ["OK"] * 5 + ["TRUNCATED"] * 2
    assert sum(file.injected_chars for file in files) <= MAX_TOTAL_CHARS
    assert 4_800 < files[5].injected_chars <= 5_000
    assert files[6].raw_chars == 11_000
    (tmp_path / "HEARTBEAT.md").write_text("x" * 5_000)
    files = await WorkspaceFiles().load(str(tmp_path))
    assert [file.state for file in files] == ["OK"] * 6 + ["TRUNCATED"]
    assert (files[6].injected_chars, files[6].text) == (0, "")


@pytest.mark.spec("LOOP-2")
async def test_an_unchanged_file_is_not_read_again(tmp_path: Path) -> None:
    path = tmp_path / "AGENTS.md"
    path.write_text("first")
    (tmp_path / "SOUL.md").write_text("soul")
    files = WorkspaceFiles()
    before = await files.load(str(tmp_path))
    assert await files.load(str(tmp_path)) is before
    # The same size, inode and time: only reading would tell. So nobody reads it.
    facts = path.stat()
    path.write_text("other")
    os.utime(path, ns=(facts.st_atime_ns, facts.st_mtime_ns))
    (tmp_path / "SOUL.md").write_text("a new soul")
    after = by_name(await files.load(str(tmp_path)))
    assert (after["AGENTS.md"].text, after["SOUL.md"].text) == ("first", "a new soul")


@pytest.mark.spec("LOOP-2")
async def test_every_kind_of_change_is_seen(tmp_path: Path) -> None:
    path, files = tmp_path / "AGENTS.md", WorkspaceFiles()

    async def seen() -> tuple[str, str]:
        file = by_name(await files.load(str(tmp_path)))["AGENTS.md"]
        return file.state, file.text

    assert await seen() == ("MISSING", "")
    path.write_text("one")
    assert await seen() == ("OK", "one")
    facts = path.stat()
    path.write_text("two")
    os.utime(path, ns=(facts.st_atime_ns, facts.st_mtime_ns + 1))
    assert await seen() == ("OK", "two")
    (tmp_path / "new").write_text("six")
    os.utime(tmp_path / "new", ns=(facts.st_atime_ns, facts.st_mtime_ns + 1))
    os.replace(tmp_path / "new", path)
    assert await seen() == ("OK", "six")
    path.unlink()
    assert await seen() == ("MISSING", "")


@pytest.mark.spec("TRX-11")
async def test_secrets_in_the_files_are_masked_as_soon_as_they_are_known(tmp_path: Path) -> None:
    (tmp_path / "TOOLS.md").write_text(f"use {SECRET}")
    known: set[str] = set()
    files = WorkspaceFiles(lambda: frozenset(known))
    assert by_name(await files.load(str(tmp_path)))["TOOLS.md"].text == f"use {SECRET}"
    known.add(SECRET)
    masked = by_name(await files.load(str(tmp_path)))["TOOLS.md"]
    assert masked.text == "use correc…aple\n[1 secret masked before this text was stored]"
    assert (masked.state, masked.raw_chars) == ("OK", 4 + len(SECRET))


@pytest.mark.spec("DB-19")
async def test_what_is_not_a_file_inside_counts_as_missing(tmp_path: Path) -> None:
    place = tmp_path / "w"
    place.mkdir()
    (tmp_path / "outside.md").write_text("secret")
    (place / "AGENTS.md").symlink_to(tmp_path / "outside.md")
    (place / "SOUL.md").mkdir()
    os.mkfifo(place / "TOOLS.md")
    (place / "real.md").write_text("inside")
    (place / "USER.md").symlink_to("real.md")
    states = {file.name: file.state for file in await WorkspaceFiles().load(str(place))}
    assert states.pop("USER.md") == "OK"
    assert set(states.values()) == {"MISSING"}


async def test_a_workspace_that_is_not_there_has_no_files(tmp_path: Path) -> None:
    for workspace in (str(tmp_path / "none"), ""):
        assert {file.state for file in await WorkspaceFiles().load(workspace)} == {"MISSING"}


async def test_only_the_last_workspaces_are_remembered(tmp_path: Path) -> None:
    files = WorkspaceFiles()
    first = await files.load(str(tmp_path / "0"))
    for number in range(1, 32):
        await files.load(str(tmp_path / f"{number}"))
    assert await files.load(str(tmp_path / "0")) is not None
    for number in range(32, 70):
        await files.load(str(tmp_path / f"{number}"))
    assert len(files._known) == 32
    assert await files.load(str(tmp_path / "0")) == first


@pytest.mark.spec("FLUSH-2")
async def test_a_workspace_is_writable_when_a_file_can_be_made(tmp_path: Path) -> None:
    assert await is_writable(str(tmp_path)) is True
    assert os.listdir(tmp_path) == []
    assert await is_writable(str(tmp_path / "not" / "yet")) is True
    (tmp_path / "file").write_text("x")
    assert await is_writable(str(tmp_path / "file")) is False
    assert await is_writable(str(tmp_path / "file" / "below")) is False
    assert await is_writable("") is False
    assert await is_writable("/proc/self") is False
