"""What people on a channel see of a turn besides its reply: tools, thinking, usage, compactions."""

from __future__ import annotations

from typing import Any

import pytest

from tests.channels.nest.conftest import said
from tests.channels.suite import until
from tests.fakes.openai_server import FakeCall, FakeReply
from tests.fakes.pigeon import Loft
from tests.integration.conftest import House, client_of

KEY = "agent:main:pigeon:dm:101"
USAGE = {"prompt_tokens": 1200, "completion_tokens": 30}


def list_call(number: int = 1, path: str = ".") -> FakeReply:
    return FakeReply(calls=(FakeCall("list", (f'{{"path": "{path}"}}',), f"call_{number}"),))


async def ask(loft: Loft, text: str, replies: int = 1) -> list[str]:
    """Ann writes, and what she can read once so many messages have come."""
    before = len(loft.shown())
    await loft.says(loft.ann, loft.direct(loft.ann), text)
    await until(lambda: len(loft.shown()) >= before + replies, f"{replies} messages after {text!r}")
    return said(loft)[before:]


@pytest.mark.spec("CMD-10")
async def test_verbose_shows_the_tools_and_full_shows_what_they_answer(nest: House, loft: Loft) -> None:
    (nest.home / "state" / "workspace").mkdir(parents=True)
    (nest.home / "state" / "workspace" / "milk.txt").write_text("two litres")
    fine = FakeReply(texts=("fine",))
    async with nest.gateway() as gateway, client_of(gateway) as client:
        nest.model.script(list_call(), fine)
        assert await ask(loft, "look") == ["fine"], "nothing is shown by default"
        assert (await ask(loft, "/verbose on"))[0].startswith("Verbose output set to on")
        nest.model.script(list_call(), fine)
        assert await ask(loft, "look", 2) == ["[tool] list: .", "fine"]
        nest.model.script(list_call(), fine)
        shown = await ask(loft, "/verbose full look", 3)
        assert shown[0] == "[tool] list: ." and shown[2] == "fine"
        assert shown[1].startswith("[result] list\n") and "milk.txt" in shown[1]
        nest.model.script(list_call(), fine)
        assert await ask(loft, "/verbose off look") == ["fine"], "the words of one message come first"
        nest.model.script(list_call(), fine)
        assert await ask(loft, "look", 2) == ["[tool] list: .", "fine"], "the session keeps its own"
        history = await client.call("chat.history", {"sessionKey": KEY})
        assert "[tool]" not in str(history["messages"])
        assert "[tool]" not in str([request.body for request in nest.model.requests])


@pytest.mark.spec("CMD-10")
async def test_an_agent_may_be_verbose_by_itself_and_a_session_may_say_no(nest: House, loft: Loft) -> None:
    nest.config["agents"]["defaults"]["verboseDefault"] = "on"
    (nest.home / "state" / "workspace").mkdir(parents=True)
    async with nest.gateway():
        nest.model.script(list_call(), FakeReply(texts=("fine",)))
        assert await ask(loft, "look", 2) == ["[tool] list: .", "fine"]
        await ask(loft, "/verbose off")
        nest.model.script(list_call(), FakeReply(texts=("fine",)))
        assert await ask(loft, "look") == ["fine"]


@pytest.mark.spec("SEND-9")
async def test_a_session_that_may_not_send_shows_neither_tools_nor_typing(nest: House, loft: Loft) -> None:
    (nest.home / "state" / "workspace").mkdir(parents=True)
    async with nest.gateway() as gateway, client_of(gateway) as client:
        nest.model.script(FakeReply(texts=("hello",)))
        await ask(loft, "hi")
        assert loft.typed and set(loft.typed) == {loft.direct(loft.ann)}
        await ask(loft, "/verbose full")
        loft.typed.clear()
        nest.model.script(list_call(), FakeReply(texts=("secret",), hang_after=0))
        await loft.says(loft.ann, loft.direct(loft.ann), "look")
        await nest.model.wait_for_requests(3)
        await until(lambda: len(loft.shown()) == 4, "the tool and its result")
        await client.call("sessions.patch", {"key": KEY, "sendPolicy": "deny"})
        nest.model.release()
        await until(lambda: _idle(gateway), "the end of the turn")
        assert said(loft)[2:] == ["[tool] list: .", said(loft)[3]] and "secret" not in str(said(loft))
        loft.typed.clear()
        await loft.says(loft.ann, loft.direct(loft.ann), "again")
        assert await ask(loft, "/send on") == ["Sending is on for this session."], "commands still work"
        assert loft.typed == [] and len(nest.model.requests) == 3


def _idle(gateway: Any) -> bool:
    return not gateway.services.workers.active_runs()


@pytest.mark.spec("SEND-9", "CMD-10")
async def test_tools_of_a_turn_whose_session_is_closed_meanwhile_are_not_shown(
    nest: House, loft: Loft
) -> None:
    (nest.home / "state" / "workspace").mkdir(parents=True)
    async with nest.gateway() as gateway, client_of(gateway) as client:
        await ask(loft, "/verbose full")
        nest.model.script(
            FakeReply(calls=(FakeCall("list", ('{"path": "."}',), "c1"),), hang_after=0),
            FakeReply(texts=("secret",)),
        )
        await loft.says(loft.ann, loft.direct(loft.ann), "look")
        await nest.model.wait_for_requests(1)
        await client.call("sessions.patch", {"key": KEY, "sendPolicy": "deny"})
        nest.model.release()
        await nest.model.wait_for_requests(2)
        await until(lambda: _idle(gateway), "the end of the turn")
        assert len(loft.shown()) == 1
        page = await client.call("outbox.list", {})
        assert all(row["state"] == "sent" for row in page["deliveries"]), "nothing waits to leave later"


@pytest.mark.spec("CMD-10")
async def test_reasoning_is_shown_before_the_reply_or_while_it_comes_or_not_at_all(
    nest: House, loft: Loft
) -> None:
    nest.config["channels"]["pigeon"]["streaming"] = True
    thought = "It is a question about milk, and there is none."
    reply = FakeReply(thinking=(thought,), texts=("There is no milk.",))
    async with nest.gateway():
        nest.model.script(reply)
        assert await ask(loft, "milk?") == ["There is no milk."]
        await ask(loft, "/reasoning on")
        nest.model.script(reply)
        assert await ask(loft, "milk?", 2) == [f"[thinking]\n{thought}", "There is no milk."]
        nest.model.script(reply)
        assert await ask(loft, "/reasoning off milk?") == ["There is no milk."]
        loft.drafted.clear()
        nest.model.script(
            FakeReply(thinking=(thought,), texts=("There is no milk.",), hang_after=2),
        )
        await loft.says(loft.ann, loft.direct(loft.ann), "/reasoning stream milk?")
        await until(lambda: loft.drafted, "a draft that shows the thinking")
        nest.model.release()
        await until(lambda: loft.edited, "the reply in its place")
        assert loft.drafted[0] == f"[thinking]\n{thought}"
        assert loft.edited == ["There is no milk."], "the reply takes the place of the draft"
        assert said(loft)[-1] == "There is no milk."


@pytest.mark.spec("CMD-10")
async def test_thinking_that_is_shown_does_not_become_part_of_the_conversation(
    nest: House, loft: Loft
) -> None:
    async with nest.gateway() as gateway, client_of(gateway) as client:
        await ask(loft, "/reasoning on")
        calls = list_call().calls
        nest.model.script(
            FakeReply(thinking=("first look",), calls=calls), FakeReply(thinking=("I see",), texts=("done",))
        )
        shown = await ask(loft, "look", 3)
        assert shown == ["[thinking]\nfirst look", "[thinking]\nI see", "done"]
        nest.model.script(FakeReply(texts=("yes",)))
        await ask(loft, "/reasoning off and?")
        assert "[thinking]" not in str(nest.model.requests[-1].body)
        history = await client.call("chat.history", {"sessionKey": KEY})
        assert "[thinking]" not in str(history)


@pytest.mark.spec("CMD-11")
async def test_the_usage_line_stands_below_the_reply_and_is_not_stored(nest: House, loft: Loft) -> None:
    reply = FakeReply(texts=("fine",), usage=USAGE)
    async with nest.gateway() as gateway, client_of(gateway) as client:
        nest.model.script(reply)
        assert await ask(loft, "hi") == ["fine"]
        await ask(loft, "/usage tokens")
        nest.model.script(reply)
        assert await ask(loft, "hi") == ["fine\n\n[usage] 1,200 tokens in, 30 out"]
        await ask(loft, "/usage full")
        nest.model.script(reply)
        (full,) = await ask(loft, "hi")
        assert full.startswith(
            "fine\n\n[usage] 1,200 tokens in, 30 out; about $0.0013; context 4 %; fake/one"
        )
        history = await client.call("chat.history", {"sessionKey": KEY})
        assert "[usage]" not in str(history["messages"])
        assert "[usage]" not in str(nest.model.requests[-1].body["messages"])
        await ask(loft, "/usage off")
        nest.model.script(reply)
        assert await ask(loft, "hi") == ["fine"]
