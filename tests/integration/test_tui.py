"""The terminal UI as a person uses it, against a real gateway with a scripted model."""

from __future__ import annotations

import asyncio
from contextlib import AsyncExitStack
from functools import partial
from typing import Any

import pytest
from textual.widgets import Input

from openclaw.app import Gateway
from openclaw.domain.transcript import AssistantMessage, TextBlock
from openclaw.engine.drafts import draft_message
from openclaw.tui.chatlog import KEPT_DRAWN
from openclaw.tui.memory import ClientMemory
from tests.fakes.openai_server import FakeCall, FakeReply
from tests.fakes.wire_client import WireClient
from tests.integration.conftest import House
from tests.integration.tui_screen import Screen, gateway_at, opened

HOSTILE = "plain \x1b]52;c;aGk=\x07 [click](javascript:alert) \x1b[2J \u202egnp.exe"


@pytest.mark.spec("RPC-14", "OWN-1")
async def test_a_conversation_streams_and_stands_there_once(
    house: House, gateway: Gateway, client: WireClient
) -> None:
    house.model.script(FakeReply(texts=("First **half** ", "second half."), hang_after=2))
    async with opened(house.home / "c", gateway.port) as screen:
        await screen.ready()
        await screen.type("hello, you")
        await screen.pilot.press("enter")
        await screen.see("First half")
        assert "hello, you" in screen.chat and "second" not in screen.chat
        await screen.until(lambda: "Esc stops" in screen.status and screen.sessions[0].startswith("●"))
        house.model.release()
        await screen.see("second half.")
        await screen.until(lambda: "ready" in screen.status)
        assert screen.chat.count("First half") == screen.chat.count("hello, you") == 1
        assert screen.app.composer.writing.text == ""
        # Somebody else speaks in another session: it is marked, and read once it is opened.
        house.model.script(FakeReply(texts=("over there",)))
        await client.say("bugs", "news", "r-bugs")
        await screen.until(lambda: any(row.startswith("◆ ") for row in screen.sessions))
        row = next(at for at, row in enumerate(screen.sessions) if row.startswith("◆ "))
        await screen.pilot.click("#session-list", offset=(4, row))
        await screen.see("over there")
        assert "First half" not in screen.chat
        await screen.until(lambda: not any(row.startswith("◆") for row in screen.sessions))


@pytest.mark.spec("CLI-12", "DB-1")
async def test_the_last_session_of_each_gateway_and_agent_opens_again(
    house: House, gateway: Gateway, client: WireClient
) -> None:
    notes = (await client.call("sessions.create", {"label": "notes"}))["key"]
    desk = (await client.call("sessions.create", {"label": "desk", "agentId": "bob"}))["key"]
    memory = house.home / "c"
    async with opened(memory, gateway.port) as screen:
        await screen.ready()
        assert screen.app.desk.talk.session_key == "agent:main:main"
        await screen.app.desk.open(desk)
        await screen.app.desk.open(notes)
    async with opened(memory, gateway.port) as screen:
        await screen.ready()
        assert screen.app.desk.talk.session_key == notes
    async with opened(memory, gateway.port, agent_id="bob") as screen:
        await screen.ready()
        assert screen.app.desk.talk.session_key == desk
    async with opened(memory, gateway.port, gateway="ws://another") as screen:
        await screen.ready()
        assert screen.app.desk.talk.session_key == "agent:main:main"
    await client.call("sessions.delete", {"key": notes})
    with ClientMemory(memory) as kept:
        kept.remember_session("ws://gateway", "main", notes, 2**52)
    async with opened(memory, gateway.port, agent_id="main") as screen:
        await screen.ready()
        assert screen.app.desk.talk.session_key == "agent:main:main", (
            "a session that is gone is not begun anew"
        )


@pytest.mark.spec("CLI-13")
async def test_what_the_command_line_asks_for_is_done(
    house: House, gateway: Gateway, client: WireClient
) -> None:
    house.model.script(*[FakeReply(texts=(f"answer {number}",)) for number in range(5)])
    created = await client.call("sessions.create", {"label": "plans"})
    for number in range(4):
        await client.say(created["key"], f"question {number}", f"r{number}")
    asked: dict[str, Any] = {
        "session": "plans",
        "history_limit": 3,
        "deliver": True,
        "thinking": "low",
        "message": "one more",
    }
    async with opened(house.home / "c", gateway.port, **asked) as screen:
        await screen.see("answer 4")
        assert screen.app.desk.talk.session_key == created["key"]
        (first, *_rest) = [params for method, params in screen.calls if method == "chat.history"]
        assert first["limit"] == 3
        (sent,) = [params for method, params in screen.calls if method == "chat.send"]
        assert (sent["message"], sent["deliver"], sent["thinking"]) == ("one more", True, "low")
        # There is room for more, so the rest of the conversation comes by itself.
        await screen.until(lambda: all(f"question {number}" in screen.chat for number in range(4)))


@pytest.mark.spec("CLI-13")
async def test_a_name_that_nothing_has_is_a_session_to_come(house: House, gateway: Gateway) -> None:
    house.model.script(FakeReply(texts=("born",)))
    async with opened(house.home / "c", gateway.port, session="fresh", agent_id="bob") as screen:
        await screen.ready()
        assert screen.app.desk.talk.session_key == "agent:bob:fresh"
        await screen.say("begin")
        await screen.see("born")
        assert screen.chat.count("begin") == 1


@pytest.mark.spec("RPC-13")
async def test_escape_stops_the_turn_and_says_which_while_others_wait(house: House) -> None:
    house.config["messages"] = {"queue": {"mode": "followup"}}
    house.model.script(FakeReply(texts=("never ", "ends"), hang_after=2), FakeReply(texts=("the second",)))
    async with house.gateway() as own, opened(house.home / "c", own.port) as screen:
        await screen.ready()
        await screen.say("count to a million")
        await screen.see("never")
        await screen.say("and then?")
        await screen.until(lambda: "and then?" in screen.queue)
        await screen.see("in the queue")
        await screen.pilot.press("escape")
        await screen.until(lambda: any("count to a million" in text for text in screen.told))
        assert "stopped" in screen.chat.lower() or any("Stopped" in text for text in screen.told)
        await screen.see("the second")
        await screen.until(lambda: "ready" in screen.status)
        await screen.until(lambda: screen.queue.strip() == "")
        assert screen.chat.count("and then?") == 1
        await screen.pilot.press("ctrl+x")
        await screen.until(lambda: "Nothing runs here." in screen.told)


@pytest.mark.spec("RPC-11", "RPC-12")
async def test_what_is_written_without_a_gateway_goes_out_once_when_it_is_back(house: House) -> None:
    house.model.script(*[FakeReply(texts=(f"reply {number}",)) for number in range(3)])
    async with AsyncExitStack() as stack:
        first = await stack.enter_async_context(house.gateway())
        screen = await stack.enter_async_context(opened(house.home / "c", first.port))
        await screen.ready()
        await screen.say("before")
        await screen.see("reply 0")
        await screen.until(lambda: screen.app.desk.talk.cursor is not None)
        await first.__aexit__(None, None, None)
        await screen.until(lambda: "offline" in screen.status)
        await screen.say("while away")
        await screen.see("waiting for the connection")
        with ClientMemory(house.home / "c") as kept:
            assert [unsent.message for unsent in kept.unsent("ws://gateway")] == ["while away"]
        async with gateway_at(house, first.port):
            await screen.see("reply 1")
            await screen.until(lambda: "ready" in screen.status)
            for text in ("before", "reply 0", "while away", "reply 1"):
                assert screen.chat.count(text) == 1, text
            with ClientMemory(house.home / "c") as kept:
                assert kept.unsent("ws://gateway") == []
            histories = [params for method, params in screen.calls if method == "chat.history"]
            assert any("cursor" in params for params in histories), "it comes back with its cursor"


async def test_text_of_a_model_cannot_steer_the_terminal(
    house: House, gateway: Gateway, client: WireClient
) -> None:
    house.model.script(FakeReply(texts=(HOSTILE,)))
    await client.say("main", "\x1b[31mmine \u2066", "r1")
    async with opened(house.home / "c", gateway.port) as screen:
        await screen.see("plain")
        log = screen.app.chat
        strips = [log.render_line(y) for y in range(log.scrollable_content_region.height)]
        drawn = "".join(strip.text for strip in strips)
        assert not set(drawn) & {*map(chr, range(32)), "\x7f", "\x9b", "\u202e", "\u2066"}
        segments = [segment for strip in strips for segment in strip]
        assert not any(segment.control or (segment.style and segment.style.link) for segment in segments)
        assert "javascript:alert" in drawn, "where a link leads is written out"


async def test_tool_calls_are_folded_and_can_be_opened(house: House, gateway: Gateway) -> None:
    house.model.script(
        FakeReply(calls=(FakeCall("sessions_list", ('{"limit": 5}',)),)), FakeReply(texts=("That is all.",))
    )
    async with opened(house.home / "c", gateway.port) as screen:
        await screen.ready()
        await screen.say("who is there?")
        await screen.see("That is all.")
        assert "▸ ✓ sessions_list limit=5" in screen.chat and '"limit"' not in screen.chat
        screen.app.chat.focus()
        await screen.pilot.press("o")
        await screen.see('"limit": 5')
        assert "▾ ✓ sessions_list" in screen.chat
        await screen.pilot.press("o")
        await screen.until(lambda: '"limit"' not in screen.chat)


async def test_slash_commands_complete_and_answer(house: House, gateway: Gateway) -> None:
    async with opened(house.home / "c", gateway.port) as screen:
        await screen.ready()
        await screen.until(lambda: bool(screen.app.composer.commands))
        await screen.type("/stat")
        assert screen.app.composer.has_class("suggesting")
        await screen.pilot.press("tab")
        assert screen.app.composer.writing.text == "/status"
        await screen.pilot.press("enter")
        await screen.see("agent:main:main")
        assert house.model.requests == [], "a command asks no model"
        await screen.type("/he")
        await screen.pilot.press("escape")
        assert not screen.app.composer.has_class("suggesting")
        assert "Nothing runs here." not in screen.told, "the first Esc only puts the suggestions away"
        screen.app.composer.put("")
        await screen.pilot.press("up")
        assert screen.app.composer.writing.text == "/status"
        await screen.pilot.press("down")
        assert screen.app.composer.writing.text == ""
        await screen.type("one\ntwo")
        assert screen.app.composer.writing.text == "one\ntwo"


async def test_sessions_are_made_named_and_found(house: House, gateway: Gateway, client: WireClient) -> None:
    for label in ("weekly report", "bugs"):
        await client.call("sessions.create", {"label": label})
    async with opened(house.home / "c", gateway.port) as screen:
        await screen.ready()
        await screen.pilot.press("ctrl+n")
        await screen.type("plans")
        await screen.pilot.press("enter")
        await screen.until(lambda: screen.app.desk.title == "plans")
        await screen.pilot.press("ctrl+r")
        await screen.type(" 2")
        await screen.pilot.press("enter")
        await screen.until(lambda: screen.app.desk.title == "plans 2")
        screen.app.query_one("#session-list").focus()
        await screen.pilot.press("slash")
        await screen.type("week")
        await screen.until(lambda: [row.split()[0] for row in screen.sessions] == ["weekly"])
        await screen.pilot.press("enter")
        await screen.until(lambda: screen.app.desk.title == "weekly report")
        await screen.until(lambda: len(screen.sessions) >= 3)
        await screen.pilot.press("ctrl+r")
        screen.app.screen.query_one(Input).value = "bugs"
        await screen.pilot.press("enter")
        await screen.until(lambda: any("label already in use" in text for text in screen.told))
        await screen.pilot.press("f1")
        await screen.until(lambda: len(screen.app.screen_stack) == 2)
        await screen.pilot.press("escape")
        await screen.until(lambda: len(screen.app.screen_stack) == 1)


async def test_the_tree_shows_who_asked_whom(house: House, gateway: Gateway) -> None:
    spawn = FakeCall("sessions_spawn", ('{"task": "count the leaves", "label": "leaves"}',))
    house.model.script(FakeReply(calls=(spawn,)))
    house.model.decide = lambda body: (
        None if len(house.model.requests) == 1 else FakeReply(texts=("done",), hang_after=-1)
    )
    async with opened(house.home / "c", gateway.port) as screen:
        await screen.ready()
        await screen.say("get help")
        await screen.pilot.press("f2")
        await screen.until(lambda: any("leaves" in line for line in screen.tree))
        top = next(at for at, line in enumerate(screen.tree) if "main" in line)
        below = next(at for at, line in enumerate(screen.tree) if "leaves" in line)
        assert top < below and screen.tree[below].startswith("└ ")
        await screen.until(lambda: "●" in screen.tree[below] and "running" in screen.tree[below])
        house.model.release()
        await screen.until(lambda: not any("running" in line for line in screen.tree))
        screen.app.query_one("#tree-list").focus()
        await screen.pilot.press("t")
        await screen.until(lambda: not screen.width_of("TreePane"))


def _holds(screen: Screen, count: int) -> bool:
    return len(screen.app.desk.talk.items) == count


async def test_ten_thousand_messages_stay_light(house: House, gateway: Gateway, client: WireClient) -> None:
    key = (await client.call("sessions.create", {"key": "long"}))["key"]
    for start in range(0, 10_000, 1000):
        drafts = [
            draft_message(
                AssistantMessage((TextBlock(f"**m{n}** {'word ' * 20}"),), 1000 + n, provider="p", model="m"),
                f"r{n}",
            )
            for n in range(start, start + 1000)
        ]
        await gateway.services.store.append(key, tuple(drafts), now_ms=2000)
    async with opened(
        house.home / "c", gateway.port, session="long", size=(80, 24), history_limit=1000
    ) as screen:
        await screen.see("m9999")
        screen.app.chat.focus()
        for pages in range(2, 11):
            await screen.pilot.press("home")
            await screen.until(partial(_holds, screen, pages * 1000))
        assert screen.app.desk.talk.next_offset is None
        await screen.until(lambda: len(screen.app.chat.items) == 10_000)
        await screen.pilot.press("home")
        await screen.see("m0 ")
        await screen.pilot.press("end")
        await screen.see("m9999")
        assert len(screen.app.chat._drawn) <= KEPT_DRAWN
        await screen.say("/status")
        await screen.see("agent:main:long")


@pytest.mark.parametrize(("width", "sessions_shown"), [(80, True), (60, False), (140, True)])
async def test_it_can_be_used_in_any_window(
    house: House, gateway: Gateway, width: int, sessions_shown: bool
) -> None:
    house.model.script(FakeReply(texts=("fits " * 60,)))
    async with opened(house.home / "c", gateway.port, size=(width, 24)) as screen:
        await screen.ready()
        await screen.say("hi")
        await screen.see("fits")
        assert bool(screen.width_of("SessionsPane")) is sessions_shown
        assert screen.app.chat.size.width >= 50 and screen.app.chat.size.height >= 12
        await screen.pilot.press("ctrl+b")
        await screen.until(lambda: bool(screen.width_of("SessionsPane")) is not sessions_shown)
        await screen.pilot.resize_terminal(100, 30)
        await asyncio.sleep(0)
        await screen.see("fits")
