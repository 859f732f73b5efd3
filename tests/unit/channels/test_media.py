"""Files of a delivery: read inside the workspace and within bounds, refused with a line for the person."""

from __future__ import annotations

import logging
import os
from pathlib import Path
from typing import Any

import msgspec
import pytest

from openclaw.channels import media
from openclaw.channels.media import Guard, load_media
from openclaw.channels.postman import outgoing_of
from openclaw.domain.media import media_file
from openclaw.store.outbox import Delivery

PNG = b"\x89PNG\r\n\x1a\n0000"


@pytest.fixture
def room(tmp_path: Path) -> Path:
    (tmp_path / "room" / "out").mkdir(parents=True)
    (tmp_path / "secret.txt").write_text("secret")
    return tmp_path / "room"


def listed(room: Path, *paths: str) -> list[Any]:
    return [msgspec.to_builtins(media_file(path, str(room))) for path in paths]


async def test_files_of_the_workspace_are_read(room: Path) -> None:
    (room / "out" / "cat.dat").write_bytes(PNG)
    (room / "plan.pdf").write_bytes(b"%PDF-1")
    (room / "link").symlink_to("plan.pdf")
    loaded = await load_media(listed(room, "out/cat.dat", "plan.pdf", "link"), wanted=True)
    assert [(one.name, one.mime, one.data) for one in loaded.files] == [
        ("cat.dat", "image/png", PNG),  # what bytes are is told by the bytes
        ("plan.pdf", "application/pdf", b"%PDF-1"),
        ("link", "application/octet-stream", b"%PDF-1"),
    ]
    assert loaded.notes == ()


async def test_nothing_outside_is_read(room: Path) -> None:
    (room / "out" / "up").symlink_to("../../secret.txt")
    (room / "far").symlink_to("/etc/passwd")
    (room / "dir").symlink_to("..")
    paths = (
        "../secret.txt",
        "/etc/passwd",
        "~/x",
        "out/up",
        "far",
        "dir/secret.txt",
        "out",
        "missing",
        "a\0b",
    )
    loaded = await load_media(listed(room, *paths), wanted=True)
    assert loaded.files == () and len(loaded.notes) == len(paths)
    assert all(note.startswith("[") and "was not sent: " in note for note in loaded.notes)
    assert "secret" not in "".join(loaded.notes).replace("secret.txt", "")


async def test_sizes_have_limits(room: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(media, "MAX_FILE_BYTES", 10)
    monkeypatch.setattr(media, "MAX_TOTAL_BYTES", 15)
    for name, size in (("empty", 0), ("ten", 10), ("eleven", 11), ("five", 5), ("one", 1)):
        (room / name).write_bytes(b"x" * size)
    loaded = await load_media(listed(room, "empty", "eleven", "ten", "five", "one"), wanted=True)
    assert [one.name for one in loaded.files] == ["ten", "five"]
    assert [note.partition(" was")[0] for note in loaded.notes] == ["[empty", "[eleven", "[one"]
    assert "it is empty" in loaded.notes[0] and "more than" in loaded.notes[1]
    assert "together" in loaded.notes[2]


@pytest.mark.spec("TRX-11")
async def test_private_files_stay_whatever_they_are_called(room: Path, tmp_path: Path) -> None:
    state = tmp_path / "room" / "state"
    state.mkdir()
    secret = "token-of-the-gateway-1234"
    (state / "config.json5").write_text(f'{{ token: "{secret}" }}')
    (state / "notes.txt").write_text("inside the state")
    (room / ".env").write_text("A=1")
    (room / "innocent.txt").symlink_to(".env")
    (room / "copy.txt").write_text(f"see {secret} here")
    os.link(state / "config.json5", room / "linked.json")
    (room / "door").symlink_to("state")
    (room / "fine.txt").write_text("A=1")
    guard = Guard(str(state), str(state / "config.json5"), lambda: frozenset((secret,)))
    paths = (
        "state/config.json5", "state/notes.txt", "door/notes.txt", ".env", "innocent.txt", "copy.txt",
        "linked.json", "fine.txt",
    )  # fmt: skip
    loaded = await load_media(listed(room, *paths), wanted=True, guard=guard)
    assert [one.name for one in loaded.files] == ["fine.txt"]
    reasons = [note.partition(" was not sent: ")[2].split()[:2] for note in loaded.notes]
    assert [" ".join(words) for words in reasons] == [
        "it is", "it belongs", "it belongs", "files of", "files of", "it holds", "it holds",
    ]  # fmt: skip
    assert secret not in "".join(loaded.notes)


async def test_a_workspace_below_the_state_sends_its_files(tmp_path: Path) -> None:
    room = tmp_path / "state" / "workspace"
    room.mkdir(parents=True)
    (room / "a.txt").write_text("a")
    there = tmp_path / "there"  # the state directory may be reached by a link
    there.symlink_to(tmp_path / "state")
    guard = Guard(str(there), str(there / "openclaw.json"))
    loaded = await load_media(listed(there / "workspace", "a.txt"), wanted=True, guard=guard)
    assert [one.data for one in loaded.files] == [b"a"] and loaded.notes == ()


def delivery(body: Any) -> Delivery:
    return Delivery(
        1, "run:reply", "agent:main:main", "run", "telegram", "1", None, "7", msgspec.json.encode(body),
        "sending", 1, 0, 0,
    )  # fmt: skip


async def test_a_delivery_brings_its_files_or_a_line_about_them(
    room: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.WARNING, "openclaw.channels")
    (room / "a.txt").write_text("a")
    body = {"text": "look", "media": listed(room, "a.txt", "b.txt")}
    taken = await outgoing_of(delivery(body), "42", media=True)
    assert (taken.to, taken.account_id, taken.thread_id, taken.draft_id) == ("1", "default", "7", "42")
    assert [one.data for one in taken.media] == [b"a"]
    assert taken.text == "look\n\n[b.txt was not sent: b.txt does not exist]"
    assert caplog.messages == ["delivery 1 on telegram: [b.txt was not sent: b.txt does not exist]"]
    without = await outgoing_of(delivery(body))
    assert without.media == () and "a.txt was not sent: files cannot be sent here" in without.text
    assert (await outgoing_of(delivery({"text": "plain"}))).text == "plain"


@pytest.mark.parametrize("odd", [5, "x", [{"path": 1}], [None]])
async def test_a_strange_list_is_one_line(odd: Any) -> None:
    loaded = await load_media(odd, wanted=True)
    assert loaded.files == () and len(loaded.notes) == 1
