"""Whole turns over the wire, each process on its own: gateway, model, people. The gateway's costs only.

    python -m benchmarks.wire [--quick]

One at a time and 32 at once, beside the bare spike in the same run (A B A B); bytes and
system calls of a plain turn; fifty listeners; start and idle memory. Beside them the
limits: a bare aiohttp echo, and msgspec reading and writing the frames of a turn.
"""

from __future__ import annotations

import argparse
import asyncio
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from contextlib import AsyncExitStack
from pathlib import Path

import aiohttp
import msgspec
import uvloop

from benchmarks.load import WITHIN_S, LoadClient
from benchmarks.measuring import Figure, at_least, at_most, cpu_s, median, percentile, show
from benchmarks.processes import Measured, echo, gateway, spike
from benchmarks.zero_model import zero_model

MIB = 1 << 20
TEXT = "hello, where is the parcel that left on Tuesday?"


class Round:
    """Turns against one gateway; every run id is new."""

    def __init__(self, process: Measured, client: LoadClient, name: str) -> None:
        self.process = process
        self._client = client
        self._name = name
        self._rounds = 0
        self.taken: list[float] = []
        self.acknowledged: list[float] = []
        self.failed = 0

    async def run(self, each: int, at_once: int) -> tuple[float, float, float]:
        """(CPU ms, turns per second, kB written) per turn."""
        self._rounds += 1
        before, began = self.process.used(), time.perf_counter()
        await asyncio.gather(*(self._lane(lane, each) for lane in range(at_once)))
        took, used, count = time.perf_counter() - began, self.process.used().since(before), each * at_once
        return used.cpu_s / count * 1000, count / took, used.written_bytes / count / 1000

    async def _lane(self, lane: int, each: int) -> None:
        key = f"agent:main:{self._name}-{self._rounds}-{lane}"
        for number in range(each):
            began = time.perf_counter()
            ended = await self._client.begin(key, TEXT, f"{key}-{number}")
            self.acknowledged.append(time.perf_counter() - began)
            async with asyncio.timeout(WITHIN_S):
                end = await ended
            self.taken.append(time.perf_counter() - began)
            self.failed += end["state"] != "final"


async def measure_turns(home: Path, llm: str, quick: bool) -> list[Figure]:
    # Sessions of fifty turns: what a model is shown grows with a session, and so does the cost of a turn.
    repeats, each, together = (4, 50, 6) if quick else (12, 50, 10)
    single: dict[str, list[tuple[float, float, float]]] = {"spike": [], "ours": []}
    many: dict[str, list[tuple[float, float, float]]] = {"spike": [], "ours": []}
    async with AsyncExitStack() as stack:
        rounds = {}
        for name, process in (("spike", spike(home / "spike", llm)), ("ours", gateway(home / "ours", llm))):
            await stack.enter_async_context(process)
            client = await stack.enter_async_context(process.client())
            rounds[name] = Round(process, client, name)
            await rounds[name].run(20, 1)
            rounds[name].taken.clear()
        for _ in range(repeats):
            for name, one in rounds.items():
                single[name].append(await one.run(each, 1))
        ours = rounds["ours"]
        taken = list(ours.taken)
        ours.acknowledged.clear()
        for _ in range(repeats):
            for name, one in rounds.items():
                many[name].append(await one.run(together, 32))
        acknowledged = list(ours.acknowledged)
        await ours.run(2, 200)
        calls = await count_calls(ours, 40)
        listeners = await measure_broadcast(ours, repeats // 2, each)
    cpu = {name: median([one[0] for one in found]) for name, found in single.items()}
    cpu_many = {name: median([one[0] for one in found]) for name, found in many.items()}
    rate = {name: median([one[1] for one in found]) for name, found in many.items()}
    return [
        Figure("turn over the wire, spike", cpu["spike"], "ms CPU"),
        at_most("turn over the wire", cpu["ours"], 3, "ms CPU"),
        at_most("turn over the wire / spike", cpu["ours"] / cpu["spike"], 3, "x"),
        Figure("turn over the wire, 32 at once", cpu_many["ours"], "ms CPU"),
        Figure("turn over the wire / spike, 32 at once", cpu_many["ours"] / cpu_many["spike"], "x"),
        at_most("turn over the wire, p50", median(taken) * 1000, 6, "ms"),
        Figure("turn over the wire, p95", percentile(taken, 0.95) * 1000, "ms"),
        Figure("32 at once, spike", rate["spike"], "turn/s"),
        at_least("32 at once", rate["ours"], 400, "turn/s"),
        at_most("32 at once, acknowledged, p95", percentile(acknowledged, 0.95) * 1000, 40, "ms"),
        at_most("200 at once and all the others: turns that failed", ours.failed, 0, ""),
        at_most("written per plain turn", median([one[2] for one in single["ours"]]), 40, "kB"),
        *calls,
        *listeners,
    ]


async def count_calls(one: Round, turns: int) -> list[Figure]:
    """System calls of a turn, counted by strace where there is one; a handful come from the idle gateway."""
    strace = shutil.which("strace")
    if strace is None:
        return []
    table = one.process.home / "calls"
    command = [strace, "-f", "-c", "-U", "calls,name", "-o", str(table), "-p", str(one.process.pid)]
    process = await asyncio.create_subprocess_exec(*command, stderr=subprocess.DEVNULL)
    await asyncio.sleep(1.0)
    await one.run(turns, 1)
    process.send_signal(signal.SIGINT)
    await process.wait()
    lines = table.read_text().splitlines() if table.exists() else []
    total = next((int(line.split()[0]) for line in lines if line.endswith("total")), None)
    return [] if total is None else [Figure("system calls per turn", total / turns, "")]  # or not allowed


async def measure_broadcast(one: Round, repeats: int, each: int) -> list[Figure]:
    """CPU of a turn that nobody else hears, and that fifty listeners hear, in turns."""
    alone, heard = [], []
    for _ in range(repeats):
        alone.append((await one.run(each, 1))[0])
        async with AsyncExitStack() as stack:
            for _ in range(50):
                await stack.enter_async_context(one.process.client())
            heard.append((await one.run(each, 1))[0])
    return [
        Figure("turn heard by 50 more listeners", median(heard), "ms CPU"),
        at_most("turn heard by 50 more / by none", median(heard) / median(alone), 3, "x"),
    ]


async def measure_start(home: Path, llm: str, repeats: int) -> list[Figure]:
    """From the command to the first answer, and what it weighs then; beside `import aiohttp` alone."""
    wall, cpu, weight, bare = [], [], [], []
    for number in range(repeats):
        async with gateway(home / f"start-{number}", llm) as process:
            wall.append(process.started_s)
            cpu.append(process.started_cpu_s)
            async with process.client():
                await asyncio.sleep(1.0)
                weight.append(process.used().rss_bytes / MIB)
        command = "import time, aiohttp.web; print(time.process_time())"
        found = await asyncio.to_thread(subprocess.check_output, [sys.executable, "-c", command])
        bare.append(float(found))
    return [
        at_most("cold start", median(wall), 0.8, "s"),
        Figure("cold start, CPU", median(cpu), "s"),
        Figure("Python and aiohttp alone, CPU", median(bare), "s"),
        at_most("cold start / Python and aiohttp alone, CPU", median(cpu) / median(bare), 4, "x"),
        at_most("idle memory", median(weight), 64, "MiB"),
    ]


async def measure_limits(home: Path, count: int) -> list[Figure]:
    """A bare frame there and back, and the JSON of a turn read and written by msgspec."""
    async with echo(home / "echo") as process, aiohttp.ClientSession() as http:
        socket = await http.ws_connect(f"ws://127.0.0.1:{process.port}/")
        before = process.used()
        for _ in range(count):
            await socket.send_str('{"type":"req","id":"r1","method":"chat.send","params":{}}')
            await socket.receive()
        used = process.used().since(before)
        await socket.close()
    payload = {"runId": "r" * 36, "sessionKey": "agent:main:main", "seq": 7, "state": "delta", "text": TEXT}
    event = {"type": "event", "event": "chat", "payload": payload, "seq": 12}
    began = cpu_s()
    for _ in range(count):
        for _ in range(11):  # a request, its answer, and the events of a plain turn
            msgspec.json.decode(msgspec.json.encode(event))
    return [
        Figure("limit: one frame there and back, bare aiohttp", used.cpu_s / count * 1000, "ms CPU"),
        Figure("limit: the frames of a turn, msgspec", (cpu_s() - began) / count * 1000, "ms CPU"),
    ]


async def measure(home: Path, llm: str, quick: bool) -> list[Figure]:
    figures = await measure_limits(home, 1000 if quick else 4000)
    figures += await measure_turns(home, llm, quick)
    figures += await measure_start(home, llm, 3 if quick else 5)
    return figures


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--quick", action="store_true", help="fewer turns")
    options = parser.parse_args()
    home = Path(tempfile.mkdtemp(prefix="openclaw-bench-"))
    try:
        with zero_model() as llm:
            figures = uvloop.run(measure(home, llm, options.quick))
        return 0 if show("turns over the wire, durable, a model without latency", figures) else 1
    finally:
        shutil.rmtree(home, ignore_errors=True)


if __name__ == "__main__":
    sys.exit(main())
