"""Files that a session hands to a helper (SPAWN-17): what may be handed over, and how it is named.

Values in, values or a refusal out. Where the files are kept and how the helper gets
at them is decided elsewhere. A refusal names the file and what to change.
"""

from __future__ import annotations

import binascii
import hashlib
from collections.abc import Mapping, Sequence
from typing import Any

from msgspec import Struct

from openclaw.domain.doortext import cut
from openclaw.domain.groups import has_invisible_text, has_unsafe_text
from openclaw.errors import Forbidden, InvalidRequest

MAX_NAME_BYTES = 200
MAX_MOUNT_CHARS = 200
MAX_MOUNT_DEPTH = 8
FOLDER = ".openclaw/attachments"
SETTING = "tools.sessions_spawn.attachments.enabled"
_FIELDS = frozenset(("name", "content", "encoding", "mimeType"))
_LEFT_OUT = "leftOut"
_FORBIDDEN_SIGNS = frozenset('/\\:*?"<>|')


class SpawnFileLimits(Struct, frozen=True, kw_only=True):
    """What is taken; off unless somebody asked for it. `retain`: files stay until the helper is archived."""

    enabled: bool = False
    count: int = 50
    file_bytes: int = 1_048_576
    total_bytes: int = 5_242_880
    retain: bool = False


class SpawnFile(Struct, frozen=True):
    """One file for a helper. `path` is below the helper's own folder."""

    path: str
    data: bytes
    sha256: str
    mime_type: str | None = None


def read_spawn_files(
    raw: Sequence[Mapping[str, Any]], mount_path: str | None, limits: SpawnFileLimits
) -> tuple[SpawnFile, ...]:
    """The files of a call. Raises InvalidRequest or Forbidden; a size is refused before it is decoded."""
    if not limits.enabled:
        raise Forbidden(f"attachments are turned off; set {SETTING}, or put the text into the task")
    if len(raw) > limits.count:
        raise InvalidRequest(f"{len(raw)} attachments; at most {limits.count} can be handed over")
    folder = check_mount_path(mount_path)
    files: list[SpawnFile] = []
    taken: set[str] = set()
    room = limits.total_bytes
    for number, item in enumerate(raw, 1):
        name = _name(number, item)
        if name.casefold() in taken:
            raise InvalidRequest(f"two attachments are called {name!r}; give each a name of its own")
        taken.add(name.casefold())
        data = _data(name, item, limits, room)
        room -= len(data)
        mime = item.get("mimeType")
        kept = cut(mime, 100) if isinstance(mime, str) else None
        files.append(SpawnFile(f"{folder}{name}", data, hashlib.sha256(data).hexdigest(), kept))
    return tuple(files)


def check_mount_path(path: str | None) -> str:
    """A folder below the helper's own one, with a slash at its end; nothing when none is asked for."""
    if path is None or not path.strip():
        return ""
    if len(path) > MAX_MOUNT_CHARS:
        raise InvalidRequest(f"mountPath is longer than {MAX_MOUNT_CHARS} characters; use a shorter one")
    if path.startswith(("/", "~")) or "\\" in path or ":" in path:
        raise InvalidRequest("mountPath must be a relative path with `/` between its parts, such as data/in")
    parts = [part for part in path.split("/") if part not in ("", ".")]
    if ".." in parts:
        raise InvalidRequest("mountPath must not hold `..`; name a folder below the helper's own one")
    if len(parts) > MAX_MOUNT_DEPTH:
        raise InvalidRequest(f"mountPath is deeper than {MAX_MOUNT_DEPTH} folders; use a shorter one")
    for part in parts:
        _check_word(part, f"the part {cut(part, 40)!r} of mountPath")
    return "".join(f"{part}/" for part in parts)


def _name(number: int, item: Mapping[str, Any]) -> str:
    if _LEFT_OUT in item:
        raise InvalidRequest(
            "the contents of attachments are not kept in the transcript, and a restart lost them; "
            "call it again with the files"
        )
    unknown = sorted(set(item) - _FIELDS)
    if unknown:
        allowed = ", ".join(sorted(_FIELDS))
        raise InvalidRequest(f"attachment {number}: unknown {cut(unknown[0], 40)!r}; it may have {allowed}")
    name = item.get("name")
    if not isinstance(name, str) or not name:
        raise InvalidRequest(f"attachment {number} has no name; give it one such as notes.txt")
    _check_word(name, f"attachment {number}: the name {cut(name, 40)!r}")
    return name


def _check_word(word: str, what: str) -> None:
    """One part of a path that every system takes and nobody mistakes for another."""
    if has_unsafe_text(word) or has_invisible_text(word) or word != word.strip():
        raise InvalidRequest(f"{what} holds characters that cannot be seen; use plain letters")
    if any(sign in _FORBIDDEN_SIGNS for sign in word) or word in (".", "..") or word.endswith("."):
        raise InvalidRequest(f"{what} is no plain file name; use one without folders, such as notes.txt")
    if len(word.encode("utf-8", "replace")) > MAX_NAME_BYTES:
        raise InvalidRequest(f"{what} is longer than {MAX_NAME_BYTES} bytes; use a shorter one")


def _data(name: str, item: Mapping[str, Any], limits: SpawnFileLimits, room: int) -> bytes:
    content, encoding = item.get("content"), item.get("encoding", "utf8")
    if not isinstance(content, str):
        raise InvalidRequest(f"attachment {name!r} has no content; give it as text or as base64")
    if encoding not in ("utf8", "utf-8", "base64"):
        raise InvalidRequest(f"attachment {name!r}: encoding must be utf8 or base64")
    # Four characters of base64 carry three bytes; text has at least one byte a character.
    least = len(content) * 3 // 4 - 2 if encoding == "base64" else len(content)
    _check_size(name, least, limits, room)
    data = _decode(name, content) if encoding == "base64" else _encode(name, content)
    _check_size(name, len(data), limits, room)
    return data


def _check_size(name: str, size: int, limits: SpawnFileLimits, room: int) -> None:
    if size > limits.file_bytes:
        raise InvalidRequest(f"attachment {name!r} is larger than {limits.file_bytes} bytes; hand over less")
    if size > room:
        raise InvalidRequest(f"the attachments have more than {limits.total_bytes} bytes; leave some out")


def _decode(name: str, content: str) -> bytes:
    try:
        return binascii.a2b_base64("".join(content.split()).encode("ascii"), strict_mode=True)
    except ValueError:  # of which a character outside ASCII is one
        raise InvalidRequest(f"attachment {name!r}: the content is not valid base64")


def _encode(name: str, content: str) -> bytes:
    try:
        return content.encode()
    except UnicodeEncodeError:
        raise InvalidRequest(f"attachment {name!r} holds half of a surrogate pair; send it as base64")


def left_out(arguments: Mapping[str, Any]) -> bool:
    """Whether these are arguments as the transcript keeps them: attachments without their contents."""
    given = arguments.get("attachments")
    return isinstance(given, list) and any(isinstance(item, dict) and _LEFT_OUT in item for item in given)


def without_contents(arguments: dict[str, Any]) -> dict[str, Any]:
    """The arguments as the caller's transcript keeps them: files stand there by name and size."""
    given = arguments.get("attachments")
    if not isinstance(given, list):
        return arguments
    return {**arguments, "attachments": [_bare(item) for item in given]}


def _bare(item: Any) -> Any:
    if not isinstance(item, dict) or not isinstance(item.get("content"), str):
        return item
    kept = {name: value for name, value in item.items() if name != "content"}
    return {**kept, _LEFT_OUT: len(item["content"])}
