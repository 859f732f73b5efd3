"""Rows are read on several threads at once, from the first moment of a process.

msgspec builds what it knows about a type on first use, and doing that on two
threads at once crashed the gateway at start-up in about one of five processes.
"""

from __future__ import annotations

import subprocess
import sys

import pytest

PROCESSES = 10
FIRST_READ = """
import sys, threading
from openclaw.domain.entry import entry_from_stored
from openclaw.protocol.methods import decode_params
import msgspec
sys.setswitchinterval(1e-6)
barrier = threading.Barrier(8)
def read():
    barrier.wait()
    for _ in range(20):
        entry_from_stored({"sessionId": "a", "updatedAt": 1, "origin": {"label": "x"}, "compactionCount": 2})
        decode_params("sessions.list", msgspec.Raw(b"{}"))
        decode_params("sessions.patch", msgspec.Raw(b'{"key": "x", "label": "y"}'))
threads = [threading.Thread(target=read) for _ in range(8)]
for thread in threads: thread.start()
for thread in threads: thread.join()
print("read")
"""


@pytest.mark.spec("ENT-11", "DB-16")
def test_the_first_rows_may_be_read_on_many_threads() -> None:
    for _ in range(PROCESSES):
        done = subprocess.run(
            [sys.executable, "-X", "faulthandler", "-c", FIRST_READ],
            capture_output=True,
            text=True,
            timeout=60,
        )
        assert (done.returncode, done.stdout) == (0, "read\n"), done.stderr[-2000:]
