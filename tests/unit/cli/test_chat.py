"""`openclaw chat` with a gateway that hangs up, refuses or stays away."""

from __future__ import annotations

import io
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from openclaw.cli import chat_link
from openclaw.errors import InvalidRequest
from openclaw.protocol.scopes import ADMIN, WRITE
from tests.unit.cli import fake_gateway
from tests.unit.cli.conftest import Command
from tests.unit.cli.fake_gateway import FakeGateway, HangUp, Json, running, session

KEY = "agent:main:main"


class Talk:
    """What a gateway remembers of one conversation; each call of a method takes the next answer."""

    def __init__(self) -> None:
        self.messages: list[Json] = []
        self.sends: list[Any] = []
        self.waited: Json = {"status": "ok"}

    def say(self, role: str, text: str, run_id: str) -> None:
        seq = len(self.messages) + 1
        marks: Json = {"id": f"e{seq}", "seq": seq}
        marks |= {"idempotencyKey": f"{run_id}:user"} if role == "user" else {"runId": run_id}
        content = text if role == "user" else [{"type": "text", "text": text}]
        self.messages.append({"role": role, "content": content, "__openclaw": marks})

    def history(self, _params: Json) -> Json:
        return {"sessionKey": KEY, "sessionId": "s", "messages": list(self.messages), "hasMore": False}

    def send(self, params: Json) -> object:
        answer = self.sends.pop(0)
        return answer(params) if callable(answer) else answer


@pytest.fixture
def talk() -> Talk:
    return Talk()


@pytest.fixture
def gateway(
    talk: Talk, point_at: Callable[[FakeGateway], Path], monkeypatch: pytest.MonkeyPatch
) -> Iterator[FakeGateway]:
    answers = {
        "sessions.resolve": lambda _params: {"ok": True, "key": KEY},
        "sessions.describe": lambda _params: {"session": session(KEY)},
        "sessions.messages.subscribe": lambda params: {"subscribed": True, "key": params["key"]},
        "chat.history": talk.history,
        "chat.send": talk.send,
        "agent.wait": lambda params: talk.waited | {"runId": params["runId"]},
    }
    monkeypatch.setattr(chat_link, "PAUSES_S", (0.01,))
    with running(FakeGateway(answers)) as fake:
        point_at(fake)
        yield fake


@pytest.fixture
def typed(monkeypatch: pytest.MonkeyPatch) -> Callable[[str], None]:
    return lambda text: monkeypatch.setattr(sys, "stdin", io.StringIO(text))


@pytest.mark.spec("RPC-12", "CLI-13")
def test_a_message_whose_acknowledgement_was_lost_is_sent_again_under_the_same_key(
    gateway: FakeGateway, talk: Talk, typed: Callable[[str], None], command: Command
) -> None:
    def accept_and_hang_up(params: Json) -> HangUp:
        talk.say("user", params["message"], params["idempotencyKey"])
        talk.say("assistant", "I heard you.", params["idempotencyKey"])
        return HangUp()

    talk.sends = [accept_and_hang_up, {"status": "ok"}]
    typed("hello\n")
    outcome = command("chat", "--thinking", "low", "--deliver")
    assert outcome.code == 0, outcome.err
    first, second = gateway.called("chat.send")
    assert first == second and set(first) == {
        "sessionKey",
        "message",
        "idempotencyKey",
        "thinking",
        "deliver",
    }
    assert (first["message"], first["thinking"], first["deliver"]) == ("hello", "low", True)
    assert outcome.out.count("I heard you.\n") == 1 and "hello" not in outcome.out
    assert outcome.out.index("trying again") < outcome.out.index("(connected again)")
    assert gateway.connects[0].scopes == (ADMIN, WRITE)


@pytest.mark.spec("CLI-13")
def test_a_turn_that_failed_while_nobody_listened_is_told(
    gateway: FakeGateway, talk: Talk, typed: Callable[[str], None], command: Command
) -> None:
    talk.sends = [HangUp(), {"status": "ok"}]
    talk.waited = {"status": "error", "error": "no credit"}
    typed("hello\n")
    outcome = command("chat")
    assert outcome.code == 1 and "The turn failed: no credit\n" in outcome.out


@pytest.mark.spec("CLI-13")
def test_a_refusal_is_told_and_the_next_line_is_said(
    gateway: FakeGateway, talk: Talk, typed: Callable[[str], None], command: Command
) -> None:
    def refuse(_params: Json) -> object:
        raise InvalidRequest("send blocked by session policy")

    talk.sends = [refuse, {"ok": True, "aborted": False, "runIds": []}]
    typed("one\n\nstop\n")
    outcome = command("chat")
    assert outcome.code == 1 and outcome.out == "Not sent: send blocked by session policy\n"
    assert [params["message"] for params in gateway.called("chat.send")] == ["one", "stop"]


@pytest.mark.spec("CLI-13")
def test_a_gateway_that_no_longer_lets_us_in_ends_the_conversation(
    gateway: FakeGateway,
    talk: Talk,
    typed: Callable[[str], None],
    command: Command,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def change_the_lock(_params: Json) -> HangUp:
        monkeypatch.setattr(fake_gateway, "TOKEN", "another-token-0123456789")
        return HangUp()

    talk.sends = [change_the_lock]
    typed("hello\nnever said\n")
    outcome = command("chat")
    assert outcome.code == 1 and "did not let this client in" in outcome.err
    assert len(gateway.called("chat.send")) == 1


@pytest.mark.spec("CLI-13")
def test_a_gateway_that_stays_away_is_given_up(
    gateway: FakeGateway,
    talk: Talk,
    typed: Callable[[str], None],
    command: Command,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(chat_link, "GIVE_UP_S", 0.0)

    def vanish(_params: Json) -> HangUp:
        gateway.starting = 1000
        return HangUp()

    talk.sends = [vanish]
    typed("hello\n")
    monkeypatch.setattr(chat_link, "CONNECT_S", 0.2)
    outcome = command("chat")
    assert outcome.code == 1 and outcome.err.startswith("openclaw: ")
    assert "Traceback" not in outcome.err


@pytest.mark.spec("CLI-13")
def test_earlier_messages_are_shown_when_asked_for(
    gateway: FakeGateway, talk: Talk, typed: Callable[[str], None], command: Command
) -> None:
    for number in range(4):
        talk.say("user", f"message {number}", f"r{number}")
    typed("")
    assert command("chat").out == ""
    shown = command("chat", "--history-limit", "2").out
    assert "message 3" in shown and "message 2" in shown and "message 1" not in shown


@pytest.mark.spec("CLI-13")
def test_a_session_that_does_not_exist_yet_begins_with_its_first_message(
    gateway: FakeGateway, typed: Callable[[str], None], command: Command
) -> None:
    gateway.answers["sessions.resolve"] = lambda _params: {"ok": False}
    gateway.answers["sessions.list"] = lambda _params: {"sessions": []}
    typed("")
    assert command("chat", "--session", "new", "--agent", "work").code == 0
    assert gateway.called("chat.history")[0] == {"sessionKey": "new", "limit": 1, "agentId": "work"}
    rows = [session("agent:main:new-a", label="new a"), session("agent:main:new-b", label="new b")]
    gateway.answers["sessions.list"] = lambda _params: {"sessions": rows}
    several = command("chat", "--session", "new")
    assert several.code == 1 and "fits 2 sessions" in several.err


@pytest.mark.spec("CLI-13")
@pytest.mark.parametrize("odd", [{"messages": 5}, {"messages": ["text"]}, {"messages": [{"__openclaw": 1}]}])
def test_an_answer_that_makes_no_sense_ends_the_conversation_instead_of_hanging(
    gateway: FakeGateway, typed: Callable[[str], None], command: Command, odd: Json
) -> None:
    gateway.answers["chat.history"] = lambda _params: {"sessionKey": KEY, **odd}
    typed("")
    outcome = command("chat", "--history-limit", "5")
    assert outcome.code in (0, 1) and "Traceback" not in outcome.err
    if outcome.code == 1:
        assert "not understood" in outcome.err
