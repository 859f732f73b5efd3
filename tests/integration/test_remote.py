"""A gateway on another address owns everything; a store on the client's machine means nothing (OWN-2).

The client's own state directory holds a decoy: sessions under the same keys, a log, a legacy index. Not a
word of it may be shown, it is not opened, and nobody falls back to it when the gateway is away.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Callable
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from openclaw.api.connection import Address
from openclaw.app import Gateway
from openclaw.store.lockfile import OwnerLock
from openclaw.store.store import Store
from openclaw.tui.app import TerminalApp
from openclaw.tui.memory import ClientMemory
from openclaw.tui.opening import TuiOptions
from tests.conformance.making import create, seed, turn
from tests.fakes.openai_server import FakeReply
from tests.fakes.wire_client import WireClient
from tests.integration.conftest import TOKEN, House, Said
from tests.integration.importing import Place
from tests.integration.tui_screen import Screen

FAR = "127.0.0.2"
DECOY = "decoy"
Json = dict[str, Any]


@pytest.fixture
async def far(house: House, place: Place) -> AsyncIterator[Gateway]:
    """A gateway on another address, with two sessions; its state is not the client's."""
    house.config["gateway"] |= {"bind": "custom", "customBindHost": FAR, "allowedHosts": [FAR]}
    house.home = house.home / "far"
    usage = {"prompt_tokens": 900, "completion_tokens": 100, "total_tokens": 1000}
    house.model.script(*[FakeReply(texts=("The truth.",), usage=usage)] * 6)
    async with house.gateway() as gateway:
        async with WireClient(f"ws://{FAR}:{gateway.port}", TOKEN) as client:
            for number, key in enumerate(("main", "garden")):
                await client.say(key, "Tell me the truth", f"run-{number}")
        yield gateway


@pytest.fixture
async def near(far: Gateway, place: Place) -> Place:
    """The client's machine: a remote gateway, and a decoy in every file that a command might read."""

    async def fill(store: Store) -> None:
        for key in ("main", "garden", "cellar"):
            await turn(store, f"{DECOY}-{key}", f"{DECOY} words", to=seed(key))
            await create(store, seed(key), label=f"{DECOY} {key}", total_tokens=77_777)

    place.state.mkdir(parents=True)
    remote = {"mode": "remote", "remote": {"url": f"ws://{FAR}:{far.port}", "token": TOKEN}}
    (place.state / "openclaw.json").write_text(json.dumps({"gateway": remote}), encoding="utf-8")
    await place.store_do(fill)
    (place.state / "logs").mkdir()
    line = json.dumps({"time": "2026-01-01T00:00:00Z", "level": "error", "name": DECOY, "message": DECOY})
    (place.state / "logs" / "gateway.jsonl").write_text(line + "\n", encoding="utf-8")
    place.folder.mkdir(parents=True)
    entry = {"sessionId": DECOY, "updatedAt": 5, "label": DECOY}
    (place.folder / "sessions.json").write_text(json.dumps({"agent:main:attic": entry}), encoding="utf-8")
    return place


def content_of(place: Place) -> dict[str, bytes]:
    """Every file of the client's state apart from what is its own memory."""
    files = (path for path in place.state.rglob("*") if path.is_file() and "client.sqlite" not in path.name)
    return {str(path): path.read_bytes() for path in files}


LOOKING = [
    ("sessions", "--json"),
    ("sessions", "--verbose"),
    ("sessions", "show", "main"),
    ("sessions", "history", "main"),
    ("sessions", "history", "garden", "--json"),
    ("sessions", "tree"),
    ("sessions", "search", "truth"),
    ("sessions", "export", "main"),
    ("status",),
    ("health",),
    ("usage",),
    ("agents", "list"),
    ("outbox", "list"),
    ("cron", "list"),
    ("logs", "--limit", "50"),
    ("logs", "--events"),
    ("gateway", "call", "sessions.list"),
]


@pytest.mark.spec("OWN-1", "OWN-2")
class TestTheCommandLine:
    async def test_everything_is_what_the_gateway_says(
        self, near: Place, openclaw: Callable[..., Said]
    ) -> None:
        before = content_of(near)
        # Somebody else holds the local store: whoever tried to open it would fail.
        with ExitStack() as stack:
            lock = OwnerLock(near.state / "openclaw.sqlite")
            lock.take()
            stack.callback(lock.release)
            said = {words: await asyncio.to_thread(openclaw, *words) for words in LOOKING}
        for words, (code, out, err) in said.items():
            assert code == 0, (words, out, err)
            assert DECOY not in out + err and "77,777" not in out and "77777" not in out, words
        rows: list[Json] = json.loads(said["sessions", "--json"][1])["sessions"]
        assert {row["key"] for row in rows} == {"agent:main:main", "agent:main:garden"}
        assert {row["totalTokens"] for row in rows} == {900}
        assert "The truth." in said["sessions", "history", "main"][1]
        assert "The truth." in said["sessions", "export", "main"][1]
        assert said["sessions", "search", "truth"][1].count("garden") >= 1
        assert FAR in said["status",][1] + said["status",][2]
        assert {name: data for name, data in content_of(near).items() if name in before} == before

    async def test_a_change_is_made_there_and_nowhere_else(
        self, far: Gateway, near: Place, openclaw: Callable[..., Said]
    ) -> None:
        before = content_of(near)
        for words in (
            ("sessions", "rename", "main", "The house"),
            ("agent", "--session-key", "garden", "-m", "And now?"),
            ("sessions", "delete", "garden", "--yes"),
        ):
            code, out, err = await asyncio.to_thread(openclaw, *words)
            assert code == 0, (words, out, err)
        assert {name: data for name, data in content_of(near).items() if name in before} == before
        row = await far.services.store.session("agent:main:main")
        assert row is not None and row.entry.label == "The house"
        assert await far.services.store.session("agent:main:garden") is None

    async def test_by_url_the_config_of_this_machine_says_nothing(
        self, far: Gateway, near: Place, openclaw: Callable[..., Said]
    ) -> None:
        # The config would be enough for a local gateway; the URL is another place.
        (near.state / "openclaw.json").write_text('{ gateway: { port: 1, auth: { token: "local" } } }')
        place = ("--url", f"ws://{FAR}:{far.port}", "--token", TOKEN)
        code, out, err = await asyncio.to_thread(openclaw, "sessions", *place, "--json")
        assert code == 0, err
        keys = {row["key"] for row in json.loads(out)["sessions"]}
        assert keys == {"agent:main:main", "agent:main:garden"} and DECOY not in out
        code, out, err = await asyncio.to_thread(openclaw, "sessions", *place[:2])
        assert code != 0 and DECOY not in out + err, "without its token nothing is shown"

    async def test_when_it_is_away_nobody_looks_into_local_files_instead(
        self, near: Place, openclaw: Callable[..., Said]
    ) -> None:
        remote = {"mode": "remote", "remote": {"url": f"ws://{FAR}:1", "token": TOKEN}}
        (near.state / "openclaw.json").write_text(json.dumps({"gateway": remote}), encoding="utf-8")
        before = content_of(near)
        for words in LOOKING:
            if words == ("status",):
                continue  # it tells that nobody answers, and that is its answer
            code, out, err = await asyncio.to_thread(openclaw, *words)
            assert code != 0, (words, out)
            assert DECOY not in out + err, words
            assert FAR in out + err, words
        code, out, err = await asyncio.to_thread(openclaw, "status")
        assert DECOY not in out + err and "77,777" not in out
        assert {name: data for name, data in content_of(near).items() if name in before} == before


@pytest.mark.spec("OWN-1", "OWN-2")
async def test_the_terminal_ui_shows_what_the_gateway_says(far: Gateway, near: Place) -> None:
    before = content_of(near)
    url = f"ws://{FAR}:{far.port}"
    memory_path: Path = near.state / "client.sqlite"
    with ClientMemory(memory_path) as memory:
        # Even where this machine remembers a session that the gateway does not have.
        memory.remember_session(url, "main", "agent:main:cellar", 2**52)
        app = TerminalApp(TuiOptions(address=Address(url, TOKEN), gateway=url), memory)
        async with app.run_test(size=(120, 36)) as pilot:
            screen = Screen(app, pilot)
            await screen.ready()
            assert app.desk.talk.session_key == "agent:main:main"
            await screen.see("The truth.")
            await screen.until(lambda: len(screen.sessions) == 2)
            shown = "\n".join((screen.chat, screen.status, *screen.sessions, *screen.tree))
            assert DECOY not in shown and "cellar" not in shown and "77" not in screen.status
            await screen.say("And now?")
            await screen.until(lambda: screen.chat.count("The truth.") == 2)
            await pilot.press("ctrl+q")
    assert {name: data for name, data in content_of(near).items() if name in before} == before
