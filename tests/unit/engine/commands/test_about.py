"""Commands that only tell, and those that are politely refused."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from openclaw.domain.commands import CommandCaller
from openclaw.domain.commandtable import commands_text, help_text
from openclaw.engine.commands.ports import Ignored
from openclaw.engine.ports import ToolSpec
from openclaw.engine.settings import AgentSettings
from openclaw.store.records import SessionRow
from tests.conformance.making import MAIN, create, say
from tests.unit.engine.commands.house import KEY, House

FRIEND = CommandCaller(authorised=True, sender="telegram:42", channel="telegram")


@pytest.mark.spec("CMD-11", "CMD-13")
async def test_help_and_the_list_for_this_person(house: House) -> None:
    assert await house.ask("/help") == help_text()
    assert await house.ask("/commands") == commands_text(owner=True)
    assert await house.ask("/commands", caller=FRIEND) == commands_text(owner=False)


@pytest.mark.spec("CMD-11")
async def test_who_one_is(house: House) -> None:
    assert await house.ask("/id", caller=FRIEND) == (
        f"You are telegram:42 on telegram, allowed to use commands.\nSession: {KEY}"
    )
    nameless = CommandCaller(owner=True)
    assert (await house.ask("/whoami", caller=nameless)).startswith(
        "You are operator on this gateway, an owner."
    )
    on_discord = replace(MAIN, session_key="agent:main:d", channel="discord")
    assert "on discord" in await house.ask("/whoami", to=on_discord, caller=nameless)


@pytest.mark.spec("CMD-9")
async def test_the_tools_of_the_session(house: House) -> None:
    assert await house.ask("/tools") == "Tools (2): sessions_list, session_status"
    assert await house.ask("/tools compact") == await house.ask("/tools")
    assert await house.ask("/tools verbose") == (
        "Tools (2):\nsessions_list - Lists sessions.\nsession_status - Shows a card."
    )
    assert await house.ask("/tools all") == "Usage: /tools [compact|verbose]"
    row = await house.row()
    asked: list[tuple[str, str]] = []

    def tools(session: SessionRow, agent: AgentSettings) -> tuple[ToolSpec, ...]:
        asked.append((session.session_key, agent.agent_id))
        return ()

    house.give(tools=tools)
    assert await house.ask("/tools") == "This session has no tools."
    assert asked == [(row.session_key, "main")]


@pytest.mark.spec("CMD-11")
async def test_the_agents(house: House) -> None:
    agents = dict(house.settings.agents)
    agents["bob"] = replace(agents["bob"], name="Bob the builder")
    house.settings = replace(house.settings, agents=agents)
    assert await house.ask("/agents") == (
        "Agents:\nbob (Bob the builder): anthropic/claude-opus-4\n"
        "main: anthropic/claude-opus-4 - this session, default"
    )


@pytest.mark.spec("CMD-11", "CMD-13")
async def test_the_configuration_is_shown_to_owners_where_it_is_allowed(house: House) -> None:
    assert await house.read(say("c1", "/config show"), FRIEND) == Ignored()
    assert (
        await house.ask("/config show") == "/config is switched off. Set commands.config to true to use it."
    )
    house.rules = replace(house.rules, config=True)
    assert await house.ask("/config") == "/config is not available in this gateway yet."
    shown = {"": "{all}", "session.reset": "{reset}", "long": "x" * 7000}
    house.give(show_config=shown.get)
    assert await house.ask("/config show") == "{all}"
    assert await house.ask("/config") == "{all}"
    assert await house.ask("/config get session.reset") == "{reset}"
    assert await house.ask("/config show nothing") == "The configuration has nothing at 'nothing'."
    assert (await house.ask("/config set a=b")).startswith("/config only shows")
    long = await house.ask("/config show long")
    assert long.startswith("x" * 6000 + "\n… cut here")


@pytest.mark.spec("CMD-11", "CMD-13")
async def test_debugging_shows_the_entry_where_it_is_allowed(house: House) -> None:
    await create(house.store, MAIN, label="here")
    assert await house.read(say("c1", "/debug"), FRIEND) == Ignored()
    assert await house.ask("/debug") == "/debug is switched off. Set commands.debug to true to use it."
    house.rules = replace(house.rules, debug=True)
    shown = await house.ask("/debug show")
    assert shown.startswith(f"{KEY}\n{{")
    assert '"label": "here"' in shown


@pytest.mark.spec("CMD-11", "CMD-13")
async def test_a_restart_is_refused_with_the_way_to_do_it(house: House) -> None:
    text = await house.ask("/restart")
    assert text.startswith("The gateway is not restarted from a chat.")
    assert "openclaw gateway" in text
    assert await house.read(say("c1", "/restart"), FRIEND) == Ignored()
