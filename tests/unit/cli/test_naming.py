"""Which session a person means, and what is said when it is none or several."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from openclaw.cli.naming import fits
from openclaw.errors import InvalidRequest
from tests.unit.cli.conftest import Command
from tests.unit.cli.fake_gateway import FakeGateway, Json, running, session

ROWS = [
    session("agent:main:main", label="Daily notes", sessionId="aaaa1111-x"),
    session("agent:main:telegram:group:42", displayName="Family", sessionId="bbbb2222-x"),
    session("agent:work:main", sessionId="bbbb3333-x"),
    session("agent:work:plan", label="Plan of work", sessionId="cccc4444-x", archived=True),
]


def resolve(params: Json) -> Json:
    if "\n" in str(params):
        raise InvalidRequest("a session key cannot hold a line break")
    if params.get("agentId") == "nobody":
        raise InvalidRequest('unknown agent id "nobody"; configured: main, work')
    owner = params.get("agentId") or "main"
    for row in ROWS:
        exact = params.get("key") in (row["key"], str(row["key"]).removeprefix(f"agent:{owner}:"))
        if (
            exact
            or params.get("label") == row.get("label", "")
            or params.get("sessionId") == row["sessionId"]
        ):
            return {"ok": True, "key": row["key"], "agentId": row["agentId"]}
    return {"ok": False}


def listed(params: Json) -> Json:
    wanted = str(params["search"]).casefold()
    fields = ("key", "label", "displayName", "sessionId")
    rows = [row for row in ROWS if any(wanted in str(row.get(name, "")).casefold() for name in fields)]
    rows = [row for row in rows if params.get("agentId") in (None, row["agentId"])]
    assert params["archived"] == "all"
    return {"ts": 1, "path": "/s", "totalCount": len(rows), "hasMore": False, "sessions": rows}


def described(params: Json) -> Json:
    return {"session": next((row for row in ROWS if row["key"] == params["key"]), None)}


@pytest.fixture
def gateway(point_at: Callable[[FakeGateway], Path]) -> Iterator[FakeGateway]:
    answers = {"sessions.resolve": resolve, "sessions.list": listed, "sessions.describe": described}
    with running(FakeGateway(answers)) as fake:
        point_at(fake)
        yield fake


@pytest.mark.parametrize(
    ("typed", "key"),
    [
        (("main",), "agent:main:main"),
        (("agent:work:main",), "agent:work:main"),
        (("main", "--agent", "work"), "agent:work:main"),
        (("Daily notes",), "agent:main:main"),
        (("daily",), "agent:main:main"),
        (("fam",), "agent:main:telegram:group:42"),
        (("42",), "agent:main:telegram:group:42"),
        (("aaaa1111-x",), "agent:main:main"),
        (("cccc",), "agent:work:plan"),
        (("  plan ",), "agent:work:plan"),
        (("GROUP:42",), "agent:main:telegram:group:42"),
    ],
)
def test_a_session_is_found_by_anything_that_names_it(
    gateway: FakeGateway, command: Command, typed: tuple[str, ...], key: str
) -> None:
    outcome = command("sessions", "show", *typed, "--json")
    assert outcome.code == 0, outcome.out
    assert outcome.json()["session"]["key"] == key


def test_what_fits_several_sessions_lists_them_and_touches_none(
    gateway: FakeGateway, command: Command
) -> None:
    outcome = command("sessions", "show", "bbbb")
    assert (outcome.code, outcome.out) == (1, "")
    assert "'bbbb' fits 2 sessions" in outcome.err
    assert "  agent:main:telegram:group:42\n" in outcome.err and "  agent:work:main\n" in outcome.err
    deleting = command("sessions", "delete", "main", "bbbb", "--yes", "--json")
    assert deleting.code == 1 and deleting.json()["error"]["type"] == "usage"
    assert gateway.called("sessions.delete") == []


@pytest.mark.parametrize("typed", ["nothing", "two\nlines", "bbb", "\udce9", "x" * 512])
def test_what_fits_none_says_where_to_look(gateway: FakeGateway, command: Command, typed: str) -> None:
    outcome = command("sessions", "show", typed)
    assert (outcome.code, outcome.out) == (1, "")
    assert "no session is called" in outcome.err and "openclaw sessions" in outcome.err


@pytest.mark.parametrize("typed", ["", "  ", "a\0b", "x" * 513, "k" * 10_240])
def test_what_cannot_be_a_name_is_refused_before_anybody_is_asked(
    gateway: FakeGateway, command: Command, typed: str
) -> None:
    outcome = command("sessions", "show", typed)
    assert (outcome.code, outcome.out) == (1, "") and outcome.err.startswith("openclaw: ")
    assert gateway.calls == []


def test_an_agent_that_does_not_exist_is_told_apart_from_a_session(
    gateway: FakeGateway, command: Command
) -> None:
    outcome = command("sessions", "show", "main", "--agent", "nobody")
    assert outcome.code == 1 and "configured: main, work" in outcome.err


def test_an_id_is_abbreviated_by_no_less_than_four_characters() -> None:
    row = session("agent:main:x", sessionId="abcdef")
    assert fits(row, "abcd") and fits(row, "ABCDE")
    assert not fits(row, "abc") and not fits(row, "bcde")
    assert fits(row, "x") and not fits(row, "main")
    assert not fits(session("agent:main:x", label=None), "none")


def test_many_candidates_are_cut_short(command: Command, point_at: Callable[[FakeGateway], Path]) -> None:
    rows = [session(f"agent:main:p{number}", label=f"Project {number}") for number in range(12)]
    answers = {
        "sessions.resolve": lambda _params: {"ok": False},
        "sessions.list": lambda _params: {"sessions": rows},
    }
    with running(FakeGateway(answers)) as fake:
        point_at(fake)
        outcome = command("sessions", "history", "project")
    assert outcome.code == 1 and "fits 12 sessions" in outcome.err
    assert "agent:main:p9  (Project 9)" in outcome.err and "p10" not in outcome.err
    assert "… 2 more" in outcome.err
