"""Arguments that no person would type: NUL, halves of characters, look-alikes, ten thousand letters."""

from __future__ import annotations

import json

import pytest

from tests.unit.engine.tools.sessions.room import OWN, Json, Room, text_of, user

TEXTS = ("\x00", "a\x00b", "\ud800", "ｍａｉｎ", "x" * 10_000, "%_\\", "'; DROP TABLE sessions; --", "\u202e")


@pytest.mark.spec("TOOL-7")
@pytest.mark.parametrize("text", TEXTS)
async def test_every_text_parameter_takes_anything_and_answers(room: Room, text: str) -> None:
    await room.say(OWN, user("hello"))
    asked: list[tuple[str, Json]] = [
        ("sessions_list", {"search": text}),
        ("sessions_list", {"label": text}),
        ("sessions_list", {"agentId": text}),
        ("sessions_list", {"kinds": [text]}),
        ("sessions_history", {"sessionKey": text}),
        ("sessions_history", {"sessionKey": "current", "messageId": text}),
        ("sessions_search", {"query": text}),
        ("sessions_search", {"query": "hello", "agentId": text}),
        ("sessions_search", {"query": "hello", "sessionKey": text}),
        ("session_status", {"sessionKey": text}),
        ("session_status", {"model": text}),
        ("agents_list", {text: 1}),
    ]
    for tool, arguments in asked:
        outcome = await room.outcome(tool, arguments)
        said = text_of(outcome)
        said.encode()
        assert "inside the gateway" not in said, (tool, arguments)
        assert len(said) < 2000, (tool, arguments)
        if outcome.is_error:
            assert json.loads(said).keys() == {"status", "error"}
    row = await room.store.session(OWN)
    assert row is not None
    assert row.entry.model_override is None
