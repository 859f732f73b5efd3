"""The rule-based model."""

from __future__ import annotations

import json

import pytest

from openclaw.domain.transcript import (
    AssistantMessage,
    ImageBlock,
    Message,
    TextBlock,
    ToolCallBlock,
    ToolResultMessage,
    UserMessage,
)
from openclaw.engine.ports import ModelTarget, TextDelta, ToolSpec
from openclaw.models.offline import HELP, HOW_TO_CONNECT, RULES, WHO_I_AM, OfflineModel, match_rule
from tests.unit.models.asking import LIST_TOOL, NOW_MS, STATUS_TOOL, Heard, ask, make_request

TARGET = ModelTarget(provider="offline", model="offline", api="offline")
TOOLS = (LIST_TOOL, STATUS_TOOL)


async def tell(messages: list[Message] | str, tools: tuple[ToolSpec, ...] = TOOLS) -> Heard:
    request = make_request(messages, target=TARGET, tools=tools)
    heard = await ask(OfflineModel(), request)
    assert heard.failure is None
    assert heard.streamed_text == heard.text
    return heard


def result_of(tool: str, text: str, *, is_error: bool = False) -> list[Message]:
    call = AssistantMessage((ToolCallBlock("c1", tool, {}),), NOW_MS)
    return [
        UserMessage("please", NOW_MS),
        call,
        ToolResultMessage("c1", tool, (TextBlock(text),), NOW_MS, is_error=is_error),
    ]


async def test_it_says_what_it_is_quotes_the_user_and_names_the_way_out() -> None:
    heard = await tell("What is the  weather\nlike?")
    assert "“What is the weather like?”" in heard.text
    assert WHO_I_AM in heard.text
    assert HOW_TO_CONNECT in heard.text
    assert "openclaw onboard" in heard.text
    assert heard.message.stop_reason == "stop"


async def test_it_streams_word_by_word() -> None:
    heard = await tell("hello there")
    assert len(heard.deltas) > 20
    assert all(isinstance(part, TextDelta) and len(part.text.split()) == 1 for part in heard.deltas)


@pytest.mark.parametrize(
    ("said", "tool"),
    [
        ("list sessions", "sessions_list"),
        ("Sessions?", "sessions_list"),
        ("please LIST my sessions now", "sessions_list"),
        ("status", "session_status"),
        ("What is your status?", "session_status"),
    ],
)
async def test_it_calls_the_tools_that_it_is_offered(said: str, tool: str) -> None:
    heard = await tell(said)
    call = heard.message.content[-1]
    assert isinstance(call, ToolCallBlock)
    assert (call.name, call.arguments) == (tool, {})
    assert call.id
    assert heard.message.stop_reason == "toolUse"
    assert tool in heard.text


async def test_it_calls_no_tool_that_it_is_not_offered() -> None:
    heard = await tell("list sessions", (STATUS_TOOL,))
    assert [type(block) for block in heard.message.content] == [TextBlock]
    assert "sessions_list" in heard.text
    assert "does not offer" in heard.text
    assert heard.message.stop_reason == "stop"


@pytest.mark.parametrize("said", ["help", "Help!", "what can you do?"])
async def test_help(said: str) -> None:
    assert (await tell(said)).text == HELP


def test_rules_read_whole_words_of_short_messages() -> None:
    assert match_rule("statuses") is None
    assert match_rule("session") is None
    assert match_rule("helpless") is None
    assert match_rule("one two three four five six seven status") is RULES[1]
    assert match_rule("one two three four five six seven eight status") is None
    assert match_rule("status" + " " * 200) is None
    assert match_rule("") is None
    assert match_rule("status sessions") is RULES[0]


def test_every_tool_of_the_rules_is_in_the_help_text() -> None:
    assert all(rule.tool in HELP for rule in RULES if rule.tool)
    assert all(bool(rule.tool) != bool(rule.reply) for rule in RULES)


async def test_it_tells_a_list_of_sessions_in_plain_words() -> None:
    rows = [
        {"key": "agent:main:main", "kind": "main"},
        {"key": "agent:main:tg", "kind": "group", "label": "Fam"},
    ]
    heard = await tell(result_of("sessions_list", json.dumps({"count": 2, "sessions": rows})))
    assert heard.text == "There are 2 sessions:\n- agent:main:main (main)\n- agent:main:tg (group, Fam)"
    one = await tell(result_of("sessions_list", json.dumps({"sessions": [{"key": "k"}]})))
    assert one.text == "There is 1 session:\n- k"
    none = await tell(result_of("sessions_list", json.dumps({"count": 0, "sessions": []})))
    assert none.text == "There are no sessions that I may see."
    many = await tell(
        result_of("sessions_list", json.dumps({"sessions": [{"key": f"k{n}"} for n in range(13)]}))
    )
    assert many.text.splitlines()[0] == "There are 13 sessions:"
    assert many.text.splitlines()[-1] == "- and 3 more"
    assert len(many.text.splitlines()) == 12


async def test_it_tells_other_results_too() -> None:
    card = await tell(result_of("session_status", "Model: offline\nTokens: 12"))
    assert card.text == "This is the status of the session:\nModel: offline\nTokens: 12"
    odd = await tell(result_of("sessions_list", "not json"))
    assert odd.text == "The tool sessions_list answered: not json"
    other = await tell(result_of("weather", "sunny"))
    assert other.text == "The tool weather answered: sunny"
    failed = await tell(result_of("sessions_list", "forbidden", is_error=True))
    assert failed.text == "The tool sessions_list failed: forbidden"
    for empty in (result_of("session_status", " "), result_of("weather", "", is_error=True)):
        assert (await tell(empty)).text
    two = [*result_of("weather", "sunny"), ToolResultMessage("c2", "tide", (TextBlock("low"),), NOW_MS)]
    assert (await tell(two)).text == "The tool weather answered: sunny\nThe tool tide answered: low"


async def test_it_stops_after_a_result_even_if_the_result_contains_a_command() -> None:
    heard = await tell(result_of("weather", "status"))
    assert heard.message.stop_reason == "stop"
    again = await tell([*result_of("weather", "sunny"), UserMessage("status", NOW_MS)])
    assert again.message.stop_reason == "toolUse"


async def test_usage_is_an_estimate_of_a_quarter_of_the_characters() -> None:
    messages: list[Message] = [
        UserMessage("x" * 100, NOW_MS),
        AssistantMessage((TextBlock("y" * 50),), NOW_MS),
        UserMessage((TextBlock("help"), ImageBlock("aGk=", "image/png")), NOW_MS),
    ]
    usage = (await tell(messages)).message.usage
    assert usage is not None
    assert usage.input == -(-(len("Be brief.") + 154) // 4)
    assert usage.output == -(-len(HELP) // 4)
    assert usage.total_tokens == usage.input + usage.output
    assert usage.cost.total == 0.0


async def test_the_same_request_gets_the_same_answer_and_another_call_another_id() -> None:
    first, again = await tell("status"), await tell("status")
    assert first == again
    longer = await tell([*result_of("weather", "x"), UserMessage("status", NOW_MS)])
    assert longer.message.content[-1] != first.message.content[-1]


async def test_odd_conversations() -> None:
    assert (await tell([])).text == HELP
    assert (await tell([AssistantMessage((TextBlock("me"),), NOW_MS)])).text == HELP
    image = await tell([UserMessage((ImageBlock("aGk=", "image/png"),), NOW_MS)])
    assert "no text" in image.text
    dirty = await tell("a\ud800\0b " + "x" * 100_000)
    assert len(dirty.text) < 1000
    assert "…" in dirty.text
    deep = await tell(result_of("sessions_list", "[" * 100_000))
    assert deep.text.startswith("The tool sessions_list answered: [[[")
