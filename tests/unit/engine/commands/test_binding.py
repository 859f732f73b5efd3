"""/focus, /unfocus, /session and what /agents says of them."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from openclaw.domain.bindings import HOUR_MS, BindingTerms, BoundPlace
from openclaw.domain.commands import CommandCaller
from openclaw.domain.entry import DeliveryContext
from openclaw.engine.commands.ports import Handled
from openclaw.store.bindings import Bindings
from openclaw.store.records import SessionSeed
from tests.conformance.making import MAIN, create, say, seed
from tests.unit.engine.commands.house import KEY, House

ROUTE = DeliveryContext("pigeon", "Flock", "default", "T1")
THREAD = BoundPlace("pigeon", "default", "Flock", "T1")
OWNER = CommandCaller(authorised=True, owner=True, sender="pigeon:1", channel="pigeon")
FRIEND = CommandCaller(authorised=True, sender="pigeon:2", channel="pigeon")
POET = seed("subagent:aa11")
NOTES = seed("notes")


async def tell(
    house: House,
    text: str,
    caller: CommandCaller = OWNER,
    route: DeliveryContext | None = ROUTE,
    to: SessionSeed = MAIN,
) -> str:
    new = say(f"c-{house.ids.uuid()}", text, to=to, source="channel")
    new = replace(new, body=replace(new.body, route=route, deliver=route is not None))
    outcome = await house.read(new, caller)
    assert isinstance(outcome, Handled), outcome
    assert outcome.text is not None
    return outcome.text


async def bound_to(house: House, place: BoundPlace = THREAD) -> str | None:
    found = await Bindings(house.database).bound(place, house.settings.thread_bindings, house.clock.now_ms())
    return None if found is None else found.session.session_key


@pytest.fixture
async def staffed(house: House) -> House:
    await create(house.store, POET, spawned_by=KEY, display_name="poet")
    await create(house.store, NOTES, label="work notes")
    await create(house.store, seed("old"), archived_at=1)
    return house


@pytest.mark.spec("BIND-2", "CMD-11")
async def test_a_place_is_given_to_a_session_and_freed_again(staffed: House) -> None:
    assert await tell(staffed, "/unfocus") == "This place is not bound to a session."
    text = await tell(staffed, "/focus 1")
    assert text == (
        "This thread belongs to poet now: what is written here goes there. /unfocus ends that. "
        "It ends by itself after 1d without a message."
    )
    assert await bound_to(staffed) == POET.session_key
    assert await bound_to(staffed, BoundPlace("pigeon", "default", "Flock")) is None
    assert await tell(staffed, "/unfocus", FRIEND, to=POET) == "This thread is not bound any more."
    assert await bound_to(staffed) is None


@pytest.mark.spec("BIND-2")
@pytest.mark.parametrize(
    ("target", "found"),
    [
        (POET.session_key, POET),
        ("subagent:aa11", POET),
        ("last", POET),
        (NOTES.session_key, NOTES),
        ("notes", NOTES),
        ("work notes", NOTES),
    ],
)
async def test_an_owner_names_a_session_by_key_name_or_label(
    staffed: House, target: str, found: SessionSeed
) -> None:
    await tell(staffed, f"/focus {target}")
    assert await bound_to(staffed) == found.session_key


@pytest.mark.spec("BIND-2")
async def test_others_reach_helpers_of_their_own_session_only(staffed: House) -> None:
    for target in (NOTES.session_key, "notes", "work notes", "agent:bob:main"):
        assert "No sub-agent is called" in await tell(staffed, f"/focus {target}", FRIEND)
        assert await bound_to(staffed) is None
    assert "has no sub-agents" in await tell(staffed, "/focus last", FRIEND, to=NOTES)
    await tell(staffed, "/focus last", FRIEND)
    assert await bound_to(staffed) == POET.session_key


async def test_an_archived_or_unknown_session_is_refused(staffed: House) -> None:
    assert "is archived" in await tell(staffed, "/focus old")
    assert "No sub-agent is called" in await tell(staffed, "/focus nobody")
    assert await bound_to(staffed) is None


@pytest.mark.spec("BIND-2")
async def test_without_a_place_there_is_nothing_to_bind(staffed: House) -> None:
    for text in ("/focus last", "/unfocus", "/session idle 2h"):
        told = await tell(staffed, text, route=None)
        assert told == "This works in a chat of a channel; here there is no place that could be bound."
    staffed.settings = replace(staffed.settings, thread_bindings=BindingTerms(enabled=False))
    assert "session.threadBindings.enabled" in await tell(staffed, "/focus last")


@pytest.mark.spec("BIND-2")
async def test_terms_are_shown_set_and_obeyed(staffed: House) -> None:
    assert await tell(staffed, "/session idle 2h") == "This place is not bound to a session."
    await tell(staffed, "/focus last")
    state = f"This thread belongs to {POET.session_key}.\nIdle: 1d, max-age: off."
    assert await tell(staffed, "/focus") == state
    assert await tell(staffed, "/session") == state
    assert await tell(staffed, "/session idle 2h") == "This thread stays bound for 2h without a message."
    assert await tell(staffed, "/session max-age 7d") == "This thread stays bound for 7d in all."
    assert (await tell(staffed, "/session")).endswith("Idle: 2h, max-age: 7d.")
    assert "12h, 90m, 7d, or off" in await tell(staffed, "/session idle soon")
    assert "/session" in await tell(staffed, "/session colour red")
    staffed.clock.at_ms += 2 * HOUR_MS - 1
    assert await bound_to(staffed) == POET.session_key
    assert "until somebody ends it" in await tell(staffed, "/session idle off")
    staffed.clock.at_ms += 7 * 24 * HOUR_MS - 2 * HOUR_MS
    assert await bound_to(staffed) == POET.session_key
    staffed.clock.at_ms += 1
    assert await bound_to(staffed) is None
    assert await tell(staffed, "/focus") == "This place is not bound to a session. Usage: /focus [target]"


@pytest.mark.spec("BIND-2", "CMD-11")
async def test_agents_lists_the_threads_of_a_session_and_its_helpers(staffed: House) -> None:
    assert "Bound threads" not in await tell(staffed, "/agents")
    chat = DeliveryContext("pigeon", "101", "default")
    told = await tell(staffed, f"/focus {KEY}", route=chat)
    assert told.startswith("This chat belongs to")
    assert (await tell(staffed, "/agents")).splitlines()[-2:] == ["Bound threads:", f"pigeon 101: {KEY}"]
    staffed.clock.at_ms += 24 * HOUR_MS
    assert "Bound threads" not in await tell(staffed, "/agents")


@pytest.mark.spec("BIND-2")
async def test_the_same_message_again_binds_nothing_anew(staffed: House) -> None:
    new = say("c-same", "/focus last", source="channel")
    new = replace(new, body=replace(new.body, route=ROUTE, deliver=True))
    first = await staffed.read(new, OWNER)
    await tell(staffed, "/unfocus", to=POET)
    second = await staffed.read(new, OWNER)
    assert isinstance(first, Handled) and isinstance(second, Handled)
    assert second.duplicate and second.text == first.text
    assert await bound_to(staffed) is None
