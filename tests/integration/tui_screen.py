"""The terminal UI in the test's process, drawn without a terminal, against a real gateway."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from textual.pilot import Pilot

from openclaw.api.connection import Address
from openclaw.app import Gateway
from openclaw.config.load import load_or_raise
from openclaw.tui.app import TerminalApp
from openclaw.tui.memory import ClientMemory
from openclaw.tui.opening import TuiOptions
from openclaw.tui.panes import Rows
from tests.integration.conftest import TOKEN, House

Json = dict[str, Any]
PATIENCE_S = 60.0
KEYS = {
    " ": "space",
    "/": "slash",
    ".": "full_stop",
    "?": "question_mark",
    "!": "exclamation_mark",
    ",": "comma",
}


class Screen:
    """What a person sees and does."""

    def __init__(self, app: TerminalApp, pilot: Pilot[None]) -> None:
        self.app = app
        self.pilot = pilot
        self.calls: list[tuple[str, Json]] = []
        self.told: list[str] = []

    async def until(self, reached: Callable[[], bool]) -> None:
        try:
            async with asyncio.timeout(PATIENCE_S):
                while not reached():
                    await self.pilot.pause(0.03)
        except TimeoutError:
            raise AssertionError(f"it did not come:\n{self.chat}\n{self.status}\n{self.told}") from None

    async def see(self, text: str) -> None:
        await self.until(lambda: text in self.chat)

    async def ready(self) -> None:
        """Connected, and a conversation is open."""
        await self.until(lambda: "ready" in self.status and bool(self.app.desk.talk.session_key))

    async def type(self, text: str) -> None:
        for letter in text:
            await self.pilot.press("ctrl+j" if letter == "\n" else KEYS.get(letter, letter))

    async def say(self, text: str) -> None:
        self.app.composer.writing.focus()
        self.app.composer.put(text)
        await self.pilot.press("enter")

    def width_of(self, pane: str) -> int:
        return self.app.query_one(pane).size.width if self.app.query_one(pane).display else 0

    @property
    def chat(self) -> str:
        """The lines of the conversation that are in the window."""
        log = self.app.chat
        return "\n".join(
            log.render_line(y).text.rstrip() for y in range(log.scrollable_content_region.height)
        )

    @property
    def status(self) -> str:
        return str(self.app.query_one("#status").render())

    @property
    def queue(self) -> str:
        return str(self.app.query_one("#queue").render())

    @property
    def sessions(self) -> list[str]:
        rows = self.app.sessions_pane.rows
        return [" ".join(str(rows.get_option_at_index(at).prompt).split()) for at in range(rows.option_count)]

    @property
    def tree(self) -> list[str]:
        rows = self.app.tree_pane.query_one(Rows)
        return [str(rows.get_option_at_index(at).prompt).rstrip() for at in range(rows.option_count)]


@asynccontextmanager
async def opened(
    memory: Path, port: int, *, size: tuple[int, int] = (120, 36), token: str | None = TOKEN, **asked: Any
) -> AsyncIterator[Screen]:
    """A screen on the gateway at `port`; leaves as a person does."""
    asked = {"gateway": "ws://gateway", **asked}
    options = TuiOptions(address=Address(f"ws://127.0.0.1:{port}", token), **asked)
    with ClientMemory(memory) as kept:
        app = TerminalApp(options, kept)
        async with app.run_test(size=size) as pilot:
            screen = Screen(app, pilot)
            with pytest.MonkeyPatch.context() as monkeypatch:
                _listen(screen, monkeypatch)
                yield screen
            await pilot.press("ctrl+q")


def _listen(screen: Screen, monkeypatch: pytest.MonkeyPatch) -> None:
    link, tell = screen.app.desk._link, screen.app.tell
    call = link.call

    async def recorded(method: str, params: Json | None = None, timeout_s: float = PATIENCE_S) -> Any:
        screen.calls.append((method, params or {}))
        return await call(method, params, timeout_s)

    def told(text: str, *rest: Any) -> None:
        screen.told.append(text)
        tell(text, *rest)

    monkeypatch.setattr(link, "call", recorded)
    monkeypatch.setattr(screen.app, "tell", told)


def gateway_at(house: House, port: int) -> Gateway:
    """A gateway where the last one was."""
    house.gateway()  # writes the configuration
    return Gateway(load_or_raise(house.home / "state" / "openclaw.json", house.env), house.env, port=port)
