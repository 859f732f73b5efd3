"""Process groups: end one for certain, and find what slipped out of it.

A command is started in a session of its own, so that one signal reaches all it
started. A child that made itself a session of its own is found by a mark in its
environment, where the system lets us look. Reads `/proc` where there is one.
"""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

_PROC = Path("/proc")
_STEP_S = 0.02


def end_group(group: int, mark: bytes, *, grace_s: float, limit_s: float = 0.6) -> bool:
    """Ask a group to end, end it by force after `grace_s`, and whoever bears the mark with it. Blocks.

    True when nobody is left; False when that could not be made or seen within the time.
    """
    if grace_s and signal_group(group, signal.SIGTERM):
        until = time.monotonic() + grace_s
        while time.monotonic() < until and is_group_alive(group):
            time.sleep(_STEP_S)
    until = time.monotonic() + limit_s
    while True:
        signal_group(group, signal.SIGKILL)
        if not _kill_marked(mark) and not is_group_alive(group):
            return True
        if time.monotonic() > until:
            return False
        time.sleep(_STEP_S)


def is_group_alive(group: int) -> bool:
    """Whether a process of the group still runs; one that is dead but not yet collected does not."""
    if not signal_group(group, 0):
        return False
    if not _PROC.is_dir():
        return True
    return any(found == group and state not in "ZX" for _, state, found in _processes())


def signal_group(group: int, number: int) -> bool:
    """Send a signal to every process of a group; False when there is none that would take it."""
    try:
        os.killpg(group, number)
    except (ProcessLookupError, PermissionError):
        return False
    return True


def _kill_marked(mark: bytes) -> int:
    """Kill every living process whose environment holds the mark; how many there were."""
    count = 0
    for pid, state, _ in _processes():
        if state in "ZX" or not _bears(pid, mark):
            continue
        with suppress(ProcessLookupError, PermissionError):
            os.kill(pid, signal.SIGKILL)
            count += 1
    return count


def _bears(pid: int, mark: bytes) -> bool:
    try:
        return mark in (_PROC / str(pid) / "environ").read_bytes().split(b"\0")
    except OSError:
        return False


def _processes() -> Iterator[tuple[int, str, int]]:
    """Number, state and group of every process that can be seen."""
    try:
        names = [path.name for path in _PROC.iterdir() if path.name.isdigit()]
    except OSError:
        return
    for name in names:
        try:
            line = (_PROC / name / "stat").read_text(encoding="utf-8", errors="replace")
        except OSError:
            continue
        # The command stands in brackets and may hold anything, brackets too.
        fields = line.rpartition(")")[2].split()
        if len(fields) > 2:
            yield int(name), fields[0], int(fields[2])
