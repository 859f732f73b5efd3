"""The tree of helpers: who asked whom, how far they are and what it cost."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from openclaw.cli.sessions_tree import Family, state_of
from tests.unit.cli.conftest import Command
from tests.unit.cli.fake_gateway import FakeGateway, Json, listing_of, running, session


def helper(name: str, of: str, **fields: Any) -> Json:
    return session(f"agent:main:subagent:{name}", spawnedBy=of, **fields)


BOSS = "agent:main:main"
ROWS = [
    session(BOSS, 1, status="done", runtimeMs=65_000, estimatedCostUsd=0.5),
    helper("b", BOSS, createdAt=2, hasActiveRun=True, label="second"),
    helper("a", BOSS, createdAt=1, status="done", archived=True, label="first"),
    helper("a1", "agent:main:subagent:a", status="failed"),
    session("agent:main:alone", 5),
    helper("orphan", "agent:main:gone"),
]


def test_helpers_stand_below_who_asked_for_them(
    command: Command, point_at: Callable[[FakeGateway], Path]
) -> None:
    with running(FakeGateway({"sessions.list": listing_of(ROWS)})) as fake:
        point_at(fake)
        outcome = command("sessions", "tree")
        as_json = command("sessions", "tree", "--json").json()
        assert fake.called("sessions.list")[0]["archived"] == "all"
    assert (outcome.code, outcome.err) == (0, "")
    rows = [line.split("  ") for line in outcome.out.splitlines()]
    assert [row[0].strip() for row in rows] == [
        "Session",
        BOSS,
        "├─ agent:main:subagent:a",
        "│ └─ agent:main:subagent:a1",
        "└─ agent:main:subagent:b",
    ]
    assert "done, archived" in outcome.out and "running" in outcome.out
    assert "1m" in outcome.out and "$0.5000" in outcome.out and "6.4k" in outcome.out
    (boss,) = as_json["sessions"]
    assert (boss["key"], boss["state"], boss["runtimeMs"], boss["estimatedCostUsd"]) == (
        BOSS,
        "done",
        65_000,
        0.5,
    )
    assert [child["label"] for child in boss["children"]] == ["first", "second"]
    assert [child["state"] for child in boss["children"][0]["children"]] == ["failed"]


def test_the_family_of_one_session(command: Command, point_at: Callable[[FakeGateway], Path]) -> None:
    child = ROWS[3]
    answers = {
        "sessions.list": listing_of(ROWS),
        "sessions.resolve": lambda _params: {"ok": True, "key": child["key"]},
        "sessions.describe": lambda _params: {"session": child},
    }
    with running(FakeGateway(answers)) as fake:
        point_at(fake)
        assert command("sessions", "tree", "a1").out.splitlines()[1].startswith(BOSS)
        fake.answers["sessions.describe"] = lambda _params: {"session": ROWS[4]}
        alone = command("sessions", "tree", "alone", "--json").json()
        fake.answers["sessions.list"] = listing_of([ROWS[4]])
        assert command("sessions", "tree").out == "No session has helpers.\n"
    assert [one["key"] for one in alone["sessions"]] == ["agent:main:alone"]
    assert alone["sessions"][0]["children"] == []


def test_the_state_of_a_session() -> None:
    assert state_of(session("k", hasActiveRun=True, status="done")) == "running"
    assert state_of(session("k")) == "new"
    assert state_of(session("k", status="timeout", archived=True)) == "timeout, archived"


@given(st.lists(st.integers(0, 11), min_size=1, max_size=12))
@settings(max_examples=200, deadline=None)
def test_any_claim_of_ancestry_makes_trees_in_which_a_session_stands_once(parents: list[int]) -> None:
    """Also circles and sessions that name themselves; a parent outside of the list is none."""
    rows = [session(f"k{number}", spawnedBy=f"k{parent}") for number, parent in enumerate(parents)]
    family = Family(rows)
    for root in family.roots():
        walked = [str(node.row["key"]) for node in family.walk(root)]
        assert len(walked) == len(set(walked)) and walked[0] == root
    for row in rows:
        nested = family.nested(family.top_of(str(row["key"])))
        assert nested["key"].startswith("k")


def test_a_very_deep_line_of_helpers_is_walked_quickly() -> None:
    rows = [session("k0"), *(session(f"k{n}", spawnedBy=f"k{n - 1}") for n in range(1, 20_000))]
    family = Family(rows)
    nodes = family.walk(family.top_of("k19999"))
    assert len(nodes) == 20_000 and max(node.depth for node in nodes) == 20
