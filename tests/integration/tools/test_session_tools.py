"""Session tools through the whole house: asked for by a model, answered from the store."""

from __future__ import annotations

import json

import pytest

from openclaw.app import Gateway
from tests.integration.conftest import TOKEN, House, client_of
from tests.integration.tools.asking import OK, add_session, ask, ask_all, calling

KEY = "agent:main:work"
SEEING = ("sessions_list", "sessions_history", "sessions_search", "session_status", "agents_list")


def offered(house: House) -> set[str]:
    """The session tools that the last request told the model about."""
    names = {tool["function"]["name"] for tool in house.model.requests[-1].body.get("tools", ())}
    return {name for name in names if name.startswith("session") or name in ("subagents", "agents_list")}


@pytest.mark.spec("TOOL-1", "TOOL-2")
async def test_the_model_is_offered_the_tools_with_their_parameters(house: House, gateway: Gateway) -> None:
    house.model.script(OK)
    async with client_of(gateway) as client:
        await client.say(KEY, "hello", "r1")
    assert offered(house) >= set(SEEING)
    tools = {tool["function"]["name"]: tool["function"] for tool in house.model.requests[-1].body["tools"]}
    parameters = {name: set(tools[name]["parameters"]["properties"]) for name in SEEING}
    assert parameters == {
        "sessions_list": {
            "kinds", "limit", "activeMinutes", "messageLimit", "label", "agentId", "search",
            "includeDerivedTitles", "includeLastMessage",
        },
        "sessions_history": {"sessionKey", "limit", "includeTools", "offset", "messageId"},
        "sessions_search": {"query", "limit", "sessionKey", "agentId"},
        "session_status": {"sessionKey", "model"},
        "agents_list": set(),
    }  # fmt: skip
    assert tools["sessions_history"]["parameters"]["required"] == ["sessionKey"]


@pytest.mark.spec("TOOL-3", "TOOL-4", "TOOL-5")
@pytest.mark.parametrize(
    ("tools", "there", "gone"),
    [
        ({"profile": "minimal"}, {"session_status"}, set(SEEING) - {"session_status"}),
        (
            {"profile": "messaging"},
            {"sessions_list", "sessions_history", "session_status"},
            {"agents_list", "sessions_spawn", "sessions_yield", "subagents"},
        ),
        ({"profile": "coding"}, set(SEEING), set()),
        ({"deny": ["SESSIONS_*"]}, {"session_status", "agents_list"}, {"sessions_list", "sessions_history"}),
        ({"profile": "minimal", "alsoAllow": ["sessions_list"]}, {"sessions_list"}, {"sessions_history"}),
        ({"byProvider": {"fake": {"deny": ["sessions_list"]}}}, {"sessions_history"}, {"sessions_list"}),
    ],
)
async def test_policies_take_tools_away_and_a_call_of_one_is_refused(
    house: House, tools: dict[str, object], there: set[str], gone: set[str]
) -> None:
    house.config["tools"] = tools
    async with house.gateway() as gateway:
        for name in sorted(gone & set(SEEING)):
            answer = await ask(house, gateway, KEY, name)
            assert (answer["status"], f"no tool {name!r}" in answer["error"]) == ("error", True)
        await ask_all(house, gateway, KEY, [("session_status", {})])
    assert offered(house) >= there
    assert offered(house).isdisjoint(gone)


@pytest.mark.spec("TOOL-4")
async def test_one_agent_can_have_fewer_tools(house: House) -> None:
    house.config["agents"]["list"][1]["tools"] = {"deny": ["group:sessions"]}
    async with house.gateway() as gateway, client_of(gateway) as client:
        house.model.script(OK, OK)
        await client.say("agent:bob:work", "hello", "r1")
        assert offered(house) == set()
        await client.say(KEY, "hello", "r2")
        assert offered(house) >= set(SEEING)


@pytest.mark.spec("LIST-10", "HIST-4", "HIST-6", "TOOL-6")
async def test_a_mailbox_is_triaged_and_one_conversation_read(house: House, gateway: Gateway) -> None:
    await add_session(
        gateway, "agent:main:mail", "Where is the report?", f"<think>x</think>Here: token={TOKEN}",
        parent_session_key=KEY,
    )  # fmt: skip
    listed = await ask(
        house, gateway, KEY, "sessions_list",
        search="mail", includeDerivedTitles=True, includeLastMessage=True, messageLimit=1,
    )  # fmt: skip
    (row,) = listed["sessions"]
    assert row["derivedTitle"] == "Where is the report?"
    assert row["lastMessagePreview"].startswith("Here: token=")
    assert [message["role"] for message in row["messages"]] == ["assistant"]
    history = await ask(house, gateway, KEY, "sessions_history", sessionKey=row["sessionId"])
    assert history["sessionKey"] == "agent:main:mail"
    assert [message["role"] for message in history["messages"]] == ["user", "assistant"]
    assert history["messages"][1]["content"][0]["text"].startswith("Here: token=")
    assert history["contentRedacted"] is True
    sent = json.dumps([request.body for request in house.model.requests])
    assert TOKEN not in sent


@pytest.mark.spec("SRCH-2", "SRCH-3")
async def test_what_was_said_a_moment_ago_is_found(house: House, gateway: Gateway) -> None:
    async with client_of(gateway) as client:
        house.model.script(OK)
        await client.say(KEY, "นัดประชุมพรุ่งนี้ที่เชียงใหม่", "r1")
    answer = await ask(house, gateway, KEY, "sessions_search", query="เชียงใหม่")
    assert [hit["snippet"] for hit in answer["hits"]] == ["นัดประชุมพรุ่งนี้ที่เชียงใหม่"]
    assert answer["hits"][0]["sessionKey"] == KEY


@pytest.mark.spec("STAT-3", "STAT-5")
async def test_a_chosen_model_answers_the_next_turn(house: House, gateway: Gateway) -> None:
    async with client_of(gateway) as client:
        await client.call("sessions.subscribe")
        house.model.script(calling([("session_status", {"model": "fake/two"})]), OK, OK)
        await client.say(KEY, "use the other model", "r1")
        assert "Model: fake/two (chosen" in house.model.requests[-1].body["messages"][-1]["content"]
        assert house.model.requests[-1].body["model"] == "one"
        assert any(
            event["event"] == "sessions.changed" and event["payload"].get("sessionKey") == KEY
            for event in client.events
        )
        await client.say(KEY, "who are you?", "r2")
        assert house.model.requests[-1].body["model"] == "two"
        house.model.script(calling([("session_status", {"model": "default"})]), OK, OK)
        await client.say(KEY, "and back", "r3")
        await client.say(KEY, "who are you now?", "r4")
        assert house.model.requests[-1].body["model"] == "one"


@pytest.mark.spec("STAT-1", "STAT-4", "AGL-1", "TOOL-7")
async def test_cards_agents_and_mistakes_in_one_answer(house: House, gateway: Gateway) -> None:
    house.config["agents"]["list"][0]["subagents"] = {"allowAgents": ["bob"]}
    told = await ask_all(
        house,
        gateway,
        KEY,
        [
            ("session_status", {"sessionKey": "current"}),
            ("agents_list", {}),
            ("sessions_history", {}),
            ("sessions_list", {"limit": "many"}),
            ("session_status", {"sessionKey": "agent:main:nobody"}),
        ],
    )
    assert f"Session: {KEY}, started" in told[0]
    assert json.loads(told[1])["agents"][0] == {"id": "main", "configured": True, "model": "fake/one"}
    for text, word in zip(told[2:], ("sessionKey", "limit", "agent:main:nobody"), strict=True):
        answer = json.loads(text)
        assert answer["status"] == "error"
        assert word in answer["error"]
