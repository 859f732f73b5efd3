"""Questions about the headers of a request, without a server."""

from __future__ import annotations

import pytest
from aiohttp import web
from aiohttp.test_utils import make_mocked_request

from openclaw.errors import (
    Forbidden,
    InvalidRequest,
    OpenClawError,
    Overloaded,
    SessionNotFound,
    StoreFull,
    Unavailable,
)
from openclaw.gateway.http import guards
from openclaw.gateway.http.answers import Refusal, refusal_body, refusal_of
from openclaw.gateway.http.credentials import bearer
from openclaw.gateway.http.site import HttpSettings
from openclaw.gateway.http.tools import closed_because


def request(method: str = "GET", **headers: str) -> web.Request:
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    return make_mocked_request(method, "/x", headers={"Host": "localhost:18789", **named})


@pytest.mark.parametrize(
    ("host", "name"),
    [
        ("localhost", "localhost"),
        ("LocalHost:18789", "localhost"),
        (" 127.0.0.1:1 ", "127.0.0.1"),
        ("[::1]:18789", "::1"),
        ("[::1]", "::1"),
        ("::1", "::1"),
        ("localhost.", "localhost."),
        ("a:b:c", "a:b:c"),
        ("", ""),
    ],
)
def test_the_name_of_a_host(host: str, name: str) -> None:
    assert guards.host_name(host) == name


@pytest.mark.parametrize(
    ("headers", "own"),
    [
        ({"Origin": "http://localhost:18789"}, True),
        ({"Origin": "HTTP://LOCALHOST:18789"}, True),
        ({"Origin": "http://localhost:18790"}, False),
        ({"Origin": "http://localhost"}, False),
        ({"Origin": "https://localhost:18789"}, False),
        ({"Origin": "http://127.0.0.1:18789"}, False),
        ({"Origin": "null"}, False),
        ({"Origin": ""}, False),
        ({"Origin": "http://localhost:18789", "Sec_Fetch_Site": "cross-site"}, True),
        ({"Origin": "https://evil.example", "Sec_Fetch_Site": "same-origin"}, False),
        ({"Sec_Fetch_Site": "same-origin"}, True),
        ({"Sec_Fetch_Site": "same-site"}, False),
        ({"Sec_Fetch_Site": "none"}, False),
        ({}, False),
        ({"Host": "gw.example", "Origin": "http://gw.example"}, True),
        ({"Host": "gw.example", "Origin": "https://gw.example"}, False),
        ({"Host": "gw.example", "Origin": "https://gw.example", "X_Forwarded_Proto": "https"}, True),
        ({"Host": "gw.example", "Origin": "http://gw.example", "X_Forwarded_Proto": "https"}, False),
        ({"Host": "x:y", "Origin": "null"}, False),
    ],
)
def test_our_own_origin_is_exact(headers: dict[str, str], own: bool) -> None:
    assert guards.has_own_origin(request(**headers)) is own


@pytest.mark.parametrize(
    ("value", "secret"),
    [
        ("Bearer abc", "abc"),
        ("bearer  abc ", "abc"),
        ("Bearer", None),
        ("Bearer ", None),
        ("Basic abc", None),
        ("abc", None),
        ("", None),
    ],
)
def test_the_bearer(value: str, secret: str | None) -> None:
    assert bearer(request(Authorization=value)) == secret


def test_only_json_is_a_body() -> None:
    for kind in ("application/json", "application/json; charset=utf-8", "Application/JSON"):
        guards.check_json_type(request("POST", Content_Type=kind))
    for kind in ("text/plain", "application/jsonx", "text/json", "application/x-www-form-urlencoded", ""):
        with pytest.raises(Refusal) as refused:
            guards.check_json_type(request("POST", Content_Type=kind))
        assert refused.value.status == 415
    with pytest.raises(Refusal, match="Content-Encoding"):
        guards.check_json_type(request("POST", Content_Type="application/json", Content_Encoding="br"))


@pytest.mark.parametrize(
    ("error", "status", "kind"),
    [
        (InvalidRequest("x"), 400, "invalid_request_error"),
        (SessionNotFound("x"), 404, "not_found"),
        (Forbidden("x"), 403, "forbidden"),
        (Overloaded("x"), 429, "rate_limited"),
        (Unavailable("x"), 503, "unavailable"),
        (StoreFull("/secret/path"), 503, "unavailable"),
    ],
)
def test_every_error_has_a_status(error: OpenClawError, status: int, kind: str) -> None:
    refusal = refusal_of(error)
    assert (refusal.status, refusal.kind) == (status, kind)
    assert "/secret" not in refusal.message


def test_two_dialects() -> None:
    refusal = Refusal(404, "not_found", "gone", code="c", details={"a": 1})
    house = {"ok": False, "error": {"message": "gone", "type": "not_found", "details": {"a": 1}}}
    assert refusal_body(refusal, "house") == house
    spoken = refusal_body(refusal, "openai")["error"]
    assert (spoken["code"], spoken["param"], spoken["type"]) == ("c", None, "not_found")


@pytest.mark.parametrize(
    ("tool", "settings", "why"),
    [
        ("read", HttpSettings(), None),
        ("sessions_spawn", HttpSettings(), "gateway.tools.allow"),
        ("sessions_spawn", HttpSettings(tools_allow=("sessions_spawn",)), None),
        ("sessions_spawn", HttpSettings(tools_allow=("group:sessions",)), None),
        ("sessions_send", HttpSettings(tools_allow=("sessions_spawn",)), "gateway.tools.allow"),
        ("cron", HttpSettings(), "gateway.tools.allow"),
        ("gateway", HttpSettings(), "gateway.tools.allow"),
        ("exec", HttpSettings(tools_allow=("*",)), "for owners"),
        ("sessions_yield", HttpSettings(tools_allow=("*",)), "ends a turn"),
        ("sessions_list", HttpSettings(tools_allow=("*",), tools_deny=("sessions_*",)), "gateway.tools.deny"),
        ("read", HttpSettings(tools_deny=("read",)), "gateway.tools.deny"),
    ],
)
def test_which_tools_are_closed(tool: str, settings: HttpSettings, why: str | None) -> None:
    reason = closed_because(settings, tool)
    assert (reason is None) is (why is None)
    assert why is None or why in (reason or "")
