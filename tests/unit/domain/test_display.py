"""What `chat.history` shows (RPC-11), which rows it hides, and bounded details (TRX-10)."""

from __future__ import annotations

import copy
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from openclaw.domain.display import (
    DETAILS_MAX_BYTES,
    DISPLAY_MAX_BYTES,
    DISPLAY_MAX_CHARS,
    bound_details,
    is_silent,
    omit_media,
    project_message,
    project_messages,
    text_of_content,
    visible_rows,
)

MARK = "\n…(truncated)…"


def user(content: Any, **fields: Any) -> dict[str, Any]:
    return {"role": "user", "content": content, "timestamp": 1, **fields}


def assistant(*texts: str, **fields: Any) -> dict[str, Any]:
    blocks = [{"type": "text", "text": text} for text in texts]
    return {"role": "assistant", "content": blocks, "timestamp": 2, **fields}


def heartbeat(text: str = "Anything new?") -> dict[str, Any]:
    return user(text, provenance={"kind": "internal_system"})


@pytest.mark.spec("RPC-11")
def test_text_is_cut_to_8000_characters_unless_told_otherwise() -> None:
    assert DISPLAY_MAX_CHARS == 8000
    for build in (user, assistant):
        whole, long = build("é" * 8000), build("é" * 8001)
        shown = project_message(long)

        assert project_message(whole) == whole
        assert shown is not None
        assert text_of_content(shown) == "é" * 8000 + MARK
        assert text_of_content(project_message(long, max_chars=3) or {}) == "ééé" + MARK
        assert text_of_content(long) == "é" * 8001


@pytest.mark.spec("RPC-11")
def test_thinking_is_cut_and_loses_its_signature() -> None:
    message = assistant("hi")
    message["content"].insert(0, {"type": "thinking", "thinking": "x" * 9, "thinkingSignature": "abc"})

    shown = project_message(message, max_chars=8)

    assert shown is not None
    assert shown["content"] == [
        {"type": "thinking", "thinking": "x" * 8 + MARK},
        {"type": "text", "text": "hi"},
    ]
    assert message["content"][0]["thinkingSignature"] == "abc"


@pytest.mark.spec("RPC-11", "TRX-10")
def test_details_go_and_usage_stays_with_the_assistant_only() -> None:
    heavy = {"details": {"a": 1}, "usage": {"input": 1}, "cost": {"total": 1}, "toolCallId": "c1"}
    result = {"role": "toolResult", "content": [], **heavy}

    assert project_message(result) == {"role": "toolResult", "content": [], "toolCallId": "c1"}
    assert project_message(user("x", **heavy)) == user("x", toolCallId="c1")
    shown = project_message(assistant("x", **heavy))
    assert shown == assistant("x", usage={"input": 1}, cost={"total": 1}, toolCallId="c1")


@pytest.mark.spec("RPC-11")
@pytest.mark.parametrize(
    ("block", "shown"),
    [
        (
            {"type": "image", "data": "AAAA", "mimeType": "image/png"},
            {"type": "image", "mimeType": "image/png", "omitted": True, "bytes": 3},
        ),
        ({"type": "audio", "data": "AAAAAA=="}, {"type": "audio", "omitted": True, "bytes": 4}),
        ({"type": "audio", "data": "AAAAAAA="}, {"type": "audio", "omitted": True, "bytes": 5}),
        (
            {"type": "image", "data": "data:image/png;base64,AAAA"},
            {"type": "image", "omitted": True, "bytes": 3},
        ),
        (
            {"type": "image", "source": {"type": "base64", "data": "AAAA"}},
            {"type": "image", "omitted": True, "bytes": 3},
        ),
        ({"type": "image", "source": "elsewhere"}, {"type": "image", "omitted": True}),
        ({"type": "image", "bytes": 7}, {"type": "image", "omitted": True, "bytes": 7}),
        ({"type": "image", "data": None}, {"type": "image", "omitted": True}),
    ],
)
def test_media_is_replaced_by_its_size(block: dict[str, Any], shown: dict[str, Any]) -> None:
    before = copy.deepcopy(block)

    assert omit_media(block) == shown
    assert project_message(user([{"type": "text", "text": "see"}, block])) == user(
        [{"type": "text", "text": "see"}, shown]
    )
    assert block == before


@pytest.mark.spec("RPC-11")
def test_other_blocks_and_fields_pass_through() -> None:
    call = {"type": "toolCall", "id": "c1", "name": "ls", "arguments": {"data": "AAAA"}}
    message = assistant("x", stopReason="toolUse", __openclaw={"id": "m1", "seq": 4})
    message["content"] += [call, "odd", {"type": "text", "text": 5}]

    assert project_message(message) == message
    assert project_message({"role": "system"}) == {"role": "system"}
    assert project_message({"role": "user", "content": None}) == {"role": "user", "content": None}
    assert project_message(user(({"type": "text", "text": "t"},))) == user([{"type": "text", "text": "t"}])


@pytest.mark.spec("RPC-11")
def test_a_message_over_128_kib_becomes_a_placeholder_that_can_still_be_addressed() -> None:
    meta = {"id": "m1", "seq": 4, "runId": "r1", "transport": "x"}
    call: dict[str, Any] = {"type": "toolCall", "id": "c", "name": "n", "arguments": {"a": ""}}
    message = {"role": "assistant", "content": [call], "timestamp": 9, "__openclaw": meta}
    room = DISPLAY_MAX_BYTES - len(msgspec.json.encode(message))
    assert DISPLAY_MAX_BYTES == 128 * 1024

    call["arguments"]["a"] = "x" * room
    assert project_message(message) == message

    call["arguments"]["a"] = "x" * (room + 1)
    assert project_message(message) == {
        "role": "assistant",
        "content": [{"type": "text", "text": "[chat.history omitted: message too large]"}],
        "timestamp": 9,
        "__openclaw": {"id": "m1", "seq": 4, "runId": "r1", "truncated": True, "reason": "oversized"},
    }
    bare = project_message({"role": "user", "content": None, "extra": "x" * DISPLAY_MAX_BYTES})
    assert bare is not None
    assert bare["__openclaw"] == {"truncated": True, "reason": "oversized"}
    assert "timestamp" not in bare


@pytest.mark.spec("RPC-11")
def test_the_bound_in_bytes_can_be_moved() -> None:
    message = user("x" * 100)
    size = len(msgspec.json.encode(message))
    assert project_message(message, max_bytes=size) == message
    cut_off = project_message(message, max_bytes=size - 1)
    assert cut_off is not None and cut_off["__openclaw"]["reason"] == "oversized"
    large = user("x" * (2 * DISPLAY_MAX_BYTES))
    assert project_message(large, max_chars=10**9, max_bytes=10**9) == large


@pytest.mark.spec("RPC-11")
@pytest.mark.parametrize(
    ("message", "silent"),
    [
        (assistant("NO_REPLY"), True),
        (assistant("  no_reply\n"), True),
        (assistant("", "No_Reply"), True),
        ({"role": "assistant", "content": "NO_REPLY"}, True),
        (
            {
                "role": "assistant",
                "content": [{"type": "thinking", "thinking": "x"}, {"type": "text", "text": "NO_REPLY"}],
            },
            True,
        ),
        (
            {
                "role": "assistant",
                "content": [{"type": "text", "text": "NO_REPLY"}, {"type": "toolCall", "id": "1"}],
            },
            False,
        ),
        ({"role": "assistant", "content": [{"type": "text", "text": "NO_REPLY"}, "odd"]}, False),
        ({"role": "assistant", "content": None}, False),
        (assistant("NO_REPLY needed"), False),
        (assistant("NO_REPLY", "NO_REPLY"), False),
        (assistant(), False),
        (user("NO_REPLY"), False),
    ],
)
def test_a_reply_that_is_only_the_silent_token_is_hidden(message: dict[str, Any], silent: bool) -> None:
    assert is_silent(message) is silent
    assert (project_message(message) is None) is silent
    assert (visible_rows([message]) == []) is silent


@pytest.mark.spec("RPC-11", "AUTO-7")
@pytest.mark.parametrize(
    ("reply", "hidden"),
    [
        ("HEARTBEAT_OK", True),
        (" HEARTBEAT_OK \n", True),
        ("HEARTBEAT_OK" + "x" * 300, True),
        ("x" * 300 + "\nHEARTBEAT_OK", True),
        ("HEARTBEAT_OK" + "x" * 301, False),
        ("x" * 301 + "HEARTBEAT_OK", False),
        ("so HEARTBEAT_OK it is", False),
        ("heartbeat_ok", False),
        ("all well", False),
    ],
)
def test_a_heartbeat_that_was_only_acknowledged_is_hidden_with_its_prompt(reply: str, hidden: bool) -> None:
    rows = [user("before"), heartbeat(), assistant(reply), user("after")]

    assert (project_messages(rows) == [rows[0], rows[3]]) is hidden
    assert (len(visible_rows(rows)) == 4) is not hidden


@pytest.mark.spec("RPC-11")
def test_only_a_prompt_that_the_system_made_is_hidden() -> None:
    ack = assistant("HEARTBEAT_OK")
    imported = user("Read HEARTBEAT.md and reply HEARTBEAT_OK when nothing needs attention.")
    person = user("What does HEARTBEAT_OK in HEARTBEAT.md mean?", provenance={"kind": "external_user"})
    tool_row = {"role": "toolResult", "content": [{"type": "text", "text": "x"}]}
    busy = assistant("HEARTBEAT_OK")
    busy["content"].append({"type": "toolCall", "id": "1"})

    assert visible_rows([imported, ack]) == []
    for rows in (
        [ack],
        [person, ack],
        [user("HEARTBEAT_OK?"), ack],
        [user("see HEARTBEAT.md"), ack],
        [heartbeat(), tool_row, ack],
        [assistant("HEARTBEAT.md HEARTBEAT_OK, as I said before, is what I answer" * 9), ack],
        [heartbeat(), user("HEARTBEAT_OK")],
        [heartbeat(), busy],
    ):
        assert visible_rows(rows) == rows


@pytest.mark.spec("RPC-11")
def test_two_pairs_in_a_row_are_both_hidden() -> None:
    rows = [
        heartbeat(),
        assistant("HEARTBEAT_OK"),
        heartbeat(),
        assistant("NO_REPLY"),
        assistant("HEARTBEAT_OK"),
        user("x"),
    ]

    assert visible_rows(rows) == [rows[-1]]


def test_text_of_content_joins_text_blocks_only() -> None:
    blocks = [{"type": "text", "text": "a"}, {"type": "thinking", "text": "no"}, "odd", {"type": "text"}]

    assert text_of_content({"content": [*blocks, {"type": "text", "text": "b"}]}) == "a\nb"
    assert text_of_content({"content": "plain"}) == "plain"
    assert text_of_content({"content": 5}) == ""
    assert text_of_content({}) == ""


@pytest.mark.spec("TRX-10")
def test_details_are_kept_whole_or_marked_as_cut() -> None:
    assert DETAILS_MAX_BYTES == 8192
    small = {"path": "a", "lines": [1, 2]}
    assert bound_details(small) is small

    exact = {"a": "x" * (64 - len('{"a":""}'))}
    assert bound_details(exact, 64) is exact
    assert bound_details({"a": exact["a"] + "x"}, 64) == {"persistedDetailsTruncated": True}

    big = {"huge": "x" * 9000, "exitCode": 0, "persistedDetailsTruncated": False}
    assert bound_details(big) == {"persistedDetailsTruncated": True, "exitCode": 0}
    assert big["exitCode"] == 0


@pytest.mark.spec("TRX-10")
@given(st.dictionaries(st.text(max_size=8), st.text(max_size=60), max_size=12), st.integers(40, 400))
@settings(max_examples=200, deadline=None)
def test_bounded_details_fit_and_hold_only_what_was_there(details: dict[str, str], room: int) -> None:
    kept = bound_details(details, room)

    assert len(msgspec.json.encode(kept)) <= room
    if kept is not details:
        assert kept.pop("persistedDetailsTruncated") is True
        assert kept.items() <= details.items()
        assert len(msgspec.json.encode(details)) > room


@pytest.mark.spec("RPC-11")
@given(
    st.lists(
        st.sampled_from(
            [heartbeat(), assistant("HEARTBEAT_OK"), assistant("NO_REPLY"), user("x"), assistant("y")]
        ),
        max_size=12,
    )
)
@settings(max_examples=150, deadline=None)
def test_no_real_message_is_ever_hidden(rows: list[dict[str, Any]]) -> None:
    real = [row for row in rows if row in (user("x"), assistant("y"))]
    shown = project_messages(rows)

    assert [row for row in shown if row in (user("x"), assistant("y"))] == real
    assert assistant("NO_REPLY") not in shown
