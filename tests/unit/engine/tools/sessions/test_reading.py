"""Which stored messages are worth a view: a room of characters, and pictures that cost nothing."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from openclaw.engine.tools.sessions.reading import ReadPage, read_messages
from openclaw.store.records import StoredEntry


def entries(*contents: Any) -> list[StoredEntry]:
    bodies = (msgspec.json.encode({"role": "user", "content": content}) for content in contents)
    return [
        StoredEntry(seq, f"{seq:08x}", None, "message", "user", None, "people", None, 0, body)
        for seq, body in enumerate(bodies, start=1)
    ]


def contents(page: ReadPage) -> list[Any]:
    return [message["content"] for message in page.messages]


def test_the_newest_that_fit_come_in_their_order() -> None:
    made = entries("a" * 10, "b" * 10, "c" * 10)
    for room, kept in ((0, "c"), (10, "c"), (19, "c"), (20, "bc"), (29, "bc"), (30, "abc"), (99, "abc")):
        page = read_messages(made, room)
        assert [content[0] for content in contents(page)] == list(kept)
        assert (page.chars, page.cut) == (10 * len(kept), len(kept) < 3)
    assert read_messages([], 5) == ReadPage([], 0, False)


@pytest.mark.parametrize(
    ("content", "chars"),
    [
        ("x" * 300_000, 262_144),
        ([{"type": "text", "text": "x" * 300_000}, {"type": "text", "text": "yy"}], 262_146),
        ([{"type": "image", "data": "A" * 9000, "mimeType": "image/png"}], 0),
        ([{"type": "toolCall", "id": "c", "name": "n", "arguments": {}}], 54),
        ([{"type": "text", "text": 5}], 24),
        ([7, None, "z"], 0),
        (None, 0),
        ({"odd": 1}, 0),
    ],
)
def test_what_a_message_costs(content: Any, chars: int) -> None:
    assert read_messages(entries(content), 0).chars == chars
