"""The start-up budget of the session commands: none of them loads the server while a gateway runs."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from tests.unit.cli.fake_gateway import FakeGateway, Json, Twice, listing_of, running, session
from tests.unit.cli.test_startup import SERVER, loaded_by, offenders

ROW = session("agent:main:main")


def history(_params: Json) -> Json:
    said = {"role": "user", "content": "hello", "__openclaw": {"id": "e1", "seq": 1}}
    return {"sessionKey": "agent:main:main", "sessionId": "s", "messages": [said], "hasMore": False}


def turn(params: Json) -> Twice:
    accepted = {"status": "accepted", "sessionKey": "agent:main:main", "runId": params["idempotencyKey"]}
    return Twice(accepted, {"status": "ok", "result": {"payloads": [{"text": "hi"}]}})


@pytest.mark.spec("OWN-1")
@pytest.mark.parametrize(
    "arguments",
    [
        ("sessions", "show", "main"),
        ("sessions", "history", "main"),
        ("sessions", "search", "words"),
        ("sessions", "tree"),
        ("sessions", "archive", "main"),
        ("agent", "-m", "hello"),
        ("chat",),
    ],
)
def test_a_session_command_loads_no_server(
    point_at: Callable[[FakeGateway], Path], arguments: tuple[str, ...]
) -> None:
    answers = {
        "sessions.list": listing_of([ROW]),
        "sessions.resolve": lambda _params: {"ok": True, "key": ROW["key"]},
        "sessions.describe": lambda _params: {"session": ROW},
        "sessions.search": lambda _params: {"results": []},
        "sessions.patch": lambda params: {"key": params["key"], "entry": {"archivedAt": 1}},
        "sessions.messages.subscribe": lambda params: {"subscribed": True, "key": params["key"]},
        "chat.history": history,
        "agent": turn,
    }
    with running(FakeGateway(answers)) as gateway:
        point_at(gateway)
        loaded = loaded_by(*arguments)
    assert "websockets.sync.client" in loaded
    assert offenders(loaded, (*SERVER, "rich", "textual")) == set()
