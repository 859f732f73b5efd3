"""Search in files: a walk over part of the workspace, line by line, within fixed limits.

`search` looks for plain text and may run on a thread. A regular expression can
take for ever while it holds the interpreter, so `grep` runs this same module as a
process of its own, which is killed when its time is over. Links are not followed,
and directories of tools are left out.
"""

from __future__ import annotations

import re
import sys
import time
from collections.abc import Callable, Iterator

import msgspec
from msgspec import Struct

from openclaw.domain.toolpolicy import matches_glob
from openclaw.engine.tools.workspace.rooted import Root, shown
from openclaw.errors import InvalidRequest, OpenClawError

MAX_FILES = 20_000
MAX_FILE_BYTES = 4 << 20
MAX_TOTAL_BYTES = 256 << 20
MAX_LINE_CHARS = 2_000
SHOWN_LINE_CHARS = 300
MAX_PATTERN_CHARS = 1000
TIME_S = 10.0
SKIPPED_DIRECTORIES = (".git", ".hg", ".venv", "node_modules", "__pycache__")
_SNIFF_BYTES = 8192


class Search(Struct, frozen=True):
    workspace: str
    pattern: str
    path: str = "."
    glob: str = ""
    regex: bool = False
    ignore_case: bool = False
    limit: int = 100
    time_s: float = TIME_S


class Match(Struct, frozen=True):
    path: str
    line: int
    text: str


class Found(Struct, frozen=True):
    """`stopped` says why the search ended early; empty when everything was looked at."""

    matches: tuple[Match, ...] = ()
    files: int = 0
    stopped: str = ""
    error: str = ""


def check_pattern(pattern: str) -> None:
    if not pattern:
        raise InvalidRequest("pattern is empty; say what to look for")
    if len(pattern) > MAX_PATTERN_CHARS:
        raise InvalidRequest(f"pattern is longer than {MAX_PATTERN_CHARS} characters; use a shorter one")


def search(asked: Search) -> Found:
    """Look for the pattern. Blocks: plain text on a thread, a regex only in a process of its own."""
    check_pattern(asked.pattern)
    hits = _matcher(asked)
    until = time.monotonic() + asked.time_s
    matches: list[Match] = []
    files = total = 0
    with Root(asked.workspace) as root:
        for path, size in _files(root, asked.path):
            if files >= MAX_FILES or total >= MAX_TOTAL_BYTES:
                return Found(tuple(matches), files, "too many files; name a directory with path")
            if time.monotonic() > until:
                return Found(tuple(matches), files, "out of time; name a directory with path")
            if asked.glob and not _fits(asked.glob, path):
                continue
            files += 1
            total += min(size, MAX_FILE_BYTES)
            for line, text in hits(_text(root, path)):
                if len(matches) >= asked.limit:
                    return Found(tuple(matches), files, f"more than {asked.limit} matches")
                matches.append(Match(path, line, text[:SHOWN_LINE_CHARS]))
    return Found(tuple(matches), files)


def main() -> None:
    """As a process: one search from standard input, its answer to standard output."""
    asked = msgspec.json.decode(sys.stdin.buffer.read(), type=Search)
    _limit_itself(asked.time_s)
    try:
        found = search(asked)
    except OpenClawError as error:
        found = Found(error=error.message)
    sys.stdout.buffer.write(msgspec.json.encode(found))


def _limit_itself(time_s: float) -> None:
    """The system ends this process by itself: the gateway may have died, and nobody would."""
    import resource  # not there on every platform, and needed in this process only

    used = resource.getrusage(resource.RUSAGE_SELF)
    seconds = int(used.ru_utime + used.ru_stime + time_s) + 1
    resource.setrlimit(resource.RLIMIT_CPU, (seconds, seconds))
    memory = 1 << 30
    resource.setrlimit(resource.RLIMIT_AS, (memory, memory))


# -- files and lines -----------------------------------------------------------------------------


def _files(root: Root, path: str) -> Iterator[tuple[str, int]]:
    """Every regular file at or below `path`, with its size."""
    top = "/".join(part for part in path.split("/") if part not in ("", "."))
    facts = root.stat(path)
    if facts is not None:
        yield top, facts.size
        return
    waiting = [top]
    first = True
    while waiting:
        directory = waiting.pop()
        try:
            entries = root.list(directory or ".").entries
        except OpenClawError:
            if first:
                raise
            continue  # it went away, or may not be read
        first = False
        below = f"{directory}/" if directory else ""
        for entry in entries:
            if entry.kind == "file":
                yield below + entry.name, entry.size
        waiting += [
            below + entry.name
            for entry in reversed(entries)
            if entry.kind == "directory" and entry.name not in SKIPPED_DIRECTORIES
        ]


def _fits(glob: str, path: str) -> bool:
    return matches_glob(glob, path) or matches_glob(glob, path.rpartition("/")[2])


def _text(root: Root, path: str) -> str:
    """The text of a file; nothing of one that is not text, or cannot be read."""
    try:
        data = root.read(path, MAX_FILE_BYTES).data
    except OpenClawError:
        return ""
    return "" if b"\x00" in data[:_SNIFF_BYTES] else data.decode("utf-8", "replace")


Hits = Callable[[str], Iterator[tuple[int, str]]]


def _matcher(asked: Search) -> Hits:
    if not asked.regex:
        needle = asked.pattern.casefold() if asked.ignore_case else asked.pattern
        return lambda text: _plain_hits(text, needle, asked.ignore_case)
    try:
        pattern = re.compile(asked.pattern, re.IGNORECASE if asked.ignore_case else 0)
    except (re.error, OverflowError, RecursionError, MemoryError) as error:
        raise InvalidRequest(f"pattern is not a regular expression: {str(error)[:200]}")
    return lambda text: _pattern_hits(text, pattern)


def _plain_hits(text: str, needle: str, ignore_case: bool) -> Iterator[tuple[int, str]]:
    if not ignore_case and needle not in text:
        return
    for number, line in enumerate(text.split("\n"), 1):
        if needle in (line.casefold() if ignore_case else line):
            yield number, line


def _pattern_hits(text: str, pattern: re.Pattern[str]) -> Iterator[tuple[int, str]]:
    for number, line in enumerate(text.split("\n"), 1):
        if pattern.search(line, 0, MAX_LINE_CHARS):
            yield number, line


def show(found: Found) -> str:
    """Matches as a person reads them: path, line, text."""
    lines = [f"{shown(match.path)}:{match.line}: {match.text.rstrip()}" for match in found.matches]
    if not lines:
        lines.append(f"no match in {found.files} files")
    if found.stopped:
        lines.append(f"[stopped: {found.stopped}]")
    return "\n".join(lines)


if __name__ == "__main__":
    main()
