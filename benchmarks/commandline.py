"""How long a person waits for the command line, beside Python alone.

    python -m benchmarks.commandline [--quick]

`openclaw --version`, and `openclaw sessions --json` against a running gateway, each as a
process of its own; the bars in seconds hold on a machine that does nothing else. CPU and
the ratio to a Python that only starts say the same of a busy one.
"""

from __future__ import annotations

import argparse
import os
import resource
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

import uvloop

from benchmarks.measuring import Figure, at_most, median, show
from benchmarks.processes import TOKEN, gateway
from benchmarks.zero_model import zero_model

_OPENCLAW = str(Path(sys.executable).with_name("openclaw"))


def run(command: Sequence[str], env: dict[str, str]) -> tuple[float, float]:
    """(seconds, CPU seconds) of one command. Raises when it fails."""
    before, began = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
    subprocess.run(command, env=env, check=True, stdout=subprocess.DEVNULL)
    took, after = time.perf_counter() - began, resource.getrusage(resource.RUSAGE_CHILDREN)
    return took, (after.ru_utime + after.ru_stime) - (before.ru_utime + before.ru_stime)


async def measure(home: Path, llm: str, repeats: int) -> list[Figure]:
    async with gateway(home, llm) as process:
        async with process.client() as client:
            for number in range(100):
                await client.call("sessions.create", {"key": f"agent:main:s{number}"})
        env = {
            "PATH": os.environ["PATH"], "HOME": str(home), "TZ": "UTC",
            "OPENCLAW_STATE_DIR": str(home / "state"), "OPENCLAW_GATEWAY_TOKEN": TOKEN,
        }  # fmt: skip
        commands = {
            "python": [sys.executable, "-c", "pass"],
            "version": [_OPENCLAW, "--version"],
            "sessions": [_OPENCLAW, "sessions", "--json"],
        }
        found: dict[str, list[tuple[float, float]]] = {name: [] for name in commands}
        for _ in range(repeats):
            for name, command in commands.items():
                found[name].append(run(command, env))
    wall = {name: median([one[0] for one in runs]) for name, runs in found.items()}
    cpu = {name: median([one[1] for one in runs]) for name, runs in found.items()}
    return [
        Figure("python -c pass", wall["python"], "s"),
        at_most("openclaw --version", wall["version"], 0.15, "s"),
        at_most("openclaw sessions --json", wall["sessions"], 0.25, "s"),
        Figure("openclaw --version, CPU", cpu["version"], "s"),
        Figure("openclaw sessions --json, CPU", cpu["sessions"], "s"),
        at_most("openclaw --version / python alone, CPU", cpu["version"] / cpu["python"], 5, "x"),
        at_most("openclaw sessions --json / python alone, CPU", cpu["sessions"] / cpu["python"], 20, "x"),
    ]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--quick", action="store_true", help="fewer repeats")
    options = parser.parse_args()
    home = Path(tempfile.mkdtemp(prefix="openclaw-bench-"))
    try:
        with zero_model() as llm:
            figures = uvloop.run(measure(home, llm, 5 if options.quick else 20))
        return 0 if show("the command line", figures) else 1
    finally:
        shutil.rmtree(home, ignore_errors=True)


if __name__ == "__main__":
    sys.exit(main())
