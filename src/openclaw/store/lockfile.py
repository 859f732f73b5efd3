"""The lock that makes one process the owner of a state directory (OWN-6).

An operating-system lock on a file of its own, held for life: it vanishes with
the process, so there is nothing to clean up and no time-out to guess. The
database files themselves are never opened here (PITFALLS A3).
"""

from __future__ import annotations

import errno
import fcntl
import os
from pathlib import Path

from openclaw.errors import StoreBusy, StoreError, StoreFull, StoreLocked, StoreReadOnly


def unusable(directory: Path, error: OSError) -> StoreError:
    """One of our errors, with the way out, for a state directory in which no file can be opened."""
    if error.errno in (errno.EMFILE, errno.ENFILE):
        return StoreBusy(
            f"too many files are open to use the state directory {directory}. "
            "Close other programs or raise the limit (ulimit -n), and try again.",
            path=str(directory),
        )
    if error.errno in (errno.ENOSPC, errno.EDQUOT):
        return StoreFull(f"the disk is full: nothing could be created in {directory}. Free some space.")
    return StoreReadOnly(
        f"cannot write to the state directory {directory}: {error.strerror}. "
        "Make it writable or set OPENCLAW_STATE_DIR.",
        path=str(directory),
    )


class OwnerLock:
    """Holds `<database>.lock`. Taking it is atomic among all processes of the machine."""

    def __init__(self, database: Path) -> None:
        self.path = database.with_name(database.name + ".lock")
        self._descriptor: int | None = None

    def take(self) -> None:
        """Become the owner, or raise StoreLocked naming who is."""
        try:
            descriptor = os.open(self.path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        except OSError as error:
            raise unusable(self.path.parent, error) from error
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            owner = os.pread(descriptor, 32, 0).decode("ascii", "replace").strip()
            os.close(descriptor)
            if error.errno not in (errno.EWOULDBLOCK, errno.EACCES):
                raise
            raise StoreLocked(
                f"another gateway{f' (process {owner})' if owner else ''} owns {self.path.parent}. "
                "Stop it, or use another OPENCLAW_STATE_DIR.",
                path=str(self.path.parent),
                owner=owner,
            ) from error
        os.ftruncate(descriptor, 0)
        os.pwrite(descriptor, str(os.getpid()).encode("ascii"), 0)
        self._descriptor = descriptor

    def release(self) -> None:
        if self._descriptor is not None:
            os.close(self._descriptor)
            self._descriptor = None
