"""`openclaw gateway call`: one method as it is, with the least rights, and failures for scripts."""

from __future__ import annotations

import io
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from openclaw.cli.gateway_call import scope_of
from openclaw.errors import InvalidRequest, Overloaded
from openclaw.protocol.scopes import ADMIN, READ, WRITE
from tests.unit.cli.conftest import Command
from tests.unit.cli.fake_gateway import (
    NOW_MS,
    TOKEN,
    FakeGateway,
    Json,
    Silence,
    Twice,
    listing_of,
    running,
    session,
)


@pytest.fixture
def gateway() -> Iterator[FakeGateway]:
    with running(FakeGateway({"sessions.list": listing_of([session("agent:main:main")])})) as fake:
        yield fake


@pytest.mark.spec("CLI-4")
def test_it_prints_what_the_running_gateway_answers(
    gateway: FakeGateway, point_at: Callable[[FakeGateway], Path], command: Command
) -> None:
    point_at(gateway)
    outcome = command("gateway", "call", "sessions.list", "--params", "{}")
    assert outcome.code == 0
    answer = outcome.json()
    assert (answer["ts"], answer["totalCount"]) == (NOW_MS, 1)
    assert answer["sessions"][0]["key"] == "agent:main:main"
    assert gateway.called("sessions.list") == [{}]
    assert gateway.connects[0].scopes == (READ,)


@pytest.mark.spec("CLI-4", "CLI-5")
def test_a_remote_gateway_gets_only_what_the_flags_give(
    gateway: FakeGateway, write_config: Callable[[str], Path], command: Command
) -> None:
    write_config(f'{{ gateway: {{ auth: {{ token: "{TOKEN}" }} }} }}')
    call = ("gateway", "call", "sessions.list", "--url", gateway.url)
    refused = command(*call)
    assert refused.code == 1 and refused.out == ""
    assert "--token" in refused.err and TOKEN not in refused.err
    assert gateway.connects[0].auth is None
    assert gateway.calls == []
    accepted = command(*call, "--token", TOKEN)
    assert accepted.code == 0 and accepted.json()["count"] == 1
    by_password = command(*call, "--password", TOKEN)
    assert by_password.code == 0
    auth = gateway.connects[2].auth
    assert auth is not None and (auth.token, auth.password) == (None, TOKEN)


@pytest.mark.spec("CLI-5")
def test_with_json_the_answer_stands_on_one_line(
    gateway: FakeGateway, point_at: Callable[[FakeGateway], Path], command: Command
) -> None:
    point_at(gateway)
    outcome = command("gateway", "call", "sessions.list", "--json")
    assert outcome.out.count("\n") == 1 and outcome.err == ""
    assert outcome.json()["path"] == "/state/openclaw.sqlite"


@pytest.mark.spec("CLI-5")
def test_a_failure_with_json_is_an_object_with_four_fields_and_exit_1(
    gateway: FakeGateway, point_at: Callable[[FakeGateway], Path], command: Command
) -> None:
    point_at(gateway)

    def refuse(params: Json) -> object:
        raise Overloaded() if params else InvalidRequest("no such thing")

    gateway.answers["sessions.list"] = refuse
    gateway.answers["health"] = lambda _params: Silence()

    def failure(*arguments: str) -> Json:
        outcome = command("gateway", "call", *arguments, "--json")
        assert outcome.code == 1 and outcome.err == ""
        body = outcome.json()
        assert body["ok"] is False and list(body) == ["ok", "error"]
        error: Json = body["error"]
        assert list(error) == ["type", "code", "message", "retryable"]
        return error

    invalid = failure("sessions.list")
    assert invalid == {
        "type": "request",
        "code": "INVALID_REQUEST",
        "message": "no such thing",
        "retryable": False,
    }
    busy = failure("sessions.list", "--params", '{"limit": 1}')
    assert (busy["type"], busy["code"], busy["retryable"]) == ("request", "UNAVAILABLE", True)
    late = failure("health", "--timeout", "50")
    assert (late["type"], late["code"], late["retryable"]) == ("timeout", "TIMEOUT", True)
    wrong = failure("health", "--token", "wrong")
    assert (wrong["type"], wrong["code"], wrong["retryable"]) == ("auth", "AUTH_TOKEN_MISMATCH", False)
    nobody = failure("health", "--url", "ws://127.0.0.1:1")
    assert (nobody["type"], nobody["code"], nobody["retryable"]) == ("unreachable", "UNAVAILABLE", True)
    typo = failure("health", "--params", "{oops")
    assert (typo["type"], typo["code"]) == ("usage", "INVALID_REQUEST")


@pytest.mark.spec("CLI-5")
def test_without_json_a_failure_is_one_line_on_stderr(
    gateway: FakeGateway, point_at: Callable[[FakeGateway], Path], command: Command
) -> None:
    point_at(gateway)
    outcome = command("gateway", "call", "no.such\x1b[2Jmethod")
    assert (outcome.code, outcome.out) == (1, "")
    assert outcome.err == "openclaw: unknown method: no.such�[2Jmethod\n"


@pytest.mark.spec("CLI-5")
def test_expect_final_waits_for_the_second_answer(
    gateway: FakeGateway, point_at: Callable[[FakeGateway], Path], command: Command
) -> None:
    point_at(gateway)
    accepted, final = {"runId": "r", "status": "accepted"}, {"runId": "r", "status": "ok"}
    gateway.answers["agent"] = lambda _params: Twice(accepted, final)
    call = ("gateway", "call", "agent", "--params", '{"message":"hi","idempotencyKey":"r"}', "--json")
    assert command(*call).json() == accepted
    assert command(*call, "--expect-final").json() == final
    assert gateway.connects[0].scopes == (WRITE,)


@pytest.mark.spec("CLI-5")
def test_parameters_may_come_from_stdin(
    gateway: FakeGateway,
    point_at: Callable[[FakeGateway], Path],
    command: Command,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    point_at(gateway)
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(b'{"limit": 7}')))
    assert command("gateway", "call", "sessions.list", "--params", "-").json()["limitApplied"] == 7


@pytest.mark.spec("CLI-4")
@pytest.mark.parametrize("params", ["", "{", "[]", "null", '"x"', "{'limit': 1}", "\udc80", "\ud800"])
def test_parameters_that_are_no_json_object_are_refused_before_anything_is_asked(
    params: str, command: Command
) -> None:
    outcome = command("gateway", "call", "sessions.list", "--params", params)
    assert (outcome.code, outcome.out) == (1, "")
    assert "--params" in outcome.err and '{"limit": 5}' in outcome.err


@pytest.mark.spec("CLI-4")
@pytest.mark.parametrize(
    ("method", "params", "scope"),
    [
        ("health", {}, READ),
        ("chat.send", {}, WRITE),
        ("sessions.patch", {"key": "main", "label": "x"}, WRITE),
        ("sessions.patch", {"key": "main", "sendPolicy": "deny"}, ADMIN),
        ("sessions.patch", {"key": "main", "no-such-field": 1}, WRITE),
        ("chat.inject", {}, ADMIN),
        ("config.apply", {}, ADMIN),
    ],
)
def test_exactly_the_scope_of_the_call_is_asked_for(method: str, params: Json, scope: str) -> None:
    assert scope_of(method, params) == scope


@pytest.mark.spec("CFG-3")
def test_an_invalid_config_stops_a_command_that_does_not_diagnose(
    write_config: Callable[[str], Path], command: Command
) -> None:
    path = write_config("{ gateway: { prot: 1, bind: 3 } }")
    outcome = command("gateway", "call", "health")
    assert (outcome.code, outcome.out) == (1, "")
    assert f"{path}:1 — gateway.prot:" in outcome.err and f"{path}:1 — gateway.bind:" in outcome.err
    body = command("gateway", "call", "health", "--json").json()
    assert (body["error"]["type"], body["error"]["code"]) == ("config", "CONFIG_INVALID")
