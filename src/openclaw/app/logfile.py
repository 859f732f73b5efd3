"""The gateway's log on disk: one JSON object per line, secrets masked, bounded in size and number.

Logging never waits for a disk: a record is put in a line in memory, and one thread writes.
When the line is full or the disk refuses, records are lost and the log says how many. The
console keeps its own handler; levels are chosen by whoever starts the program.
"""

from __future__ import annotations

import contextlib
import logging
import os
import queue
import threading
import traceback
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, BinaryIO

import msgspec

from openclaw.domain.redaction import redact
from openclaw.gateway.logtail import CURRENT, old_name, segments

MAX_FILE_BYTES = 10 * 1024 * 1024
KEPT_FILES = 5  # full ones, besides the current one
MAX_WAITING = 10_000
MAX_RECORD_CHARS = 32_768
CLOSE_WITHIN_S = 5.0
_CLOSE = None
_encode = msgspec.json.Encoder().encode


class LogFile(logging.Handler):
    """A handler for the logger `openclaw`. `secrets` are the values that must not be written (TRX-11)."""

    def __init__(
        self,
        folder: Path,
        secrets: Callable[[], frozenset[str]],
        *,
        max_file_bytes: int = MAX_FILE_BYTES,
        kept_files: int = KEPT_FILES,
        max_waiting: int = MAX_WAITING,
    ) -> None:
        super().__init__()
        self.folder = folder
        self._secrets = secrets
        self._max_file_bytes = max_file_bytes
        self._kept_files = kept_files
        self._line: queue.Queue[logging.LogRecord | None] = queue.Queue(max_waiting)
        self._lost = 0
        self._file: BinaryIO | None = None
        self._size = 0
        self._writer = threading.Thread(target=self._write_forever, name="openclaw-log", daemon=True)
        self._writer.start()

    # -- any thread ------------------------------------------------------------------------------

    def emit(self, record: logging.LogRecord) -> None:
        """Put a record in line; its text is made now, because what it is made of may change."""
        try:
            record.message = record.getMessage()
            if record.exc_info and not record.exc_text:
                record.exc_text = "".join(traceback.format_exception(*record.exc_info))
        except Exception:  # a wrong logging call must not hurt who made it
            record.message = str(record.msg)
        try:
            self._line.put_nowait(record)
        except queue.Full:
            self._lost += 1

    def note(self, text: str) -> None:
        """Write a line into the file alone: what a person at the terminal is told in other words."""
        self.handle(logging.LogRecord("openclaw", logging.INFO, "", 0, text, None, None))

    def close(self) -> None:
        """Write what waits, within a few seconds, and let go of the file."""
        if self._writer.is_alive():
            with contextlib.suppress(queue.Full):
                self._line.put(_CLOSE, timeout=CLOSE_WITHIN_S)
            self._writer.join(CLOSE_WITHIN_S)
        super().close()

    # -- the writer ------------------------------------------------------------------------------

    def _write_forever(self) -> None:
        while (record := self._line.get()) is not _CLOSE:
            self._keep(record)
        if self._file is not None:
            self._file.close()

    def _keep(self, record: logging.LogRecord) -> None:
        try:
            lost, self._lost = self._lost, 0
            if lost:
                self._write(_line_of_lost(lost, record.created))
            self._write(line_of(record, self._secrets()))
        except Exception:  # a full disk, a folder that vanished: the gateway goes on
            self._lost += 1
            if self._file is not None:
                with contextlib.suppress(OSError):
                    self._file.close()
                self._file = None

    def _write(self, line: bytes) -> None:
        if self._file is None:
            self._open()
        elif self._size + len(line) > self._max_file_bytes and self._size:
            self._rotate()
        assert self._file is not None
        self._file.write(line)
        self._file.flush()
        self._size += len(line)

    def _open(self) -> None:
        self.folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        flags = os.O_WRONLY | os.O_APPEND | os.O_CREAT | getattr(os, "O_CLOEXEC", 0)
        descriptor = os.open(self.folder / CURRENT, flags, 0o600)
        self._file = os.fdopen(descriptor, "ab")
        self._size = os.fstat(descriptor).st_size

    def _rotate(self) -> None:
        """Name the full file after its place in the log, begin the next one, drop the oldest."""
        assert self._file is not None
        self._file.close()
        self._file = None
        parts = segments(self.folder)
        current = parts[-1]
        current.path.rename(self.folder / old_name(current.start))
        for old in parts[:-1][: max(0, len(parts) - self._kept_files)]:
            old.path.unlink(missing_ok=True)
        self._open()


def line_of(record: logging.LogRecord, secrets: frozenset[str]) -> bytes:
    """A record as one line. Masked before it is encoded, so that escaping cannot hide a secret."""
    message = record.message
    if record.exc_text:
        message = f"{message}\n{record.exc_text}"
    if len(message) > MAX_RECORD_CHARS:
        # Cut where a secret cannot be cut in two unseen: masked first as far as twice the length.
        message = redact(message[: 2 * MAX_RECORD_CHARS], secrets).text[:MAX_RECORD_CHARS] + "…"
    return _line(record.created, record.levelname.lower(), record.name, redact(message, secrets).text)


def _line_of_lost(count: int, created: float) -> bytes:
    return _line(created, "warning", "openclaw.log", f"{count} log records were lost")


def _line(created: float, level: str, name: str, message: str) -> bytes:
    at = datetime.fromtimestamp(created, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
    fields: dict[str, Any] = {"time": at, "level": level, "name": name, "message": message}
    try:
        return _encode(fields) + b"\n"
    except UnicodeEncodeError:
        fields["message"] = message.encode("utf-8", "replace").decode("utf-8")
        return _encode(fields) + b"\n"
