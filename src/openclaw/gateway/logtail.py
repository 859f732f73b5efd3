"""Reading the gateway's log files: the newest lines, and what came after a place that was read before.

A place is a number of bytes counted from the very first line that was ever logged, not
from the beginning of a file. It therefore stays right when files are rotated: each old
file has the place of its first byte in its name, and the current one follows the newest
of them. Reads files, writes nothing, and belongs on a thread.
"""

from __future__ import annotations

import re
from pathlib import Path

from msgspec import Struct

CURRENT = "gateway.log"
_OLD = re.compile(r"gateway\.([0-9]{15})\.log")
MAX_LINES = 5000
MAX_BYTES = 1024 * 1024
DEFAULT_LINES = 500
DEFAULT_BYTES = 250_000
_TRIES = 3


class Segment(Struct, frozen=True):
    """One file of the log and the place of its first byte."""

    path: Path
    start: int
    size: int

    @property
    def end(self) -> int:
        return self.start + self.size


class LogPage(Struct, frozen=True):
    """Whole lines. `cursor` asks for what follows them; `size` is where the log ends now.

    `truncated`: more would have fitted the question than fits the answer. `reset`: the place that was
    asked for is gone, and these are the newest lines instead.
    """

    file: str
    cursor: int
    size: int
    lines: tuple[str, ...]
    truncated: bool = False
    reset: bool = False


def old_name(start: int) -> str:
    """What a file that began at this place is called once it is full."""
    return f"gateway.{start:015d}.log"


def segments(folder: Path) -> tuple[Segment, ...]:
    """The files of the log, oldest first, the current one last."""
    old = []
    for name in _names(folder):
        found = _OLD.fullmatch(name)
        size = _size(folder / name) if found else None
        if found and size is not None:
            old.append(Segment(folder / name, int(found.group(1)), size))
    old.sort(key=lambda segment: segment.start)
    start = old[-1].end if old else 0
    current = folder / CURRENT
    return (*old, Segment(current, start, _size(current) or 0))


def read_page(
    folder: Path, *, limit: int = DEFAULT_LINES, max_bytes: int = DEFAULT_BYTES, cursor: int | None = None
) -> LogPage:
    """The newest lines, or those after `cursor`; at most `limit` of them and about `max_bytes` bytes.

    Without a cursor the end of the log is shown; with one, its continuation, so that nobody
    who follows the log misses a line while the files that hold it are kept.
    """
    for _ in range(_TRIES):
        before = segments(folder)
        page = _read(before, min(limit, MAX_LINES), min(max_bytes, MAX_BYTES), cursor)
        # A rotation in between would have given a file another place than we thought.
        if [part.start for part in segments(folder)] == [part.start for part in before]:
            break
    return page


def _read(parts: tuple[Segment, ...], limit: int, max_bytes: int, cursor: int | None) -> LogPage:
    first, end = parts[0].start, parts[-1].end
    known = cursor is not None and first <= cursor <= end
    reset = cursor is not None and not known
    start = cursor if cursor is not None and known else max(first, end - max_bytes)
    text = _bytes(parts, start, min(end, start + max_bytes))
    # The last line may be half written, and the first half cut off by the limit.
    whole = text[: text.rfind(b"\n") + 1]
    if not whole and len(text) >= max_bytes:
        whole = text  # one line longer than the answer may be: shown in pieces rather than never
    skipped = 0
    if not known and start > first:
        skipped = whole.find(b"\n") + 1
    lines = whole[skipped:].split(b"\n")
    if lines and not lines[-1]:
        lines.pop()
    truncated = len(lines) > limit
    if known:
        shown = lines[:limit]
        after = start + sum(len(line) + 1 for line in shown) if truncated else start + len(whole)
        truncated = truncated or after < end - (len(text) - len(whole))
    else:
        shown, after = lines[-limit:], start + len(whole)
        truncated = truncated or start > first
    decoded = tuple(line.decode("utf-8", "replace") for line in shown)
    return LogPage(str(parts[-1].path), after, end, decoded, truncated, reset)


def _bytes(parts: tuple[Segment, ...], start: int, end: int) -> bytes:
    """The bytes from one place to another, whichever files hold them."""
    pieces = []
    for part in parts:
        first, last = max(start, part.start), min(end, part.end)
        if first < last:
            pieces.append(_slice(part.path, first - part.start, last - first))
    return b"".join(pieces)


def _slice(path: Path, offset: int, count: int) -> bytes:
    try:
        with path.open("rb") as file:
            file.seek(offset)
            return file.read(count)
    except OSError:
        return b""


def _names(folder: Path) -> list[str]:
    try:
        return [path.name for path in folder.iterdir()]
    except OSError:
        return []


def _size(path: Path) -> int | None:
    try:
        return path.stat().st_size
    except OSError:
        return None
