"""The same attacks from pages in a real Chromium: `scripts/long tests/e2e/test_browser_attacks_chromium.py`.

The owner's browser is signed in. The attacker has a page on another port of the same address, which the
browser counts as the same site, and a name of its own. Each attack is repeated with its guard taken away,
here in the test only, and then succeeds.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web

from openclaw.app import Gateway
from openclaw.gateway.http import credentials, guards
from openclaw.gateway.http.files import Pages
from tests.e2e.chromium import Chromium
from tests.fakes.openai_server import FakeOpenAIServer, FakeReply
from tests.integration.conftest import House, client_of
from tests.integration.http_client import OPENED

pytestmark = pytest.mark.long
Json = dict[str, Any]
STOLEN = "the owner's secret plan"
NAME = "attacker.test"
CONNECT = json.dumps(
    {
        "type": "req",
        "id": "1",
        "method": "connect",
        "params": {
            "minProtocol": 4,
            "maxProtocol": 4,
            "client": {"id": "gateway-client", "mode": "backend", "version": "1", "platform": "web"},
            "role": "operator",
            "scopes": ["operator.admin"],
        },
    }
)


@pytest.fixture
async def house(tmp_path: Path) -> AsyncIterator[House]:
    async with FakeOpenAIServer(then=FakeReply(texts=("obeyed",))) as model:
        house = House(tmp_path, model)
        house.config["gateway"]["http"] = {"endpoints": OPENED}
        yield house


@pytest.fixture
async def gateway(house: House) -> AsyncIterator[Gateway]:
    async with house.gateway() as running:
        yield running


@pytest.fixture
async def attacker() -> AsyncIterator[int]:
    """The port of a page that the attacker serves."""

    async def page(_request: web.Request) -> web.Response:
        return web.Response(text="<!doctype html><title>nice page</title>", content_type="text/html")

    app = web.Application()
    app.router.add_get("/", page)
    runner = web.AppRunner(app)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    yield int(runner.addresses[0][1])
    await runner.cleanup()


@pytest.fixture
async def tab(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Chromium]:
    async with Chromium(tmp_path_factory.mktemp("chromium"), f"MAP {NAME} 127.0.0.1") as browser:
        yield browser


async def sign_in(gateway: Gateway, tab: Chromium) -> None:
    async with client_of(gateway) as client:
        await client.say("main", STOLEN, "r1")
        link = await client.call("dashboard.link", {})
    await tab.visit(f"http://127.0.0.1:{gateway.port}{link['path']}")
    assert await tab.run("location.pathname") == "/"


async def connects(tab: Chromium, gateway: Gateway) -> Json:
    """The answer to `connect` on a socket that the page opens."""
    script = f"""new Promise((resolve, reject) => {{
        const socket = new WebSocket("ws://127.0.0.1:{gateway.port}/");
        let frames = 0;
        socket.onmessage = (message) => {{
            frames += 1;
            if (frames === 1) socket.send({json.dumps(CONNECT)}); else resolve(message.data);
        }};
        socket.onerror = () => reject("the socket did not open");
    }})"""
    answer: Json = json.loads(await tab.run(script))
    return answer


async def reads(tab: Chromium, url: str, mode: str = "cors") -> str:
    """What a page gets to see of an address, with the browser's cookie; the error's name otherwise."""
    asked = json.dumps({"credentials": "include", "mode": mode})
    script = f"fetch({json.dumps(url)}, {asked}).then((got) => got.text(), (error) => error.name)"
    return str(await tab.run(script))


async def test_our_own_page_comes_in_and_its_cookie_is_hidden(gateway: Gateway, tab: Chromium) -> None:
    await sign_in(gateway, tab)
    assert await tab.run("document.cookie") == ""
    answer = await connects(tab, gateway)
    assert answer["payload"]["auth"]["method"] == "cookie"
    history = f"http://127.0.0.1:{gateway.port}/sessions/main/history"
    assert STOLEN in await reads(tab, history)
    assert await tab.run("getComputedStyle(document.querySelector('pre')).borderTopStyle") == "solid"


async def test_a_page_on_another_port_reads_nothing(
    gateway: Gateway, tab: Chromium, attacker: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    await sign_in(gateway, tab)
    await tab.visit(f"http://127.0.0.1:{attacker}/")
    history = f"http://127.0.0.1:{gateway.port}/sessions/main/history"
    assert await reads(tab, history) == "TypeError"
    assert await reads(tab, history, "no-cors") in ("TypeError", "")
    assert (await connects(tab, gateway))["ok"] is False
    # Without the check of the origin the browser's cookie opens the socket to the other port's page.
    monkeypatch.setattr(credentials, "has_own_origin", lambda _request: True)
    assert (await connects(tab, gateway))["payload"]["auth"]["scopes"] == ["operator.admin"]


async def test_a_page_on_another_port_gives_no_orders(
    house: House, gateway: Gateway, tab: Chromium, attacker: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    await sign_in(gateway, tab)
    await tab.visit(f"http://127.0.0.1:{attacker}/")
    before = len(house.model.requests)
    body = json.dumps({"messages": [{"role": "user", "content": "send me everything"}]})

    async def order() -> None:
        asked = {"method": "POST", "mode": "no-cors", "credentials": "include", "body": body}
        url = f"http://127.0.0.1:{gateway.port}/v1/chat/completions"
        await tab.run(f"fetch({json.dumps(url)}, {json.dumps(asked)}).then(() => 1, () => 0)")

    await order()
    assert len(house.model.requests) == before
    for room in (guards, credentials):
        monkeypatch.setattr(room, "has_own_origin", lambda _request: True)
    for guard in ("check_origin", "check_site"):
        monkeypatch.setattr(guards, guard, lambda _request: None)
    await order()
    assert len(house.model.requests) == before  # still a text, which the type of the body gives away
    monkeypatch.setattr(guards, "check_json_type", lambda _request: None)
    await order()
    assert len(house.model.requests) == before + 1


async def test_our_page_does_not_load_in_a_frame(
    gateway: Gateway, tab: Chromium, attacker: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    styled: asyncio.Queue[str] = asyncio.Queue()
    answer = Pages.answer

    def note(pages: Pages, request: web.Request) -> web.Response | None:
        if request.path == "/assets/page.css":
            styled.put_nowait(request.path)
        return answer(pages, request)

    monkeypatch.setattr(Pages, "answer", note)
    await sign_in(gateway, tab)
    await asyncio.wait_for(styled.get(), 60)  # a page that is shown asks for its style
    await tab.visit(f"http://127.0.0.1:{attacker}/")
    frame = f"""new Promise((resolve) => {{
        const frame = document.createElement("iframe");
        frame.onload = resolve;
        frame.src = "http://127.0.0.1:{gateway.port}/?" + Math.random();
        document.body.append(frame);
    }})"""
    await tab.run(frame)
    await asyncio.sleep(0.5)
    assert styled.empty()
    monkeypatch.setattr(guards, "SECURITY_HEADERS", {})
    await tab.run(frame)
    await asyncio.wait_for(styled.get(), 60)


async def test_a_name_that_leads_here_is_refused(
    house: House, tab: Chromium, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The attacker's name points at this machine now: for the browser, page and gateway are one."""
    house.config["gateway"]["auth"] = {"mode": "none"}
    async with house.gateway() as gateway:
        url = f"http://{NAME}:{gateway.port}/v1/models"
        await tab.visit(url)
        assert "gateway.allowedHosts" in await tab.run("document.body.innerText")
        monkeypatch.setattr(guards, "check_host", lambda _request, _allowed: None)
        assert "openclaw/default" in await reads(tab, url)


async def test_nothing_foreign_runs_in_our_page(
    gateway: Gateway, tab: Chromium, attacker: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Should a text ever become markup: no inline script, no foreign script, no foreign image."""
    await sign_in(gateway, tab)
    inject = f"""new Promise((resolve) => {{
        window.ran = 0;
        const holder = document.createElement("div");
        holder.innerHTML = '<img src="x" onerror="window.ran += 1">';
        document.body.append(holder);
        const inline = document.createElement("script");
        inline.textContent = "window.ran += 1";
        document.body.append(inline);
        const image = new Image();
        image.onload = image.onerror = () => setTimeout(() => resolve(window.ran), 300);
        image.src = "http://127.0.0.1:{attacker}/?stolen";
    }})"""
    assert await tab.run(inject) == 0
    monkeypatch.setattr(guards, "SECURITY_HEADERS", {})
    await tab.visit(f"http://127.0.0.1:{gateway.port}/again")
    assert await tab.run(inject) == 2
