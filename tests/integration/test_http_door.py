"""The HTTP door of a real gateway: who comes in, what a request must look like, what is always said."""

from __future__ import annotations

import asyncio
import io
import json

import pytest

from openclaw.app import Gateway
from openclaw.gateway.http.guards import MAX_BODY_BYTES
from openclaw.gateway.http.routes import ROUTES, Closed
from tests.fakes.openai_server import FakeReply
from tests.integration.conftest import House
from tests.integration.http_client import ADMIN, OPENED, HttpClient, said

CLOSED = [(row.method, row.path) for row in ROUTES if isinstance(row, Closed)]


def filled(path: str) -> str:
    return path.replace("{key}", "main").replace("{name:.+}", "openclaw")


async def test_every_closed_address_refuses_strangers(house: House) -> None:
    """All of the table, so that a new row cannot be forgotten."""
    house.config["gateway"]["http"] = {"endpoints": OPENED}
    async with house.gateway() as gateway:
        assert len(CLOSED) >= 9
        for headers in ({}, {"Authorization": "Bearer wrong"}, {"Authorization": "Basic eDp5"}):
            async with HttpClient(gateway, token=None) as http:
                for method, path in CLOSED:
                    answer = await http.ask(method, filled(path), headers=headers)
                    assert answer.status == 401, (method, path, headers)
                    assert answer.json == {"error": {"message": "Unauthorized", "type": "unauthorized"}}
                    assert answer.headers["WWW-Authenticate"] == "Bearer"


async def test_the_health_of_the_gateway_is_open_and_says_little(gateway: Gateway) -> None:
    async with HttpClient(gateway, token=None) as http:
        for path in ("/healthz", "/health"):
            assert (await http.get(path)).json == {"ok": True, "status": "live"}
        for path in ("/readyz", "/ready"):
            answer = await http.get(path)
            assert answer.status == 200
            assert sorted(answer.json) == ["failing", "ready", "uptimeMs"]
        for path in ("/healthz", "/"):
            answer = await http.ask("HEAD", path)
            assert (answer.status, answer.body) == (200, b"")
        gateway._server.say_goodbye()
        answer = await http.get("/readyz")
        assert (answer.status, answer.json["ready"], answer.json["failing"]) == (503, False, ["stopping"])


async def test_metrics_are_for_prometheus_and_not_for_strangers(gateway: Gateway) -> None:
    async with HttpClient(gateway) as http:
        answer = await http.get("/metrics")
    assert answer.status == 200
    assert answer.headers["Content-Type"].startswith("text/plain; version=")
    assert "\n# TYPE openclaw_turns_total counter\n" in answer.text


async def test_every_answer_carries_the_headers_that_browsers_obey(gateway: Gateway) -> None:
    async with HttpClient(gateway) as http:
        for asked in ("GET /", "GET /healthz", "GET /v1/models", "GET /assets/no", "POST /nowhere",
                      "OPTIONS /v1/models", "GET /signin/none"):  # fmt: skip
            method, path = asked.split()
            answer = await http.ask(method, path)
            assert answer.headers["X-Frame-Options"] == "DENY", path
            policy = answer.headers["Content-Security-Policy"]
            assert "frame-ancestors 'none'" in policy
            assert "unsafe" not in policy
            assert answer.headers["X-Content-Type-Options"] == "nosniff"
            assert answer.headers["Referrer-Policy"] == "no-referrer"
            assert answer.headers["Cross-Origin-Resource-Policy"] == "same-origin"
            assert not [name for name in answer.headers if name.lower().startswith("access-control")]
            assert "Server" not in answer.headers


@pytest.mark.spec("RPC-3")
async def test_scopes_are_asked_for_and_admin_is_not_given_by_itself(gateway: Gateway) -> None:
    async with HttpClient(gateway) as http:
        plain = await http.post("/sessions/main/kill")
        assert plain.status == 403
        details = {
            "code": "MISSING_SCOPE",
            "missingScope": "operator.admin",
            "requiredScopes": ["operator.admin"],
        }
        assert plain.json["error"]["details"] == details
        assert (await http.post("/sessions/main/kill", headers=ADMIN)).status == 404
        reader = {"x-openclaw-scopes": "operator.read"}
        assert (await http.get("/v1/models", headers=reader)).status == 200
        refused = await http.post("/tools/invoke", {"tool": "session_status"}, headers=reader)
        assert refused.json["error"]["details"]["missingScope"] == "operator.write"
        nothing = await http.get("/v1/models", headers={"x-openclaw-scopes": "made.up, operator.talk"})
        assert nothing.json["error"]["details"]["missingScope"] == "operator.read"


async def test_without_a_secret_only_this_machine_is_served(house: House) -> None:
    house.config["gateway"] = {"auth": {"mode": "none"}, "http": {"endpoints": OPENED}}
    house.model.script(FakeReply(texts=("hi",)))
    async with house.gateway() as gateway, HttpClient(gateway, token=None) as http:
        assert (await http.get("/v1/models")).status == 200
        assert (await http.get("/v1/models", headers={"Authorization": "Bearer any"})).status == 200
        answer = await http.post("/v1/chat/completions", said("hi"))
        assert answer.json["choices"][0]["message"]["content"] == "hi"
        for header in ("X-Forwarded-For", "Forwarded", "X-Real-IP"):
            assert (await http.get("/v1/models", headers={header: "203.0.113.7"})).status == 401


async def test_a_password_is_a_bearer_too(house: House) -> None:
    house.config["gateway"] = {"auth": {"mode": "password", "password": "correct horse"}}
    async with house.gateway() as gateway:
        async with HttpClient(gateway, token="correct horse") as http:
            assert (await http.get("/v1/models")).status == 200
        async with HttpClient(gateway, token="correct hors") as http:
            assert (await http.get("/v1/models")).status == 401


async def test_guessing_ends_with_a_lockout_that_missing_secrets_do_not_bring(gateway: Gateway) -> None:
    page = {"Sec-Fetch-Site": "same-origin", "Origin": f"http://127.0.0.1:{gateway.port}"}
    async with HttpClient(gateway, token=None) as http:
        for _ in range(30):
            assert (await http.get("/v1/models", headers=page)).status == 401
        seen = []
        for number in range(12):
            guess = {"Authorization": f"Bearer guess-{number}", **page}
            seen.append((await http.get("/v1/models", headers=guess)).status)
        assert seen == [401] * 10 + [429] * 2
        locked = await http.get("/v1/models", headers={"Authorization": "Bearer guess", **page})
        assert int(locked.headers["Retry-After"]) > 0
        assert locked.json["error"]["type"] == "rate_limited"
    # A program of the owner's is not shut out by a page.
    async with HttpClient(gateway) as http:
        assert (await http.get("/v1/models")).status == 200


@pytest.mark.parametrize(
    ("kind", "body", "status", "said_"),
    [
        ("text/plain", b"{}", 415, "application/json"),
        ("application/x-www-form-urlencoded", b"a=b", 415, "application/json"),
        ("application/json", b"", 415, ""),
        ("application/json", b"{", 400, "must be JSON"),
        ("application/json", b"[]", 400, "invalid body"),
        ("application/json", b'{"tool":7}', 400, "tool"),
        ("application/json", b'{"tool":"x","extra":1}', 400, "extra"),
        ("application/json", b'{"tool":"\xff"}', 400, "UTF-8"),
        ("application/json", b'{"tool":"a\\u0000"}', 400, "NUL"),
        ("application/json", b'{"tool":"x","args":' + b'{"a":' * 80 + b"1" + b"}" * 81, 400, "deep"),
        ("application/json", b"{}", 400, "name the tool"),
    ],
)
async def test_bodies_are_judged(gateway: Gateway, kind: str, body: bytes, status: int, said_: str) -> None:
    async with HttpClient(gateway) as http:
        answer = await http.ask("POST", "/tools/invoke", data=body, headers={"Content-Type": kind})
    expected = 400 if body == b"" else status
    assert answer.status == expected
    assert said_ in answer.json["error"]["message"]


async def test_bodies_are_bounded_without_a_length_and_without_compression(gateway: Gateway) -> None:
    sent = 0

    async def endless() -> object:
        nonlocal sent
        while sent <= MAX_BODY_BYTES:
            sent += 1 << 20
            yield b" " * (1 << 20)

    async with HttpClient(gateway) as http:
        try:
            answer = await http.ask(
                "POST", "/tools/invoke", data=endless(), headers={"Content-Type": "application/json"}
            )
            assert answer.status == 413
        except OSError:
            pass  # the gateway hung up before everything was sent
        assert sent <= 24 << 20
        plain = {"Content-Type": "application/json"}
        large = io.BytesIO(b'{"tool":"x","args":{"a":"' + b"y" * (2 << 20) + b'"}}')
        answer = await http.ask("POST", "/tools/invoke", data=large, headers=plain)
        assert (answer.status, answer.json["error"]["type"]) == (413, "payload_too_large")
        packed = {"Content-Type": "application/json", "Content-Encoding": "gzip"}
        answer = await http.ask("POST", "/tools/invoke", data=b"x", headers=packed)
        assert answer.status in (400, 415)
        assert (await http.get("/healthz")).status == 200


async def test_unknown_addresses_and_methods(gateway: Gateway) -> None:
    async with HttpClient(gateway) as http:
        for path in ("/v1/none", "/plugins/x", "/tools/none", "/sessions/main", "/hooks/none", "/api/none"):
            answer = await http.get(path)
            assert answer.status == 404, path
            assert answer.headers["Content-Type"] == "application/json"
        for method, path in (
            ("POST", "/healthz"),
            ("PUT", "/v1/models"),
            ("DELETE", "/"),
            ("POST", "/signin/x"),
        ):
            assert (await http.ask(method, path)).status == 405, (method, path)


async def test_the_page_and_its_files(gateway: Gateway) -> None:
    async with HttpClient(gateway, token=None) as http:
        page = await http.get("/")
        assert page.headers["Content-Type"] == "text/html; charset=utf-8"
        assert "openclaw dashboard" in page.text
        assert "<script>" not in page.text
        assert " style=" not in page.text
        for path in ("/chat/main", "/nope"):
            assert (await http.get(path)).body == page.body
        for path, accept in (("/nope.js", "*/*"), ("/assets/none.css", "*/*"), ("/nope", "application/json")):
            assert (await http.get(path, headers={"Accept": accept})).status == 404, path
        sheet = await http.get("/assets/page.css")
        assert sheet.headers["Content-Type"] == "text/css; charset=utf-8"
        again = await http.get(
            "/assets/page.css", headers={"If-None-Match": f'"x", W/{sheet.headers["ETag"]}'}
        )
        assert (again.status, again.body) == (304, b"")


@pytest.mark.parametrize(
    "path",
    ["/../../../../etc/passwd", "/assets/../../__init__.py", "/%2e%2e/%2e%2e/__init__.py", "//etc/passwd",
     "/..%2f__init__.py", "/assets/%2e%2e/%2e%2e/__init__.py", "/__init__.py", "/static/index.html",
     "/assets/..\\..\\__init__.py", "/assets/\x00", "/assets/page.css/../page.css"],
)  # fmt: skip
async def test_no_path_leaves_the_folder(gateway: Gateway, path: str) -> None:
    """Written onto the wire as they are: a client would tidy them up."""
    reader, writer = await asyncio.open_connection("127.0.0.1", gateway.port)
    writer.write(f"GET {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n".encode())
    answer = await asyncio.wait_for(reader.read(), 60)
    writer.close()
    head, _, body = answer.partition(b"\r\n\r\n")
    assert b"root:" not in body
    assert b"def " not in body
    is_page = head.startswith(b"HTTP/1.1 200") and b"<title>OpenClaw gateway</title>" in body
    assert is_page or head.split()[1] in (b"404", b"400"), head


async def test_the_page_can_be_turned_off(house: House) -> None:
    house.config["gateway"]["controlUi"] = {"enabled": False}
    async with house.gateway() as gateway, HttpClient(gateway, token=None) as http:
        assert "gateway.controlUi.enabled" in (await http.get("/")).text
        assert (await http.get("/assets/page.css")).status == 404
        assert (await http.get("/healthz")).status == 200


async def test_the_configuration_of_the_page(gateway: Gateway) -> None:
    async with HttpClient(gateway) as http:
        shown = (await http.get("/control-ui-config.json")).json
    assert sorted(shown) == [
        "assistantAgentId", "assistantAvatar", "assistantName", "basePath", "serverVersion",
    ]  # fmt: skip
    assert shown["assistantAgentId"] == "main"


async def test_many_waiting_requests_are_bounded(house: House, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("openclaw.gateway.http.follow.MOST_FOLLOWERS", 2)
    house.config["gateway"]["http"] = {"endpoints": OPENED}
    house.model.decide = lambda _body: FakeReply(texts=("a", "b"), hang_after=2)
    async with house.gateway() as gateway, HttpClient(gateway) as http:
        waiting = [asyncio.create_task(http.post("/v1/chat/completions", said("hi"))) for _ in range(2)]
        await house.model.wait_for_requests(2, 60)
        refused = await http.post("/v1/chat/completions", said("hi"))
        assert (refused.status, refused.json["error"]["type"]) == (429, "rate_limited")
        house.model.release()
        assert [answer.status for answer in await asyncio.gather(*waiting)] == [200, 200]
        house.model.decide = lambda _body: FakeReply(texts=("c",))
        after = await http.post("/v1/chat/completions", said("hi"))
        assert json.loads(after.body)["choices"][0]["message"]["content"] == "c"
