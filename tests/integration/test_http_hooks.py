"""Webhooks: their token, their own sessions, what they may name, what the model is told (AUTO-5, AUTO-6)."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

import aiohttp
import pytest

from openclaw.app import Gateway
from tests.fakes.openai_server import FakeReply
from tests.integration.conftest import TOKEN, House, client_of
from tests.integration.http_client import HttpClient

Json = dict[str, Any]
HOOK = "hook-token-abcdef0123456789"
OK = FakeReply(texts=("Noted.",))


@pytest.fixture
async def open_gateway(house: House) -> AsyncIterator[Gateway]:
    house.config["hooks"] = {"enabled": True, "token": HOOK}
    async with house.gateway() as gateway:
        yield gateway


async def post(gateway: Gateway, path: str, body: Any, **headers: str) -> tuple[int, Json]:
    given = {"Authorization": f"Bearer {HOOK}"} | headers
    sent: Json = {"json": body} if not isinstance(body, str) else {"data": body}
    async with (
        aiohttp.ClientSession() as http,
        http.post(f"http://127.0.0.1:{gateway.port}{path}", headers=given, **sent) as answer,
    ):
        return answer.status, await answer.json()


@pytest.mark.spec("AUTO-5", "AUTO-6", "KEY-14")
async def test_a_hook_runs_in_a_session_of_its_own_and_its_words_are_marked(
    house: House, open_gateway: Gateway
) -> None:
    house.model.script(OK, OK)
    async with client_of(open_gateway) as client:
        keys = []
        for number in (1, 2):
            body = {"message": f"build {number} failed", "name": "CI\nserver"}
            status, answer = await post(open_gateway, "/hooks/agent", body)
            assert status == 202 and answer["ok"]
            await client.ended(answer["runId"])
            keys.append(answer["sessionKey"])
        assert len(set(keys)) == 2 and all(key.startswith("agent:main:hook:") for key in keys)
        asked = house.model.requests[1].body["messages"][-1]["content"]
        assert "data from outside" in str(asked) and "[Webhook CI server:" in str(asked)
        assert "build 1" not in str(house.model.requests[1].body["messages"])


@pytest.mark.spec("AUTO-6")
async def test_wake_tells_main(house: House, open_gateway: Gateway) -> None:
    house.model.script(OK)
    status, answer = await post(open_gateway, "/hooks/wake", {"text": "rain", "mode": "next-heartbeat"})
    assert (status, answer) == (200, {"ok": True, "mode": "next-heartbeat", "eventOutcome": "queued"})
    assert house.model.requests == []
    status, answer = await post(open_gateway, "/hooks/wake", {"text": "snow"})
    assert (status, answer["mode"]) == (200, "now")
    await house.model.wait_for_requests(1, timeout_s=60)
    asked = str(house.model.requests[0].body["messages"])
    assert "rain" in asked and "snow" in asked


@pytest.mark.spec("AUTO-6")
@pytest.mark.parametrize(
    ("headers", "path", "status"),
    [
        ({"Authorization": ""}, "/hooks/wake", 401),
        ({"Authorization": f"Bearer {TOKEN}"}, "/hooks/wake", 401),
        ({"Authorization": "Bearer wrong"}, "/hooks/agent", 401),
        ({"Authorization": "", "x-openclaw-token": HOOK}, "/hooks/wake", 200),
        ({}, f"/hooks/wake?token={HOOK}", 400),
        ({"Authorization": ""}, f"/hooks/wake?token={HOOK}", 400),
    ],
)
async def test_only_the_hooks_own_token_in_a_header_opens(
    house: House, open_gateway: Gateway, headers: dict[str, str], path: str, status: int
) -> None:
    house.model.script(OK)
    answered, body = await post(
        open_gateway, path, {"text": "hi", "message": "hi"} if "agent" in path else {"text": "hi"}, **headers
    )
    assert answered == status, body
    assert HOOK not in str(body)


@pytest.mark.spec("AUTO-6")
async def test_guesses_at_the_token_of_hooks_end_with_a_lockout_of_hooks_alone(
    house: House, open_gateway: Gateway
) -> None:
    house.model.decide = lambda _body: OK
    elsewhere, body = {"X-Forwarded-For": "203.0.113.7"}, {"text": "hi", "mode": "next-heartbeat"}

    async def tries(*tokens: str, **headers: str) -> list[int]:
        shown = [{"Authorization": f"Bearer {token}" if token else ""} | headers for token in tokens]
        return [(await post(open_gateway, "/hooks/wake", body, **one))[0] for one in shown]

    assert await tries(*[""] * 15, **elsewhere) == [401] * 15, "a missing token is no guess"
    guesses = [f"guess-{number}" for number in range(9)]
    assert await tries(*guesses, **elsewhere) == [401] * 9
    assert await tries(HOOK, **elsewhere) == [200]
    other_name = {"x-openclaw-token": "guess", "Authorization": ""} | elsewhere
    assert (await post(open_gateway, "/hooks/agent", {"message": "x"}, **other_name))[0] == 401
    status, told = await post(
        open_gateway, "/hooks/agent", {"message": "x"}, **elsewhere, Authorization=f"Bearer {HOOK}"
    )
    assert status == 429 and told["error"]["type"] == "rate_limited", "the right one comes too late"
    assert HOOK not in str(told)
    # An old token in somebody's program must not shut the owner out, nor a program on this machine.
    async with HttpClient(open_gateway) as http:
        assert (await http.get("/v1/models", headers=elsewhere)).status == 200
    assert await tries(*[f"old-{number}" for number in range(12)], HOOK) == [401] * 12 + [200]


@pytest.mark.spec("AUTO-6")
async def test_guesses_at_the_gateway_do_not_shut_hooks_out(open_gateway: Gateway) -> None:
    elsewhere = {"X-Forwarded-For": "203.0.113.7"}
    async with HttpClient(open_gateway, token="guess") as http:
        seen = [(await http.get("/v1/models", headers=elsewhere)).status for _ in range(11)]
    assert seen == [401] * 10 + [429]
    body = {"text": "hi", "mode": "next-heartbeat"}
    assert (await post(open_gateway, "/hooks/wake", body, **elsewhere))[0] == 200


@pytest.mark.spec("AUTO-6")
async def test_a_caller_names_its_session_only_where_that_is_allowed(house: House) -> None:
    house.model.decide = lambda _body: OK
    house.config["hooks"] = {"enabled": True, "token": HOOK, "defaultSessionKey": "hook:inbox"}
    async with house.gateway() as gateway:
        status, answer = await post(gateway, "/hooks/agent", {"message": "x"})
        assert (status, answer["sessionKey"]) == (202, "agent:main:hook:inbox")
        status, answer = await post(gateway, "/hooks/agent", {"message": "x", "sessionKey": "main"})
        assert status == 400 and "allowRequestSessionKey" in answer["error"]["message"]
    house.config["hooks"] |= {"allowRequestSessionKey": True, "allowedSessionKeyPrefixes": ["hook:"]}
    async with house.gateway() as gateway:
        for key, wanted in (
            ("hook:ci", 202),
            ("main", 400),
            ("agent:main:main", 400),
            ("agent:main:hook:a", 202),
        ):
            status, answer = await post(gateway, "/hooks/agent", {"message": "x", "sessionKey": key})
            assert status == wanted, (key, answer)
        status, answer = await post(gateway, "/hooks/agent", {"message": "x", "agentId": "nobody"})
        assert status == 400


@pytest.mark.spec("AUTO-6")
@pytest.mark.parametrize(
    ("body", "status"),
    [
        ({}, 400),
        ({"message": ""}, 400),
        ({"message": "x", "surprise": 1}, 400),
        ({"message": "x" * 300_000}, 413),
        ("message=x", 415),
        ({"message": "x", "model": "no-such/model/at-all"}, 400),
    ],
)
async def test_what_a_hook_may_not_bring(open_gateway: Gateway, body: Any, status: int) -> None:
    answered, answer = await post(open_gateway, "/hooks/agent", body)
    assert answered == status, answer


async def test_hooks_are_off_unless_asked_for(gateway: Gateway) -> None:
    status, answer = await post(gateway, "/hooks/wake", {"text": "hi"})
    assert status == 404 and "hooks.enabled" in answer["error"]["message"]
