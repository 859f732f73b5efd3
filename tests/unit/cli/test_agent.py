"""`openclaw agent`: a message, a reply, and an end that is told whatever it is."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from openclaw.cli import agent as agent_module
from openclaw.cli.client import Deadline, GatewayClient
from openclaw.errors import InvalidRequest
from openclaw.protocol.scopes import ADMIN, WRITE
from tests.unit.cli.conftest import Command
from tests.unit.cli.fake_gateway import FakeGateway, HangUp, Json, Twice, running

ACCEPTED: Json = {"status": "accepted", "sessionKey": "agent:main:main", "agentId": "main"}


def finished(*texts: str, status: str = "ok", summary: str = "completed") -> Json:
    payloads = [{"text": text, "mediaUrl": None} for text in texts]
    return {"runId": "r", "status": status, "summary": summary, "result": {"payloads": payloads, "meta": {}}}


@pytest.fixture
def gateway(point_at: Callable[[FakeGateway], Path]) -> Iterator[FakeGateway]:
    def answer(params: Json) -> Twice:
        return Twice(ACCEPTED | {"runId": params["idempotencyKey"]}, finished("Hello back."))

    with running(FakeGateway({"agent": answer})) as fake:
        point_at(fake)
        yield fake


@pytest.mark.spec("CLI-6")
def test_the_reply_is_all_that_stdout_holds(gateway: FakeGateway, command: Command) -> None:
    outcome = command("agent", "-m", "hello")
    assert (outcome.code, outcome.out, outcome.err) == (0, "Hello back.\n", "")
    (asked,) = gateway.called("agent")
    assert set(asked) == {"message", "idempotencyKey", "timeout"}
    assert (asked["message"], asked["timeout"]) == ("hello", 600)
    assert gateway.connects[0].scopes == (ADMIN, WRITE)


@pytest.mark.spec("CLI-6")
def test_options_become_parameters_and_each_message_has_its_own_key(
    gateway: FakeGateway, command: Command
) -> None:
    command("agent", "--message", "a", "--session-key", "k", "--thinking", "low", "--model", "p/m")
    command("agent", "-m", "b", "--session-id", "sid", "--timeout", "0")
    command("agent", "-m", "c", "--agent", "work", "--timeout", "5")
    command("agent", "-m", "d", "--to", "+1555", "--channel", "signal")
    a, b, c, d = gateway.called("agent")
    assert (a["sessionKey"], a["thinking"], a["model"]) == ("k", "low", "p/m")
    assert b["sessionId"] == "sid" and "timeout" not in b
    assert (c["agentId"], c["timeout"]) == ("work", 5)
    assert (d["to"], d["channel"]) == ("+1555", "signal")
    assert command("agent", "-m", "e", "--channel", "signal").code == 1
    assert len({asked["idempotencyKey"] for asked in (a, b, c, d)}) == 4


@pytest.mark.spec("CLI-6")
def test_json_is_the_final_answer_and_nothing_else(gateway: FakeGateway, command: Command) -> None:
    outcome = command("agent", "-m", "hello", "--json")
    assert (outcome.code, outcome.err) == (0, "")
    assert outcome.json() == finished("Hello back.")


@pytest.mark.spec("CLI-6")
@pytest.mark.parametrize(
    ("final", "out", "err"),
    [
        (finished("part", status="error", summary="boom\x1b"), "part\n", "the turn failed: boom�"),
        (finished(status="timeout", summary="timeout"), "", "the turn ran out of time: timeout"),
        ({"status": "error"}, "", "the turn failed: no reason given"),
    ],
)
def test_a_turn_that_fails_says_why_on_stderr_and_exits_with_1(
    gateway: FakeGateway, command: Command, final: Json, out: str, err: str
) -> None:
    gateway.answers["agent"] = lambda _params: Twice(ACCEPTED, final)
    outcome = command("agent", "-m", "x")
    assert (outcome.code, outcome.out) == (1, out)
    assert err in outcome.err
    as_json = command("agent", "-m", "x", "--json")
    assert (as_json.code, as_json.err) == (1, "") and as_json.json() == final


@pytest.mark.spec("CLI-6")
def test_replies_are_printed_safely_and_silence_is_mentioned(gateway: FakeGateway, command: Command) -> None:
    gateway.answers["agent"] = lambda _params: Twice(ACCEPTED, finished("one\n\x1b[2Jtwo", "three"))
    assert command("agent", "-m", "x").out == "one\n�[2Jtwo\nthree\n"
    gateway.answers["agent"] = lambda _params: Twice(ACCEPTED, finished())
    silent = command("agent", "-m", "x")
    assert (silent.code, silent.out) == (0, "") and "without a reply" in silent.err


@pytest.mark.spec("CLI-6")
def test_a_refusal_of_the_gateway_is_told(gateway: FakeGateway, command: Command) -> None:
    def refuse(_params: Json) -> object:
        raise InvalidRequest('unknown agent id "x"; configured: main')

    gateway.answers["agent"] = refuse
    outcome = command("agent", "-m", "x", "--agent", "x")
    assert (outcome.code, outcome.out) == (1, "") and "configured: main" in outcome.err
    assert command("agent", "-m", "x", "--json").json()["error"]["type"] == "request"


@pytest.mark.spec("CLI-6")
def test_two_addresses_are_refused_and_a_message_is_required(command: Command) -> None:
    both = command("agent", "-m", "x", "--session-key", "a", "--to", "b")
    assert both.code == 1 and "exclude one another" in both.err
    missing = command("agent")
    assert missing.code == 2 and "--message" in missing.err


@pytest.mark.spec("CLI-6")
def test_a_lost_connection_tells_how_to_ask_for_the_accepted_turn(
    gateway: FakeGateway, command: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(agent_module, "GRACE_S", -0.8)
    gateway.answers["agent"] = lambda _params: Twice(ACCEPTED | {"runId": "r-1"}, None)
    late = command("agent", "-m", "x", "--timeout", "1")
    assert late.code == 1
    assert """openclaw gateway call agent.wait --params '{"runId":"r-1"}'""" in late.err
    gateway.answers["agent"] = lambda _params: HangUp()
    closed = command("agent", "-m", "x")
    assert closed.code == 1 and "agent.wait" not in closed.err and "1012" in closed.err


def interrupt_after_acceptance(monkeypatch: pytest.MonkeyPatch) -> None:
    original = agent_module._Turn._on_accepted

    def interrupt(turn: agent_module._Turn, accepted: Json) -> None:
        original(turn, accepted)
        raise KeyboardInterrupt

    monkeypatch.setattr(agent_module._Turn, "_on_accepted", interrupt)


@pytest.mark.spec("CLI-6")
@pytest.mark.parametrize(("aborted", "words"), [(True, "Stopped the turn."), (False, "had ended already")])
def test_ctrl_c_stops_the_turn_and_exits_with_130(
    gateway: FakeGateway, command: Command, monkeypatch: pytest.MonkeyPatch, aborted: bool, words: str
) -> None:
    interrupt_after_acceptance(monkeypatch)
    gateway.answers["chat.abort"] = lambda _params: {"ok": True, "aborted": aborted, "runIds": []}
    outcome = command("agent", "-m", "x")
    assert (outcome.code, outcome.out) == (130, "")
    assert words in outcome.err and "Traceback" not in outcome.err
    run_id = gateway.called("agent")[0]["idempotencyKey"]
    assert gateway.called("chat.abort") == [{"sessionKey": "agent:main:main", "runId": run_id}]


@pytest.mark.spec("CLI-6")
def test_ctrl_c_tells_when_the_turn_could_not_be_stopped(
    gateway: FakeGateway, command: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    interrupt_after_acceptance(monkeypatch)
    gateway.answers["chat.abort"] = lambda _params: HangUp()
    outcome = command("agent", "-m", "x")
    assert outcome.code == 130 and "could not be stopped" in outcome.err


@pytest.mark.spec("CLI-6")
def test_ctrl_c_before_the_word_of_acceptance_waits_for_it_and_stops_the_turn(
    gateway: FakeGateway, command: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    original = GatewayClient.answer
    interruptions = iter([KeyboardInterrupt()])

    def interrupted_once(client: GatewayClient, request_id: str, method: str, deadline: Deadline) -> Any:
        for interruption in interruptions:
            raise interruption
        return original(client, request_id, method, deadline)

    monkeypatch.setattr(GatewayClient, "answer", interrupted_once)
    gateway.answers["chat.abort"] = lambda _params: {"ok": True, "aborted": True, "runIds": []}
    outcome = command("agent", "-m", "x")
    assert outcome.code == 130 and "Stopped the turn." in outcome.err
    run_id = gateway.called("agent")[0]["idempotencyKey"]
    assert gateway.called("chat.abort") == [{"sessionKey": "agent:main:main", "runId": run_id}]


@pytest.mark.spec("CLI-6")
def test_ctrl_c_while_the_message_is_being_sent_stops_its_turn(
    gateway: FakeGateway, command: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    original = GatewayClient.post

    def interrupted(client: GatewayClient, method: str, params: Json | None) -> str:
        request_id = original(client, method, params)
        if method == "agent":
            os.kill(os.getpid(), signal.SIGINT)  # the message is out, and its id not yet known
        return request_id

    monkeypatch.setattr(GatewayClient, "post", interrupted)
    gateway.answers["chat.abort"] = lambda _params: {"ok": True, "aborted": True, "runIds": []}
    outcome = command("agent", "-m", "x")
    assert outcome.code == 130 and "Stopped the turn." in outcome.err
    run_id = gateway.called("agent")[0]["idempotencyKey"]
    assert gateway.called("chat.abort") == [{"sessionKey": "agent:main:main", "runId": run_id}]
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


@pytest.mark.spec("CLI-6")
def test_ctrl_c_before_anything_was_sent_stops_nothing(
    gateway: FakeGateway, command: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    original = GatewayClient.post

    def interrupt(client: GatewayClient, method: str, params: Json | None) -> str:
        if method == "agent":
            raise KeyboardInterrupt
        return original(client, method, params)

    monkeypatch.setattr(GatewayClient, "post", interrupt)
    outcome = command("agent", "-m", "x")
    assert outcome.code == 130 and "before the message was sent" in outcome.err
    assert gateway.calls == []


def _answer_with(final: Json, _params: Json) -> Twice:
    return Twice(ACCEPTED, final)


@pytest.mark.spec("CLI-6")
def test_a_delivery_is_asked_for_and_its_fate_is_told(gateway: FakeGateway, command: Command) -> None:
    words = {
        "queued": "waits in the outbox",
        "suppressed": "was not sent to a channel: no route",
        "failed": "could not be sent: no route",
        "partial_failed": "Parts of the reply could not be sent: no route",
        "novel": "Delivery: novel: no route",
    }
    for status, word in words.items():
        final = finished("Sent.")
        final["result"]["deliveryStatus"] = {"requested": True, "status": status, "reason": "no route"}
        gateway.answers["agent"] = partial(_answer_with, final)
        outcome = command(
            "agent", "-m", "x", "--deliver", "--reply-channel", "telegram", "--reply-to", "4711",
            "--reply-account", "bot",
        )  # fmt: skip
        assert (outcome.code, outcome.out) == (0, "Sent.\n") and word in outcome.err
    for asked in gateway.called("agent"):
        assert (asked["deliver"], asked["replyChannel"], asked["replyTo"]) == (True, "telegram", "4711")
        assert asked["replyAccountId"] == "bot"
    sent = finished("Sent.")
    sent["result"]["deliveryStatus"] = {"requested": True, "status": "sent"}
    gateway.answers["agent"] = lambda _params: Twice(ACCEPTED, sent)
    assert command("agent", "-m", "x", "--deliver").err == ""
    assert set(gateway.called("agent")[-1]) == {"message", "idempotencyKey", "timeout", "deliver"}


@pytest.mark.spec("CLI-6")
def test_a_verbose_level_is_set_on_the_session_first(gateway: FakeGateway, command: Command) -> None:
    gateway.answers["sessions.patch"] = lambda params: {"ok": True, "key": params["key"], "entry": {}}
    gateway.answers["sessions.resolve"] = lambda _params: {"ok": True, "key": "agent:main:found"}
    for address in ((), ("--agent", "work"), ("--session-key", "k"), ("--session-id", "sid")):
        assert command("agent", "-m", "x", "--verbose", "on", *address).code == 0
    assert gateway.called("sessions.patch") == [
        {"key": "main", "verboseLevel": "on"},
        {"key": "main", "verboseLevel": "on", "agentId": "work"},
        {"key": "k", "verboseLevel": "on"},
        {"key": "agent:main:found", "verboseLevel": "on"},
    ]
    order = [name for name, _ in gateway.calls if name != "sessions.resolve"]
    assert order == ["sessions.patch", "agent"] * 4


@pytest.mark.spec("CLI-6")
def test_a_gateway_that_refuses_is_not_replaced_by_one_in_this_process(
    gateway: FakeGateway, command: Command
) -> None:
    outcome = command("agent", "-m", "x", "--token", "not-it", "--json")
    assert outcome.code == 1 and outcome.json()["error"]["type"] == "auth"
    assert gateway.called("agent") == []
