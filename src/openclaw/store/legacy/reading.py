"""Reading one transcript file, line by line, into records and what is needed to write it again (TRX-13).

A file is read once, front to back, in bounded memory: transcripts of version 3 as a
stream; older ones, which need to be seen whole to be upgraded, up to a limit. What
cannot be read is reported and kept as bytes beside the next record, so that an export
gives back the whole file.
"""

from __future__ import annotations

import hashlib
import os
import stat
from collections.abc import Iterable, Iterator
from io import BufferedReader, FileIO
from itertools import chain
from pathlib import Path

import msgspec
from msgspec import Struct

from openclaw.domain.context import upgrade_records
from openclaw.domain.jsonl import (
    Json,
    ReadRecord,
    UnreadableLine,
    derived_id,
    is_entry_id,
    ms_of,
    read_line,
    read_object,
    read_upgraded,
    record_line,
)
from openclaw.domain.transcript import TRANSCRIPT_VERSION

MAX_LINE_BYTES = 64 << 20
MAX_KEPT_GAP = 64 << 20
MAX_OLD_FILE = 256 << 20
MAX_PROBLEMS = 1000  # that are told one by one, per file; the rest is counted


class Problem(Struct, frozen=True):
    """Something about a file that a person should know. Line 0 is the file as a whole."""

    file: str
    line: int
    reason: str

    def __str__(self) -> str:
        place = f"{self.file}:{self.line}" if self.line else self.file
        return f"{place}: {self.reason}"


class Scanned(Struct, frozen=True):
    """A record with its place. `source` holds its bytes when today's line would differ from them."""

    seq: int
    parent_seq: int | None
    record: ReadRecord
    source: bytes | None


def open_for_reading(path: Path) -> BufferedReader:
    """A regular file, read-only. A pipe or a device is not waited for."""
    descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        os.close(descriptor)
        raise OSError(f"{path} is not a file")
    return BufferedReader(FileIO(descriptor, "rb"), 1 << 20)


def hash_of_file(path: Path) -> str:
    with open_for_reading(path) as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


class TranscriptScan:
    """One pass over a file. Iterate `records()` to the end; then the other fields are complete."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.problems: list[Problem] = []
        self.problem_count = 0
        self.header: Json | None = None
        self.header_bytes = b""
        self.records_read = 0
        self.skipped = 0
        self.lines_lost = 0
        self.bytes_read = 0
        self.is_cut_off = False
        self.last_at_ms = 0
        self._gap = bytearray()
        self._hash = hashlib.sha256()
        self._prefix = self._hash.copy()
        self._seq_of: dict[str, int] = {}

    @property
    def started_at(self) -> int | None:
        """The time of the header (DB-7)."""
        return ms_of(self.header.get("timestamp")) if self.header else None

    @property
    def tail(self) -> bytes:
        """What followed the last record: blank, unreadable or half-written lines."""
        return bytes(self._gap)

    @property
    def prefix_hash(self) -> str:
        """Of all bytes up to the last record that was given out."""
        return self._prefix.hexdigest()

    @property
    def whole_hash(self) -> str:
        """Of all bytes read; of the whole file once the pass is over."""
        return self._hash.hexdigest()

    def records(self) -> Iterator[Scanned]:
        with open_for_reading(self.path) as file:
            lines = self._lines(file)
            first = self._first_object(lines)
            if first is None:
                return
            rest = lines if self._take_header(first[1]) else chain((first,), lines)
            yield from self._upgraded(rest) if self._needs_upgrade(file) else self._streamed(rest)

    # -- lines ---------------------------------------------------------------------------------

    def _lines(self, file: BufferedReader) -> Iterator[tuple[int, bytes]]:
        """Numbered lines that are not blank. Whoever takes one claims it, or leaves it in the gap."""
        number = 0
        while line := file.readline(MAX_LINE_BYTES):
            number += 1
            self._count(line)
            if len(line) == MAX_LINE_BYTES and not line.endswith(b"\n"):
                self._lose_rest(file, number)
            elif line.strip():
                yield number, line
            else:
                self._leave(number, line)

    def _count(self, line: bytes) -> None:
        self._hash.update(line)
        self.bytes_read += len(line)

    def _lose_rest(self, file: BufferedReader, number: int) -> None:
        while more := file.readline(1 << 20):
            self._count(more)
            if more.endswith(b"\n"):
                break
        self.lines_lost += 1
        self._skip(number, f"longer than {MAX_LINE_BYTES >> 20} MiB; it is not kept")

    def _claim(self, line: bytes) -> bytes:
        """The bytes that belong to a record: its line and what could not be read before it."""
        original = bytes(self._gap) + line if self._gap else line
        self._gap.clear()
        return original

    def _leave(self, number: int, line: bytes) -> None:
        if len(self._gap) + len(line) <= MAX_KEPT_GAP:
            self._gap += line
            return
        self._gap.clear()
        self.lines_lost += 1
        self._report(number, "too much that cannot be read; the bytes before are not kept")

    def _report(self, number: int, reason: str) -> None:
        self.problem_count += 1
        if len(self.problems) < MAX_PROBLEMS:
            self.problems.append(Problem(str(self.path), number, reason))

    def _skip(self, number: int, reason: str) -> None:
        self.skipped += 1
        self._report(number, reason)

    def _refuse(self, number: int, line: bytes, reason: str) -> None:
        """A line that is no record. The last one without an end was being written: no damage (DB-16)."""
        self._leave(number, line)
        if line.endswith(b"\n"):
            self._skip(number, reason)
        else:
            self.is_cut_off = True

    # -- the header ----------------------------------------------------------------------------

    def _first_object(self, lines: Iterable[tuple[int, bytes]]) -> tuple[int, bytes] | None:
        """The first line that can be read; damage before it hides no header."""
        for number, line in lines:
            try:
                read_object(line)
            except UnreadableLine as refusal:
                self._refuse(number, line, str(refusal))
            else:
                return number, line
        return None

    def _take_header(self, line: bytes) -> bool:
        """Whether the first record is a header; it may also be missing."""
        value = read_object(line)
        if value.get("type") != "session":
            return False
        self.header, self.header_bytes = value, self._claim(line)
        self._prefix = self._hash.copy()
        return True

    def _needs_upgrade(self, file: BufferedReader) -> bool:
        """Versions 1 and 2 are upgraded as a whole; a file too large for that is read like version 3."""
        version = (self.header or {}).get("version", 1)
        is_old = not isinstance(version, int) or version < TRANSCRIPT_VERSION
        return is_old and os.fstat(file.fileno()).st_size <= MAX_OLD_FILE

    # -- records -------------------------------------------------------------------------------

    def _streamed(self, lines: Iterable[tuple[int, bytes]]) -> Iterator[Scanned]:
        for number, line in lines:
            try:
                is_header = b'"session"' in line and read_object(line).get("type") == "session"
                if is_header:
                    raise UnreadableLine("a second header")
                record = read_line(line, f"{self.path.name}:{number}")
            except UnreadableLine as refusal:
                self._refuse(number, line, str(refusal))
            else:
                yield self._placed(number, self._claim(line), record)

    def _upgraded(self, lines: Iterable[tuple[int, bytes]]) -> Iterator[Scanned]:
        """Versions 1 and 2, upgraded in memory (TRX-3)."""
        places: list[tuple[int, bytes]] = []
        values: list[Json] = [self.header or {"type": "session", "id": self.path.stem}]
        for number, line in lines:
            try:
                value = read_object(line)
                if value.get("type") == "session":
                    raise UnreadableLine("a second header")
            except UnreadableLine as refusal:
                self._refuse(number, line, str(refusal))
                continue
            if not is_entry_id(value.get("id")):
                value.pop("id", None)
            places.append((number, self._claim(line)))
            values.append(value)
        for (number, original), value in zip(places, upgrade_records(values)[1:], strict=True):
            yield self._placed(number, original, read_upgraded(value))

    def _placed(self, number: int, original: bytes, record: ReadRecord) -> Scanned:
        self.records_read += 1
        seq = self.records_read
        if not record.understood:
            self._report(number, "a record of an unknown kind; kept for the export only")
        if record.entry_id in self._seq_of:
            self._report(number, f"the id {record.entry_id[:40]} occurs twice; a new one is given")
            record = msgspec.structs.replace(record, entry_id=self._new_id(number))
        parent_seq = self._seq_of.get(record.parent_id) if record.parent_id is not None else None
        self._seq_of[record.entry_id] = seq
        parent_id = record.parent_id if parent_seq is not None else None
        written = record_line(record.type, record.entry_id, parent_id, record.created_at, record.body)
        self.last_at_ms = max(self.last_at_ms, record.created_at)
        self._prefix = self._hash.copy()
        return Scanned(seq, parent_seq, record, None if written == original else original)

    def _new_id(self, number: int) -> str:
        name = f"{self.path.name}:{number}:again"
        while (entry_id := derived_id(name)) in self._seq_of:
            name += ":"
        return entry_id
