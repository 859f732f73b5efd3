"""How long a session waits for twenty helpers, for fifty, and for the reply of another session.

    python -m benchmarks.subagents [--quick]

A whole gateway and a model without latency, each in a process of its own, speaking
HTTP. A fan-out is timed from `chat.send` until the requester has read the results
of all helpers and says so; each helper takes its task turn and its announce turn.
A `sessions_send` is timed by the model: from the answer that makes the call until
the request that brings the reply back.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import shutil
import socket
import subprocess
import sys
import tempfile
import time
import urllib.request
from pathlib import Path
from typing import Any

import uvloop

from benchmarks.measuring import Figure, at_most, median, percentile, show
from tests.e2e.gateway_process import GatewayProcess
from tests.fakes.openai_server import FakeCall, FakeOpenAIServer, FakeReply
from tests.fakes.wire_client import Json, WireClient

FAN_OUTS = ((20, 0.6), (50, 1.5))
SEND_BAR_MS = 25
TARGETS = 10
FINISHED = "[Sub-agent finished"


# -- the model, in its own process -----------------------------------------------------------------


class Model:
    """Answers from the request alone, at once; remembers how long each send took."""

    def __init__(self) -> None:
        self.round_trips_ms: list[float] = []
        self._sent_at: dict[str, float] = {}

    def decide(self, body: Json) -> FakeReply:
        messages = body["messages"]
        last = str(messages[-1].get("content"))
        if str(messages[0]["content"]).startswith("You are a helper"):
            return FakeReply(texts=("Result: done",))
        if "[Inter-session message" in last and FINISHED not in last:
            return FakeReply(texts=("pong",))
        if "[Gateway note]" in last:
            return FakeReply(texts=("ANNOUNCE_SKIP",))
        if messages[-1]["role"] == "user" and last.partition(" ")[0] in ("fan", "ask"):
            return self._begin(last)
        if messages[-1]["role"] == "tool" and messages[-1]["tool_call_id"] in self._sent_at:
            taken = time.perf_counter() - self._sent_at.pop(messages[-1]["tool_call_id"])
            self.round_trips_ms.append(taken * 1000)
            return FakeReply(texts=("got it",))
        return self._wait_for_all(messages)

    def _begin(self, said: str) -> FakeReply:
        verb, _, rest = said.partition(" ")
        if verb == "ask":
            target, number = rest.split(" ")
            call_id = f"send_{number}"
            self._sent_at[call_id] = time.perf_counter()
            arguments = {"sessionKey": target, "message": "ping", "timeoutSeconds": 30}
            return FakeReply(calls=(FakeCall("sessions_send", (json.dumps(arguments),), call_id),))
        count = int(rest.split(" ")[0])
        task = json.dumps({"task": "do your part"})
        return FakeReply(
            calls=tuple(FakeCall("sessions_spawn", (task,), f"spawn_{n}_of_{count}") for n in range(count))
        )

    def _wait_for_all(self, messages: list[Json]) -> FakeReply:
        users = [str(message["content"]) for message in messages if message["role"] == "user"]
        begun = max(number for number, text in enumerate(users) if text.startswith("fan "))
        wanted = int(users[begun].split(" ")[1])
        found = sum(text.count(FINISHED) for text in users[begun:])
        if found >= wanted:
            return FakeReply(texts=(f"all {found} results",))
        if messages[-1]["role"] == "tool":
            return FakeReply(calls=(FakeCall("sessions_yield", ("{}",), f"yield_{len(messages)}"),))
        return FakeReply(texts=("NO_REPLY",))


async def serve_model() -> None:
    model = Model()
    async with FakeOpenAIServer() as server:
        server.decide = model.decide
        server.models = {"data": model.round_trips_ms}
        print(server.base_url, flush=True)
        await asyncio.Event().wait()


# -- the measuring side ----------------------------------------------------------------------------


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def raise_limits(path: Path) -> None:
    config = json.loads(path.read_text(encoding="utf-8"))
    config["agents"]["defaults"] |= {
        "subagents": {"maxChildrenPerAgent": 200, "maxConcurrent": 64},
        "maxConcurrent": 16,
    }
    config["tools"] = {"sessions": {"visibility": "agent"}}
    config["session"] = {"agentToAgent": {"maxPingPongTurns": 0}}
    path.write_text(json.dumps(config), encoding="utf-8")


async def fan_out_s(client: WireClient, count: int, number: int) -> float:
    """From the request until the requester has all results, in a session that is new."""
    key = f"agent:main:fan-{count}-{number}"
    client.events.clear()
    began = time.perf_counter()
    message = {"sessionKey": key, "message": f"fan {count} out", "idempotencyKey": f"fan-{count}-{number}"}
    await client.call("chat.send", message)
    await client.wait_for(lambda event: says(event, key, f"all {count} results"), within_s=300)
    return time.perf_counter() - began


def says(event: Json, key: str, text: str) -> bool:
    payload: dict[str, Any] = event["payload"]
    final = event["event"] == "chat" and payload.get("state") == "final"
    return final and payload["sessionKey"] == key and text in json.dumps(payload.get("message"))


async def send_ms(client: WireClient, model_url: str, sends: int) -> list[float]:
    """One session asks ten others in turn, one after the other."""
    for target in range(TARGETS):
        await client.say(f"agent:main:target-{target}", "[Gateway note] begin", f"target-{target}")
    for number in range(sends):
        await client.say("agent:main:asker", f"ask target-{number % TARGETS} {number}", f"ask-{number}")
    with await asyncio.to_thread(urllib.request.urlopen, f"{model_url}/models") as response:
        taken: list[float] = json.load(response)["data"]
    assert len(taken) == sends, f"{len(taken)} of {sends} replies came back"
    return taken


async def measure(folder: Path, model_url: str, quick: bool) -> list[Figure]:
    gateway = GatewayProcess(folder, model_url, free_port())
    raise_limits(folder / "state" / "openclaw.json")
    await gateway.start()
    figures = []
    try:
        async with gateway.client() as client:
            await fan_out_s(client, 5, 0)  # what is only done once
            for count, bar in FAN_OUTS:
                taken = [await fan_out_s(client, count, number) for number in range(3 if quick else 7)]
                figures.append(at_most(f"fan-out of {count}, median", median(taken), bar, "s"))
                figures.append(Figure(f"fan-out of {count}, worst", max(taken), "s"))
            trips = await send_ms(client, model_url, 20 if quick else 100)
            figures.append(at_most("sessions_send and its reply, p50", median(trips), SEND_BAR_MS, "ms"))
            figures.append(Figure("sessions_send and its reply, p95", percentile(trips, 0.95), "ms"))
    finally:
        gateway.stop()
    return figures


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--quick", action="store_true", help="fewer repeats")
    parser.add_argument("--serve-model", action="store_true", help="be the model, for the other process")
    options = parser.parse_args()
    if options.serve_model:
        uvloop.run(serve_model())
    folder = Path(tempfile.mkdtemp(prefix="openclaw-bench-"))
    command = [sys.executable, "-m", "benchmarks.subagents", "--serve-model"]
    model = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    try:
        assert model.stdout is not None
        url = model.stdout.readline().strip()
        return 0 if show("subagents", uvloop.run(measure(folder, url, options.quick))) else 1
    finally:
        model.terminate()
        model.wait()
        shutil.rmtree(folder, ignore_errors=True)


if __name__ == "__main__":
    sys.exit(main())
