"""A real Chromium without a window, driven over its debugging socket."""

from __future__ import annotations

import asyncio
import itertools
import json
import shutil
from pathlib import Path
from typing import Any, Self

import aiohttp
from websockets.asyncio.client import ClientConnection, connect

Json = dict[str, Any]
START_S = 60.0
DEADLINE_S = 60.0


class Chromium:
    """One browser with one tab: `async with Chromium(folder) as tab`. `resolve` maps names to addresses."""

    def __init__(self, folder: Path, resolve: str = "") -> None:
        found = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
        assert found is not None, "these tests need Chromium; install it"
        self._program = found
        self._folder = folder
        self._resolve = resolve
        self._numbers = itertools.count(1)
        self._process: asyncio.subprocess.Process
        self._socket: ClientConnection

    async def __aenter__(self) -> Self:
        arguments = [
            "--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--no-first-run",
            "--disable-background-networking", "--remote-debugging-port=0", f"--user-data-dir={self._folder}",
        ]  # fmt: skip
        if self._resolve:
            arguments.append(f"--host-resolver-rules={self._resolve}")
        quiet = asyncio.subprocess.DEVNULL
        self._process = await asyncio.create_subprocess_exec(
            self._program, *arguments, "about:blank", stdout=quiet, stderr=quiet
        )
        try:
            self._socket = await connect(await self._tab(), max_size=1 << 26)
        except BaseException:
            await self._stop()
            raise
        for domain in ("Page", "Runtime"):
            await self.command(f"{domain}.enable")
        return self

    async def __aexit__(self, *_exc: object) -> None:
        await self._socket.close()
        await self._stop()

    async def _stop(self) -> None:
        if self._process.returncode is None:
            self._process.terminate()
        await asyncio.wait_for(self._process.wait(), DEADLINE_S)

    async def _tab(self) -> str:
        """The debugging socket of the first tab, once the browser has written down its port."""
        note = self._folder / "DevToolsActivePort"
        async with asyncio.timeout(START_S), aiohttp.ClientSession() as http:
            while True:
                if note.exists() and "\n" in (written := note.read_text()):
                    async with http.get(f"http://127.0.0.1:{written.split()[0]}/json/list") as answer:
                        tabs = [one for one in await answer.json() if one["type"] == "page"]
                    if tabs:
                        return str(tabs[0]["webSocketDebuggerUrl"])
                await asyncio.sleep(0.1)

    async def command(self, method: str, **params: Any) -> Json:
        number = next(self._numbers)
        await self._socket.send(json.dumps({"id": number, "method": method, "params": params}))
        async with asyncio.timeout(DEADLINE_S):
            while True:
                frame: Json = json.loads(await self._socket.recv())
                if frame.get("id") == number:
                    assert "error" not in frame, frame
                    result: Json = frame["result"]
                    return result

    async def visit(self, url: str) -> None:
        """Go there as a person who typed the address, and wait until it is loaded."""
        await self.command("Page.navigate", url=url)
        loaded = "document.readyState === 'complete' ? go() : addEventListener('load', () => go())"
        await self.run(f"new Promise((go) => {loaded})")

    async def run(self, script: str) -> Any:
        """The value of an expression in the page; a promise is waited for."""
        answer = await self.command(
            "Runtime.evaluate", expression=script, awaitPromise=True, returnByValue=True
        )
        assert "exceptionDetails" not in answer, answer
        return answer["result"].get("value")
