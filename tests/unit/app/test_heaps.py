"""The threads of a gateway share two heaps; without asking, each would get its own."""

from __future__ import annotations

import subprocess
import sys

PROGRAM = """
import ctypes, sys, threading
from openclaw.app.running import share_heaps
if sys.argv[1] == "shared":
    share_heaps()
ready, done = threading.Barrier(7), threading.Event()
def work():
    taken = [bytes(50_000) for _ in range(20)]
    ready.wait()
    done.wait()
threads = [threading.Thread(target=work) for _ in range(6)]
for thread in threads:
    thread.start()
ready.wait()
ctypes.CDLL(None).malloc_stats()
done.set()
"""


def heaps(how: str) -> int:
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, how], capture_output=True, text=True, timeout=60, check=True
    )
    return sum(line.startswith("Arena ") for line in done.stderr.splitlines())


def test_threads_share_two_heaps() -> None:
    assert heaps("shared") == 2 < heaps("plain")
