"""The answer on the OpenAI wire, put together without any network."""

from __future__ import annotations

import itertools
import json
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from openclaw.domain.transcript import TextBlock, ThinkingBlock, ToolCallBlock, Usage, encode
from openclaw.engine.ports import ModelEvent
from openclaw.models.cleaning import INVALID_JSON_KEY
from openclaw.models.openai_reply import ChatReply
from openclaw.models.reply import MAX_TOOL_CALLS, ReplyBroken
from tests.fakes.openai_server import DONE, FakeCall, FakeReply, delta, event, streamed_answer, whole_answer
from tests.unit.models.asking import Heard, check_contract, make_request, make_target

USAGE = {"prompt_tokens": 10, "completion_tokens": 5, "total_tokens": 15}


def read(*chunks: bytes, target: Any = None) -> Heard:
    """Feed the chunks as the shell does."""
    request = make_request(target=target or make_target())
    reply = ChatReply(request)
    events: list[ModelEvent] = []
    failure = None
    try:
        for chunk in chunks:
            reply.feed(chunk)
            events += reply.take_events()
            if reply.ended:
                break
        reply.finish()
    except ReplyBroken as broken:
        failure = broken.failure
    events += reply.take_events()
    return check_contract([*events, reply.done(failure)], request)


def calls_of(*pieces: dict[str, Any]) -> list[ToolCallBlock]:
    heard = read(*(delta({"tool_calls": [piece]}) for piece in pieces), delta({}, "tool_calls"), DONE)
    assert heard.failure is None
    assert heard.message.stop_reason == "toolUse"
    return [block for block in heard.message.content if isinstance(block, ToolCallBlock)]


@pytest.mark.spec("TRX-6", "TRX-7")
def test_the_message_of_a_full_answer_has_the_transcript_shape() -> None:
    reply = FakeReply(
        thinking=("let me", " see"),
        texts=("I will ", "look"),
        calls=(FakeCall("look", ('{"at"', ': "x"}'), "c1"),),
        usage={**USAGE, "prompt_tokens_details": {"cached_tokens": 4}},
    )
    heard = read(*streamed_answer(reply))
    assert json.loads(encode(heard.message)) == {
        "role": "assistant",
        "content": [
            {"type": "thinking", "thinking": "let me see", "thinkingSignature": "reasoning_content"},
            {"type": "text", "text": "I will look"},
            {"type": "toolCall", "id": "c1", "name": "look", "arguments": {"at": "x"}},
        ],
        "api": "openai-completions",
        "provider": "acme",
        "model": "coyote-1",
        "usage": {
            "input": 6,
            "output": 5,
            "cacheRead": 4,
            "cacheWrite": 0,
            "totalTokens": 15,
            "cost": {
                "input": pytest.approx(12e-6),
                "output": pytest.approx(40e-6),
                "cacheRead": pytest.approx(2e-6),
                "cacheWrite": 0.0,
                "total": pytest.approx(54e-6),
            },
        },
        "stopReason": "toolUse",
        "timestamp": 1_700_000_000_000,
    }
    assert heard.streamed_text == "I will look"
    assert heard.streamed_thinking == "let me see"


@pytest.mark.parametrize(
    ("finish_reason", "stop_reason"),
    [
        ("stop", "stop"),
        ("length", "length"),
        ("max_tokens", "length"),
        ("model_length", "length"),
        ("tool_calls", "stop"),
        ("eos", "stop"),
    ],
)
@pytest.mark.spec("TRX-6")
def test_stop_reason_of_a_text(finish_reason: str, stop_reason: str) -> None:
    assert read(delta({"content": "hi"}, finish_reason), DONE).message.stop_reason == stop_reason


@pytest.mark.spec("TRX-6")
def test_stop_reason_of_tool_calls_is_decided_by_what_is_there() -> None:
    call = {"tool_calls": [{"index": 0, "id": "c", "function": {"name": "look", "arguments": "{}"}}]}
    for finish_reason in ("tool_calls", "function_call", "stop", "eos"):
        assert read(delta(call, finish_reason), DONE).message.stop_reason == "toolUse"
    assert read(delta(call, "length"), DONE).message.stop_reason == "length"


def test_a_stream_may_end_without_its_mark_or_without_a_reason() -> None:
    for chunks in (
        (delta({"content": "hi"}, "stop"),),
        (delta({"content": "hi"}), DONE),
        (delta({"content": "hi"}, ""), b"data: [DONE]"),
        (delta({"content": "hi"}), delta({}, "stop")[:-2]),
        (b"\n\n", delta({"content": "hi"}), DONE, b"data: garbage after the end\n\n"),
    ):
        heard = read(*chunks)
        assert (heard.text, heard.failure, heard.message.stop_reason) == ("hi", None, "stop")


def test_neighbouring_deltas_of_one_read_are_one_event() -> None:
    chunks = [
        delta({"reasoning": "a"}),
        delta({"reasoning": "b"}),
        delta({"content": "c"}),
        delta({"content": "d"}),
    ]
    heard = read(b"".join(chunks), delta({"content": "e"}, "stop"), DONE)
    assert [(type(part).__name__, getattr(part, "text", "")) for part in heard.deltas] == [
        ("ThinkingDelta", "ab"),
        ("TextDelta", "cd"),
        ("TextDelta", "e"),
    ]
    # Thoughts under this name are not asked for again, so nothing marks them for replay.
    assert heard.message.content == (ThinkingBlock("ab"), TextBlock("cde"))


def test_fields_may_be_null_missing_or_of_another_choice() -> None:
    heard = read(
        event({"choices": None}),
        event({"choices": [], "prompt_filter_results": []}),
        event({"choices": [{"delta": None}]}),
        event(
            {"choices": [{"index": 0, "delta": {"content": None, "tool_calls": None, "role": "assistant"}}]}
        ),
        event({"choices": [{"index": 1, "delta": {"content": "another choice"}}]}),
        event(
            {
                "choices": [
                    {"index": None, "delta": {"content": [{"type": "text", "text": "pa"}, {"text": "rts"}]}}
                ]
            }
        ),
        event({"choices": [{"delta": {"refusal": "!"}, "finish_reason": "stop"}], "usage": None}),
        DONE,
    )
    assert (heard.text, heard.message.usage, heard.failure) == ("parts!", None, None)


def test_usage_counts_cached_tokens_apart() -> None:
    def usage(fields: object) -> Usage | None:
        return read(
            delta({"content": "x"}, "stop"), event({"choices": [], "usage": fields}), DONE
        ).message.usage

    plain = usage(USAGE)
    assert plain is not None
    assert (plain.input, plain.output, plain.cache_read, plain.total_tokens) == (10, 5, 0, 15)
    assert (plain.cost.input, plain.cost.output) == (20e-6, 40e-6)
    assert plain.cost.total == pytest.approx(60e-6)
    details = usage({**USAGE, "prompt_tokens_details": {"cached_tokens": 3, "cache_write_tokens": 2}})
    assert details is not None
    assert (details.input, details.cache_read, details.cache_write, details.total_tokens) == (5, 3, 2, 15)
    other_name = usage({**USAGE, "prompt_cache_hit_tokens": 8})
    assert other_name is not None
    assert (other_name.input, other_name.cache_read) == (2, 8)
    half = usage({"completion_tokens": 5})
    assert half is not None
    assert (half.input, half.output) == (0, 5)
    # Unknown is not zero, and nonsense does not cost the reply.
    unknowns: list[object] = [None, {}, {"total_tokens": 9}, [], 7, "x", {"prompt_tokens": "many"}]
    for unknown in unknowns:
        assert usage(unknown) is None


def test_calls_are_assembled_by_index() -> None:
    assert calls_of(
        {"index": 1, "id": "b", "function": {"name": "two", "arguments": '{"n"'}},
        {"index": 0, "id": "a", "function": {"name": "one"}},
        {"index": 1, "function": {"arguments": ":2}"}},
        {"index": 0, "id": "a", "function": {"name": "one", "arguments": '{"n":1}'}},
        {"index": 0},
    ) == [ToolCallBlock("a", "one", {"n": 1}), ToolCallBlock("b", "two", {"n": 2})]


def test_servers_that_number_calls_badly() -> None:
    one_index = calls_of(
        {"index": 0, "id": "a", "function": {"name": "one", "arguments": "{}"}},
        {"index": 0, "id": "b", "function": {"name": "two", "arguments": "{}"}},
    )
    assert [(call.id, call.name) for call in one_index] == [("a", "one"), ("b", "two")]
    no_index = calls_of(
        {"id": "a", "function": {"name": "one", "arguments": '{"n":'}},
        {"function": {"arguments": "1}"}},
        {"id": "b", "function": {"name": "two", "arguments": {"n": 2}}},
    )
    assert no_index == [ToolCallBlock("a", "one", {"n": 1}), ToolCallBlock("b", "two", {"n": 2})]
    nothing = calls_of(
        {"function": {"name": "one", "arguments": '{"n":1}'}},
        {"function": {"name": "two", "arguments": '{"n":2}'}},
    )
    assert [(call.name, call.arguments) for call in nothing] == [("one", {"n": 1}), ("two", {"n": 2})]
    assert len({call.id for call in nothing}) == 2
    assert all(call.id.startswith("call_") for call in nothing)
    huge = calls_of({"index": 10**15, "id": "z", "function": {"name": "far"}}, {"index": -1, "id": "y"})
    assert [call.id for call in huge] == ["y", "z"]


def test_equal_call_ids_are_told_apart() -> None:
    calls = calls_of(
        {"index": 0, "id": "same", "function": {"name": "one"}},
        {"index": 1, "id": "same", "function": {"name": "two"}},
    )
    assert calls[0].id == "same"
    assert calls[1].id.startswith("call_")


def test_broken_arguments_are_kept_for_the_model_to_see() -> None:
    raw = '{"path": "/tmp'
    assert calls_of({"index": 0, "id": "c", "function": {"name": "write", "arguments": raw}}) == [
        ToolCallBlock("c", "write", {INVALID_JSON_KEY: raw})
    ]


def test_too_many_calls_are_refused() -> None:
    pieces = [
        delta({"tool_calls": [{"index": index, "id": f"c{index}"}]}) for index in range(MAX_TOOL_CALLS + 1)
    ]
    assert read(*pieces[:MAX_TOOL_CALLS], DONE).failure is None
    heard = read(*pieces, DONE)
    assert heard.kind == "protocol"
    assert heard.message.content == ()


def test_a_failed_answer_keeps_its_text_and_drops_its_calls() -> None:
    call = {"tool_calls": [{"index": 0, "id": "c", "function": {"name": "look", "arguments": "{}"}}]}
    heard = read(
        delta({"content": "so far"}) + delta(call) + event({"error": {"message": "boom", "code": 500}})
    )
    assert heard.kind == "server_error"
    assert heard.message.content == (TextBlock("so far"),)
    assert heard.streamed_text == "so far"


@pytest.mark.parametrize(
    ("chunk", "kind"),
    [
        (event({"error": {"message": "slow down", "code": 429}}), "rate_limit"),
        (event({"error": "context length exceeded"}), "overflow"),
        (
            event({"object": "error", "message": "too long, maximum context length", "code": 400}),
            "overflow",
        ),
        (b"event: error\ndata: overloaded\n\n", "overloaded"),
        (b'event: error\ndata: {"error": {"message": "x", "type": "authentication_error"}}\n\n', "auth"),
        (delta({"content": "x"}, "content_filter"), "refused"),
        (delta({"content": "x"}, "error"), "server_error"),
    ],
)
def test_errors_inside_the_stream(chunk: bytes, kind: str) -> None:
    assert read(chunk, DONE).kind == kind


def test_an_error_in_the_unfinished_last_event_is_still_told() -> None:
    tail = event({"error": {"message": "slow down", "code": 429}}).rstrip()
    assert read(delta({"content": "x"}), tail).kind == "rate_limit"


def test_empty_answers() -> None:
    for chunks in (
        (delta({}, "stop"), DONE),
        (delta({"content": ""}), DONE),
        (delta({"content": " \n"}, "stop"), DONE),
        (delta({"reasoning_content": "only thoughts"}, "stop"), DONE),
        (DONE,),
    ):
        heard = read(*chunks)
        assert (heard.kind, heard.failure is not None and heard.failure.retryable) == ("protocol", True)
        assert "empty reply" in str(heard.message.error_message)
    cut = read(delta({"reasoning_content": "long"}, "length"), DONE)
    assert cut.failure is not None
    assert (cut.failure.kind, cut.failure.retryable) == ("protocol", False)
    assert "maxTokens" in cut.failure.message


def test_blank_text_beside_a_call_is_not_kept() -> None:
    call = {"tool_calls": [{"index": 0, "id": "c", "function": {"name": "look"}}]}
    heard = read(delta({"content": "\n\n"}), delta(call, "tool_calls"), DONE)
    assert heard.message.content == (ToolCallBlock("c", "look", {}),)


def test_one_json_object_instead_of_a_stream() -> None:
    reply = FakeReply(
        texts=("hello",),
        thinking=("hm",),
        calls=(FakeCall("one", ("{}",), ""), FakeCall("two", ("{}",), "")),
        usage=USAGE,
    )
    body = json.dumps(whole_answer(reply), indent=1).encode()
    for chunks in ((body,), (b" \n", body[:50], body[50:])):
        heard = read(*chunks)
        assert heard.failure is None
        assert (heard.text, heard.streamed_text, heard.streamed_thinking) == ("hello", "hello", "hm")
        names = [block.name for block in heard.message.content if isinstance(block, ToolCallBlock)]
        assert names == ["one", "two"]
        assert heard.message.usage is not None
    assert read(body[:-20]).kind == "protocol"
    assert read(b'{"error": {"message": "no", "code": 401}}').kind == "auth"
    assert read(b'{"choices": []}').kind == "protocol"
    assert read(b'{"hello": "world"}').kind == "protocol"


ANSWER = st.builds(
    FakeReply,
    texts=st.lists(st.text(st.characters(codec="utf-8"), max_size=8), max_size=5).map(tuple),
    thinking=st.lists(st.text(max_size=8), max_size=3).map(tuple),
    calls=st.lists(st.builds(FakeCall, st.just("look"), st.just(('{"a"', ":1}"))), max_size=2).map(tuple),
    usage=st.just(USAGE) | st.none(),
)


@settings(max_examples=150, deadline=None)
@given(ANSWER, st.lists(st.integers(0, 3000), max_size=10))
def test_the_cut_of_the_chunks_never_changes_the_message(answer: FakeReply, cuts: list[int]) -> None:
    body = b"".join(streamed_answer(answer))
    edges = [0, *sorted(cut for cut in cuts if cut < len(body)), len(body)]
    whole = read(body)
    pieces = read(*(body[start:stop] for start, stop in itertools.pairwise(edges)))
    assert pieces.failure == whole.failure
    assert pieces.message.usage == whole.message.usage
    assert pieces.text == whole.text
    assert pieces.streamed_text == whole.streamed_text
    assert len(pieces.message.content) == len(whole.message.content)


@settings(max_examples=200, deadline=None)
@given(
    st.lists(
        st.binary(max_size=80) | st.sampled_from([b"data: ", b"\n\n", b"{", b'{"choices":[', DONE]),
        max_size=8,
    )
)
def test_no_bytes_make_it_raise(chunks: list[bytes]) -> None:
    assert msgspec.json.encode(read(*chunks).message)
