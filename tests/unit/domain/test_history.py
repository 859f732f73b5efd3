"""The view behind `sessions_history` (SPEC §14): what is removed, masked, cut, and what is said about it."""

from __future__ import annotations

import copy
from typing import Any

import msgspec
import pytest

from openclaw.domain.history import (
    HISTORY_MAX_BYTES,
    HISTORY_OMITTED,
    HistoryView,
    clamp_limit,
    history_result,
    is_tool_row,
    view_history,
)

MARK = "\n…(truncated)…"
KNOWN = frozenset({"my-known-secret-value"})


def user(content: Any, **fields: Any) -> dict[str, Any]:
    return {"role": "user", "content": content, **fields}


def assistant(*blocks: dict[str, Any], **fields: Any) -> dict[str, Any]:
    return {"role": "assistant", "content": list(blocks), **fields}


def text(value: str) -> dict[str, Any]:
    return {"type": "text", "text": value}


def only(message: dict[str, Any], **options: Any) -> tuple[dict[str, Any], HistoryView]:
    view = view_history([message], **options)
    assert len(view.messages) == 1
    return view.messages[0], view


@pytest.mark.spec("HIST-1")
@pytest.mark.parametrize(
    ("asked", "given"),
    [(None, 200), (1, 1), (0, 1), (-5, 1), (200, 200), (1000, 1000), (1001, 1000), (10**9, 1000)],
)
def test_the_limit_is_clamped(asked: int | None, given: int) -> None:
    assert clamp_limit(asked) == given
    many = [user(str(at)) for at in range(1100)]
    view = view_history(many, limit=asked)
    assert [row["content"] for row in view.messages] == [str(at) for at in range(1100 - given, 1100)]
    assert not view.truncated
    assert not view.dropped_messages


@pytest.mark.spec("HIST-1", "HIST-2")
def test_tool_rows_are_left_out_by_default_and_do_not_use_up_the_limit() -> None:
    call = {"type": "toolCall", "id": "c1", "name": "ls", "arguments": {}}
    result = {"role": "toolResult", "toolCallId": "c1", "content": [text("out")]}
    legacy = {"role": "tool", "content": "out"}
    rows = [user("a"), assistant(text("b"), call), result, legacy, result]

    assert [is_tool_row(row) for row in rows] == [False, False, True, True, True]
    # The call stays in its assistant row: only results are tool rows.
    assert view_history(rows, limit=2).messages == rows[:2]
    assert view_history(rows, limit=2, include_tools=True).messages == rows[3:]
    assert view_history(rows, include_tools=True).messages == rows


@pytest.mark.spec("HIST-3")
def test_messages_keep_their_shape_and_the_originals_stay_as_they_are() -> None:
    message = assistant(
        {"type": "thinking", "thinking": "hm"},
        text("Hi"),
        {
            "type": "toolCall",
            "id": "c1",
            "name": "ls",
            "arguments": {"path": ".", "deep": [{"n": 1.5, "b": True}]},
        },
        timestamp=5,
        provider="p",
        stopReason="toolUse",
        provenance={"kind": "inter_session", "sourceSessionKey": "agent:main:main"},
        errorMessage=None,
        idempotencyKey="8f2b",
    )
    original = copy.deepcopy(message)

    row, view = only(message, known_secrets=KNOWN)

    assert row == original
    assert message == original
    assert not view.truncated
    assert not view.content_redacted


@pytest.mark.spec("HIST-4")
def test_assistant_text_is_normalised_and_only_that() -> None:
    leaked = "a<think>b</think><tool_call>{}</tool_call>c"

    assert only(assistant(text(leaked)))[0]["content"] == [text("ac")]
    assert only({"role": "assistant", "content": leaked})[0]["content"] == "ac"
    assert only(user(leaked))[0]["content"] == leaked
    assert only(user([text(leaked)]))[0]["content"] == [text(leaked)]
    thinking = {"type": "thinking", "thinking": leaked}
    assert only(assistant(thinking))[0]["content"] == [thinking]
    assert not only(assistant(text(leaked)))[1].truncated


@pytest.mark.spec("HIST-6", "HIST-7", "TRX-11")
def test_every_text_of_a_row_is_masked() -> None:
    said = "PASSWORD=hunter2 my-known-secret-value"
    shown = "PASSWORD=*** my-kno…alue"
    call = {"type": "toolCall", "id": "c", "name": "n", "arguments": {"cmd": said, "list": [said]}}
    message = assistant(text(said), {"type": "thinking", "thinking": said}, call, errorMessage=said)

    row, view = only(message, known_secrets=KNOWN)

    assert row["content"][0]["text"] == shown
    assert row["content"][1]["thinking"] == shown
    assert row["content"][2]["arguments"] == {"cmd": shown, "list": [shown]}
    assert row["errorMessage"] == shown
    assert view.content_redacted
    assert not view.truncated
    assert only(user(said))[0]["content"] == "PASSWORD=*** my-known-secret-value"
    result = {"role": "toolResult", "content": [text(said)]}
    assert only(result, include_tools=True, known_secrets=KNOWN)[0]["content"] == [text(shown)]


@pytest.mark.spec("HIST-7")
def test_a_secret_is_known_by_the_name_of_its_field_in_arguments() -> None:
    arguments = {
        "apiKey": "abc",
        "auth": {"password": "x" * 20, "tokens": 5, "token": ["a", "b"]},
        "cvv": 123,
        "sessionKey": "agent:main:main",
        "secret": "",
        "token": True,
        "clientSecret": None,
    }
    row, view = only(assistant({"type": "toolCall", "id": "c", "name": "n", "arguments": arguments}))

    assert row["content"][0]["arguments"] == {
        "apiKey": "***",
        "auth": {"password": "xxxxxx…xxxx", "tokens": 5, "token": ["***", "***"]},
        "cvv": "***",
        "sessionKey": "agent:main:main",
        "secret": "",
        "token": True,
        "clientSecret": None,
    }
    assert view.content_redacted
    assert not only(user("x", token="***"))[1].content_redacted


@pytest.mark.spec("HIST-8", "HIST-9")
def test_a_long_text_is_cut_at_4000_characters() -> None:
    whole, whole_view = only(user("é" * 4000))
    cut_row, cut_view = only(user("é" * 4001))

    assert whole["content"] == "é" * 4000
    assert not whole_view.content_truncated
    assert not whole_view.truncated
    assert cut_row["content"] == "é" * 4000 + MARK
    assert cut_view.content_truncated
    assert cut_view.truncated
    assert not cut_view.dropped_messages
    assert only(assistant(text("😀" * 4001)))[0]["content"] == [text("😀" * 4000 + MARK)]
    assert only(assistant({"type": "thinking", "thinking": "x" * 4001}))[0]["content"][0][
        "thinking"
    ].endswith(MARK)


@pytest.mark.spec("HIST-6", "HIST-9")
def test_masks_come_before_the_cut() -> None:
    secret = "ghp_" + "a1B2" * 9
    row, view = only(user("x" * 3969 + " " + secret))

    assert row["content"] == "x" * 3969 + " ghp_a1…a1B2"
    assert view.content_redacted
    assert not view.content_truncated


@pytest.mark.spec("HIST-9")
def test_heavy_fields_go_and_count_as_truncation() -> None:
    for field in ("details", "usage", "cost"):
        row, view = only(user("x", **{field: {"a": 1}}))
        assert row == user("x")
        assert view.content_truncated
        assert view.truncated
        # Only on the message itself: an argument of that name is somebody's data.
        call = {"type": "toolCall", "id": "c", "name": "n", "arguments": {field: 1}}
        assert only(assistant(call))[0] == assistant(call)

    row, view = only(assistant({"type": "thinking", "thinking": "hm", "thinkingSignature": "abc"}))
    assert row == assistant({"type": "thinking", "thinking": "hm"})
    assert view.content_truncated


@pytest.mark.spec("HIST-9")
def test_image_data_is_replaced_by_its_size() -> None:
    image = {"type": "image", "data": "AAAA", "mimeType": "image/png"}
    row, view = only(user([text("see"), image]))

    shown = {"type": "image", "mimeType": "image/png", "omitted": True, "bytes": 3}
    assert row["content"] == [text("see"), shown]
    assert view.content_truncated
    again, again_view = only(user([shown]))
    assert again["content"] == [shown]
    assert not again_view.content_truncated
    assert only(user([{"type": "image", "source": {"data": "AAAA"}}]))[1].content_truncated


@pytest.mark.spec("HIST-3")
def test_unexpected_content_is_shown_and_not_a_crash() -> None:
    odd = [5, "token=abc", None, {"type": "text", "text": 7}, ["x"]]

    assert only(user(odd))[0]["content"] == [5, "token=***", None, {"type": "text", "text": 7}, ["x"]]
    assert only(user(None))[0]["content"] is None
    assert only(user({"text": "a"}))[0]["content"] == {"text": "a"}
    assert only({"role": "user"})[0] == {"role": "user"}
    assert only({})[0] == {}
    assert only(user((text("tuple"),)))[0]["content"] == [text("tuple")]
    assert only(user("a\x00b\ud800", note="\udfff"))[0] == user("ab\ufffd", note="\ufffd")
    assert only(user("a", **{"k\x00": 1}))[0]["k\x00"] == 1
    assert only(user("a", meta={"k\x00": "v"}))[0]["meta"] == {"k": "v"}


@pytest.mark.spec("HIST-3")
def test_a_value_nested_without_end_is_cut_at_the_bound() -> None:
    def nest(levels: int) -> Any:
        value: Any = "x"
        for _ in range(levels):
            value = [value]
        return value

    row, view = only(user("a", extra=nest(64)))
    assert row["extra"] == nest(64)
    assert not view.content_truncated

    row, view = only(user("a", extra=nest(500)))
    assert view.content_truncated
    assert msgspec.json.encode(row["extra"]).startswith(b"[" * 64 + '"…'.encode())


@pytest.mark.spec("HIST-10", "HIST-11", "HIST-12")
def test_the_oldest_rows_are_dropped_until_80_kib_hold_the_rest() -> None:
    assert HISTORY_MAX_BYTES == 80 * 1024
    rows = [user("x" * 3900, timestamp=at) for at in range(100)]

    view = view_history(rows)

    assert view.dropped_messages
    assert view.truncated
    assert not view.content_truncated
    assert view.messages == rows[-len(view.messages) :]
    assert view.bytes == len(msgspec.json.encode(view.messages)) <= HISTORY_MAX_BYTES
    more = rows[-len(view.messages) - 1 :]
    assert len(msgspec.json.encode(more)) > HISTORY_MAX_BYTES


def _row_of(size: int, **fields: Any) -> dict[str, Any]:
    """A row that is `size` bytes long as JSON and that no rule cuts."""
    row = user([], **fields)
    while (room := size - len(msgspec.json.encode(row))) > 0:
        filler = min(3000, room - 3) if row["content"] else min(3000, room - 2)
        rest = room - filler - (3 if row["content"] else 2)
        if 0 < rest < 4:
            filler -= 4
        row["content"].append("x" * filler)
    assert len(msgspec.json.encode(row)) == size
    return row


@pytest.mark.spec("HIST-11", "HIST-12")
def test_the_budget_is_exact_to_the_byte() -> None:
    full = _row_of(HISTORY_MAX_BYTES - 2)
    assert view_history([full]) == HistoryView([full], False, False, False, False, HISTORY_MAX_BYTES)

    first, second = _row_of(40_000), _row_of(HISTORY_MAX_BYTES - 40_000 - 3)
    assert view_history([first, second]).messages == [first, second]
    assert view_history([first, second]).bytes == HISTORY_MAX_BYTES

    wider = _row_of(40_001)
    view = view_history([wider, second])
    assert view.messages == [second]
    assert (view.truncated, view.dropped_messages) == (True, True)


@pytest.mark.spec("HIST-10", "HIST-11", "HIST-12")
def test_a_last_message_that_is_too_large_alone_becomes_one_assistant_row() -> None:
    assert HISTORY_OMITTED == "[sessions_history omitted: message too large]"
    large = _row_of(HISTORY_MAX_BYTES - 1, timestamp=7)
    placeholder = assistant(text(HISTORY_OMITTED), timestamp=7)

    view = view_history([user("older"), large])

    assert view.messages == [placeholder]
    assert view.bytes == len(msgspec.json.encode([placeholder]))
    assert (view.truncated, view.dropped_messages) == (True, True)
    assert (view.content_truncated, view.content_redacted) == (False, False)
    untimed = _row_of(HISTORY_MAX_BYTES, timestamp="soon")
    assert view_history([untimed]).messages == [assistant(text(HISTORY_OMITTED))]


@pytest.mark.spec("HIST-12")
def test_flags_speak_of_the_rows_that_are_shown() -> None:
    secret, heavy = user("token=abc"), user("x", usage={})

    assert view_history([secret, user("y")], limit=1).content_redacted is False
    assert view_history([heavy, user("y")], limit=1).content_truncated is False
    both = view_history([heavy, secret, user("y")])
    assert (both.content_truncated, both.content_redacted, both.truncated) == (True, True, True)
    assert view_history([]) == HistoryView([], False, False, False, False, 2)
    # A row that no longer fits is not shown, so what would have been done to it is not said.
    dropped = view_history([_row_of(HISTORY_MAX_BYTES - 10, usage={}), user("y")])
    assert (dropped.dropped_messages, dropped.content_truncated) == (True, False)


@pytest.mark.spec("HIST-13")
def test_the_result_names_the_key_and_carries_the_flags_in_wire_form() -> None:
    result = history_result("main", view_history([user("token=abc")]))

    assert result == {
        "sessionKey": "main",
        "messages": [user("token=***")],
        "truncated": False,
        "droppedMessages": False,
        "contentTruncated": False,
        "contentRedacted": True,
        "bytes": len(b'[{"role":"user","content":"token=***"}]'),
    }


class _Counted(list[dict[str, Any]]):
    """A transcript that counts how many of its rows were read."""

    reads = 0

    def __reversed__(self) -> Any:
        for row in super().__reversed__():
            self.reads += 1
            yield row


@pytest.mark.spec("HIST-11")
def test_rows_older_than_the_budget_are_never_read() -> None:
    rows = _Counted(user("x" * 3900) for _ in range(10_000))
    view = view_history(rows, limit=1000)
    assert rows.reads == len(view.messages) + 1 < 30

    few = _Counted(user("x") for _ in range(10_000))
    view_history(few, limit=5)
    assert few.reads == 6


@pytest.mark.spec("HIST-8", "HIST-9")
def test_only_the_first_part_of_a_huge_text_is_looked_at() -> None:
    edge = 256 * 1024
    pem = "-----BEGIN PRIVATE KEY-----\n{}\n-----END PRIVATE KEY-----"

    whole, whole_view = only(user(pem.format("M" * (edge - 100))))
    huge, huge_view = only(user(pem.format("M" * (edge + 100)) + " tail"))

    assert whole["content"] == pem.format("***")
    assert not whole_view.content_truncated
    assert huge["content"] == "-----BEGIN PRIVATE KEY-----\n***\n"
    assert huge_view.content_truncated
    assert huge_view.content_redacted
