"""Sessions as a list and as a tree."""

from __future__ import annotations

from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from openclaw.tui.rows import (
    QUIET,
    RUNNING,
    UNREAD,
    age_of,
    branch_words,
    branches_of,
    facts_of,
    fits,
    mark_of,
    newest_first,
    short_key,
    title_of,
)

Json = dict[str, Any]


def test_titles() -> None:
    row: Json = {
        "key": "agent:main:notes",
        "derivedTitle": "About tea",
        "displayName": "Tea",
        "label": "tea time",
    }
    assert title_of(row) == "tea time"
    del row["label"]
    assert title_of(row) == "Tea"
    del row["displayName"]
    assert title_of(row) == "About tea"
    assert title_of({"key": "agent:main:notes"}) == "notes"
    assert title_of({"key": "agent:main:main", "isMain": True, "derivedTitle": "hi"}) == "main"
    assert title_of({"key": "agent:main:main", "isMain": True, "label": "home"}) == "home"
    assert title_of({"key": "agent:bob:notes:x"}) == "bob/notes:x"
    assert short_key("global") == "global" and title_of({}) == ""
    assert title_of({"label": "a\x1b[2Jb\nc"}) == "a\ufffd[2Jb c"
    assert len(title_of({"label": "x" * 1000})) == 120


def test_marks() -> None:
    assert mark_of({"key": "a", "hasActiveRun": True, "unread": True}, "a") == RUNNING
    assert mark_of({"key": "a", "unread": True}, "b") == UNREAD
    assert mark_of({"key": "a", "unread": True}, "a") == QUIET, "what is open is being read"
    assert mark_of({"key": "a"}, "b") == QUIET


def test_order_age_and_search() -> None:
    rows: list[Json] = [
        {"key": "old", "updatedAt": 1},
        {"key": "pinned", "updatedAt": 0, "pinned": True},
        {"key": "b", "updatedAt": 9},
        {"key": "a", "updatedAt": 9},
        {"key": "never"},
    ]
    assert [row["key"] for row in newest_first(rows)] == ["pinned", "a", "b", "old", "never"]
    used: Json = {"updatedAt": 100_000, "lastInteractionAt": 60_000}
    assert [age_of({"updatedAt": 1}, at) for at in (0, 1, 60_000, 60_001)] == ["now", "now", "now", "1m"]
    assert (age_of(used, 180_000), age_of({"updatedAt": 60_000}, 120_000), age_of({}, 5)) == ("2m", "1m", "")
    row = {"key": "agent:main:tea", "label": "Green Leaves"}
    assert fits(row, "") and fits(row, "LEAV green") and fits(row, "main:tea")
    assert not fits(row, "green coffee")


def test_facts_of_a_session() -> None:
    assert facts_of({}) == ""
    row = {"model": "one", "totalTokens": 12_000, "contextTokens": 32_000, "thinkingLevel": "high"}
    assert facts_of(row) == "one · 12k/32k tokens · thinking high"
    assert facts_of({"model": "one", "totalTokens": 5, "contextTokens": 0, "thinkingLevel": "off"}) == "one"


def test_a_tree_puts_helpers_below_who_asked() -> None:
    nodes: list[Json] = [
        {"key": "main"},
        {"key": "h1", "spawnedBy": "main"},
        {"key": "other"},
        {"key": "h2", "parentSessionKey": "main"},
        {"key": "h1a", "spawnedBy": "h1"},
        {"key": "lost", "spawnedBy": "gone"},
        {"key": "self", "spawnedBy": "self"},
    ]
    shown = [(branch.key, branch.depth) for branch in branches_of(nodes)]
    assert shown == [
        ("main", 0), ("h1", 1), ("h1a", 2), ("h2", 1), ("other", 0), ("lost", 0), ("self", 0),
    ]  # fmt: skip


@settings(max_examples=200, deadline=None)
@given(st.lists(st.tuples(st.integers(0, 8), st.integers(0, 9)), max_size=20))
def test_every_session_is_in_the_tree_once_whatever_the_ties(ties: list[tuple[int, int]]) -> None:
    nodes = [{"key": f"k{key}", "spawnedBy": f"k{above}"} for key, above in ties]
    shown = [branch.key for branch in branches_of(nodes)]
    assert sorted(shown) == sorted({node["key"] for node in nodes})


def test_how_a_helper_is_doing() -> None:
    row = {"status": "done", "totalTokens": 1500, "estimatedCostUsd": 0.25}
    assert branch_words(row) == "done 1.5k $0.25"
    assert branch_words({"hasActiveRun": True, "status": "done", "estimatedCostUsd": 0.001}) == "running <1¢"
    assert branch_words({"totalTokens": 0, "estimatedCostUsd": 0}) == ""
