"""The history view by property: always bounded, always honest about itself, never a crash."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from openclaw.domain.history import HISTORY_MAX_BYTES, view_history

TEXT = st.text(max_size=30) | st.integers(0, 9000).map(lambda size: "w" * size)
JSON_VALUE: st.SearchStrategy[Any] = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**40), 2**40)
    | st.floats(allow_nan=False)
    | st.text(max_size=12),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=8,
)
BLOCK = st.one_of(
    st.builds(lambda text: {"type": "text", "text": text}, TEXT),
    st.builds(lambda text: {"type": "thinking", "thinking": text, "thinkingSignature": "s"}, TEXT),
    st.builds(
        lambda value: {"type": "toolCall", "id": "c", "name": "n", "arguments": {"a": value}}, JSON_VALUE
    ),
    st.builds(lambda text: {"type": "image", "data": text}, TEXT),
    JSON_VALUE,
)
MESSAGE = st.builds(
    lambda role, content, extra: {"role": role, "content": content, **extra},
    st.sampled_from(["user", "assistant", "toolResult", "tool", "system"]),
    st.lists(BLOCK, max_size=4) | TEXT,
    st.dictionaries(st.sampled_from(["usage", "details", "timestamp", "note"]), JSON_VALUE, max_size=2),
)


@pytest.mark.spec("HIST-2", "HIST-11", "HIST-12")
@given(st.lists(MESSAGE, max_size=30), st.integers(1, 40), st.booleans())
@settings(max_examples=150, deadline=None)
def test_the_view_is_bounded_and_says_what_it_did(
    messages: list[dict[str, Any]], limit: int, include_tools: bool
) -> None:
    view = view_history(messages, limit=limit, include_tools=include_tools)
    eligible = [row for row in messages if include_tools or row["role"] not in ("toolResult", "tool")]

    assert view.bytes == len(msgspec.json.encode(view.messages))
    assert view.bytes <= HISTORY_MAX_BYTES
    assert len(view.messages) <= limit
    assert view.truncated == (view.dropped_messages or view.content_truncated)
    assert view.dropped_messages == (len(view.messages) < min(limit, len(eligible)))
    if view.messages:
        assert [row["role"] for row in view.messages] == [row["role"] for row in eligible][
            -len(view.messages) :
        ]


@pytest.mark.spec("HIST-6", "TRX-11")
@given(st.lists(MESSAGE, max_size=6), st.integers(0, 5), st.integers(0, 3000))
@settings(max_examples=100, deadline=None)
def test_a_known_secret_never_leaves_in_any_text(
    messages: list[dict[str, Any]], place: int, padding: int
) -> None:
    secret = "the-known-secret-of-this-test"
    said = " " * padding + secret
    for role in ("user", "assistant", "toolResult"):
        messages.insert(place, {"role": role, "content": [{"type": "text", "text": said}], "note": said})

    view = view_history(messages, include_tools=True, known_secrets=frozenset({secret}))

    assert secret.encode() not in msgspec.json.encode(view.messages)
