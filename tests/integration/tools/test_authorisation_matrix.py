"""Who may see what: every session tool x every level x sandboxed or not x every relation.

The tables are written by hand from the specification (SPEC §12) and know nothing of the code. A new session
tool needs a `Probe` and a table here: a test fails until it has them.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest
from msgspec import Struct

from openclaw.app import Gateway
from openclaw.domain.transcript import TextBlock
from openclaw.engine.ports import ToolContext
from tests.integration.conftest import House, Json
from tests.integration.tools.asking import NOW, add_session, ask_all

CALLER = "agent:main:caller"
# How each other session is related to the caller.
PEOPLE = {
    "self": CALLER,
    "child": "agent:main:child",
    "thread": "agent:main:thread",  # below the caller by parentSessionKey
    "foreign-child": "agent:bob:child",  # spawned by the caller, of another agent
    "grandchild": "agent:main:grandchild",
    "sibling": "agent:main:sibling",
    "parent": "agent:main:parent",
    "same-agent": "agent:main:stranger",
    "other-agent": "agent:bob:stranger",
    "unknown": "agent:main:nobody",
}

# "yes": it is shown. "no": refused as forbidden. "err": there is none, and the answer says so.
# `boxed` is whether the caller is sandboxed, `a2a` whether tools.agentToAgent is enabled.
BY_REFERENCE = """
level  boxed a2a | self child thread foreign-child grandchild sibling parent same-agent other-agent unknown
self   no    off | yes  no    no     no            no         no      no     no         no          err
self   no    on  | yes  no    no     no            no         no      no     no         no          err
tree   no    off | yes  yes   yes    yes           no         no      no     no         no          err
tree   no    on  | yes  yes   yes    yes           no         no      no     no         no          err
agent  no    off | yes  yes   yes    no            yes        yes     yes    yes        no          err
agent  no    on  | yes  yes   yes    no            yes        yes     yes    yes        no          err
all    no    off | yes  yes   yes    yes           yes        yes     yes    yes        no          err
all    no    on  | yes  yes   yes    yes           yes        yes     yes    yes        yes         err
self   yes   off | yes  no    no     no            no         no      no     no         no          no
self   yes   on  | yes  no    no     no            no         no      no     no         no          no
tree   yes   off | yes  yes   yes    yes           no         no      no     no         no          no
tree   yes   on  | yes  yes   yes    yes           no         no      no     no         no          no
agent  yes   off | yes  yes   yes    yes           no         no      no     no         no          no
agent  yes   on  | yes  yes   yes    yes           no         no      no     no         no          no
all    yes   off | yes  yes   yes    yes           no         no      no     no         no          no
all    yes   on  | yes  yes   yes    yes           no         no      no     no         no          no
"""

# What a tool that lists shows by itself: "yes" is a row, "-" is none; nothing is refused.
LISTED = """
level  boxed a2a | self child thread foreign-child grandchild sibling parent same-agent other-agent unknown
self   no    off | yes  -     -      -             -          -       -      -          -           -
self   no    on  | yes  -     -      -             -          -       -      -          -           -
tree   no    off | yes  yes   yes    yes           -          -       -      -          -           -
tree   no    on  | yes  yes   yes    yes           -          -       -      -          -           -
agent  no    off | yes  yes   yes    -             yes        yes     yes    yes        -           -
agent  no    on  | yes  yes   yes    -             yes        yes     yes    yes        -           -
all    no    off | yes  yes   yes    yes           yes        yes     yes    yes        -           -
all    no    on  | yes  yes   yes    yes           yes        yes     yes    yes        yes         -
self   yes   off | yes  -     -      -             -          -       -      -          -           -
self   yes   on  | yes  -     -      -             -          -       -      -          -           -
tree   yes   off | yes  yes   yes    yes           -          -       -      -          -           -
tree   yes   on  | yes  yes   yes    yes           -          -       -      -          -           -
agent  yes   off | yes  yes   yes    yes           -          -       -      -          -           -
agent  yes   on  | yes  yes   yes    yes           -          -       -      -          -           -
all    yes   off | yes  yes   yes    yes           -          -       -      -          -           -
all    yes   on  | yes  yes   yes    yes           -          -       -      -          -           -
"""

# A tool that names no session answers the same everywhere.
NAMES_NONE = "names no session"


class Probe(Struct, frozen=True):
    """How a tool is asked about a session, and how its answer shows that the session was seen.

    `ask` is None for a tool that names no session; `by_reference` False for one that lists.
    """

    ask: Callable[[str], Json] | None
    saw: Callable[[str, str], bool]
    by_reference: bool = True


def _lists(text: str, key: str) -> bool:
    return key in {row["key"] for row in json.loads(text)["sessions"]}


def _hits(text: str, key: str) -> bool:
    return key in {hit["sessionKey"] for hit in json.loads(text).get("hits", ())}


PROBES: dict[str, tuple[tuple[Probe, str], ...]] = {
    "sessions_list": ((Probe(lambda _key: {}, _lists, by_reference=False), LISTED),),
    "sessions_history": (
        (
            Probe(lambda key: {"sessionKey": key}, lambda text, key: f"said in {key}" in text),
            BY_REFERENCE,
        ),
    ),
    "sessions_search": (
        (Probe(lambda key: {"query": "said", "sessionKey": key}, _hits), BY_REFERENCE),
        (Probe(lambda _key: {"query": "said"}, _hits, by_reference=False), LISTED),
    ),
    "session_status": (
        (Probe(lambda key: {"sessionKey": key}, lambda text, key: f"Session: {key}," in text), BY_REFERENCE),
    ),
    "agents_list": ((Probe(None, lambda text, _key: '"requester":"main"' in text), NAMES_NONE),),
    "sessions_send": (
        (
            Probe(
                lambda key: {"sessionKey": key, "message": "hello", "timeoutSeconds": 0},
                lambda text, _key: '"status":"accepted"' in text,
            ),
            BY_REFERENCE,
        ),
    ),
    # The registry knows the children that a session spawned itself, and these sessions were not spawned.
    "subagents": (
        (
            Probe(
                lambda key: {"action": "kill", "target": key},
                lambda text, _key: "no helpers were started here lately" in text,
            ),
            NAMES_NONE,
        ),
    ),
    "sessions_spawn": ((Probe(None, lambda text, _key: "task" in text), NAMES_NONE),),
    "sessions_yield": ((Probe(None, lambda text, _key: '"pending":0' in text), NAMES_NONE),),
}
# They start turns or end one: asked outside a turn, in a gateway that starts nothing.
ACTING = ("sessions_send", "sessions_spawn", "sessions_yield", "subagents")


def is_session_tool(name: str) -> bool:
    return name.startswith("session") or name in ("subagents", "agents_list")


def cells(table: str) -> dict[tuple[str, str, str], dict[str, str]]:
    head, *rows = (line for line in table.splitlines() if line.strip())
    relations = head.partition("|")[2].split()
    assert set(relations) == set(PEOPLE)
    read = {}
    for row in rows:
        facts, _, words = row.partition("|")
        level, sandboxed, a2a = facts.split()
        read[level, sandboxed, a2a] = dict(zip(relations, words.split(), strict=True))
    return read


CASES = list(cells(BY_REFERENCE))


def test_the_tables_are_complete() -> None:
    expected = {
        (level, sandboxed, a2a)
        for level in ("self", "tree", "agent", "all")
        for sandboxed in ("no", "yes")
        for a2a in ("off", "on")
    }
    for table, words in ((BY_REFERENCE, {"yes", "no", "err"}), (LISTED, {"yes", "-"})):
        read = cells(table)
        assert read.keys() == expected
        assert {word for row in read.values() for word in row.values()} == words


async def people_arrive(gateway: Gateway) -> None:
    lineage: dict[str, Json] = {
        # Not by spawnedBy: a spawned session has other tools.
        "self": {"parent_session_key": PEOPLE["parent"]},
        "child": {"spawned_by": CALLER},
        "thread": {"parent_session_key": CALLER},
        "foreign-child": {"spawned_by": CALLER},
        "grandchild": {"spawned_by": PEOPLE["child"]},
        "sibling": {"spawned_by": PEOPLE["parent"]},
    }
    for relation, key in PEOPLE.items():
        if relation != "unknown":
            await add_session(gateway, key, f"said in {key}", **lineage.get(relation, {}))


def check(probe: Probe, expected: str, text: str, key: str, cell: str) -> None:
    if expected in ("yes", "-"):
        assert probe.saw(text, key) is (expected == "yes"), cell
        return
    assert not probe.saw(text, key), cell
    answer: dict[str, Any] = json.loads(text)
    assert answer.keys() == {"status", "error"}, cell
    assert answer["status"] == {"no": "forbidden", "err": "error"}[expected], cell
    assert "said in" not in text, cell


async def act(gateway: Gateway, number: int, name: str, arguments: Json, sandboxed: bool) -> str:
    """What a tool that acts answers to the caller's session."""
    context = ToolContext(
        CALLER, f"id-{CALLER}", "main", "probing", f"call_{number}", NOW, sandboxed=sandboxed
    )
    outcome = await gateway.services.workers._services.tools.call(name, arguments, context, (name,))
    if outcome.effect is not None:
        outcome = await gateway.services.store._database.write(outcome.effect)
    (block,) = outcome.content
    assert isinstance(block, TextBlock)
    return block.text


@pytest.mark.spec("VIS-1", "VIS-2", "VIS-4", "VIS-5", "VIS-6", "VIS-7", "TOOL-6")
@pytest.mark.parametrize(("level", "sandboxed", "a2a"), CASES)
async def test_every_tool_in_every_cell(house: House, level: str, sandboxed: str, a2a: str) -> None:
    house.config["tools"] = {"sessions": {"visibility": level}, "agentToAgent": {"enabled": a2a == "on"}}
    if sandboxed == "yes":
        house.config["agents"]["defaults"]["sandbox"] = {"mode": "all"}
    asked = [
        (name, probe, table, relation)
        for name, probes in PROBES.items()
        for probe, table in probes
        for relation in PEOPLE
    ]
    async with house.gateway() as gateway:
        await people_arrive(gateway)
        calls = [
            (name, probe.ask(PEOPLE[relation]) if probe.ask else {})
            for name, probe, _table, relation in asked
        ]
        looking = [call for call in calls if call[0] not in ACTING]
        answers = iter(await ask_all(house, gateway, CALLER, looking))
        await gateway.services.workers.drain()
        told = [
            await act(gateway, number, name, arguments, sandboxed == "yes")
            if name in ACTING
            else next(answers)
            for number, (name, arguments) in enumerate(calls)
        ]
    refusals: set[str] = set()
    for (name, probe, table, relation), text in zip(asked, told, strict=True):
        cell = f"{name}: {level}, sandboxed {sandboxed}, a2a {a2a}, {relation}: {text[:300]}"
        if table == NAMES_NONE:
            assert probe.saw(text, ""), cell
            continue
        check(probe, cells(table)[level, sandboxed, a2a][relation], text, PEOPLE[relation], cell)
        if probe.by_reference and not probe.saw(text, PEOPLE[relation]):
            refusals.add(text)
    if sandboxed == "yes":
        assert len(refusals) == 1  # whatever is hidden or missing, it looks the same (VIS-7)


async def test_every_session_tool_of_the_gateway_has_a_table(house: House) -> None:
    async with house.gateway() as gateway:
        registered = {
            name for name in gateway.services.workers._services.tools.names() if is_session_tool(name)
        }
    assert registered == PROBES.keys(), "write a Probe and a table for each session tool"
    assert all(PROBES.values())


@pytest.mark.spec("VIS-1", "VIS-3")
async def test_the_default_is_the_tree_and_the_old_sandbox_key_lifts_nothing(house: House) -> None:
    house.config["agents"]["defaults"]["sandbox"] = {"mode": "all", "sessionToolsVisibility": "all"}
    house.config["tools"] = {"sessions": {"visibility": "all"}, "agentToAgent": {"enabled": True}}
    async with house.gateway() as gateway:
        await people_arrive(gateway)
        (clamped,) = await ask_all(house, gateway, CALLER, [("sessions_list", {})])
    del house.config["tools"], house.config["agents"]["defaults"]["sandbox"]
    async with house.gateway() as gateway:
        (default,) = await ask_all(house, gateway, CALLER, [("sessions_list", {})])
    tree = {PEOPLE[relation] for relation in ("self", "child", "thread", "foreign-child")}
    for text in (clamped, default):
        assert {row["key"] for row in json.loads(text)["sessions"]} == tree
