"""A command on a terminal of its own, as a person has it: typed into, read from, interrupted."""

from __future__ import annotations

import contextlib
import fcntl
import os
import pty
import re
import select
import struct
import subprocess
import sys
import termios
import time
from collections.abc import Mapping
from types import TracebackType
from typing import Self

PATIENCE_S = 60.0
CTRL_C, CTRL_D = "\x03", "\x04"
_ESCAPES = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]|\x1b[=>]|\r")
# The new session has no terminal until one is claimed; Ctrl-C needs it.
_CLAIM = (
    "import fcntl, os, sys, termios; fcntl.ioctl(0, termios.TIOCSCTTY, 0);"
    "os.execv(sys.executable, [sys.executable, *sys.argv[1:]])"
)


class Terminal:
    """`python -m openclaw …` on a pseudo terminal; `screen` is all that it printed."""

    def __init__(self, env: Mapping[str, str], *arguments: str) -> None:
        self._env = {**env, "TERM": "xterm"}
        self._arguments = arguments
        self._master = -1
        self._process: subprocess.Popen[bytes]
        self.raw = b""

    def __enter__(self) -> Self:
        self._master, slave = pty.openpty()
        fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", 40, 120, 0, 0))
        self._process = subprocess.Popen(
            [sys.executable, "-c", _CLAIM, "-m", "openclaw", *self._arguments],
            env=self._env, stdin=slave, stdout=slave, stderr=slave, start_new_session=True,
        )  # fmt: skip
        os.close(slave)
        return self

    def __exit__(
        self, _kind: type[BaseException] | None, _error: BaseException | None, _trace: TracebackType | None
    ) -> None:
        if self._process.poll() is None:
            self._process.kill()
        self._process.wait()
        os.close(self._master)

    @property
    def screen(self) -> str:
        """The text without colours and cursor movements."""
        return _ESCAPES.sub("", self.raw.decode("utf-8", "replace"))

    def type(self, text: str) -> None:
        os.write(self._master, text.encode())

    def wait_for(self, text: str, *, times: int = 1) -> str:
        """Read until the screen holds `text` so many times."""
        deadline = time.monotonic() + PATIENCE_S
        while self.screen.count(text) < times:
            assert time.monotonic() < deadline, f"{text!r} did not appear:\n{self.screen}"
            assert self._read() or self._process.poll() is None, f"it ended without {text!r}:\n{self.screen}"
        return self.screen

    def leave(self) -> int:
        """Read to the end, and the exit code."""
        deadline = time.monotonic() + PATIENCE_S
        while self._process.poll() is None:
            assert time.monotonic() < deadline, f"it did not end:\n{self.screen}"
            self._read()
        while self._read():
            pass
        return self._process.returncode

    def _read(self) -> bool:
        ready, _, _ = select.select([self._master], [], [], 0.05)
        if not ready:
            return False
        with contextlib.suppress(OSError):  # the other side is gone
            piece = os.read(self._master, 65_536)
            self.raw += piece
            return bool(piece)
        return False
