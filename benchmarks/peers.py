"""A durable append through our Store beside the session stores of other projects: same data, same run.

    uv run --with openai-agents --with google-adk --with langgraph-checkpoint-sqlite \\
        python -m benchmarks.peers [--quick]

Takes what is importable and leaves out the rest; with nothing installed it holds us
against bare apsw alone. Every store gets the same message, one commit each, in its own
file on the same disk, in turns (A B C A B C), and medians are compared. CPU is of the
whole process with all its threads. Ours includes the version of the session, the search
index and all checks; the others keep the message and a time.
"""

from __future__ import annotations

import argparse
import asyncio
import importlib
import shutil
import sys
import tempfile
from collections.abc import Awaitable, Callable
from functools import partial
from pathlib import Path
from typing import Any

from benchmarks.measuring import Figure, at_most, cpu_us_each, median, show
from benchmarks.store import DRAFT, TEXT, Bare
from openclaw.store.records import SessionSeed
from openclaw.store.sqlite import SqliteDatabase
from openclaw.store.store import Store

Append = Callable[[int], Awaitable[None]]  # so many messages, one commit each
Read = Callable[[], Awaitable[int]]  # the newest fifty; how many came
READ = 50
OURS, BARE = "openclaw Store", "bare apsw"


class Peer:
    """One store under test, open."""

    def __init__(self, append: Append, read: Read | None, close: Callable[[], Awaitable[None]]) -> None:
        self.append = append
        self.read = read
        self.close = close


async def open_ours(folder: Path) -> Peer:
    store, key = Store(await SqliteDatabase.open(folder / "openclaw.sqlite")), "agent:main:one"
    await store.edit_session(SessionSeed(key, "main"), lambda entry: entry, session_id="w", now_ms=1)

    async def append(count: int) -> None:
        for number in range(count):
            await store.append(key, (DRAFT,), now_ms=number)

    async def read() -> int:
        page = await store.history(key, READ)
        return len(page.entries) if page else 0

    return Peer(append, read, store.close)


async def open_bare(folder: Path) -> Peer:
    bare = Bare(folder / "bare.sqlite")

    async def close() -> None:
        return

    return Peer(bare.insert, None, close)


async def open_agents(folder: Path) -> Peer:
    """OpenAI Agents SDK: `SQLiteSession` in a file, as its documentation shows."""
    session = importlib.import_module("agents.memory").SQLiteSession("one", folder / "agents.sqlite")

    async def append(count: int) -> None:
        for _ in range(count):
            await session.add_items([{"role": "user", "content": TEXT}])

    async def read() -> int:
        return len(await session.get_items(READ))

    async def close() -> None:
        session.close()

    return Peer(append, read, close)


async def open_adk(folder: Path) -> Peer:
    """Google ADK: `SqliteSessionService`, an event per message."""
    services = importlib.import_module("google.adk.sessions.sqlite_session_service")
    sessions = importlib.import_module("google.adk.sessions.base_session_service")
    events = importlib.import_module("google.adk.events")
    types = importlib.import_module("google.genai.types")
    service = services.SqliteSessionService(str(folder / "adk.sqlite"))
    session = await service.create_session(app_name="bench", user_id="one", session_id="one")

    async def append(count: int) -> None:
        for _ in range(count):
            content = types.Content(role="user", parts=[types.Part(text=TEXT)])
            await service.append_event(session, events.Event(author="user", content=content))

    async def read() -> int:
        config = sessions.GetSessionConfig(num_recent_events=READ)
        found = await service.get_session(app_name="bench", user_id="one", session_id="one", config=config)
        return len(found.events)

    async def close() -> None:
        await service.close()

    return Peer(append, read, close)


async def open_langgraph(folder: Path) -> Peer:
    """LangGraph: `AsyncSqliteSaver`, a checkpoint of the conversation per message."""
    saver_type = importlib.import_module("langgraph.checkpoint.sqlite.aio").AsyncSqliteSaver
    base = importlib.import_module("langgraph.checkpoint.base")
    opened = saver_type.from_conn_string(str(folder / "langgraph.sqlite"))
    saver = await opened.__aenter__()
    config: dict[str, Any] = {"configurable": {"thread_id": "one", "checkpoint_ns": ""}}
    said: list[dict[str, str]] = []

    async def append(count: int) -> None:
        nonlocal config
        for _ in range(count):
            said.append({"role": "user", "content": TEXT})
            point = base.empty_checkpoint()
            point["channel_values"] = {"messages": said}
            config = await saver.aput(config, point, {"source": "input", "step": len(said)}, {})

    async def read() -> int:
        found = await saver.aget_tuple({"configurable": {"thread_id": "one", "checkpoint_ns": ""}})
        return len(found.checkpoint["channel_values"]["messages"][-READ:])

    async def close() -> None:
        await opened.__aexit__(None, None, None)

    return Peer(append, read, close)


PEERS: dict[str, Callable[[Path], Awaitable[Peer]]] = {
    OURS: open_ours,
    BARE: open_bare,
    "OpenAI Agents SQLiteSession": open_agents,
    "Google ADK SqliteSessionService": open_adk,
    "LangGraph AsyncSqliteSaver": open_langgraph,
}


async def open_all(folder: Path) -> dict[str, Peer]:
    found = {}
    for name, opened in PEERS.items():
        try:
            found[name] = await opened(folder)
        except ImportError as error:
            print(f"left out: {name} ({error})")
    return found


async def measure(folder: Path, repeats: int, count: int) -> list[Figure]:
    peers = await open_all(folder)
    appends: dict[str, list[float]] = {name: [] for name in peers}
    reads: dict[str, list[float]] = {name: [] for name, peer in peers.items() if peer.read}
    for peer in peers.values():
        await peer.append(READ)
    for _ in range(repeats):
        for name, peer in peers.items():
            appends[name].append(await cpu_us_each(partial(peer.append, count), count))
    for _ in range(repeats):
        for name, values in reads.items():
            values.append(await cpu_us_each(partial(_read_many, peers[name], 20), 20))
    for peer in peers.values():
        await peer.close()
    figures = [Figure(f"append, {name}", median(values), "us CPU") for name, values in appends.items()]
    figures += [Figure(f"newest {READ}, {name}", median(values), "us CPU") for name, values in reads.items()]
    ours = median(appends[OURS])
    for name in peers:
        if name.startswith("OpenAI"):
            figures.append(at_most(f"append, ours / {name}", ours / median(appends[name]), 1.0, "x"))
        elif name != OURS:
            figures.append(Figure(f"append, ours / {name}", ours / median(appends[name]), "x"))
    return figures


async def _read_many(peer: Peer, count: int) -> None:
    assert peer.read is not None
    for _ in range(count):
        assert await peer.read() == READ


def _fast_loop() -> Callable[[], asyncio.AbstractEventLoop] | None:
    """The loop that the gateway runs on, for everybody, where it is installed."""
    try:
        factory: Callable[[], asyncio.AbstractEventLoop] = importlib.import_module("uvloop").new_event_loop
    except ImportError:
        return None
    return factory


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--quick", action="store_true", help="fewer repeats")
    options = parser.parse_args()
    folder = Path(tempfile.mkdtemp(prefix="openclaw-bench-"))
    try:
        with asyncio.Runner(loop_factory=_fast_loop()) as runner:
            figures = runner.run(measure(folder, 3 if options.quick else 7, 50 if options.quick else 100))
        return 0 if show("peers: one durable message", figures) else 1
    finally:
        shutil.rmtree(folder, ignore_errors=True)


if __name__ == "__main__":
    sys.exit(main())
