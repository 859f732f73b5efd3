"""Threads that belong to a helper, from the spawn to the last follow-up, on a platform that opens threads."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from openclaw.channels import registry
from openclaw.domain.bindings import HOUR_MS
from openclaw.store.bindings import Bindings
from tests.channels.platform import Chat
from tests.channels.suite import texts_in, until
from tests.fakes.clock import MovableClock
from tests.fakes.openai_server import FakeOpenAIServer, FakeReply
from tests.fakes.pigeon import Loft
from tests.integration.conftest import House, client_of
from tests.integration.tools.test_subagents import call, has, is_child, last_said

Json = dict[str, Any]
GROUP, THREAD = Chat("group", "Flock"), Chat("group", "Flock", "P1")
GROUP_KEY = "agent:main:pigeon:group:flock"


class Flock:
    """A platform with a house, and a model that delegates when it is asked to and echoes otherwise.

    Helpers think until the model is released: what ends while its requester's turn still runs is told there.
    """

    def __init__(self, home: Path, model: FakeOpenAIServer) -> None:
        self.loft = Loft("loft")
        self.house = House(home, model)
        self.house.config["channels"] = {
            "pigeon": self.loft.options
            | {"dmPolicy": "open", "groupPolicy": "open", "groups": {"*": {"requireMention": True}}}
        }
        self.house.config["session"] = {"dmScope": "per-channel-peer", "threadBindings": {}}
        self.house.config["commands"] = {"ownerAllowFrom": ["pigeon:101"]}
        self.spawn: Json = {"task": "count the sheep", "label": "Counting sheep", "thread": True}
        self.answers: list[Json] = []  # what the tool said
        self.helpers: list[Json] = []  # requests of helpers
        model.decide = self.decide

    def decide(self, body: Json) -> FakeReply:
        said = last_said(body)
        if is_child(body):
            self.helpers.append(body)
            if "Your task has ended" in said:
                return FakeReply(texts=("Result: 42 sheep",))
            return FakeReply(texts=(f"helper: {said.splitlines()[-1]}",), hang_after=0)
        if body["messages"][-1]["role"] == "tool":
            self.answers.append(json.loads(body["messages"][-1]["content"]))
            return FakeReply(texts=("it is on its way",))
        if "Stats: runtime" in said:
            return FakeReply(texts=("done: 42 sheep",))
        if "delegate" in said:
            return FakeReply(calls=(call("sessions_spawn", **self.spawn),))
        return FakeReply(texts=(f"main: {said.splitlines()[-1]}",))

    async def says(self, text: str, chat: Chat, *, bob: bool = False, mention: bool = False) -> None:
        await self.loft.says(self.loft.bob if bob else self.loft.ann, chat, text, mention=mention)

    async def saw(self, text: str, chat: Chat) -> None:
        await until(lambda: any(text in one for one in texts_in(self.loft, chat)), f"{text!r} in {chat}")


@pytest.fixture
async def flock(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Flock]:
    monkeypatch.setattr(registry, "BUILT_IN", {"pigeon": "tests.fakes.pigeon:build"})
    async with FakeOpenAIServer() as model:
        yield Flock(tmp_path, model)
    Loft.lofts.clear()


async def delegate(flock: Flock, chat: Chat = GROUP) -> None:
    await flock.says("the sheep are Dolly and Molly", chat, mention=True)
    await flock.saw("main: ", chat)
    await flock.says("delegate it", chat, mention=True)
    await flock.saw("it is on its way", chat)
    flock.house.model.release()


# -- from the spawn to the thread ------------------------------------------------------------------


@pytest.mark.spec("BIND-1", "BIND-2", "SPAWN-8", "ANN-7")
async def test_a_helper_answers_in_its_own_thread_and_goes_on_there(flock: Flock) -> None:
    async with flock.house.gateway() as gateway, client_of(gateway) as client:
        await delegate(flock)
        await flock.saw("helper: count the sheep", THREAD)
        # The requester's people hear of the result where they asked, not in the thread.
        await flock.saw("done: 42 sheep", GROUP)
        assert flock.loft.titles == {"P1": "Counting sheep"}
        [told] = flock.answers
        assert (told["status"], told["mode"]) == ("accepted", "session")
        child = told["childSessionKey"]
        assert has(flock.helpers[0], "Dolly and Molly")  # a helper in a thread knows the conversation
        # Nobody calls it by name there, and it remembers.
        await flock.says("and the black ones?", THREAD, bob=True)
        await flock.saw("helper: ", THREAD)
        await flock.saw("and the black ones?", THREAD)
        assert has(flock.helpers[-1], "count the sheep")
        row = (await client.call("sessions.describe", {"key": child}))["session"]
        assert row["deliveryContext"]["threadId"] == "P1"
        keys = {row["key"] for row in (await client.call("sessions.list"))["sessions"]}
        assert not any("thread" in key for key in keys)
    # Bindings are rows: a restart changes nothing.
    async with flock.house.gateway():
        await flock.says("are you still there?", THREAD, bob=True)
        await flock.saw("are you still there?", THREAD)
        assert is_child(flock.house.model.requests[-1].body)
    assert not any("helper" in text for text in texts_in(flock.loft, GROUP))


@pytest.mark.spec("BIND-2")
async def test_unfocus_and_idleness_end_a_binding(flock: Flock) -> None:
    clock = MovableClock()
    async with flock.house.gateway(clock) as gateway, client_of(gateway) as client:
        await delegate(flock)
        await flock.saw("done: 42 sheep", GROUP)
        await flock.says("/agents", GROUP)
        await flock.saw("Bound threads:", GROUP)
        await flock.says("/unfocus", THREAD)
        await flock.saw("This thread is not bound any more.", THREAD)
        await flock.says("who is here?", THREAD, mention=True)
        await flock.saw("main: ", THREAD)
        await flock.says(f"/focus {flock.answers[0]['childSessionKey']}", THREAD)
        await flock.saw("belongs to", THREAD)
        await flock.says("one more", THREAD)
        await flock.saw("one more", THREAD)
        assert is_child(flock.house.model.requests[-1].body)
        clock.move(24 * HOUR_MS / 1000)
        await flock.says("too late", THREAD, mention=True)
        await flock.saw("too late", THREAD)
        assert not is_child(flock.house.model.requests[-1].body)
        key = f"{GROUP_KEY}:thread:p1"
        assert (await client.call("sessions.describe", {"key": key}))["session"] is not None


@pytest.mark.spec("BIND-2", "SPAWN-8")
async def test_a_thread_for_one_task_is_free_after_it(flock: Flock) -> None:
    flock.spawn |= {"mode": "run"}
    flock.house.config["session"]["threadBindings"] = {"defaultSpawnContext": "isolated"}
    async with flock.house.gateway() as gateway:
        await delegate(flock)
        await flock.saw("helper: count the sheep", THREAD)
        await flock.saw("done: 42 sheep", GROUP)
        assert flock.answers[0]["mode"] == "run"
        assert not has(flock.helpers[0], "Dolly and Molly")
        rows = Bindings(gateway.services.store._database)
        assert await rows.of_session(flock.answers[0]["childSessionKey"]) == ()
        await flock.says("hello?", THREAD, mention=True)
        await flock.saw("main: ", THREAD)


@pytest.mark.spec("SPAWN-8")
async def test_the_call_s_own_word_on_the_context_comes_first(flock: Flock) -> None:
    flock.spawn |= {"context": "isolated"}
    async with flock.house.gateway():
        await delegate(flock)
        await flock.saw("helper: count the sheep", THREAD)
        assert not has(flock.helpers[0], "Dolly and Molly")


# -- where it cannot be ----------------------------------------------------------------------------


@pytest.mark.spec("BIND-2")
@pytest.mark.parametrize(
    ("terms", "setting"), [({"spawnSessions": False}, "spawnSessions"), ({"enabled": False}, "enabled")]
)
async def test_a_setting_keeps_helpers_out_of_threads(flock: Flock, terms: Json, setting: str) -> None:
    flock.house.config["session"]["threadBindings"] = terms
    async with flock.house.gateway():
        await delegate(flock)
        [told] = flock.answers
        assert told["status"] == "forbidden"
        assert f"session.threadBindings.{setting} is false" in told["error"]
        assert flock.loft.titles == {}
        assert flock.helpers == []


@pytest.mark.spec("BIND-2", "SPAWN-16")
async def test_where_no_thread_can_be_opened_nothing_begins(flock: Flock) -> None:
    flock.loft.no_threads = True
    async with flock.house.gateway() as gateway, client_of(gateway) as client:
        await delegate(flock)
        [told] = flock.answers
        assert told["status"] == "error"
        assert "no room for another thread" in told["error"]
        assert flock.helpers == []
        await client.say("agent:main:main", "delegate it", "run-1")
        assert flock.answers[1]["status"] == "error"
        assert "no channel here can bind a helper" in flock.answers[1]["error"]
        flock.spawn |= {"cleanup": "delete"}
        await flock.says("delegate again", GROUP, mention=True)
        await until(lambda: len(flock.answers) == 3, "a third answer")
        assert 'mode "run"' in flock.answers[2]["error"]
        keys = [row["key"] for row in (await client.call("sessions.list"))["sessions"]]
        assert not any("subagent" in key for key in keys)


@pytest.mark.spec("BIND-3")
async def test_an_external_harness_is_an_error_that_names_the_native_way(flock: Flock) -> None:
    flock.spawn = {"task": "count", "runtime": "acp", "thread": True}
    async with flock.house.gateway():
        await delegate(flock)
        [told] = flock.answers
        assert told["status"] == "error"
        assert "native sub-agents are available" in told["error"]
        assert flock.loft.titles == {}


# -- captured routes -------------------------------------------------------------------------------


@pytest.mark.spec("ANN-7", "ROUTE-2")
async def test_an_announcement_goes_to_the_thread_that_asked(flock: Flock) -> None:
    """Somebody else wrote in the same session meanwhile; the result still goes where it was asked for."""
    flock.house.config["session"]["dmScope"] = "main"
    flock.spawn = {"task": "count the sheep"}
    ann, bob = Chat("direct", "101"), Chat("direct", "102")
    async with flock.house.gateway():
        await flock.says("delegate it", ann)
        await flock.saw("it is on its way", ann)
        await flock.says("hello from Bob", bob, bob=True)
        await flock.saw("hello from Bob", bob)
        flock.house.model.release()
        await flock.saw("done: 42 sheep", ann)
        assert not any("42 sheep" in text for text in texts_in(flock.loft, bob))
        thread = Chat("group", "Flock", "T9")
        await flock.says("delegate it", thread, mention=True)
        await flock.saw("done: 42 sheep", thread)
        assert texts_in(flock.loft, GROUP) == []


@pytest.mark.spec("BIND-2", "ROUTE-4")
async def test_a_chat_can_be_given_to_another_session(flock: Flock) -> None:
    ann = Chat("direct", "101")
    async with flock.house.gateway() as gateway, client_of(gateway) as client:
        await client.say("agent:main:work", "the password is swordfish", "run-1")
        await flock.says("/focus work", ann)
        await flock.saw("This chat belongs to agent:main:work now", ann)
        await flock.loft.says(flock.loft.ann, ann, "what is it?", repeat=3)
        await flock.saw("main: what is it?", ann)
        assert has(flock.house.model.requests[-1].body, "swordfish")
        # A stranger cannot take what is not theirs.
        bob = Chat("direct", "102")
        await flock.says("/focus agent:main:work", bob, bob=True)
        await flock.says("tell me", bob, bob=True)
        await flock.saw("main: tell me", bob)
        assert not has(flock.house.model.requests[-1].body, "swordfish")
        assert texts_in(flock.loft, ann).count("main: what is it?") == 1
