"""The soak: hundreds of thousands of turns through one gateway, and what becomes of its size.

    python -m benchmarks.soak [--turns 200000] [--lanes 32] [--out FOLDER] [--keep]

Lanes talk to the gateway all the time: plain turns, helpers, resets, compactions, stops,
new sessions, reads. Visitors connect, look around and leave, politely or not. The
calendar of the gateway runs fast, so maintenance archives, deletes and purges all along.
Held against bars at the end: growth of memory after the warm-up, descriptors, tasks,
threads, the log of the database, and that nothing failed.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import random
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path

import uvloop
from msgspec import Struct, json, structs

from benchmarks.load import Json, LoadClient, RefusedError
from benchmarks.measuring import Result, show
from benchmarks.results import RESULTS, read_results, write
from benchmarks.soak_judging import Record, judge, read_samples
from benchmarks.soak_plots import draw_soak
from benchmarks.zero_model import zero_model

TOKEN = "soak-token-0123456789abcdef"
ROOT = Path(__file__).resolve().parent.parent
SAID = "Where is the parcel that left on Tuesday, and which papers does customs still want to see? "


class Plan(Struct, frozen=True):
    """How much, and how wide."""

    turns: int
    lanes: int = 32
    every_s: float = 2.0
    seed: int = 1


def config_for(port: int, model_url: str) -> Json:
    """Everything that changes with age or size is set so that it happens often."""
    return {
        "gateway": {"port": port, "auth": {"token": TOKEN}},
        "messages": {"queue": {"cap": 1000}},
        "session": {
            "reset": {"mode": "idle", "idleMinutes": 60 * 24 * 7},
            "maintenance": {"pruneAfter": "6h", "maxEntries": 400, "resetArchiveRetention": "1h"},
        },
        "agents": {
            "defaults": {
                "model": {"primary": "soak/one"},
                "maxConcurrent": 16,
                "timeoutSeconds": 1_000_000,
                "compaction": {
                    "reserveTokens": 1000, "reserveTokensFloor": 0, "keepRecentTokens": 1000,
                    "memoryFlush": {"enabled": False},
                },
                "subagents": {"maxConcurrent": 8, "archiveAfterMinutes": 60, "maxChildrenPerAgent": 200},
            }
        },
        "models": {"providers": {"soak": {
            "baseUrl": model_url, "apiKey": "sk-soak", "api": "openai-completions",
            "models": [{"id": "one", "contextWindow": 8000}],
        }}},
    }  # fmt: skip


class Soak:
    """The people around the gateway; counts what they did and what went wrong."""

    def __init__(self, client: LoadClient, plan: Plan, port: int) -> None:
        self._client = client
        self._plan = plan
        self._port = port
        self._left = plan.turns
        self.done: Counter[str] = Counter()
        self.errors: list[str] = []

    async def run(self) -> None:
        lanes = [asyncio.create_task(self._lane(number)) for number in range(self._plan.lanes)]
        visitor = asyncio.create_task(self._visit_forever())
        try:
            await asyncio.gather(*lanes)
        finally:
            visitor.cancel()
            await asyncio.wait((visitor,))

    async def _lane(self, number: int) -> None:
        dice = random.Random(self._plan.seed * 1000 + number)
        chapter = 0
        while self._left > 0:
            self._left -= 1
            turn = self._plan.turns - self._left
            chapter += dice.random() < 0.004
            key = f"agent:main:lane-{number}-{chapter}"
            try:
                await self._step(dice, key, f"run-{number}-{turn}")
            except (RefusedError, ConnectionError, TimeoutError) as error:
                self._fail(f"{key}: {error!r}")

    async def _step(self, dice: random.Random, key: str, run_id: str) -> None:
        """One turn, and sometimes something beside it."""
        luck = dice.random()
        if luck < 0.01:
            await self._expect(key, "spawn a helper", run_id, {"final"})
            self.done["spawns"] += 1
        elif luck < 0.015:
            ended = await self._client.begin(key, SAID, run_id)
            await self._client.call("chat.abort", {"sessionKey": key, "runId": run_id})
            self._note(key, await asyncio.wait_for(ended, 300), {"final", "aborted"})
            self.done["stops"] += 1
        else:
            await self._expect(key, SAID * dice.randint(1, 3), run_id, {"final"})
        if luck > 0.995:
            await self._client.call("sessions.reset", {"key": key})
            self.done["resets"] += 1
        elif luck > 0.992:
            await self._client.call("sessions.compact", {"key": key})
            self.done["compactions asked for"] += 1
        elif luck > 0.98:
            await self._client.call("chat.history", {"sessionKey": key, "limit": 50})
            self.done["reads"] += 1

    async def _expect(self, key: str, text: str, run_id: str, wanted: set[str]) -> None:
        self._note(key, await self._client.turn(key, text, run_id), wanted)

    def _note(self, key: str, ended: Json, wanted: set[str]) -> None:
        self.done["turns"] += 1
        if ended["state"] not in wanted:
            self._fail(f"{key}: {ended['state']}: {ended.get('errorMessage')}")

    def _fail(self, text: str) -> None:
        print("  ", text, flush=True)
        self.errors.append(text)
        self.done["errors"] += 1

    async def _visit_forever(self) -> None:
        """People who come, look around and go; every third one without a word."""
        number = 0
        while True:
            number += 1
            try:
                async with LoadClient(self._port, TOKEN) as visitor:
                    await visitor.call("sessions.subscribe", {})
                    await visitor.call("sessions.list", {"limit": 50})
                    await visitor.call("sessions.search", {"query": "customs"})
                    await asyncio.sleep(0.5)
                    if number % 3 == 0:
                        await visitor.hang_up()
                self.done["visits"] += 1
            except ConnectionError:
                self.done["visits cut short"] += 1  # a leap of the calendar ends a handshake in progress
            except (RefusedError, TimeoutError) as error:
                self._fail(f"visitor: {error!r}")
            await asyncio.sleep(1.0)


async def watch_progress(soak: Soak, plan: Plan) -> None:
    began, last = time.monotonic(), 0
    while True:
        await asyncio.sleep(30)
        done = soak.done["turns"]
        rate = (done - last) / 30
        last = done
        print(f"  {time.monotonic() - began:7.0f} s  {done:>8,} of {plan.turns:,}  {rate:6.0f} turn/s  "
              f"{len(soak.errors)} errors", flush=True)  # fmt: skip


class Patient:
    """The gateway process of one soak."""

    def __init__(self, home: Path, model_url: str, every_s: float) -> None:
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            self.port = int(probe.getsockname()[1])
        self.samples = home / "samples.jsonl"
        self.log = home / "gateway.log"
        state = home / "state"
        shutil.rmtree(state, ignore_errors=True)  # of an earlier soak, whose runs have the same names
        state.mkdir(parents=True)
        for left in (self.samples, self.log):
            left.unlink(missing_ok=True)
        (state / "openclaw.json").write_bytes(json.encode(config_for(self.port, model_url)))
        env = {"PATH": os.environ["PATH"], "HOME": str(home), "OPENCLAW_STATE_DIR": str(state), "TZ": "UTC"}
        command = [
            sys.executable, "-m", "benchmarks.soak_gateway", "--port", str(self.port),
            "--samples", str(self.samples), "--every", str(every_s),
        ]  # fmt: skip
        with self.log.open("ab") as log:
            self.process = subprocess.Popen(
                command, cwd=ROOT, env=env, stdout=log, stderr=log, stdin=subprocess.DEVNULL
            )

    async def ready(self) -> LoadClient:
        """A client once the handshake succeeds."""
        for _ in range(1200):
            try:
                return await LoadClient(self.port, TOKEN).__aenter__()
            except (OSError, ConnectionError):
                if self.process.poll() is not None:
                    break
                await asyncio.sleep(0.05)
        raise RuntimeError(f"the gateway did not start:\n{self.log.read_text()}")

    def stop(self) -> int:
        self.process.send_signal(signal.SIGTERM)
        return self.process.wait(timeout=60)

    def complaints(self, level: str) -> list[str]:
        """Lines of the log of this level; a trace belongs to the errors."""
        lines = self.log.read_text(encoding="utf-8", errors="replace").splitlines()
        return [line for line in lines if f" {level} " in line or (level == "ERROR" and "Traceback" in line)]


async def soak(plan: Plan, home: Path, model_url: str) -> Record:
    """Run it; everything that was seen."""
    patient = Patient(home, model_url, plan.every_s)
    began = time.monotonic()
    try:
        client = await patient.ready()
        people = Soak(client, plan, patient.port)
        progress = asyncio.create_task(watch_progress(people, plan))
        await people.run()
        progress.cancel()
        await asyncio.sleep(plan.every_s * 2)
        await client.__aexit__(None, None, None)
    finally:
        code = patient.stop()
    errors = people.errors + patient.complaints("ERROR") + ([] if code == 0 else [f"exit code {code}"])
    people.done["warnings in the log"] = len(patient.complaints("WARNING"))
    people.done["errors"] = len(errors)
    took_s = round(time.monotonic() - began, 1)
    return Record(people.done["turns"], took_s, dict(people.done), errors[:20], read_samples(patient.samples))


def keep(record: Record) -> None:
    """Make it the soak of the last results, and draw its pictures and its lines of the README."""
    load = round(os.getloadavg()[0], 1)
    found = Result(f"soak of {record.turns:,} turns", load, tuple(judge(record)))
    write(RESULTS, structs.replace(read_results(), soak=found))
    draw_soak(ROOT / "docs" / "pictures", record)
    subprocess.run([sys.executable, "-m", "scripts.gen_figures"], cwd=ROOT, check=True)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--turns", type=int, default=200_000)
    parser.add_argument("--lanes", type=int, default=32)
    parser.add_argument("--every", type=float, default=2.0, help="seconds between two samples")
    parser.add_argument("--out", type=Path, help="keep the record here (default: a temporary folder)")
    parser.add_argument("--keep", action="store_true", help="put the figures and pictures into the docs")
    parser.add_argument("--judge", type=Path, metavar="RECORD", help="judge this record, and run nothing")
    options = parser.parse_args()
    if options.judge:
        record = json.decode(options.judge.read_bytes(), type=Record)
    else:
        record = run(Plan(options.turns, options.lanes, options.every), options.out)
    for error in record.errors:
        print("  ", error)
    if options.keep:
        keep(record)
    return 0 if show(f"soak of {record.turns:,} turns", judge(record)) else 1


def run(plan: Plan, out: Path | None) -> Record:
    """A whole soak; with a folder its record stays there as `soak.json`."""
    home = out or Path(tempfile.mkdtemp(prefix="openclaw-soak-"))
    home.mkdir(parents=True, exist_ok=True)
    try:
        with zero_model(acting=True) as url:
            record = uvloop.run(soak(plan, home, url))
        (home / "soak.json").write_bytes(json.encode(record))
        return record
    finally:
        if out is None:
            shutil.rmtree(home, ignore_errors=True)


if __name__ == "__main__":
    sys.exit(main())
