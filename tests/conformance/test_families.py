"""Families of sessions, on every database."""

from __future__ import annotations

from typing import Any

import pytest

from openclaw.store.database import Database
from openclaw.store.families import MOST_DEPTH, Families, FamilyQuery
from openclaw.store.records import SessionSeed
from openclaw.store.store import Store
from tests.conformance.making import MAIN, NOON, create, seed

KEY = MAIN.session_key


@pytest.fixture(params=["few", "many"])
def families(database: Database, request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Families:
    """Both ways of finding helpers answer alike."""
    if request.param == "many":
        monkeypatch.setattr("openclaw.store.families.FEW", -1)
    return Families(database)


def helper(name: str, above: str = KEY, agent_id: str = "main") -> SessionSeed:
    return seed(name, agent_id, kind="subagent", spawned_by=above)


async def read(families: Families, **asked: Any) -> tuple[str, bool]:
    """The last words of the keys in their order, and whether helpers were left out."""
    family = await families.read(FamilyQuery(**asked))
    return " ".join(one.row.session_key.rpartition(":")[2] for one in family.members), family.more


async def test_only_sessions_with_helpers_and_their_helpers_are_in_a_tree(
    store: Store, families: Families
) -> None:
    assert await read(families) == ("", False)
    await create(store, MAIN)
    await create(store, seed("alone"))
    assert await read(families) == ("", False)
    await create(store, helper("one"))
    await create(store, helper("two", "agent:main:one", "bob"))
    await create(store, seed("thread", parent_session_key="agent:main:alone"))
    assert await read(families) == ("main alone one two thread", False)
    assert await read(families, key="agent:bob:two") == ("main one two", False)
    assert await read(families, key="agent:main:alone") == ("alone thread", False)
    assert await read(families, key="agent:main:nobody") == ("", False)


async def test_who_spawned_a_session_is_above_it_whatever_else_it_belongs_to(
    store: Store, families: Families
) -> None:
    await create(store, MAIN)
    await create(store, seed("other"))
    await create(store, seed("both", spawned_by=KEY, parent_session_key="agent:main:other"))
    assert await read(families) == ("main both", False)
    assert await read(families, key="agent:main:other") == ("other", False)
    assert await read(families, key="agent:main:both") == ("main both", False)


async def test_archived_helpers_are_shown_when_asked_for(store: Store, families: Families) -> None:
    await create(store, MAIN)
    await create(store, helper("old"), archived_at=NOON)
    assert await read(families) == ("", False)
    await create(store, helper("gone"), archived_at=NOON)
    await create(store, helper("live", "agent:main:gone"))
    # Who is above somebody that is shown is shown as well.
    assert await read(families) == ("main gone live", False)
    assert await read(families, archived=True) == ("main old gone live", False)
    assert await read(families, key=KEY) == ("main", False)
    assert await read(families, key=KEY, archived=True) == ("main old gone live", False)


async def test_the_newest_helpers_come_first_into_a_small_tree(store: Store, families: Families) -> None:
    await create(store, MAIN)
    for number in range(4):
        await create(store, helper(f"h{number}"))
    assert await read(families, limit=4) == ("main h0 h1 h2 h3", False)
    assert await read(families, limit=3) == ("main h1 h2 h3", True)
    assert await read(families, limit=1) == ("main h3", True)
    assert await read(families, key=KEY, limit=5) == ("main h0 h1 h2 h3", False)
    assert await read(families, key=KEY, limit=4) == ("main h0 h1 h2", True)


async def test_a_circle_and_an_endless_line_end(store: Store, families: Families) -> None:
    await create(store, helper("a", "agent:main:b"))
    await create(store, helper("b", "agent:main:a"))
    await create(store, helper("self", "agent:main:self"))
    await create(store, helper("orphan", "agent:main:nobody"))
    assert await read(families) == ("a b self orphan", False)
    assert await read(families, key="agent:main:a") == ("a b", False)
    assert await read(families, key="agent:main:self") == ("self", False)
    await create(store, seed("n0"))
    for number in range(1, MOST_DEPTH + 3):
        await create(store, helper(f"n{number}", f"agent:main:n{number - 1}"))
    shown, _ = await read(families, key="agent:main:n0")
    assert shown.split() == [f"n{number}" for number in range(MOST_DEPTH + 1)]
    assert await read(families, limit=1) == (
        " ".join(f"n{number}" for number in range(2, MOST_DEPTH + 3)),
        True,
    )
