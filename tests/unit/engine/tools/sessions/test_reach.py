"""References and visibility: which session is meant, and what a caller is told who may not see it."""

from __future__ import annotations

from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from openclaw.engine.tools.sessions.reach import Reached, Refused
from openclaw.store.sqlite import SqliteDatabase
from openclaw.store.store import Store
from tests.conformance.making import execute, in_memory
from tests.unit.engine.tools.sessions.room import OWN, Room, text_of

UUID = "2f6f4a52-7c3e-4a4e-9b57-3f1f3a9f0c11"
CHILD = "agent:main:subagent:c1"


def key_of(found: Reached | Refused) -> str:
    assert isinstance(found, Reached), found
    return found.key


@pytest.mark.spec("TOOL-6", "KEY-2", "KEY-18", "KEY-19", "KEY-26", "STAT-4")
@pytest.mark.parametrize(
    ("reference", "key"),
    [
        ("main", "main"),
        ("MAIN", "main"),
        ("agent:main:main", "main"),
        ("current", OWN),
        ("Current", OWN),
        ("openclaw-tui", OWN),
        ("cli", OWN),
        (OWN, OWN),
        ("Agent:MAIN:Work", OWN),
        ("work", OWN),
        (UUID, CHILD),
        (UUID.upper(), CHILD),
        (f"  {UUID} ", CHILD),
        ("subagent:c1", CHILD),
        ("odd-id", CHILD + "2"),
        ("cron:job", "agent:main:cron:job"),
        ("telegram:direct:7", "agent:main:telegram:dm:7"),
        ("agent:bob:main", "agent:bob:main"),
    ],
)
async def test_a_reference_is_a_key_a_short_key_or_an_id(room: Room, reference: str, key: str) -> None:
    room.configure(tools={"sessions": {"visibility": "all"}, "agentToAgent": {"enabled": True}})
    await room.add("agent:main:main")
    await room.add(CHILD, session_id=UUID)
    await room.add(CHILD + "2", session_id="odd-id")
    await room.add("agent:main:cron:job", kind="cron")
    await room.add("agent:main:telegram:dm:7")
    await room.add("agent:bob:main")
    assert key_of(await room.reach.resolve(reference, room.context())) == key


@pytest.mark.spec("KEY-2")
async def test_main_is_the_callers_own(room: Room) -> None:
    room.configure(tools={"sessions": {"visibility": "all"}, "agentToAgent": {"enabled": True}})
    await room.add("agent:main:main")
    await room.add("agent:bob:main")
    found = await room.reach.resolve("main", room.context("agent:bob:main"))
    assert isinstance(found, Reached)
    assert (found.key, found.row.session_key) == ("main", "agent:bob:main")
    other = await room.reach.resolve("agent:main:main", room.context("agent:bob:main"))
    assert key_of(other) == "agent:main:main"


@pytest.mark.spec("TOOL-6")
async def test_the_id_of_an_earlier_window_names_that_window(room: Room) -> None:
    before = await room.add(CHILD, session_id=UUID, spawned_by=OWN)
    after, _ = await room.store.reset_session(CHILD, "new", session_id="next-id", now_ms=2)
    earlier = await room.reach.resolve(UUID, room.context())
    now = await room.reach.resolve("next-id", room.context())
    by_key = await room.reach.resolve(CHILD, room.context())
    assert isinstance(earlier, Reached)
    assert isinstance(now, Reached)
    assert isinstance(by_key, Reached)
    assert earlier.window_no == before.window_no != after.window_no
    assert now.window_no == by_key.window_no == after.window_no
    assert earlier.row.entry.session_id == now.row.entry.session_id == "next-id"


@pytest.mark.spec("TOOL-6", "STAT-5")
@pytest.mark.parametrize("reference", ["nobody", UUID, "agent:main:nobody", "unknown", "global"])
async def test_what_is_not_there_is_an_error_that_names_it(room: Room, reference: str) -> None:
    await room.add("unknown", kind="unknown")
    await room.add("global", kind="global")
    found = await room.reach.resolve(reference, room.context())
    assert isinstance(found, Refused)
    assert found.status == "error"
    assert found.error == (
        f"No session {reference!r}. Pass the key or sessionId of a row of sessions_list, or `current`."
    )


@pytest.mark.spec("KEY-16", "KEY-15")
async def test_under_global_scope_the_one_session_is_called_main(room: Room) -> None:
    room.configure(session={"scope": "global"})
    await room.add("global", kind="global")
    for reference in ("main", "current", "global", "agent:main:main"):
        found = await room.reach.resolve(reference, room.context("global"))
        assert isinstance(found, Reached), reference
        assert (found.key, found.row.session_key) == ("main", "global")


@pytest.mark.spec("VIS-4")
@pytest.mark.parametrize(
    ("tools", "reference", "setting"),
    [
        ({}, "agent:main:other", "tools.sessions.visibility"),
        ({"sessions": {"visibility": "self"}}, CHILD, "tools.sessions.visibility"),
        ({"sessions": {"visibility": "agent"}}, "agent:bob:main", "tools.sessions.visibility"),
        ({"sessions": {"visibility": "all"}}, "agent:bob:main", "tools.agentToAgent.enabled"),
        (
            {"sessions": {"visibility": "all"}, "agentToAgent": {"enabled": True, "allow": ["bob"]}},
            "agent:bob:main",
            "tools.agentToAgent.allow",
        ),
    ],
)
async def test_a_refusal_names_the_setting_to_change(
    room: Room, tools: dict[str, object], reference: str, setting: str
) -> None:
    await room.add(CHILD, spawned_by=OWN)
    await room.add("agent:main:other")
    await room.add("agent:bob:main")
    room.configure(tools=tools)
    found = await room.reach.resolve(reference, room.context())
    assert isinstance(found, Refused)
    assert found.status == "forbidden"
    assert setting in found.error


@pytest.mark.spec("VIS-5")
async def test_the_registry_of_helpers_makes_an_owner(room: Room) -> None:
    await room.add(CHILD)
    hidden = await room.reach.resolve(CHILD, room.context())
    assert isinstance(hidden, Refused)

    await execute(
        room.database,
        "INSERT INTO spawns (child_run_id, parent_key, child_key, parent_run_id, tool_call_id, state, body, "
        "created_at) VALUES ('r', $1, $2, 'p', 't', 'active', x'', 0)",
        OWN,
        CHILD,
    )
    assert key_of(await room.reach.resolve(CHILD, room.context())) == CHILD
    assert isinstance(await room.reach.resolve(CHILD, room.context("agent:main:other")), Refused)


@pytest.mark.spec("VIS-7")
@pytest.mark.parametrize("visibility", ["self", "tree", "agent", "all"])
async def test_to_a_sandboxed_caller_hidden_and_missing_are_the_same(room: Room, visibility: str) -> None:
    room.configure(tools={"sessions": {"visibility": visibility}, "agentToAgent": {"enabled": True}})
    await room.add("agent:main:other", session_id=UUID)
    await room.add("agent:bob:main")
    await room.add("unknown", kind="unknown")
    context = room.context(sandboxed=True)
    references = ("agent:main:other", "agent:main:nobody", UUID, UUID.replace("2", "3"), "nobody", "unknown")
    told = {await room.reach.resolve(reference, context) for reference in (*references, "agent:bob:main")}
    (only,) = told
    assert isinstance(only, Refused)
    assert only.status == "forbidden"
    assert "agents.defaults.sandbox.mode" in only.error
    assert not any(reference in only.error for reference in references)


@pytest.mark.spec("TOOL-7")
@pytest.mark.parametrize(
    "reference",
    [
        "",
        "   ",
        ":::",
        "a\x00b",
        "\ud800",
        "x" * 10_000,
        "agent:main",
        "agent::",
        "agent:main:hook：x",
        "group:7",
    ],
)
async def test_what_cannot_be_a_reference_is_an_error_and_never_a_crash(room: Room, reference: str) -> None:
    for sandboxed in (False, True):
        found = await room.reach.resolve(reference, room.context(sandboxed=sandboxed))
        assert isinstance(found, Refused)
        said = found.outcome()
        assert said.is_error
        assert len(text_of(said)) < 600
        text_of(said).encode()


@settings(max_examples=25, deadline=None)
@given(
    st.lists(
        st.text(max_size=60)
        | st.sampled_from(["agent:", "main:", "current:", "thread:"]).map(lambda word: word * 9),
        max_size=20,
    )
)
def test_any_text_reaches_the_own_session_or_nothing(texts: list[str]) -> None:
    async def scenario(_store: Store, database: SqliteDatabase) -> None:
        with TemporaryDirectory() as home:
            room = Room(database, Path(home))
            await room.add(OWN)
            await room.add("agent:main:hidden", session_id=UUID)
            for text in texts:
                found = await room.reach.resolve(text, room.context())
                assert isinstance(found, Refused) or found.row.session_key == OWN

    in_memory(scenario)


async def test_a_stored_name_that_is_no_key_is_shown_as_it_is(room: Room) -> None:
    sight = room.reach.sight(room.context())
    assert sight.show_key("agent:main") == "agent:main"
    assert sight.show_key("agent:main:main") == "main"
    assert sight.show_key("agent:bob:main") == "agent:bob:main"
