"""Plain HTTP requests to a gateway under test."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, Self

import aiohttp
from msgspec import Struct

from openclaw.app import Gateway
from tests.integration.conftest import TOKEN

Json = dict[str, Any]
OPENED = {
    "chatCompletions": {"enabled": True},
    "responses": {"enabled": True},
}
ADMIN = {"x-openclaw-scopes": "operator.admin"}


class Answer(Struct, frozen=True):
    status: int
    headers: Mapping[str, str]
    body: bytes

    @property
    def json(self) -> Any:
        return json.loads(self.body)

    @property
    def text(self) -> str:
        return self.body.decode()


class HttpClient:
    """`async with HttpClient(gateway) as http:` asks with the token; `token=None` asks without."""

    def __init__(self, gateway: Gateway, token: str | None = TOKEN) -> None:
        self.base = f"http://127.0.0.1:{gateway.port}"
        self.headers = {} if token is None else {"Authorization": f"Bearer {token}"}
        self.session: aiohttp.ClientSession

    async def __aenter__(self) -> Self:
        timeout = aiohttp.ClientTimeout(total=60)
        jar = aiohttp.DummyCookieJar()
        self.session = aiohttp.ClientSession(self.base, timeout=timeout, cookie_jar=jar)
        return self

    async def __aexit__(self, *_exc: object) -> None:
        await self.session.close()

    async def ask(
        self, method: str, path: str, *, headers: Mapping[str, str] | None = None, **more: Any
    ) -> Answer:
        sent = {**self.headers, **(headers or {})}
        async with self.session.request(method, path, headers=sent, allow_redirects=False, **more) as answer:
            return Answer(answer.status, answer.headers.copy(), await answer.read())

    async def get(self, path: str, **more: Any) -> Answer:
        return await self.ask("GET", path, **more)

    async def post(self, path: str, body: Any = None, **more: Any) -> Answer:
        return await self.ask("POST", path, json=body, **more)


def said(text: str, **more: Any) -> Json:
    """The smallest chat request."""
    return {"model": "openclaw", "messages": [{"role": "user", "content": text}], **more}
