"""A model server without latency, in a process of its own: the least that the wire allows.

Speaks just enough HTTP for chat completions with server-sent events. `python -m
benchmarks.zero_model PORT [--acting]` serves until it is stopped. The acting one reads
what it is asked: a message that begins with `spawn` starts a helper, and every other
answer has the length of a sentence or two, so that contexts grow and are compacted.
"""

from __future__ import annotations

import asyncio
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from socket import AF_INET, SOCK_STREAM, socket

import msgspec

_CHUNKS = (
    b'data: {"choices":[{"index":0,"delta":{"role":"assistant","content":"ok"},"finish_reason":null}]}\n\n'
    b'data: {"choices":[{"index":0,"delta":{},"finish_reason":"stop"}],'
    b'"usage":{"prompt_tokens":20,"completion_tokens":2,"total_tokens":22}}\n\n'
    b"data: [DONE]\n\n"
)
_ANSWER = (
    b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nContent-Length: %d\r\n\r\n" % len(_CHUNKS)
) + _CHUNKS
_WORDS = (
    "The answer is short, and says what was asked: the parcel left on Tuesday, it is on its way, "
    "and the papers for customs are in order. Nothing else needs to be done before Friday. "
)
_decode = msgspec.json.Decoder().decode
_READY = b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n"


def _streamed(delta: bytes, finish: bytes) -> bytes:
    chunks = (
        b'data: {"choices":[{"index":0,"delta":%b,"finish_reason":null}]}\n\n'
        b'data: {"choices":[{"index":0,"delta":{},"finish_reason":"%b"}]}\n\n'
        b"data: [DONE]\n\n" % (delta, finish)
    )
    head = b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nContent-Length: %d\r\n\r\n"
    return head % len(chunks) + chunks


_SPOKEN = _streamed(msgspec.json.encode({"role": "assistant", "content": _WORDS}), b"stop")
_SPAWN = {"name": "sessions_spawn", "arguments": '{"task":"count the parcels"}'}
_SPAWNING = _streamed(
    msgspec.json.encode(
        {"tool_calls": [{"index": 0, "id": "spawn_1", "type": "function", "function": _SPAWN}]}
    ),
    b"tool_calls",
)


def act(body: bytes) -> bytes:
    """The answer of the acting model to one request."""
    last = _decode(body)["messages"][-1]
    said = last.get("content")
    asked = last.get("role") == "user" and isinstance(said, str) and said.startswith("spawn")
    return _SPAWNING if asked else _SPOKEN


class _Server(asyncio.Protocol):
    """Answers every request at once; a body is counted, and read only by the acting one."""

    def __init__(self, acting: bool) -> None:
        self._acting = acting

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport
        self._held = bytearray()

    def data_received(self, data: bytes) -> None:
        self._held += data
        while (end := self._held.find(b"\r\n\r\n")) >= 0:
            head = bytes(self._held[:end]).lower()
            length = 0
            for line in head.split(b"\r\n"):
                if line.startswith(b"content-length:"):
                    length = int(line.split(b":", 1)[1])
            if len(self._held) < end + 4 + length:
                return
            body = bytes(self._held[end + 4 : end + 4 + length])
            del self._held[: end + 4 + length]
            self._transport.write(self._answer(head, body))

    def _answer(self, head: bytes, body: bytes) -> bytes:
        if head.startswith(b"get"):
            return _READY
        return act(body) if self._acting else _ANSWER


async def _serve(port: int, acting: bool) -> None:
    server = await asyncio.get_running_loop().create_server(lambda: _Server(acting), "127.0.0.1", port)
    await server.serve_forever()


@contextmanager
def zero_model(*, acting: bool = False) -> Iterator[str]:
    """A running server; its base URL."""
    with socket(AF_INET, SOCK_STREAM) as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    command = [sys.executable, "-m", "benchmarks.zero_model", str(port), *(["--acting"] if acting else [])]
    process = subprocess.Popen(command)
    try:
        for _ in range(200):
            try:
                urllib.request.urlopen(f"http://127.0.0.1:{port}/", timeout=5).close()
                break
            except OSError:
                time.sleep(0.05)
        yield f"http://127.0.0.1:{port}/v1"
    finally:
        process.terminate()
        process.wait()


if __name__ == "__main__":
    asyncio.run(_serve(int(sys.argv[1]), "--acting" in sys.argv))
