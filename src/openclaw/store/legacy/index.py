"""Reading `sessions.json`: a map from session key to entry, in every spelling that it ever had (DB-2).

An entry that cannot be read costs only itself. The map itself must be JSON; a file
that is not is refused whole and left as it is (PITFALLS A9).
"""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
from msgspec import Raw, Struct

from openclaw.domain.doortext import clean_json
from openclaw.domain.entry import SessionEntry, entry_from_stored
from openclaw.domain.jsonl import Json
from openclaw.errors import InvalidRequest, StoreCorrupt
from openclaw.store.legacy.reading import Problem, open_for_reading

MAX_INDEX_BYTES = 1 << 30
_CHAT_TYPES = {"dm": "direct", "room": "channel"}
_ROUTE = {"lastChannel": "channel", "lastTo": "to", "lastAccountId": "accountId", "lastThreadId": "threadId"}
_WHOLE = frozenset(
    field.encode_name
    for field in msgspec.structs.fields(SessionEntry)
    if "int" in str(field.type) and "float" not in str(field.type)
)
_MAX_LABEL = 512


class IndexEntry(Struct, frozen=True):
    """One entry of the map. `file` is the transcript that it names, if it names one."""

    key: str
    entry: SessionEntry
    file: str | None = None


class LegacyIndex(Struct, frozen=True):
    hash: str
    size: int
    changed_ns: int
    entries: tuple[IndexEntry, ...]
    problems: tuple[Problem, ...]


def read_index(path: Path) -> LegacyIndex:
    """All entries that can be read. Raises StoreCorrupt when the file is not a map at all."""
    with open_for_reading(path) as file:
        raw = file.read(MAX_INDEX_BYTES + 1)
        changed_ns = path.stat().st_mtime_ns
    if len(raw) > MAX_INDEX_BYTES:
        raise _unreadable(path, f"larger than {MAX_INDEX_BYTES >> 30} GiB")
    entries: list[IndexEntry] = []
    problems: list[Problem] = []
    for key, value in _pairs(path, raw):
        try:
            entries.append(_read_entry(key, value))
        except (InvalidRequest, ValueError, RecursionError) as error:
            problems.append(Problem(str(path), 0, f"entry {key[:80]!r}: {str(error)[:120]}"))
    digest = hashlib.sha256(raw).hexdigest()
    return LegacyIndex(digest, len(raw), changed_ns, tuple(entries), tuple(problems))


def _unreadable(path: Path, reason: str) -> StoreCorrupt:
    return StoreCorrupt(
        f"{path} cannot be read ({reason}). It was not changed. Repair it; or move it away to import "
        "the transcripts beside it without their session keys.",
        path=str(path),
    )


def _pairs(path: Path, raw: bytes) -> Iterator[tuple[str, Any]]:
    """The map, one value after the other, so that only one is decoded at a time."""
    if not raw.strip(b" \t\r\n\x00"):
        return
    try:
        whole: dict[str, Any] = msgspec.json.decode(raw, type=dict[str, Raw])
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        try:
            whole = json.loads(raw.decode("utf-8", "replace"))
        except (ValueError, RecursionError) as error:
            raise _unreadable(path, f"not JSON: {str(error)[:80]}") from None
        if not isinstance(whole, dict):
            raise _unreadable(path, "not a map of sessions") from None
    yield from whole.items()


def _read_entry(key: str, value: Any) -> IndexEntry:
    if isinstance(value, Raw):
        try:
            value = msgspec.json.decode(value)
        except (msgspec.DecodeError, UnicodeDecodeError):
            value = json.loads(bytes(value).decode("utf-8", "replace"))
    value = clean_json(value)
    if not isinstance(value, dict):
        raise ValueError("not an object")
    session_id = value.get("sessionId")
    if not isinstance(session_id, str) or not 0 < len(session_id) <= 256:
        raise ValueError("it has no sessionId")
    file = value.get("sessionFile")
    name = file.replace("\\", "/").rsplit("/", 1)[-1] if isinstance(file, str) else None
    return IndexEntry(key, entry_from_stored(modern_entry(value)), name)


def modern_entry(legacy: Json) -> Json:
    """The fields of an entry in today's spelling; what has no place any more is left out."""
    entry = {name: _whole(value) if name in _WHOLE else value for name, value in legacy.items()}
    route = entry.get("deliveryContext")
    route = dict(route) if isinstance(route, dict) else {}
    for old, new in _ROUTE.items():
        if entry.get(old) is not None:
            route.setdefault(new, entry[old])
    entry["deliveryContext"] = {name: _text(value) for name, value in route.items()} or None
    if isinstance(entry.get("origin"), dict):
        origin = {name: _text(value) for name, value in entry["origin"].items()}
        entry["origin"] = origin | {"chatType": _chat_type(origin.get("chatType"))}
    entry["chatType"] = _chat_type(entry.get("chatType"))
    if entry.get("groupChannel") is None:
        entry["groupChannel"] = entry.get("room")
    if entry.get("status") == "running":
        # Nothing of the old gateway runs any more.
        entry |= {"status": None, "abortedLastRun": True}
    label = entry.get("label")
    if isinstance(label, str):
        entry["label"] = label.strip()[:_MAX_LABEL] or None
    entry.setdefault("updatedAt", 0)
    return {name: value for name, value in entry.items() if value is not None}


def _whole(value: Any) -> Any:
    """Times and counts were sometimes written with a fraction."""
    if isinstance(value, float) and math.isfinite(value):
        return int(value)
    return value


def _text(value: Any) -> Any:
    """Platform ids were sometimes written as numbers."""
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    return str(value) if isinstance(value, int) and not isinstance(value, bool) else value


def _chat_type(word: Any) -> Any:
    return _CHAT_TYPES.get(word, word) if isinstance(word, str) else None
