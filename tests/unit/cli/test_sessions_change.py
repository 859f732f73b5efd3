"""Changing sessions from the command line: what is asked, what is told, and how to undo it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from openclaw.protocol.scopes import ADMIN, WRITE
from tests.unit.cli.conftest import Command
from tests.unit.cli.fake_gateway import FakeGateway, Json, running, session

ROWS = {name: session(f"agent:main:{name}", sessionId=f"id-{name}") for name in ("one", "two", "main")}


def resolve(params: Json) -> Json:
    row = ROWS.get(str(params.get("key")).removeprefix("agent:main:"))
    return {"ok": True, "key": row["key"]} if row else {"ok": False}


def patched(params: Json) -> Json:
    entry = {name: params[name] for name in ("label",) if params.get(name)}
    entry |= {"archivedAt": 5} if params.get("archived") else {}
    return {"ok": True, "path": "/s", "key": params["key"], "entry": entry, "resolved": {}}


@pytest.fixture
def gateway(point_at: Callable[[FakeGateway], Path]) -> Iterator[FakeGateway]:
    answers = {
        "sessions.resolve": resolve,
        "sessions.list": lambda _params: {"sessions": []},
        "sessions.describe": lambda params: {"session": ROWS[params["key"].removeprefix("agent:main:")]},
        "sessions.patch": patched,
        "sessions.delete": lambda params: {
            "ok": True,
            "key": params["key"],
            "deleted": True,
            "archived": ["/a"],
        },
        "sessions.restore": lambda _params: {
            "ok": True,
            "key": "agent:main:one",
            "entry": {"sessionId": "id-0"},
        },
    }
    with running(FakeGateway(answers)) as fake:
        point_at(fake)
        yield fake


def test_a_label_is_given_and_taken_away(gateway: FakeGateway, command: Command) -> None:
    given = command("sessions", "rename", "one", "My notes")
    assert (given.code, given.out) == (0, "agent:main:one is called 'My notes' now.\n")
    assert gateway.called("sessions.patch") == [{"key": "agent:main:one", "label": "My notes"}]
    assert gateway.connects[0].scopes == (WRITE,)
    cleared = command("sessions", "rename", "one", "--clear", "--json")
    assert cleared.json() == {"ok": True, "key": "agent:main:one", "label": None}
    assert gateway.called("sessions.patch")[1] == {"key": "agent:main:one", "label": None}
    assert command("sessions", "rename", "one", "--clear").out == "agent:main:one has no label now.\n"


@pytest.mark.parametrize("arguments", [("one",), ("one", "x", "--clear"), ("one", "  ")])
def test_a_name_without_a_sense_is_refused(
    gateway: FakeGateway, command: Command, arguments: tuple[str, ...]
) -> None:
    outcome = command("sessions", "rename", *arguments)
    assert outcome.code == 1 and "--clear" in outcome.err and gateway.calls == []


def test_sessions_are_put_away_and_taken_back(gateway: FakeGateway, command: Command) -> None:
    away = command("sessions", "archive", "one", "two", "one")
    assert (away.code, away.out) == (0, "agent:main:one archived\nagent:main:two archived\n")
    assert "Take them back with: openclaw sessions unarchive agent:main:one agent:main:two" in away.err
    assert gateway.called("sessions.patch") == [
        {"key": f"agent:main:{name}", "archived": True, "expectedSessionId": f"id-{name}"}
        for name in ("one", "two")
    ]
    back = command("sessions", "unarchive", "one", "--json")
    assert (back.code, back.err) == (0, "")
    assert back.json() == {"ok": True, "sessions": [{"key": "agent:main:one", "archived": False}]}
    assert command("sessions", "unarchive", "two").out == "agent:main:two is back in the list\n"


def test_a_change_that_the_gateway_does_not_confirm_is_a_failure(
    gateway: FakeGateway, command: Command
) -> None:
    gateway.answers["sessions.patch"] = lambda params: {"ok": True, "key": params["key"], "entry": {}}
    outcome = command("sessions", "archive", "one")
    assert (outcome.code, outcome.out) == (1, "") and "did not confirm" in outcome.err
    gateway.answers["sessions.patch"] = lambda params: {"key": params["key"], "entry": {"archivedAt": 3}}
    assert command("sessions", "unarchive", "one").code == 1


def test_deleting_says_how_to_undo_it(gateway: FakeGateway, command: Command) -> None:
    outcome = command("sessions", "delete", "one", "--yes")
    assert (outcome.code, outcome.out) == (0, "agent:main:one deleted\n")
    assert outcome.err == "Undo with: openclaw sessions restore agent:main:one\n"
    assert gateway.called("sessions.delete") == [{"key": "agent:main:one", "expectedSessionId": "id-one"}]
    assert gateway.connects[-1].scopes == (ADMIN,)
    as_json = command("sessions", "delete", "two", "--yes", "--json")
    gone = {"key": "agent:main:two", "deleted": True, "archived": ["/a"]}
    assert (as_json.json(), as_json.err) == ({"ok": True, "sessions": [gone]}, "")
    gateway.answers["sessions.delete"] = lambda params: {"ok": True, "key": params["key"], "deleted": False}
    missing = command("sessions", "delete", "two", "--yes")
    assert (missing.out, missing.err) == ("agent:main:two was gone already\n", "")
    assert command("sessions", "delete", "two", "--yes", "--json").json()["ok"] is False


def test_nothing_is_deleted_when_nobody_can_be_asked(gateway: FakeGateway, command: Command) -> None:
    outcome = command("sessions", "delete", "one")
    assert outcome.code == 1 and "--yes" in outcome.err
    assert gateway.called("sessions.delete") == []


def test_restoring_names_the_conversation_that_is_back(gateway: FakeGateway, command: Command) -> None:
    outcome = command("sessions", "restore", "one", "--agent", "main")
    assert (outcome.code, outcome.out) == (0, "agent:main:one is back at its earlier conversation (id-0).\n")
    assert gateway.called("sessions.restore") == [{"key": "one", "agentId": "main"}]
    assert command("sessions", "restore", "one", "--json").json()["key"] == "agent:main:one"
    gateway.answers["sessions.restore"] = lambda _params: {"ok": True, "key": "k", "restored": "delete"}
    assert command("sessions", "restore", "one").out == "k is there again.\n"
