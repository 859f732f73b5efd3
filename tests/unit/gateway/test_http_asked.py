"""Requests of the OpenAI endpoints as turns: what is told to the agent, and what is refused by name."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from openclaw.gateway.http.answers import Refusal
from openclaw.gateway.http.asked import (
    EARLIER,
    LOOK,
    MOST_MESSAGES,
    NOW,
    ChatMessage,
    ChatRequest,
    ResponsesRequest,
    turn_of_chat,
    turn_of_responses,
)

PIXEL = "data:image/png;base64,iVBORw0KGgo="


def chat(*messages: tuple[str, Any], **more: Any) -> ChatRequest:
    body = {"messages": [{"role": role, "content": content} for role, content in messages], **more}
    return msgspec.convert(body, ChatRequest)


def test_one_message_is_told_as_it_is() -> None:
    turn = turn_of_chat(chat(("user", "hello")))
    assert (turn.message, turn.earlier, turn.system, turn.attachments) == ("hello", "", None, ())
    assert turn.text(with_earlier=True) == turn.text(with_earlier=False) == "hello"


def test_earlier_messages_stand_above_the_last_under_a_heading() -> None:
    turn = turn_of_chat(
        chat(("system", "Be brief."), ("user", "one"), ("assistant", "two"), ("developer", "Be kind."),
             ("tool", "42"), ("assistant", None), ("user", "three"))
    )  # fmt: skip
    assert turn.system == "Be brief.\n\nBe kind."
    assert turn.text(with_earlier=False) == "three"
    assert turn.text(with_earlier=True) == f"{EARLIER}\nUser: one\nAssistant: two\nTool: 42\n\n{NOW}\nthree"


def test_parts_are_joined_and_images_become_attachments() -> None:
    part = {"type": "image_url", "image_url": {"url": PIXEL}}
    turn = turn_of_chat(
        chat(("user", [{"type": "text", "text": "old"}, part]),
             ("user", [{"type": "text", "text": "a"}, part, {"type": "text", "text": "b"}]))
    )  # fmt: skip
    assert turn.message == "a\nb"
    assert turn.attachments == ({"content": PIXEL},)
    assert turn.earlier == "User: old [image]"


def test_an_image_alone_still_has_words() -> None:
    turn = turn_of_chat(chat(("user", [{"type": "input_image", "image_url": PIXEL}])))
    assert turn.message == LOOK
    assert len(turn.attachments) == 1


@pytest.mark.parametrize(
    ("request_", "said"),
    [
        (chat(("user", "x"), tools=[{"type": "function"}]), "unsupported parameter tools"),
        (chat(("user", "x"), functions=[{}]), "unsupported parameter tools"),
        (chat(("user", "x"), n=2), "unsupported parameter n"),
        (chat(("user", "x"), response_format={"type": "json_object"}), "response_format"),
        (chat(), "last message must have the role user"),
        (chat(("user", "x"), ("assistant", "y")), "last message must have the role user"),
        (chat(("system", "x")), "last message must have the role user"),
        (chat(("user", "  ")), "empty"),
        (chat(("user", None)), "empty"),
        (chat(("owner", "x")), "unknown role 'owner'"),
        (chat(("user", [{"type": "input_audio"}])), "type 'input_audio' cannot be read"),
        (chat(("user", [{"type": "text", "text": 7}])), "cannot be read"),
        (chat(("user", [{"type": "image_url", "image_url": {"url": "http://x/y.png"}}])), "data URL"),
        (chat(("user", [{"type": "image_url"}])), "data URL"),
        (chat(*[("user", "x")] * (MOST_MESSAGES + 1)), "at most 2000"),
    ],
)
def test_what_cannot_be_honoured_is_refused_by_name(request_: ChatRequest, said: str) -> None:
    with pytest.raises(Refusal, match=said) as refused:
        turn_of_chat(request_)
    assert refused.value.status == 400
    assert refused.value.kind == "invalid_request_error"


def test_harmless_parameters_pass() -> None:
    request = chat(("user", "x"), n=1, tools=[], response_format={"type": "text"}, temperature=0.3, seed=7)
    assert turn_of_chat(request).message == "x"
    assert turn_of_chat(chat(*[("user", "x")] * MOST_MESSAGES)).message == "x"


def responses(input_: Any, **more: Any) -> ResponsesRequest:
    return msgspec.convert({"input": input_, **more}, ResponsesRequest)


def test_responses_take_text_and_lists() -> None:
    assert turn_of_responses(responses("hi")).message == "hi"
    turn = turn_of_responses(
        responses(
            [
                {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "one"}]},
                {"role": "assistant", "content": [{"type": "output_text", "text": "two"}]},
                {"role": "user", "content": "three"},
            ],
            instructions="Be brief.",
        )
    )
    assert (turn.message, turn.earlier, turn.system) == ("three", "User: one\nAssistant: two", "Be brief.")


@pytest.mark.parametrize(
    ("request_", "said"),
    [
        (responses("x", tools=[{"type": "web_search"}]), "unsupported parameter tools"),
        (responses("x", previous_response_id="resp_1"), "give `user`"),
        (responses("x", background=True), "unsupported parameter background"),
        (responses("x", text={"format": {"type": "json_schema"}}), "text.format"),
        (responses([{"type": "function_call_output"}]), "input item 1 is of type"),
        (responses([{"role": "user", "content": "a"}, {"role": "user"}]), "input item 2 needs"),
        (responses([{"role": 7, "content": "a"}]), "input item 1 needs"),
        (responses([{"role": "user", "content": ["a"]}]), "input item 1 needs"),
        (responses([]), "last message"),
    ],
)
def test_responses_refuse_by_name(request_: ResponsesRequest, said: str) -> None:
    with pytest.raises(Refusal, match=said) as refused:
        turn_of_responses(request_)
    assert refused.value.status == 400


@settings(max_examples=200, deadline=None)
@given(
    st.lists(
        st.tuples(st.sampled_from(["system", "user", "assistant", "tool"]), st.text(max_size=30)), max_size=8
    )
)
def test_nothing_that_was_said_is_lost(said: list[tuple[str, str]]) -> None:
    request = ChatRequest([ChatMessage(role, text) for role, text in said])
    spoken = [(role, text) for role, text in said if role != "system"]
    if not spoken or spoken[-1][0] != "user" or not spoken[-1][1].strip():
        with pytest.raises(Refusal):
            turn_of_chat(request)
        return
    turn = turn_of_chat(request)
    assert turn.message == spoken[-1][1]
    for _role, text in spoken[:-1]:
        assert text.strip() in turn.earlier
    for role, text in said:
        if role == "system" and text.strip():
            assert text in (turn.system or "")
