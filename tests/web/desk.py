"""A desk: a gateway process with a scripted model, and a browser that signs in through a real link."""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import Coroutine
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, Self, TypeVar

from playwright.sync_api import BrowserContext, Locator, Page, expect

from tests.e2e.gateway_process import GatewayProcess
from tests.fakes.openai_server import FakeOpenAIServer, FakeReply
from tests.fakes.ports import free_port

T = TypeVar("T")
# Where pictures for the documentation are kept; without it none are taken.
PICTURES = os.environ.get("PAGE_PICTURES")
WAIT_MS = 60_000
MAIN = "agent:main:main"


def in_thread(work: Coroutine[Any, Any, T]) -> T:
    """Run it on a loop of its own: the browser's loop already has this thread."""
    with ThreadPoolExecutor(1) as pool:
        return pool.submit(asyncio.run, work).result()


class ScriptedModel(FakeOpenAIServer):
    """The fake provider on a thread of its own: `release` may be called from the test's."""

    _loop: asyncio.AbstractEventLoop

    async def __aenter__(self) -> Self:
        self._loop = asyncio.get_running_loop()
        return await super().__aenter__()

    def release(self) -> None:
        self._loop.call_soon_threadsafe(super().release)


class Desk:
    """What a test needs: `page` to look at, `model` to script, `call` to ask the gateway directly."""

    def __init__(self, home: Path, model: FakeOpenAIServer, context: BrowserContext) -> None:
        self.model = model
        self.context = context
        self.gateway = GatewayProcess(home, model.base_url, free_port())
        self.origin = f"http://127.0.0.1:{self.gateway.port}"
        self.page: Page
        self.problems: list[str] = []
        self.requests: list[str] = []

    # -- the gateway -----------------------------------------------------------------------------

    def start(self) -> None:
        in_thread(self.gateway.start())

    def call(self, method: str, **params: Any) -> Any:
        async def ask() -> Any:
            async with self.gateway.client() as client:
                return await client.call(method, params)

        return in_thread(ask())

    def calls(self, *asked: tuple[str, dict[str, Any]]) -> list[Any]:
        """Several requests over one connection."""

        async def ask() -> list[Any]:
            async with self.gateway.client() as client:
                return [await client.call(method, params) for method, params in asked]

        return in_thread(ask())

    def said(self, key: str = MAIN) -> list[tuple[str, str]]:
        """The true conversation once nobody writes in it: roles and texts, as the gateway has them."""
        deadline = time.monotonic() + WAIT_MS / 1000
        history = self.call("chat.history", sessionKey=key)
        while ("inFlightRun" in history or history["pendingInputs"]["total"]) and time.monotonic() < deadline:
            history = self.call("chat.history", sessionKey=key)
        return [(one["role"], _text(one["content"])) for one in history["messages"]]

    def talk(self, text: str, reply: str, key: str = MAIN) -> None:
        """A turn that happened without the page."""
        self.model.script(FakeReply(texts=(reply,)))

        async def turn() -> None:
            async with self.gateway.client() as client:
                asked = {"sessionKey": key, "message": text, "idempotencyKey": f"talk-{key}-{text}"[:200]}
                run = await client.call("chat.send", asked)
                await client.call("agent.wait", {"runId": run["runId"], "timeoutMs": WAIT_MS})

        in_thread(turn())

    # -- the browser -----------------------------------------------------------------------------

    def sign_in(self, path: str = "") -> Page:
        """Follow a fresh one-time link, as `openclaw dashboard` prints it."""
        link = self.call("dashboard.link")
        page = self.context.new_page()
        page.on("pageerror", lambda error: self.problems.append(str(error)))
        page.on("console", lambda told: self.problems.append(told.text) if told.type == "error" else None)
        page.on("request", lambda request: self.requests.append(request.url))
        page.set_default_timeout(WAIT_MS)
        page.goto(self.origin + link["path"])
        self.page = page
        if path:
            page.goto(f"{self.origin}/{path}")
        expect(page.locator(".app")).to_have_attribute("data-wire", "open", timeout=WAIT_MS)
        return page

    def open(self, path: str) -> None:
        """Go to a place inside the page, such as `#/tree`."""
        self.page.evaluate("(hash) => { location.hash = hash }", path)

    def send(self, text: str) -> None:
        self.field.fill(text)
        self.field.press("Enter")

    @property
    def field(self) -> Locator:
        return self.page.get_by_role("combobox", name="Message", exact=True)

    @property
    def thread(self) -> Locator:
        return self.page.locator(".thread")

    def picture(self, name: str) -> None:
        """For the documentation, when that is asked for."""
        if PICTURES:
            self.page.screenshot(path=Path(PICTURES) / f"{name}.png")


def _text(content: Any) -> str:
    if isinstance(content, str):
        return content
    return "\n".join(block["text"] for block in content if block.get("type") == "text")
