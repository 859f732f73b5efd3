"""A model server without latency, in a process of its own: the least that the wire allows.

Speaks just enough HTTP for chat completions with server-sent events. `python -m
benchmarks.zero_model PORT` serves until it is stopped.
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

_CHUNKS = (
    b'data: {"choices":[{"index":0,"delta":{"role":"assistant","content":"ok"},"finish_reason":null}]}\n\n'
    b'data: {"choices":[{"index":0,"delta":{},"finish_reason":"stop"}],'
    b'"usage":{"prompt_tokens":20,"completion_tokens":2,"total_tokens":22}}\n\n'
    b"data: [DONE]\n\n"
)
_ANSWER = (
    b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nContent-Length: %d\r\n\r\n" % len(_CHUNKS)
) + _CHUNKS
_READY = b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n"


class _Server(asyncio.Protocol):
    """Answers every request at once; a body is counted, not read."""

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
            del self._held[: end + 4 + length]
            self._transport.write(_READY if head.startswith(b"get") else _ANSWER)


async def _serve(port: int) -> None:
    server = await asyncio.get_running_loop().create_server(_Server, "127.0.0.1", port)
    await server.serve_forever()


@contextmanager
def zero_model() -> Iterator[str]:
    """A running server; its base URL."""
    with socket(AF_INET, SOCK_STREAM) as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    process = subprocess.Popen([sys.executable, "-m", "benchmarks.zero_model", str(port)])
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
    asyncio.run(_serve(int(sys.argv[1])))
