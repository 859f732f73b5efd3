"""agents_list: the agents that a session may spawn, its own first."""

from __future__ import annotations

from typing import Any

import pytest

from tests.unit.engine.tools.sessions.room import Json, Room

MAIN: Json = {"id": "main", "configured": True, "model": "fake/one"}
BOB: Json = {"id": "bob", "name": "Bob", "configured": True, "model": "fake/one"}


def agents(allow: list[str] | None, defaults: list[str] | None = None) -> Json:
    main: Json = {"id": "main", "default": True}
    if allow is not None:
        main["subagents"] = {"allowAgents": allow}
    base: Json = {"model": {"primary": "fake/one"}}
    if defaults is not None:
        base["subagents"] = {"allowAgents": defaults}
    others = [{"id": "bob", "name": "Bob"}, {"id": "amy", "model": "fake/two"}]
    return {"defaults": base, "list": [main, *others]}


AMY: Json = {"id": "amy", "configured": True, "model": "fake/two"}


@pytest.mark.spec("AGL-1", "AGL-2", "SPAWN-6")
@pytest.mark.parametrize(
    ("allow", "defaults", "allow_any", "shown"),
    [
        (None, None, False, [MAIN]),
        ([], ["bob"], False, [MAIN]),
        (["bob"], None, False, [MAIN, BOB]),
        (None, ["bob"], False, [MAIN, BOB]),
        (["*"], None, True, [MAIN, AMY, BOB]),
        (["ghost", "bob"], None, False, [MAIN, BOB, {"id": "ghost", "configured": False}]),
    ],
)
async def test_the_allowed_agents(
    room: Room, allow: Any, defaults: Any, allow_any: bool, shown: list[Json]
) -> None:
    room.configure(agents=agents(allow, defaults))
    assert await room.ask("agents_list") == {"requester": "main", "allowAny": allow_any, "agents": shown}


@pytest.mark.spec("AGL-2")
async def test_the_requester_comes_first_even_when_it_is_not_configured_any_more(room: Room) -> None:
    room.configure(agents=agents(["*"]))
    own = await room.ask("agents_list", as_key="agent:bob:main")
    assert own == {"requester": "bob", "allowAny": False, "agents": [BOB]}
    gone = await room.ask("agents_list", as_key="agent:gone:main")
    assert gone["agents"] == [{"id": "gone", "configured": False}]


@pytest.mark.spec("AGL-2", "TOOL-7")
async def test_it_takes_no_parameters(room: Room) -> None:
    (spec,) = room.registry.specs(["agents_list"])
    assert spec.parameters["properties"] == {}
    answer = await room.ask("agents_list", agentId="bob")
    assert answer["status"] == "error"
    assert "`agentId`" in answer["error"]
