"""Files of a delivery, read just before it is sent: inside the agent's workspace only, and bounded.

What may not be sent leaves a line for the person instead: what lies outside, is too large, or is
private (`domain.privatefiles`). Reading happens on a worker thread.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable, Sequence
from typing import Any

import msgspec
from msgspec import Struct

from openclaw.channels.base import Attachment
from openclaw.domain.attachments import IMAGE_TYPES, sniff
from openclaw.domain.media import MOST_FILES, MediaFile, refusal_note
from openclaw.domain.privatefiles import private_content, private_place
from openclaw.engine.tools.workspace.rooted import Content, Root, shown
from openclaw.errors import OpenClawError

MAX_FILE_BYTES = 20 * 1024 * 1024
MAX_TOTAL_BYTES = 50 * 1024 * 1024


class Guard(Struct, frozen=True):
    """What no reply may take along: the gateway's own files, and the secrets that it knows."""

    state_dir: str = ""
    config_path: str = ""
    secrets: Callable[[], frozenset[str]] = frozenset

    def problem(self, root: Root, path: str, content: Content) -> str | None:
        """Why a file that was read stays here; None when it may leave."""
        return private_place(
            root.where(path, content.facts),
            workspace=root.where(),
            state_dir=_real(self.state_dir),
            config_path=_real(self.config_path),
        ) or private_content(content.data, self.secrets())


def _real(path: str) -> str:
    return os.path.realpath(path) if path else ""


NO_GUARD = Guard()


class Loaded(Struct, frozen=True):
    """The files that could be read, and a line for each that could not."""

    files: tuple[Attachment, ...] = ()
    notes: tuple[str, ...] = ()


async def load_media(listed: Any, *, wanted: bool, guard: Guard = NO_GUARD) -> Loaded:
    """The files that a delivery's body lists. `wanted` is False where a platform takes none."""
    if not listed:
        return Loaded()
    try:
        files = msgspec.convert(listed, tuple[MediaFile, ...])[:MOST_FILES]
    except msgspec.ValidationError:
        return Loaded(notes=(refusal_note("a file", "it is not described well enough"),))
    if not wanted:
        return Loaded(
            notes=tuple(refusal_note(shown(one.name), "files cannot be sent here") for one in files)
        )
    return await asyncio.to_thread(_load, files, guard)


def _load(files: Sequence[MediaFile], guard: Guard) -> Loaded:
    found: list[Attachment] = []
    notes: list[str] = []
    room = MAX_TOTAL_BYTES
    for file in files:
        try:
            with Root(file.root) as root:
                content = root.read(file.path, min(MAX_FILE_BYTES, room) + 1)
                problem = _problem(content.data, room) or guard.problem(root, file.path, content)
        except OpenClawError as error:
            notes.append(refusal_note(shown(file.name), error.message))
            continue
        if problem:
            notes.append(refusal_note(shown(file.name), problem))
            continue
        room -= len(content.data)
        seen = sniff(content.data)
        mime = seen if seen in IMAGE_TYPES else file.mime
        found.append(Attachment(name=shown(file.name), mime=mime, data=content.data))
    return Loaded(tuple(found), tuple(notes))


def _problem(data: bytes, room: int) -> str | None:
    if not data:
        return "it is empty"
    if len(data) > MAX_FILE_BYTES:
        return f"it has more than {MAX_FILE_BYTES >> 20} MB"
    return f"the files have more than {MAX_TOTAL_BYTES >> 20} MB together" if len(data) > room else None
