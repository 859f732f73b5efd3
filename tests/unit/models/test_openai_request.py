"""The request body on the OpenAI wire."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

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
from openclaw.engine.ports import ModelRequest
from openclaw.models.openai_request import encode_request, request_url
from tests.unit.models.asking import LIST_TOOL, NOW_MS, STATUS_TOOL, make_request, make_target


def body_of(request: ModelRequest) -> dict[str, Any]:
    decoded: dict[str, Any] = msgspec.json.decode(encode_request(request))
    return decoded


def messages_of(*messages: Message, system: str = "", **changes: Any) -> list[dict[str, Any]]:
    wire: list[dict[str, Any]] = body_of(make_request(messages, system=system, **changes))["messages"]
    return wire


def said(*blocks: AssistantBlock, **changes: Any) -> AssistantMessage:
    fields = {"provider": "acme", "model": "coyote-1", **changes}
    return AssistantMessage(blocks, NOW_MS, **fields)


def result(call_id: str, *blocks: TextBlock | ImageBlock, **changes: Any) -> ToolResultMessage:
    return ToolResultMessage(call_id, "look", blocks, NOW_MS, **changes)


def test_the_whole_body_of_a_plain_request() -> None:
    assert body_of(make_request("hi", tools=(STATUS_TOOL, LIST_TOOL))) == {
        "model": "coyote-1",
        "stream": True,
        "stream_options": {"include_usage": True},
        "max_tokens": 8192,
        "tools": [
            {
                "type": "function",
                "function": {
                    "name": tool.name,
                    "description": tool.description,
                    "parameters": tool.parameters,
                },
            }
            for tool in (STATUS_TOOL, LIST_TOOL)
        ],
        "messages": [{"role": "system", "content": "Be brief."}, {"role": "user", "content": "hi"}],
    }


def test_each_request_has_its_own_tools_also_after_many_other_sets() -> None:
    """Sets of tools are encoded once and kept: by which one, and how many, must not show."""
    sets = [(msgspec.structs.replace(LIST_TOOL, name=f"tool_{number}"), STATUS_TOOL) for number in range(200)]
    for _ in range(2):
        for number, tools in enumerate(sets):
            told = body_of(make_request((), tools=tools))["tools"]
            assert [one["function"]["name"] for one in told] == [f"tool_{number}", STATUS_TOOL.name]
            assert told[0]["function"]["parameters"] == LIST_TOOL.parameters
    assert "tools" not in body_of(make_request((), tools=()))


def test_nothing_is_sent_that_was_not_asked_for() -> None:
    body = body_of(make_request("hi", system="", thinking="high"))
    assert "tools" not in body
    assert "reasoning_effort" not in body
    assert body["messages"] == [{"role": "user", "content": "hi"}]


@pytest.mark.parametrize(
    ("level", "effort"),
    [
        ("minimal", "low"),
        ("low", "low"),
        ("medium", "medium"),
        ("high", "high"),
        ("xhigh", "high"),
        ("max", "high"),
        ("off", None),
        ("adaptive", None),
        (None, None),
    ],
)
def test_thinking_levels_become_efforts_on_reasoning_models(level: str | None, effort: str | None) -> None:
    body = body_of(make_request(target=make_target(reasoning=True), thinking=level))
    assert body.get("reasoning_effort") == effort


def test_the_limit_of_output_tokens() -> None:
    assert body_of(make_request(max_tokens=77))["max_tokens"] == 77
    openai = body_of(make_request(target=make_target("https://api.openai.com/v1", max_tokens=5)))
    assert openai["max_completion_tokens"] == 5
    assert "max_tokens" not in openai
    for other in ("https://api.openai.com.evil.example/v1", "http://[broken", "nonsense"):
        assert body_of(make_request(target=make_target(other)))["max_tokens"] == 8192


@pytest.mark.parametrize(
    ("base", "url"),
    [
        ("http://h/v1", "http://h/v1/chat/completions"),
        (" http://h/v1// ", "http://h/v1/chat/completions"),
        ("http://h/v1/chat/completions", "http://h/v1/chat/completions"),
    ],
)
def test_the_address(base: str, url: str) -> None:
    assert request_url(make_target(base)) == url


def test_user_blocks() -> None:
    image = ImageBlock("aGk=", "image/png")
    assert messages_of(
        UserMessage((TextBlock("one"), TextBlock("two")), NOW_MS),
        UserMessage((TextBlock("see"), TextBlock("  "), image), NOW_MS),
        UserMessage((), NOW_MS),
    ) == [
        {"role": "user", "content": "one\ntwo"},
        {
            "role": "user",
            "content": [
                {"type": "text", "text": "see"},
                {"type": "image_url", "image_url": {"url": "data:image/png;base64,aGk="}},
            ],
        },
        {"role": "user", "content": ""},
    ]


def test_assistant_text_and_tool_calls() -> None:
    call = ToolCallBlock("c1", "look", {"at": "é"})
    wire_call = {"id": "c1", "type": "function", "function": {"name": "look", "arguments": '{"at":"é"}'}}
    assert messages_of(
        said(ThinkingBlock("hm"), TextBlock("a"), TextBlock("b")),
        said(TextBlock("a"), call),
        said(call),
        said(),
    ) == [
        {"role": "assistant", "content": "a\nb"},
        {"role": "assistant", "content": "a", "tool_calls": [wire_call]},
        {"role": "assistant", "content": None, "tool_calls": [wire_call]},
        {"role": "assistant", "content": ""},
    ]


def test_thoughts_go_back_only_with_tool_calls_to_the_model_that_had_them() -> None:
    thought = ThinkingBlock("because", "reasoning_content")
    call = ToolCallBlock("c1", "look", {})

    def replayed(message: AssistantMessage) -> str | None:
        value: str | None = messages_of(message)[0].get("reasoning_content")
        return value

    assert replayed(said(thought, call)) == "because"
    assert replayed(said(thought, TextBlock("done"))) is None
    assert replayed(said(ThinkingBlock("because"), call)) is None
    assert replayed(said(thought, call, model="other")) is None
    assert replayed(said(thought, call, provider="other")) is None


@pytest.mark.parametrize(
    ("name", "wire"),
    [
        ("ok_1-a", "ok_1-a"),
        ("functions.look", "functions_look"),
        ("", "unnamed"),
        ("n" * 65, "n" * 64),
        ("ü", "_"),
    ],
)
def test_a_name_that_a_model_invented_cannot_make_later_turns_fail(name: str, wire: str) -> None:
    assert messages_of(said(ToolCallBlock("c1", name, {})))[0]["tool_calls"][0]["function"]["name"] == wire


def test_tool_results_are_text_and_their_images_follow_the_run_of_results() -> None:
    image = ImageBlock("aGk=", "image/png")
    wire = messages_of(
        result("c1", TextBlock("seen"), TextBlock("twice"), image),
        result("c2", image),
        result("c3"),
        said(TextBlock("ok")),
        result("c4", image),
    )
    label = {"type": "text", "text": "Image from the tool look:"}
    picture = {"type": "image_url", "image_url": {"url": "data:image/png;base64,aGk="}}
    assert wire == [
        {"role": "tool", "tool_call_id": "c1", "content": "seen\ntwice"},
        {"role": "tool", "tool_call_id": "c2", "content": "(the image follows in the next message)"},
        {"role": "tool", "tool_call_id": "c3", "content": "(no output)"},
        {"role": "user", "content": [label, picture, label, picture]},
        {"role": "assistant", "content": "ok"},
        {"role": "tool", "tool_call_id": "c4", "content": "(the image follows in the next message)"},
        {"role": "user", "content": [label, picture]},
    ]


@pytest.mark.spec("TRX-10")
def test_details_of_a_tool_result_never_reach_the_model() -> None:
    wire = encode_request(make_request((result("c1", TextBlock("x"), details={"secret": "detail"}),)))
    assert b"detail" not in wire


def test_lone_surrogates_are_replaced_wherever_they_stand() -> None:
    bad = "a\ud800b"
    request = make_request(
        (
            UserMessage(bad, NOW_MS),
            said(TextBlock(bad), ToolCallBlock(bad, "look", {bad: bad})),
            result(bad, TextBlock(bad)),
        ),
        system=bad,
    )
    wire = body_of(request)["messages"]
    assert [message["role"] for message in wire] == ["system", "user", "assistant", "tool"]
    assert all(message["content"].startswith("a") for message in wire)
    # The call and its result still belong together.
    assert wire[2]["tool_calls"][0]["id"] == wire[3]["tool_call_id"]
    assert list(msgspec.json.decode(wire[2]["tool_calls"][0]["function"]["arguments"])) != [bad]


TEXT = st.text(max_size=12)
BLOCK = TEXT.map(TextBlock) | st.just(ImageBlock("aGk=", "image/png"))
MESSAGE: st.SearchStrategy[Message] = st.one_of(
    TEXT.map(lambda text: UserMessage(text, NOW_MS)),
    st.lists(BLOCK, max_size=3).map(lambda blocks: UserMessage(tuple(blocks), NOW_MS)),
    st.lists(
        TEXT.map(TextBlock) | TEXT.map(lambda text: ToolCallBlock(text, text, {text: 1})), max_size=3
    ).map(lambda blocks: said(*blocks)),
    st.builds(lambda call_id, blocks: result(call_id, *blocks), TEXT, st.lists(BLOCK, max_size=2)),
)


@settings(max_examples=150, deadline=None)
@given(st.lists(MESSAGE, max_size=6))
def test_any_sequence_is_encoded_even_one_that_a_provider_would_refuse(messages: list[Message]) -> None:
    body = body_of(make_request(messages))
    assert all(message["role"] in ("system", "user", "assistant", "tool") for message in body["messages"])
    assert len(body["messages"]) >= 1 + len(messages)


@settings(max_examples=100, deadline=None)
@given(st.lists(MESSAGE, max_size=5), st.lists(MESSAGE, min_size=1, max_size=3))
def test_one_request_is_a_byte_prefix_of_the_next(earlier: list[Message], later: list[Message]) -> None:
    # Images that wait for the end of a run of results move when the run goes on; a turn never ends there.
    earlier.append(said(TextBlock("done")))
    first = encode_request(make_request(earlier, tools=(LIST_TOOL,)))
    second = encode_request(make_request([*earlier, *later], tools=(LIST_TOOL,)))
    assert first.endswith(b"]}")
    assert second.startswith(first[:-2] + b",")
