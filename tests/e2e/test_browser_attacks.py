"""What a web page in the owner's browser can try against the gateway, sent as a browser sends it.

Every attack is refused, and every guard is shown to be what refuses it: with the guard taken away (here
in the test only, there is no switch in the product) the same attack succeeds. The attacks that only a
browser can carry out are in `test_browser_attacks_chromium.py`.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from http.cookies import SimpleCookie
from pathlib import Path
from typing import Any

import pytest
from websockets.asyncio.client import connect

from openclaw.app import Gateway
from openclaw.gateway.http import credentials, guards
from openclaw.gateway.http.signin import Signin, Signins
from openclaw.protocol import auth
from tests.fakes.openai_server import FakeOpenAIServer, FakeReply
from tests.integration.conftest import TOKEN, House, client_of
from tests.integration.http_client import OPENED, Answer, HttpClient, said

Json = dict[str, Any]
EVIL = "https://evil.example"
STOLEN = "the owner's secret plan"


@pytest.fixture
async def house(tmp_path: Path) -> AsyncIterator[House]:
    async with FakeOpenAIServer(then=FakeReply(texts=("obeyed",))) as model:
        house = House(tmp_path, model)
        house.config["gateway"]["http"] = {"endpoints": OPENED}
        yield house


def without_secret(house: House) -> None:
    """The gateway of somebody who trusts this machine: then the guards stand alone."""
    house.config["gateway"]["auth"] = {"mode": "none"}


async def signed_in(gateway: Gateway) -> str:
    """The cookie of the owner's browser, which a page can make it send but not read."""
    async with client_of(gateway) as client:
        link = await client.call("dashboard.link", {})
        await client.say("main", STOLEN, "r1")
    async with HttpClient(gateway, token=None) as http:
        answer = await http.get(link["path"])
    (morsel,) = SimpleCookie(answer.headers["Set-Cookie"]).values()
    return f"{morsel.key}={morsel.value}"


async def order(gateway: Gateway, **headers: str) -> Answer:
    """A page makes the agent do something."""
    async with HttpClient(gateway, token=None) as http:
        body = json.dumps(said("send me everything")).encode()
        sent = {"Content-Type": "application/json", **headers}
        return await http.ask("POST", "/v1/chat/completions", data=body, headers=sent)


@asynccontextmanager
async def socket_of_page(
    gateway: Gateway, origin: str, cookie: str = "", **client: str
) -> AsyncIterator[Json]:
    """A page opens a socket and says `connect` without a secret; the answer."""
    headers = {"Origin": origin, **({"Cookie": cookie} if cookie else {})}
    url = f"ws://127.0.0.1:{gateway.port}/"
    async with connect(url, additional_headers=headers, compression=None) as socket:
        await asyncio.wait_for(socket.recv(), 60)
        params = {
            "minProtocol": 4,
            "maxProtocol": 4,
            "client": {
                "id": "gateway-client",
                "mode": "backend",
                "version": "1",
                "platform": "web",
                **client,
            },
            "role": "operator",
            "scopes": ["operator.admin"],
        }
        await socket.send(json.dumps({"type": "req", "id": "1", "method": "connect", "params": params}))
        yield json.loads(await asyncio.wait_for(socket.recv(), 60))


# -- foreign origin ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "headers",
    [
        {"Origin": EVIL, "Sec-Fetch-Site": "cross-site"},
        {"Origin": EVIL},
        {"Origin": "null"},
        {"Origin": "http://localhost:3000", "Sec-Fetch-Site": "same-site"},
        {"Sec-Fetch-Site": "cross-site"},
        {"Sec-Fetch-Site": "same-site"},
    ],
)
async def test_a_foreign_page_gives_no_orders(
    house: House, monkeypatch: pytest.MonkeyPatch, headers: dict[str, str]
) -> None:
    without_secret(house)
    async with house.gateway() as gateway:
        refused = await order(gateway, **headers)
        assert refused.status == 403
        assert "origin not allowed" in refused.json["error"]["message"]
        assert house.model.requests == []
        for guard in ("check_origin", "check_site"):
            monkeypatch.setattr(guards, guard, lambda _request: None)
        obeyed = await order(gateway, **headers)
        assert obeyed.json["choices"][0]["message"]["content"] == "obeyed"


async def test_a_foreign_page_opens_no_socket(house: House, monkeypatch: pytest.MonkeyPatch) -> None:
    without_secret(house)
    async with house.gateway() as gateway:
        async with socket_of_page(gateway, EVIL) as answer:
            assert answer["error"]["details"]["code"] == "CONTROL_UI_ORIGIN_NOT_ALLOWED"
        monkeypatch.setattr(auth, "_check_origin", lambda *_args: None)
        async with socket_of_page(gateway, EVIL) as answer:
            assert answer["ok"] is True


async def test_no_page_is_given_leave_to_ask(house: House) -> None:
    """The preflight of a request with a credential is never answered with leave."""
    async with house.gateway() as gateway, HttpClient(gateway, token=None) as http:
        for path in ("/v1/chat/completions", "/tools/invoke", "/sessions/main/history", "/"):
            asked = {
                "Origin": EVIL,
                "Access-Control-Request-Method": "POST",
                "Access-Control-Request-Headers": "authorization,content-type",
            }
            answer = await http.ask("OPTIONS", path, headers=asked)
            assert answer.status in (403, 405)
            assert not [name for name in answer.headers if name.lower().startswith("access-control")]


# -- the cookie, from another port -----------------------------------------------------------------------


async def test_another_port_cannot_use_the_cookie_to_read(
    house: House, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Cookies do not know ports, and SameSite does not either."""
    async with house.gateway() as gateway, HttpClient(gateway, token=None) as http:
        cookie = await signed_in(gateway)
        plain = {"Cookie": cookie, "Sec-Fetch-Site": "same-site", "Sec-Fetch-Mode": "no-cors"}
        named = {**plain, "Origin": "http://127.0.0.1:3000"}
        for headers in (plain, named):
            assert (await http.get("/sessions/main/history", headers=headers)).status == 403
        monkeypatch.setattr(guards, "check_site", lambda _request: None)
        assert (await http.get("/sessions/main/history", headers=plain)).status == 401
        monkeypatch.setattr(credentials, "has_own_origin", lambda _request: True)
        stolen = await http.get("/sessions/main/history", headers=plain)
        assert stolen.status == 200
        assert STOLEN in stolen.text


async def test_another_port_cannot_use_the_cookie_to_give_orders(
    house: House, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with house.gateway() as gateway:
        headers = {"Cookie": await signed_in(gateway), "Origin": f"http://127.0.0.1:{gateway.port + 1}"}
        before = len(house.model.requests)
        assert (await order(gateway, **headers)).status == 403
        assert len(house.model.requests) == before
        monkeypatch.setattr(guards, "has_own_origin", lambda _request: True)
        monkeypatch.setattr(credentials, "has_own_origin", lambda _request: True)
        assert (await order(gateway, **headers)).status == 200


async def test_another_port_cannot_open_a_socket_with_the_cookie(
    house: House, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with house.gateway() as gateway:
        cookie = await signed_in(gateway)
        other = f"http://127.0.0.1:{gateway.port + 1}"
        async with socket_of_page(gateway, other, cookie) as answer:
            assert answer["ok"] is False
        monkeypatch.setattr(credentials, "has_own_origin", lambda _request: True)
        async with socket_of_page(gateway, other, cookie) as answer:
            assert answer["payload"]["auth"]["scopes"] == ["operator.admin"]


# -- names and types --------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["evil.example", "evil.example:18789", "127.0.0.1.evil.example", "[::2]:80"])
async def test_a_name_that_was_rebound_is_refused(
    house: House, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    """For the browser this is one origin: page and gateway have the same name. Only the name is wrong."""
    without_secret(house)
    async with house.gateway() as gateway:
        headers = {"Host": name, "Origin": f"http://{name}", "Sec-Fetch-Site": "same-origin"}
        refused = await order(gateway, **headers)
        assert refused.status == 403
        assert "gateway.allowedHosts" in refused.json["error"]["message"]
        assert house.model.requests == []
        monkeypatch.setattr(guards, "check_host", lambda _request, _allowed: None)
        assert (await order(gateway, **headers)).status == 200


@pytest.mark.parametrize(
    "kind",
    ["text/plain", "text/plain;charset=UTF-8", "application/x-www-form-urlencoded", "text/html"],
)
async def test_a_form_is_not_an_order(house: House, monkeypatch: pytest.MonkeyPatch, kind: str) -> None:
    """What a page may send anywhere without asking, from a browser that tells nothing about itself."""
    without_secret(house)
    async with house.gateway() as gateway:
        refused = await order(gateway, **{"Content-Type": kind})
        assert refused.status == 415
        assert house.model.requests == []
        monkeypatch.setattr(guards, "check_json_type", lambda _request: None)
        assert (await order(gateway, **{"Content-Type": kind})).status == 200


# -- credentials that are not there, or not any more --------------------------------------------------------


async def test_without_a_cookie_our_own_page_is_a_stranger(
    house: House, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with house.gateway() as gateway, HttpClient(gateway, token=None) as http:
        page = {"Origin": f"http://127.0.0.1:{gateway.port}"}
        await signed_in(gateway)
        assert (await http.get("/sessions/main/history", headers=page)).status == 401
        async with socket_of_page(gateway, page["Origin"]) as answer:
            assert answer["ok"] is False
        monkeypatch.setattr(Signins, "find", lambda _self, _value: Signin(b"", 0))
        assert (await http.get("/sessions/main/history", headers=page)).status == 200
        async with socket_of_page(gateway, page["Origin"]) as answer:
            assert answer["ok"] is True


async def test_a_cookie_that_was_signed_out_is_nothing(house: House, monkeypatch: pytest.MonkeyPatch) -> None:
    async with house.gateway() as gateway, HttpClient(gateway, token=None) as http:
        page = {"Cookie": await signed_in(gateway), "Origin": f"http://127.0.0.1:{gateway.port}"}
        with monkeypatch.context() as off:
            off.setattr(Signins, "end", lambda _self, _digest: True)
            assert (await http.ask("POST", "/signout", headers=page)).status == 200
            assert (await http.get("/sessions/main/history", headers=page)).status == 200
        assert (await http.ask("POST", "/signout", headers=page)).status == 200
        assert (await http.get("/sessions/main/history", headers=page)).status == 401
        async with socket_of_page(gateway, page["Origin"], page["Cookie"]) as answer:
            assert answer["ok"] is False


async def test_a_token_that_was_replaced_is_nothing(house: House) -> None:
    """The control is the gateway before the change: there the same request is answered."""
    async with house.gateway() as gateway, HttpClient(gateway) as http:
        assert (await http.get("/v1/models")).status == 200
        assert (await order(gateway, Authorization=f"Bearer {TOKEN}")).status == 200
    house.config["gateway"]["auth"]["token"] = "another-token-0123456789abcdef"
    before = len(house.model.requests)
    async with house.gateway() as gateway, HttpClient(gateway) as http:
        assert (await http.get("/v1/models")).status == 401
        assert (await order(gateway, Authorization=f"Bearer {TOKEN}")).status == 401
    assert len(house.model.requests) == before


async def test_a_secret_in_the_address_is_not_read(house: House) -> None:
    """An address is kept in histories and logs; no way in reads a secret from it."""
    async with house.gateway() as gateway, HttpClient(gateway, token=None) as http:
        for query in (f"?token={TOKEN}", f"?access_token={TOKEN}", f"?auth={TOKEN}"):
            assert (await http.get(f"/sessions/main/history{query}")).status == 401
            assert (await http.get(f"/v1/models{query}")).status == 401


# -- frames -----------------------------------------------------------------------------------------------


async def test_every_page_says_that_it_is_not_to_be_framed(
    house: House, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Browsers obey these headers; that Chromium does is shown with Chromium."""
    async with house.gateway() as gateway, HttpClient(gateway, token=None) as http:
        for path in ("/", "/chat/main", "/assets/page.css", "/healthz"):
            answer = await http.get(path, headers={"Sec-Fetch-Dest": "iframe"})
            assert answer.headers["X-Frame-Options"] == "DENY"
            assert "frame-ancestors 'none'" in answer.headers["Content-Security-Policy"]
        monkeypatch.setattr(guards, "SECURITY_HEADERS", {})
        bare = await http.get("/")
        assert "X-Frame-Options" not in bare.headers
        assert "Content-Security-Policy" not in bare.headers
