"""The Anthropic answer, read without a network: blocks, usage, stop reasons, garbage."""

from __future__ import annotations

import itertools
import json
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from openclaw.domain.transcript import TextBlock, ThinkingBlock, ToolCallBlock
from openclaw.engine.ports import ModelEvent, ModelPrice
from openclaw.models.anthropic_reply import MAX_BLOCKS, MessagesReply
from openclaw.models.reply import MAX_TOOL_CALLS, ReplyBroken
from tests.fakes.anthropic_server import (
    PING,
    STOP,
    FakeAnswer,
    Said,
    Thought,
    Used,
    begin,
    end,
    error,
    event,
    grow,
    start,
    streamed_answer,
    whole_answer,
)
from tests.unit.models.asking import Heard, check_contract, make_request, make_target

TARGET = make_target(api="anthropic-messages", price=ModelPrice(2.0, 8.0, 0.2, 2.5))
SAY_HI = (begin(0, type="text", text=""), grow(0, type="text_delta", text="hi"))


def read(*chunks: bytes) -> Heard:
    """What the adapter would make of a body that comes in these pieces."""
    request = make_request(target=TARGET)
    reply = MessagesReply(request)
    events: list[ModelEvent] = []
    failure = None
    try:
        for chunk in chunks:
            reply.feed(chunk)
            events += reply.take_events()
        reply.finish()
    except ReplyBroken as broken:
        failure = broken.failure
    events += reply.take_events()
    return check_contract([*events, reply.done(failure)], request)


FULL = FakeAnswer(
    blocks=(
        Thought(("let ", "me see"), "c2ln"),
        Thought(signature="aGlkZGVu", redacted=True),
        Said(("Let me ", "look.")),
        Used("look", ('{"at', '": "é"}'), "toolu_a"),
        Used("status", (), "toolu_b"),
    ),
    start_usage={
        "input_tokens": 100,
        "cache_creation_input_tokens": 30,
        "cache_read_input_tokens": 400,
        "output_tokens": 1,
    },
    end_usage={"output_tokens": 50},
)
CONTENT = (
    ThinkingBlock("let me see", "c2ln"),
    ThinkingBlock("", "redacted_thinking:aGlkZGVu"),
    TextBlock("Let me look."),
    ToolCallBlock("toolu_a", "look", {"at": "é"}),
    ToolCallBlock("toolu_b", "status", {}),
)


def check_full(heard: Heard) -> None:
    assert heard.failure is None
    assert heard.message.content == CONTENT
    assert heard.message.stop_reason == "toolUse"
    assert heard.streamed_text == "Let me look."
    assert heard.streamed_thinking == "let me see"
    usage = heard.message.usage
    assert usage is not None
    assert (usage.input, usage.output, usage.cache_read, usage.cache_write) == (100, 50, 400, 30)
    assert usage.total_tokens == 580
    assert usage.cost.total == pytest.approx((100 * 2 + 50 * 8 + 400 * 0.2 + 30 * 2.5) / 1e6)


def test_a_stream_with_everything_in_it() -> None:
    check_full(read(*streamed_answer(FULL)))


def test_the_same_answer_as_one_object() -> None:
    whole = msgspec.structs.replace(FULL, blocks=(*FULL.blocks[:4], Used("status", ("{}",), "toolu_b")))
    check_full(read(json.dumps(whole_answer(whole)).encode()))


@settings(max_examples=100, deadline=None)
@given(cuts=st.lists(st.integers(0, 2000), max_size=12))
def test_the_chunking_of_the_network_changes_nothing(cuts: list[int]) -> None:
    body = b"".join(streamed_answer(FULL))
    places = [0, *sorted(min(cut, len(body)) for cut in cuts), len(body)]
    check_full(read(*(body[a:b] for a, b in itertools.pairwise(places))))


@pytest.mark.parametrize(
    ("reason", "stop_reason"),
    [
        ("end_turn", "stop"),
        ("stop_sequence", "stop"),
        ("pause_turn", "stop"),
        ("of the future", "stop"),
        ("max_tokens", "length"),
        ("model_context_window_exceeded", "length"),
        ("tool_use", "stop"),
    ],
)
def test_stop_reasons(reason: str, stop_reason: str) -> None:
    heard = read(start(), *SAY_HI, end(reason), STOP)
    assert heard.failure is None
    assert (heard.message.stop_reason, heard.text) == (stop_reason, "hi")
    # The word is enough; so is the end without a word.
    assert read(start(), *SAY_HI, end(reason)).message.stop_reason == stop_reason
    assert read(start(), *SAY_HI, STOP).message.stop_reason == "stop"


@pytest.mark.parametrize(
    ("reason", "kind", "retryable"),
    [
        ("refusal", "refused", False),
        ("model_context_window_exceeded", "overflow", False),
        ("max_tokens", "protocol", False),
        ("end_turn", "protocol", True),
    ],
)
def test_an_answer_without_words(reason: str, kind: str, retryable: bool) -> None:
    thought = (begin(0, type="thinking", thinking="hm", signature="s"),)
    for blocks in ((), thought, (begin(0, type="text", text=" \n"),)):
        heard = read(start(), *blocks, end(reason), STOP)
        assert heard.failure is not None
        assert (heard.failure.kind, heard.failure.retryable) == (kind, retryable)


def test_a_refusal_after_words_keeps_them_but_runs_nothing() -> None:
    used = begin(1, type="tool_use", id="t", name="look", input={})
    heard = read(start(), *SAY_HI, used, end("refusal"), STOP)
    assert heard.kind == "refused"
    assert heard.message.content == (TextBlock("hi"),)


@pytest.mark.parametrize(
    ("chunk", "kind", "retryable"),
    [
        (error("overloaded_error", "Overloaded"), "overloaded", True),
        (error("rate_limit_error"), "rate_limit", True),
        (error("api_error", "Internal server error"), "server_error", True),
        (error("timeout_error"), "timeout", True),
        (error("authentication_error", "invalid x-api-key"), "auth", False),
        (error("billing_error"), "billing", False),
        (error("invalid_request_error", "prompt is too long: 3 > 2"), "overflow", False),
        (error("invalid_request_error", "messages.0.content.0: bad"), "invalid_entry", False),
        (b"event: error\ndata: overloaded\n\n", "overloaded", True),
        (b'{"type": "error", "error": {"type": "overloaded_error", "message": "x"}}', "overloaded", True),
    ],
)
def test_errors_inside_the_stream(chunk: bytes, kind: str, retryable: bool) -> None:
    heard = read(chunk)
    assert heard.failure is not None
    assert (heard.failure.kind, heard.failure.retryable) == (kind, retryable)
    if chunk.startswith(b"event"):
        later = read(start(), *SAY_HI, chunk)
        assert (later.kind, later.text, later.streamed_text) == (kind, "hi", "hi")


@pytest.mark.parametrize(
    ("chunks", "words"),
    [
        ((), "without an answer"),
        ((b"<html>proxy</html>",), "not an answer of the messages API: <html>proxy"),
        ((PING, PING), "not an answer"),
        ((STOP,), "not an answer"),
        ((start(),), "half-way"),
        ((start(), *SAY_HI), "half-way"),
        ((start(), b"data: {not json}\n\n"), "not an answer"),
        ((start(), b"data: [1]\n\n"), "not an answer"),
        ((b'{"id": "x"}',), "not an answer"),
        ((b'{"content": 7}',), "not an answer"),
        ((b"{" * 10_000,), "not an answer"),
    ],
)
def test_garbage_and_half_answers(chunks: tuple[bytes, ...], words: str) -> None:
    heard = read(*chunks)
    assert heard.failure is not None
    assert (heard.failure.kind, heard.failure.retryable) == ("protocol", True)
    assert words in heard.failure.message


def test_unknown_events_blocks_and_fields_are_passed_over() -> None:
    heard = read(
        start(),
        event({"type": "of_the_future", "index": 0, "delta": {"type": "x"}}),
        begin(0, type="server_tool_use", id="s", name="web", input={"q": 1}),
        grow(0, type="input_json_delta", partial_json="{}"),
        begin(1, type="text", text="a", citations=[]),
        grow(1, type="citations_delta", citation={"x": 1}),
        grow(1, type="text_delta", text="b"),
        end(),
        STOP,
        grow(1, type="text_delta", text="after the end"),
    )
    assert heard.message.content == (TextBlock("ab"),)


def test_servers_that_leave_out_starts_indexes_and_ids() -> None:
    heard = read(
        start(),
        event({"type": "content_block_delta", "delta": {"type": "text_delta", "text": "hi"}}),
        event({"type": "content_block_start", "content_block": {"type": "tool_use", "name": "look"}}),
        event({"type": "content_block_delta", "delta": {"partial_json": '{"a": 1}'}}),
        event({"type": "content_block_start", "content_block": {"type": "tool_use", "name": "look"}}),
        end("tool_use"),
        STOP,
    )
    text, first, second = heard.message.content
    assert text == TextBlock("hi")
    assert isinstance(first, ToolCallBlock) and isinstance(second, ToolCallBlock)
    assert (first.arguments, second.arguments) == ({"a": 1}, {})
    assert first.id.startswith("toolu_") and first.id != second.id
    thought = read(start(), grow(3, type="thinking_delta", thinking="hm"), *SAY_HI, end(), STOP)
    assert thought.message.content == (TextBlock("hi"), ThinkingBlock("hm"))


def test_repeated_call_ids_become_unique() -> None:
    uses = [begin(index, type="tool_use", id="same", name="x", input={}) for index in range(3)]
    ids = [block.id for block in read(start(), *uses, end(), STOP).message.content if hasattr(block, "id")]
    assert ids[0] == "same"
    assert len(set(ids)) == 3


@pytest.mark.parametrize("raw", ['{"a": ', "not json", "[1]", '{"a": NaN}'])
def test_broken_input_is_kept_for_the_model_to_read(raw: str) -> None:
    heard = read(*streamed_answer(FakeAnswer(blocks=(Used("look", (raw,)),))))
    assert heard.failure is None
    (call,) = heard.message.content
    assert isinstance(call, ToolCallBlock)
    assert call.arguments == {"__invalid_json": raw}


def test_thoughts_that_had_to_be_cleaned_are_no_longer_signed() -> None:
    nul = read(*streamed_answer(FakeAnswer(blocks=(Thought(("a\0b",), "s"), Said(("hi",))))))
    assert nul.message.content == (ThinkingBlock("ab"), TextBlock("hi"))
    surrogate = b'data: {"type":"content_block_delta","index":0,"delta":{"thinking":"\\ud800"}}\n\n'
    opened = begin(0, type="thinking", thinking="", signature="s")
    half = read(start(), opened, surrogate, begin(1, type="text", text="hi"), end(), STOP)
    assert half.message.content == (ThinkingBlock("�"), TextBlock("hi"))
    signature = read(
        start(),
        begin(0, type="redacted_thinking", data="a\0"),
        *(begin(1, type="text", text="hi"),),
        end(),
        STOP,
    )
    assert signature.message.content == (TextBlock("hi"),)


def test_usage_is_replaced_never_added_up_and_unknown_stays_unknown() -> None:
    twice = read(
        start({"input_tokens": 10, "output_tokens": 3}),
        *SAY_HI,
        event({"type": "message_delta", "delta": {}, "usage": {"output_tokens": 7}}),
        end("end_turn", {"output_tokens": 9, "input_tokens": 11, "cache_read_input_tokens": None}),
        STOP,
    )
    assert twice.message.usage is not None
    assert (twice.message.usage.input, twice.message.usage.output) == (11, 9)
    no_usage: tuple[Any, ...] = ({}, {"input_tokens": "many"}, "x")
    for reported in no_usage:
        head = event({"type": "message_start", "message": {"usage": reported}})
        tail = event({"type": "message_delta", "delta": {"stop_reason": "end_turn"}, "usage": None})
        assert read(head, *SAY_HI, tail).message.usage is None


def calls(count: int) -> list[bytes]:
    return [begin(at, type="tool_use", id=f"c{at}", name="x", input={}) for at in range(count)]


def test_an_answer_is_bounded() -> None:
    assert len(read(start(), *calls(MAX_TOOL_CALLS), end(), STOP).message.content) == MAX_TOOL_CALLS
    texts = [begin(at, type="text", text="x") for at in range(MAX_BLOCKS + 1)]
    assert read(start(), *texts[:-1], end(), STOP).failure is None
    piece = grow(0, type="text_delta", text="x" * 1_000_000)
    too_much: tuple[tuple[list[bytes], str], ...] = (
        (calls(MAX_TOOL_CALLS + 1), "more than 256 tool calls"),
        (texts, "more than 1024 blocks"),
        ([*SAY_HI, *[piece] * 9], "too long"),
        ([b"data: " + b"x" * (5 * 1024 * 1024)], "more than can be read"),
    )
    for chunks, words in too_much:
        failure = read(start(), *chunks, end(), STOP).failure
        assert failure is not None and failure.kind == "protocol"
        assert words in failure.message
    # One object of 50 MB is given up long before its end.
    reply = MessagesReply(make_request(target=TARGET))
    fed = 0
    with pytest.raises(ReplyBroken, match="too large"):
        for _ in range(50):
            reply.feed(b"{" + b" " * 1_000_000)
            fed += 1
    assert fed < 9
