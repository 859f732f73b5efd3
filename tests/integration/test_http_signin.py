"""Signing a browser in by a one-time link: the cookie, what it opens, and its end."""

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from http.cookies import SimpleCookie
from typing import Any

import pytest
from websockets.asyncio.client import ClientConnection, connect
from websockets.exceptions import ConnectionClosed

from openclaw.app import Gateway
from tests.fakes.openai_server import FakeReply
from tests.fakes.wire_client import RefusedError, WireClient
from tests.integration.conftest import TOKEN, House, client_of
from tests.integration.http_client import ADMIN, HttpClient

Json = dict[str, Any]


def own(gateway: Gateway) -> str:
    return f"http://127.0.0.1:{gateway.port}"


async def sign_in(gateway: Gateway, client: WireClient, **headers: str) -> str:
    """The Cookie header of a browser that followed a fresh link."""
    link = await client.call("dashboard.link", {})
    async with HttpClient(gateway, token=None) as http:
        answer = await http.get(link["path"], headers=headers)
    assert answer.status == 303
    (morsel,) = SimpleCookie(answer.headers["Set-Cookie"]).values()
    return f"{morsel.key}={morsel.value}"


@asynccontextmanager
async def page_socket(
    gateway: Gateway, cookie: str | None, origin: str | None, **params: Any
) -> AsyncIterator[tuple[ClientConnection, Json]]:
    """A socket as a page opens it, and the answer to its `connect` without any secret."""
    headers = {"Cookie": cookie, "Origin": origin}
    sent = {name: value for name, value in headers.items() if value is not None}
    async with connect(
        f"ws://127.0.0.1:{gateway.port}/", additional_headers=sent, compression=None
    ) as socket:
        await asyncio.wait_for(socket.recv(), 60)
        asked = {
            "minProtocol": 4,
            "maxProtocol": 4,
            "client": {"id": "openclaw-control-ui", "mode": "webchat", "version": "1", "platform": "web"},
            "role": "operator",
            "scopes": ["operator.admin", "operator.read", "operator.write"],
            **params,
        }
        await socket.send(json.dumps({"type": "req", "id": "1", "method": "connect", "params": asked}))
        yield socket, json.loads(await asyncio.wait_for(socket.recv(), 60))


async def test_a_link_makes_a_cookie_that_scripts_cannot_read(gateway: Gateway, client: WireClient) -> None:
    link = await client.call("dashboard.link", {})
    assert link["path"].startswith("/signin/")
    assert len(link["path"]) == len("/signin/") + 43
    assert TOKEN not in json.dumps(link)
    async with HttpClient(gateway, token=None) as http:
        for method in ("HEAD", "POST"):
            assert (await http.ask(method, link["path"])).status in (404, 405)
        answer = await http.get(link["path"])
        assert (answer.status, answer.headers["Location"]) == (303, "/")
        assert answer.headers["Cache-Control"] == "no-store"
        (morsel,) = SimpleCookie(answer.headers["Set-Cookie"]).values()
        assert morsel.key == f"openclaw_signin_{gateway.port}"
        assert (morsel["httponly"], morsel["samesite"], morsel["path"]) == (True, "Strict", "/")
        assert int(morsel["max-age"]) == 7 * 24 * 3600
        assert not morsel["secure"]
        assert not morsel["domain"]
        assert morsel.value not in link["path"]
        again = await http.get(link["path"])
        assert again.status == 410
        assert "Set-Cookie" not in again.headers
        assert "openclaw dashboard" in again.text
    secure = await client.call("dashboard.link", {})
    async with HttpClient(gateway, token=None) as http:
        answer = await http.get(secure["path"], headers={"X-Forwarded-Proto": "https"})
        (morsel,) = SimpleCookie(answer.headers["Set-Cookie"]).values()
        assert morsel["secure"] is True


@pytest.mark.spec("RPC-3")
@pytest.mark.parametrize("method", ["dashboard.link", "dashboard.signout"])
async def test_only_the_owner_makes_links(gateway: Gateway, method: str) -> None:
    async with client_of(gateway, scopes=("operator.read", "operator.write")) as client:
        with pytest.raises(RefusedError, match=r"missing scope: operator\.admin"):
            await client.call(method, {})


async def test_the_cookie_opens_http_for_our_own_page_only(gateway: Gateway, client: WireClient) -> None:
    cookie = await sign_in(gateway, client)
    async with HttpClient(gateway, token=None) as http:
        for page in ({"Sec-Fetch-Site": "same-origin"}, {"Origin": own(gateway)}):
            answer = await http.get("/control-ui-config.json", headers={"Cookie": cookie, **page})
            assert answer.status == 200, page
        for site, status in (("none", 401), ("", 403), ("same-site", 403), ("cross-site", 403)):
            page = {"Cookie": cookie, "Sec-Fetch-Site": site}
            assert (await http.get("/control-ui-config.json", headers=page)).status == status, site
        assert (await http.get("/control-ui-config.json", headers={"Cookie": cookie})).status == 401
        wrong = f"openclaw_signin_{gateway.port}=guess"
        for other in (wrong, cookie.replace("=", "x="), cookie[:-1]):
            headers = {"Cookie": other, "Origin": own(gateway)}
            assert (await http.get("/control-ui-config.json", headers=headers)).status == 401


async def test_the_cookie_opens_a_socket_without_a_device(
    house: House, gateway: Gateway, client: WireClient
) -> None:
    cookie = await sign_in(gateway, client)
    house.model.script(FakeReply(texts=("hello page",)))
    async with page_socket(gateway, cookie, own(gateway)) as (socket, hello):
        assert hello["ok"] is True, hello
        auth = hello["payload"]["auth"]
        assert (auth["method"], auth["role"]) == ("cookie", "operator")
        assert "operator.admin" in auth["scopes"]
        assert "deviceToken" not in auth
        asked = {"sessionKey": "main", "message": "hi", "idempotencyKey": "p1"}
        await socket.send(json.dumps({"type": "req", "id": "2", "method": "chat.send", "params": asked}))
        async with asyncio.timeout(60):
            while True:
                frame = json.loads(await socket.recv())
                if frame.get("event") == "chat" and frame["payload"]["state"] == "final":
                    break
        assert frame["payload"]["message"]["content"][0]["text"] == "hello page"
    async with page_socket(gateway, cookie, own(gateway), scopes=["operator.read"]) as (_, hello):
        assert hello["payload"]["auth"]["scopes"] == ["operator.read"]


async def test_a_socket_with_the_cookie_needs_the_exact_origin(gateway: Gateway, client: WireClient) -> None:
    cookie = await sign_in(gateway, client)
    port = gateway.port
    origins = (
        None, "http://127.0.0.1:1", f"http://localhost:{port}", f"https://127.0.0.1:{port}", "null",
        f"http://127.0.0.1:{port}1", "http://127.0.0.1", "https://evil.example",
    )  # fmt: skip
    for origin in origins:
        async with page_socket(gateway, cookie, origin) as (_, answer):
            assert answer["ok"] is False, origin
    for bad in (None, f"openclaw_signin_{port}=guess"):
        async with page_socket(gateway, bad, own(gateway)) as (_, answer):
            assert answer["ok"] is False, bad
    async with page_socket(gateway, cookie, own(gateway), role="node") as (_, answer):
        assert answer["ok"] is False


async def test_signing_out_closes_the_sockets_of_the_browser_that_asked(
    gateway: Gateway, client: WireClient
) -> None:
    first, second = await sign_in(gateway, client), await sign_in(gateway, client)
    async with (
        page_socket(gateway, first, own(gateway)) as (one, _),
        page_socket(gateway, second, own(gateway)) as (two, _),
        HttpClient(gateway, token=None) as http,
    ):
        headers = {"Cookie": first, "Origin": own(gateway)}
        answer = await http.ask("POST", "/signout", headers=headers)
        assert answer.json == {"ok": True, "ended": True}
        assert f"openclaw_signin_{gateway.port}=" in answer.headers["Set-Cookie"]
        assert "Max-Age=0" in answer.headers["Set-Cookie"]
        assert await closed(one) == (1008, "signed out")
        assert (await http.ask("POST", "/signout", headers=headers)).status == 401
        assert (await client.call("dashboard.signout", {}))["ended"] == 1
        assert await closed(two) == (1008, "signed out")
    for cookie in (first, second):
        async with page_socket(gateway, cookie, own(gateway)) as (_, answer_):
            assert answer_["ok"] is False
    # Whoever holds the secret is not a browser that could be signed out.
    async with HttpClient(gateway) as http:
        assert (await http.ask("POST", "/signout")).json == {"ok": True, "ended": False}


async def closed(socket: ClientConnection) -> tuple[int | None, str | None]:
    try:
        async with asyncio.timeout(60):
            while True:
                await socket.recv()
    except ConnectionClosed:
        return socket.close_code, socket.close_reason


def browser(gateway: Gateway, cookie: str) -> dict[str, str]:
    """The headers of a browser that got this cookie; its name follows the port of the moment."""
    name, _, value = cookie.partition("=")
    return {"Cookie": f"{name.rpartition('_')[0]}_{gateway.port}={value}", "Origin": own(gateway)}


async def opens(gateway: Gateway, cookie: str) -> int:
    """What the page's configuration answers to a browser with this cookie."""
    async with HttpClient(gateway, token=None) as http:
        return (await http.get("/control-ui-config.json", headers=browser(gateway, cookie))).status


async def test_a_sign_in_outlives_a_restart_and_a_link_does_not(house: House) -> None:
    async with house.gateway() as gateway, client_of(gateway) as client:
        cookie, other = await sign_in(gateway, client), await sign_in(gateway, client)
        link = await client.call("dashboard.link", {})
    async with house.gateway() as gateway:
        assert (await opens(gateway, cookie), await opens(gateway, other)) == (200, 200)
        assert await opens(gateway, cookie[:-1]) == 401
        async with HttpClient(gateway, token=None) as http:
            assert (await http.get(link["path"])).status == 410
            answer = await http.ask("POST", "/signout", headers=browser(gateway, cookie))
            assert answer.json["ended"] is True
    async with house.gateway() as gateway:
        assert (await opens(gateway, cookie), await opens(gateway, other)) == (401, 200)
        async with client_of(gateway) as client:
            assert (await client.call("dashboard.signout", {}))["ended"] == 1
    async with house.gateway() as gateway:
        assert await opens(gateway, other) == 401


async def test_a_new_secret_signs_everybody_out(house: House) -> None:
    async with house.gateway() as gateway, client_of(gateway) as client:
        cookie = await sign_in(gateway, client)
    house.config["gateway"]["auth"]["token"] = TOKEN[::-1]
    async with house.gateway() as gateway:
        assert await opens(gateway, cookie) == 401
    house.config["gateway"]["auth"]["token"] = TOKEN
    async with house.gateway() as gateway:
        assert await opens(gateway, cookie) == 200


async def test_a_signed_in_browser_is_not_an_administrator_by_accident(
    gateway: Gateway, client: WireClient
) -> None:
    headers = {"Cookie": await sign_in(gateway, client), "Origin": own(gateway)}
    async with HttpClient(gateway, token=None) as http:
        assert (await http.ask("POST", "/sessions/main/kill", headers=headers)).status == 403
        assert (await http.ask("POST", "/sessions/main/kill", headers=headers | ADMIN)).status == 404


async def test_the_command_makes_a_link_that_works(house: House, gateway: Gateway) -> None:
    env = {**house.env, "OPENCLAW_GATEWAY_PORT": str(gateway.port), "PATH": "/usr/bin"}
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-m", "openclaw", "dashboard", "--json", stdout=asyncio.subprocess.PIPE, env=env
    )
    out, _ = await asyncio.wait_for(process.communicate(), 60)
    told = json.loads(out)
    assert process.returncode == 0
    assert told["ok"] is True
    assert told["url"].startswith(own(gateway) + "/signin/")
    async with HttpClient(gateway, token=None) as http:
        assert (await http.get(told["url"])).status == 303
        assert (await http.get(told["url"])).status == 410
