"""The request body on the Anthropic wire."""

from __future__ import annotations

from copy import deepcopy
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from openclaw.domain.context import make_valid
from openclaw.domain.transcript import (
    AssistantBlock,
    AssistantMessage,
    ImageBlock,
    Message,
    TextBlock,
    ThinkingBlock,
    ToolCallBlock,
    ToolResultMessage,
    UserMessage,
)
from openclaw.engine.ports import ModelRequest, ModelTarget
from openclaw.models.anthropic_request import encode_request, entry_position, request_url
from tests.unit.models.asking import LIST_TOOL, NOW_MS, STATUS_TOOL, make_request, make_target

API = "anthropic-messages"
EPHEMERAL = {"type": "ephemeral"}
IMAGE = ImageBlock("aGk=", "image/png")
WIRE_IMAGE = {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "aGk="}}


def target(**changes: Any) -> ModelTarget:
    return make_target(**{"api": API, "model": "claude-sonnet-4-5", **changes})


def body_of(request: ModelRequest) -> dict[str, Any]:
    decoded: dict[str, Any] = msgspec.json.decode(encode_request(request))
    return decoded


def unmarked(body: Any) -> Any:
    """The body without its cache marks."""
    if isinstance(body, dict):
        return {name: unmarked(value) for name, value in body.items() if name != "cache_control"}
    return [unmarked(value) for value in body] if isinstance(body, list) else body


def messages_of(*messages: Message, **changes: Any) -> list[dict[str, Any]]:
    wire: list[dict[str, Any]] = body_of(
        make_request(messages, target=changes.pop("target", target()), cache=False, **changes)
    )["messages"]
    return wire


def said(*blocks: AssistantBlock, **changes: Any) -> AssistantMessage:
    fields = {"api": API, "provider": "acme", "model": "claude-sonnet-4-5", **changes}
    return AssistantMessage(blocks, NOW_MS, **fields)


def user(text: str) -> UserMessage:
    return UserMessage(text, NOW_MS)


def result(call_id: str, *blocks: TextBlock | ImageBlock, **changes: Any) -> ToolResultMessage:
    return ToolResultMessage(call_id, "look", blocks, NOW_MS, **changes)


def text(words: str) -> dict[str, Any]:
    return {"type": "text", "text": words}


def test_the_whole_body_of_a_plain_request() -> None:
    request = make_request("hi", target=target(), tools=(STATUS_TOOL, LIST_TOOL))
    body = body_of(request)
    tools = [
        {"name": tool.name, "description": tool.description, "input_schema": tool.parameters}
        for tool in (STATUS_TOOL, LIST_TOOL)
    ]
    assert body == {
        "model": "claude-sonnet-4-5",
        "stream": True,
        "max_tokens": 8192,
        "tools": [tools[0], {**tools[1], "cache_control": EPHEMERAL}],
        "system": [{**text("Be brief."), "cache_control": EPHEMERAL}],
        "messages": [{"role": "user", "content": [{**text("hi"), "cache_control": EPHEMERAL}]}],
    }
    assert list(body)[-1] == "messages"


def test_nothing_is_sent_that_was_not_asked_for() -> None:
    body = body_of(make_request("hi", target=target(), system=" \n", cache=False, max_tokens=7))
    assert body == {
        "model": "claude-sonnet-4-5",
        "stream": True,
        "max_tokens": 7,
        "messages": [{"role": "user", "content": [text("hi")]}],
    }


@pytest.mark.parametrize(
    "base",
    ["http://h", "http://h/", " http://h/v1 ", "http://h/v1//", "http://h/v1/messages"],
)
def test_the_address(base: str) -> None:
    assert request_url(target(base_url=base)) == "http://h/v1/messages"
    assert request_url(target(base_url="http://h/claude")) == "http://h/claude/v1/messages"


def test_results_and_what_is_said_after_them_are_one_turn() -> None:
    first, second = ToolCallBlock("c1", "look", {"at": "é"}), ToolCallBlock("c2", "a b!", {})
    assert messages_of(
        user("go"),
        said(TextBlock("ok"), first, second),
        result("c1", TextBlock("one"), IMAGE),
        result("c2", is_error=True),
        user("and now?"),
    ) == [
        {"role": "user", "content": [text("go")]},
        {
            "role": "assistant",
            "content": [
                text("ok"),
                {"type": "tool_use", "id": "c1", "name": "look", "input": {"at": "é"}},
                {"type": "tool_use", "id": "c2", "name": "a_b_", "input": {}},
            ],
        },
        {
            "role": "user",
            "content": [
                {"type": "tool_result", "tool_use_id": "c1", "content": [text("one"), WIRE_IMAGE]},
                {
                    "type": "tool_result",
                    "tool_use_id": "c2",
                    "content": [text("(no output)")],
                    "is_error": True,
                },
                text("and now?"),
            ],
        },
    ]


def test_user_blocks_and_blanks() -> None:
    assert messages_of(
        UserMessage((TextBlock("see"), TextBlock("  "), IMAGE), NOW_MS),
        said(TextBlock(" "), ToolCallBlock("c", "", {})),
        UserMessage((), NOW_MS),
        user("\n"),
    ) == [
        {"role": "user", "content": [text("see"), WIRE_IMAGE]},
        {"role": "assistant", "content": [{"type": "tool_use", "id": "c", "name": "unnamed", "input": {}}]},
    ]


def test_a_model_that_reads_text_only_is_told_of_images() -> None:
    blind = target(images=False)
    told = text("(an image is here, which this model cannot see)")
    wire = messages_of(
        UserMessage((TextBlock("see"), IMAGE), NOW_MS),
        said(ToolCallBlock("c", "look", {})),
        result("c", IMAGE),
        target=blind,
    )
    assert wire[0]["content"] == [text("see"), told]
    assert wire[2]["content"][0]["content"] == [told]


def test_thoughts_go_back_unchanged_to_the_model_that_had_them() -> None:
    thoughts = (
        ThinkingBlock(" let me see ", "sig=="),
        ThinkingBlock("", "omitted=="),
        ThinkingBlock("", "redacted_thinking:aGlkZGVu"),
    )
    call = ToolCallBlock("c1", "look", {})
    own = said(*thoughts, ThinkingBlock("unsigned"), TextBlock("so"), call)
    content = messages_of(user("go"), own, result("c1", TextBlock("r")))[1]["content"]
    assert content[:3] == [
        {"type": "thinking", "thinking": " let me see ", "signature": "sig=="},
        {"type": "thinking", "thinking": "", "signature": "omitted=="},
        {"type": "redacted_thinking", "data": "aGlkZGVu"},
    ]
    assert [block["type"] for block in content[3:]] == ["text", "tool_use"]
    for other in ({"model": "claude-opus-4-5"}, {"provider": "other"}):
        foreign = said(*thoughts, call, **other)
        content = messages_of(user("go"), foreign, result("c1", TextBlock("r")))[1]["content"]
        assert [block["type"] for block in content] == ["tool_use"]


def test_a_tool_loop_without_its_thoughts_goes_on_without_thinking() -> None:
    call = ToolCallBlock("c1", "look", {})
    thought = ThinkingBlock("hm", "sig")

    def thinks(*messages: Message, model: str = "claude-sonnet-4-5") -> bool:
        request = make_request(messages, target=target(model=model), thinking="low")
        return "thinking" in body_of(request)

    done = result("c1", TextBlock("r"))
    assert thinks(user("go"))
    assert thinks(user("go"), said(thought, call), done)
    assert thinks(user("go"), said(ThinkingBlock("", "redacted_thinking:x"), call), done)
    assert not thinks(user("go"), said(call), done)
    assert not thinks(user("go"), said(TextBlock("ok"), call), done, user("hurry"))
    # A new turn may think again, and so may models that decide by themselves.
    assert thinks(user("go"), said(call), done, said(TextBlock("there")), user("more"))
    assert thinks(user("go"), said(call), done, model="claude-opus-5-5")


def test_cache_marks_stand_on_the_ends_of_what_is_repeated() -> None:
    messages: list[Message] = [
        user("one"),
        said(TextBlock("two")),
        user("three"),
        said(TextBlock("four")),
        user("five"),
    ]
    body = body_of(make_request(messages, target=target(), tools=(LIST_TOOL, STATUS_TOOL)))
    assert encode_request(make_request(messages, target=target())).count(b"cache_control") == 3
    assert "cache_control" not in body["tools"][0]
    assert body["tools"][1]["cache_control"] == EPHEMERAL
    marked = [turn["content"][-1].get("cache_control") for turn in body["messages"]]
    assert marked == [None, None, EPHEMERAL, None, EPHEMERAL]
    # The caller's schema is not written to.
    assert "cache_control" not in STATUS_TOOL.parameters
    single = encode_request(make_request(messages, target=target(), tools=(LIST_TOOL,), cache=False))
    assert b"cache_control" not in single


def test_a_number_on_the_wire_leads_back_to_the_message() -> None:
    request = make_request(
        [
            user(" "),
            user("go"),
            said(ToolCallBlock("a", "x", {}), ToolCallBlock("b", "x", {})),
            result("a", TextBlock("1")),
            result("b", TextBlock("2")),
            said(TextBlock("done")),
        ],
        target=target(),
    )
    assert [entry_position(request, number) for number in range(5)] == [1, 2, 3, 5, None]


def test_lone_surrogates_are_replaced() -> None:
    request = make_request(
        [user("half \ud800"), said(ToolCallBlock("c", "look", {"k\udfff": "\ud800"})), result("c")],
        target=target(),
        system="\ud83d",
    )
    body = encode_request(request).decode()
    assert "half �" in body
    assert '"k�":"�"' in body


# -- properties ----------------------------------------------------------------------------------

IDS = st.sampled_from(["c1", "c2", "c3"])
WORDS = st.sampled_from(["", " ", "a", "two\nlines"])
BLOCKS = st.one_of(
    WORDS.map(TextBlock),
    st.builds(ThinkingBlock, WORDS, st.sampled_from([None, "sig", "redacted_thinking:x"])),
    st.builds(ToolCallBlock, IDS, st.sampled_from(["look", "", "a b"]), st.just({})),
)
MESSAGES = st.one_of(
    WORDS.map(user),
    st.lists(BLOCKS, max_size=4).map(lambda blocks: said(*blocks)),
    st.builds(lambda call_id, words: result(call_id, TextBlock(words)), IDS, WORDS),
)


def check_accepted(turns: list[dict[str, Any]]) -> None:
    """The rules of the provider for a sequence of turns."""
    asked: list[str] = []
    for number, turn in enumerate(turns):
        assert turn["role"] == ("user" if number % 2 == 0 else "assistant")
        assert turn["content"]
        answered = [block["tool_use_id"] for block in turn["content"] if block["type"] == "tool_result"]
        assert sorted(answered) == sorted(asked)
        kinds = [block["type"] for block in turn["content"]]
        assert "tool_result" not in kinds[len(answered) :], "results come first"
        asked = [block["id"] for block in turn["content"] if block["type"] == "tool_use"]
        for block in turn["content"]:
            assert block["type"] != "text" or block["text"].strip()
    assert not asked


@pytest.mark.spec("TRX-12")
@settings(max_examples=300, deadline=None)
@given(messages=st.lists(MESSAGES, max_size=12))
def test_every_repaired_list_is_a_sequence_that_the_provider_accepts(messages: list[Message]) -> None:
    request = make_request(make_valid(messages, "anthropic"), target=target(), tools=(LIST_TOOL,))
    raw = encode_request(request)
    assert raw.count(b'"cache_control"') <= 4
    check_accepted(body_of(request)["messages"])


@pytest.mark.spec("LOOP-2")
@settings(max_examples=200, deadline=None)
@given(turns=st.lists(st.tuples(WORDS.filter(str.strip), st.booleans()), min_size=1, max_size=6))
def test_a_call_repeats_the_one_before_it(turns: list[tuple[str, bool]]) -> None:
    messages: list[Message] = []
    previous: Any = None
    for number, (words, with_tool) in enumerate(turns):
        messages.append(user(words))
        if with_tool:
            call = ToolCallBlock(f"c{number}", "look", {})
            messages += [said(ThinkingBlock("hm", "sig"), call), result(f"c{number}", TextBlock("r"))]
        request = make_request(make_valid(messages, "anthropic"), target=target(), tools=(LIST_TOOL,))
        body = unmarked(body_of(request))
        if previous is not None:
            head = deepcopy(body)
            head["messages"] = head["messages"][: len(previous["messages"])]
            assert head == previous
        previous = body
        messages.append(said(TextBlock("fine")))


@pytest.mark.spec("PRUNE-6")
@pytest.mark.parametrize(
    ("ttl_ms", "mark"),
    [
        (None, EPHEMERAL),
        (300_000, EPHEMERAL),
        (3_599_999, EPHEMERAL),
        (3_600_000, {"type": "ephemeral", "ttl": "1h"}),
    ],
)
def test_the_provider_is_asked_to_keep_beginnings_for_an_hour(
    ttl_ms: int | None, mark: dict[str, str]
) -> None:
    asked = make_request((UserMessage("hi", NOW_MS),), target=make_target(api=API, cache_ttl_ms=ttl_ms))
    body = msgspec.json.decode(encode_request(asked))
    assert body["system"][-1]["cache_control"] == body["messages"][0]["content"][0]["cache_control"] == mark
