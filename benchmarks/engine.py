"""What a durable turn costs in the engine, beside a bare spike of the same work in the same process.

The spike (`benchmarks.spike_gateway`) accepts, calls the model and finishes with the
same number of commits and events and nothing else. Run in turns, A B A B, so that a
noisy machine is noisy for both; the ratio is what counts. `python -m benchmarks.engine
[--quick]`.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import tempfile
import time
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import cast

import aiohttp
from aiohttp import web

from benchmarks.measuring import Figure, at_least, at_most, cpu_s, median, percentile, show
from benchmarks.spike_gateway import Spike, Writer
from benchmarks.zero_model import zero_model
from openclaw.app import Gateway
from openclaw.config.load import load_or_raise
from openclaw.domain.transcript import AssistantMessage, Message, TextBlock, UserMessage
from openclaw.engine.drafts import draft_message
from openclaw.engine.turns import Incoming
from openclaw.store.records import EntryDraft, SessionSeed, UserInput

Turn = Callable[[str, str], Awaitable[float]]  # session, run id -> seconds until it was acknowledged


class _NoSocket:
    """Takes what the spike sends."""

    def __init__(self) -> None:
        self.acknowledged: dict[str, float] = {}

    async def send_frame(self, data: bytes, _kind: object) -> None:
        if data.startswith(b'{"type":"res"'):
            self.acknowledged[json.loads(data)["id"]] = time.perf_counter()


def spike_turn(spike: Spike) -> Turn:
    socket, numbers = _NoSocket(), iter(range(1 << 60))

    async def turn(session: str, run_id: str) -> float:
        began = time.perf_counter()
        params = {"sessionKey": session, "idempotencyKey": run_id, "message": "hello"}
        frame = {"id": run_id, "method": "chat.send", "params": params}
        await spike.turn(cast("web.WebSocketResponse", socket), frame, numbers)
        return socket.acknowledged.pop(run_id) - began

    return turn


def engine_turn(gateway: Gateway) -> Turn:
    turns, workers, clock = gateway.services.turns, gateway.services.workers, gateway.services.clock

    async def turn(session: str, run_id: str) -> float:
        settled: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        turns._waiters[run_id] = {settled}
        began = time.perf_counter()
        seed = SessionSeed(f"agent:main:{session}", "main")
        body = UserInput("hello", clock.now_ms())
        await turns.accept(Incoming(run_id, seed, "cli", "operator", body))
        acknowledged = time.perf_counter() - began
        await settled  # told by the engine, without asking the rows again and again as `turns.wait` does
        turns._waiters.pop(run_id)
        while True:
            if not workers.is_busy(seed.session_key):  # nobody's next message comes within microseconds
                return acknowledged
            await asyncio.sleep(0)

    return turn


class Round:
    """Counts turns, so that every run id and every session is new."""

    def __init__(self, turn: Turn) -> None:
        self._turn = turn
        self._rounds = 0
        self.acknowledged: list[float] = []

    async def run(self, each: int, at_once: int) -> tuple[float, float]:
        """(CPU milliseconds per turn, turns per second)."""
        self._rounds += 1
        began, cpu = time.perf_counter(), cpu_s()
        await asyncio.gather(*(self._lane(f"s{self._rounds}-{lane}", each) for lane in range(at_once)))
        count = each * at_once
        return (cpu_s() - cpu) / count * 1000, count / (time.perf_counter() - began)

    async def _lane(self, session: str, each: int) -> None:
        for number in range(each):
            self.acknowledged.append(await self._turn(session, f"{session}-{number}"))


async def growth(gateway: Gateway, turn: Turn, length: int, repeats: int) -> float:
    """CPU milliseconds of a turn at a context of 200 messages in a transcript of `length`."""
    store, session = gateway.services.store, f"grown{length}"
    key, now_ms = f"agent:main:{session}", gateway.services.clock.now_ms()
    await turn(session, f"{session}-first")
    for start in range(0, length - 200, 500):
        drafts = tuple(_said(number) for number in range(start, min(start + 500, length - 200)))
        await store.append(key, drafts, now_ms=now_ms)
    body = json.dumps(
        {"summary": "what was said before", "firstKeptEntryId": "none", "tokensBefore": 1}
    ).encode()
    await store.append(key, (_compaction(body),), now_ms=now_ms)
    await store.append(key, tuple(_said(number) for number in range(200)), now_ms=now_ms)
    await turn(session, f"{session}-warm")
    cpu = cpu_s()
    for number in range(repeats):
        await turn(session, f"{session}-{number}")
    return (cpu_s() - cpu) / repeats * 1000


def _said(number: int) -> EntryDraft:
    if number % 2:
        message: Message = AssistantMessage(
            (TextBlock(f"answer {number} " + "y" * 200),), 1, stop_reason="stop"
        )
    else:
        message = UserMessage(f"question {number} " + "x" * 200, 1)
    return draft_message(message, "made")


def _compaction(body: bytes) -> EntryDraft:
    return EntryDraft("compaction", body, audience="model")


async def measure(llm: str, home: Path, quick: bool) -> bool:
    state = home / "state"
    state.mkdir(parents=True)
    provider = {"baseUrl": llm, "apiKey": "k" * 20, "api": "openai-completions", "models": [{"id": "fake-1"}]}
    config = {
        "gateway": {"auth": {"token": "t" * 32}},
        "agents": {"defaults": {"model": "fake/fake-1", "maxConcurrent": 64}},
        "models": {"providers": {"fake": provider}},
    }
    path = state / "openclaw.json"
    path.write_text(json.dumps(config), encoding="utf-8")
    env = {"HOME": str(home), "OPENCLAW_STATE_DIR": str(state), "TZ": "UTC", "PATH": "/usr/bin:/bin"}
    repeats, each, together = (3, 40, 10) if quick else (5, 100, 30)
    async with aiohttp.ClientSession() as http, Gateway(load_or_raise(path, env), env, port=0) as gateway:
        spike = Round(spike_turn(Spike(Writer(str(home / "spike.sqlite")), http, llm)))
        ours = Round(engine_turn(gateway))
        single: dict[str, list[float]] = {"spike": [], "ours": []}
        many: dict[str, list[tuple[float, float]]] = {"spike": [], "ours": []}
        for one in (spike, ours):
            await one.run(5, 1)
        for _ in range(repeats):
            for name, one in (("spike", spike), ("ours", ours)):
                single[name].append((await one.run(each, 1))[0])
        ours.acknowledged.clear()
        for _ in range(repeats):
            for name, one in (("spike", spike), ("ours", ours)):
                many[name].append(await one.run(together, 32))
        lengths = {
            length: await growth(gateway, engine_turn(gateway), length, each) for length in (400, 10_000)
        }
    cpu = {name: (median(single[name]), median([pair[0] for pair in many[name]])) for name in single}
    rate = {name: median([pair[1] for pair in many[name]]) for name in many}
    return show(
        "engine turns, zero-latency model over HTTP, durable",
        [
            Figure("spike, one at a time", cpu["spike"][0], "ms CPU"),
            Figure("engine, one at a time", cpu["ours"][0], "ms CPU"),
            at_most("engine / spike, one at a time", cpu["ours"][0] / cpu["spike"][0], 3, "x"),
            Figure("spike, 32 at once", cpu["spike"][1], "ms CPU"),
            Figure("engine, 32 at once", cpu["ours"][1], "ms CPU"),
            at_most("engine / spike, 32 at once", cpu["ours"][1] / cpu["spike"][1], 3, "x"),
            Figure("spike, 32 at once", rate["spike"], "turn/s"),
            at_least("engine, 32 at once", rate["ours"], 500, "turn/s"),
            at_most("acknowledgement p95, 32 at once", percentile(ours.acknowledged, 0.95) * 1000, 30, "ms"),
            Figure("200 messages of 400", lengths[400], "ms CPU"),
            Figure("200 messages of 10,000", lengths[10_000], "ms CPU"),
            at_most("10,000 / 400 at the same context", lengths[10_000] / lengths[400], 1.2, "x"),
        ],
    )


def main() -> int:
    reader = argparse.ArgumentParser(description=__doc__)
    reader.add_argument("--quick", action="store_true", help="fewer turns")
    quick = reader.parse_args().quick
    with zero_model() as llm, tempfile.TemporaryDirectory() as home:
        try:
            import uvloop

            ok = uvloop.run(measure(llm, Path(home), quick))
        except ImportError:
            ok = asyncio.run(measure(llm, Path(home), quick))
    return 0 if ok else 1


if __name__ == "__main__":
    raise SystemExit(main())
