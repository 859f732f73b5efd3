"""Normalisation of assistant text (HIST-4, HIST-5), stage by stage."""

from __future__ import annotations

import pytest

from openclaw.domain.sanitise import sanitise_assistant_text

TOOL_TAGS = ("tool_call", "function_call", "tool_calls", "function_calls")
THINKING_TAGS = ("think", "thinking", "thought", "antthinking", "antml:thinking")
MEMORY_TAGS = ("relevant-memories", "relevant_memories")


@pytest.mark.spec("HIST-4")
@pytest.mark.parametrize("tag", [*TOOL_TAGS, *THINKING_TAGS, *MEMORY_TAGS, "invoke", "minimax:tool_call"])
def test_a_block_goes_with_its_content(tag: str) -> None:
    for opening, closing in (
        (f"<{tag}>", f"</{tag}>"),
        (f"<{tag.upper()}>", f"</{tag.title()}>"),
        (f'< {tag} name="x">', f"< / {tag} >"),
        (f"<{tag}\n id='1'>", f"</{tag}\n>"),
    ):
        text = f"before {opening}inner > text, {{1: [2]}}\n{closing} after"
        assert sanitise_assistant_text(text) == "before  after"


@pytest.mark.spec("HIST-4", "HIST-5")
@pytest.mark.parametrize("tag", [*TOOL_TAGS, *THINKING_TAGS, *MEMORY_TAGS, "invoke", "minimax:tool_call"])
def test_a_block_that_never_closes_reaches_to_the_end(tag: str) -> None:
    assert sanitise_assistant_text(f"before <{tag}>\n{{'a': 1\n\nafter") == "before "
    assert sanitise_assistant_text(f"before <{tag} name='x'") == "before "
    assert sanitise_assistant_text(f"before <{tag}") == "before "
    assert sanitise_assistant_text(f"<{tag}>a</{tag}>b<{tag}>c") == "b"


@pytest.mark.spec("HIST-4")
@pytest.mark.parametrize("tag", [*TOOL_TAGS, *THINKING_TAGS, *MEMORY_TAGS, "invoke", "minimax:tool_call"])
def test_stray_and_empty_tags_go_alone(tag: str) -> None:
    assert sanitise_assistant_text(f"a</{tag}>b") == "ab"
    assert sanitise_assistant_text(f"a<{tag}/>b") == "ab"
    assert sanitise_assistant_text(f"a<{tag}>b</{tag}>c</{tag}>d") == "acd"


@pytest.mark.spec("HIST-4")
@pytest.mark.parametrize(
    "text",
    [
        "a <thinker>b</thinker>, <tool_call_id>1</tool_call_id>, <invoked>, <relevant-memories-2>",
        "if a < thinking_time: <invoke-me> <think.py> <think:x> a <think b <c",
        "2 < 3 and 3 > 2, [a](b), [Tool results](u), [Tool Caller: x], [historical] context",
        "f <| x |> g, a || b, <||>, <|a\nb|>, <|a<b|>",
        "plain text, nothing to do",
        "",
    ],
)
def test_ordinary_text_is_left_alone(text: str) -> None:
    assert sanitise_assistant_text(text) == text


@pytest.mark.spec("HIST-4")
def test_clean_text_comes_back_as_the_same_object_and_nothing_is_trimmed() -> None:
    text = "  leading and trailing \n"

    assert sanitise_assistant_text(text) is text
    assert sanitise_assistant_text(f" \n<think>x</think>{text}") == f" \n{text}"


@pytest.mark.spec("HIST-4")
@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("<tool_calls><tool_call>{}</tool_call> <tool_call>{}</tool_call></tool_calls>done", "done"),
        ("<tool_call>a</function_call>b", ""),
        ('<tool_call {"name":"x"}</tool_call>done', "done"),
        (
            "x<function_calls>\n<invoke name='r'>\n<parameter>1</parameter>\n</invoke>\n</function_calls>y",
            "xy",
        ),
        ("<invoke name='r'><parameter>1</parameter></minimax:tool_call>done", "done"),
        ("<invoke name='r'>1</invoke>\n</minimax:tool_call>done", "\ndone"),
        ("<minimax:tool_call><invoke>1</invoke></minimax:tool_call>done", "done"),
        ("<minimax:tool_call><invoke>1</invoke>done", ""),
        ("<relevant-memories>m</relevant_memories>done", "done"),
        ("<think>a</thinking>b<thinking>c</antthinking>d", "bd"),
        ("<think>one <think>two</think> three", " three"),
    ],
)
def test_blocks_inside_and_beside_blocks(text: str, expected: str) -> None:
    assert sanitise_assistant_text(text) == expected


@pytest.mark.spec("HIST-4")
@pytest.mark.parametrize(
    "token",
    [
        *("<|assistant|>", "<|im_start|>", "<|end of turn|>", "<|a|>", "<|tool_call_result_begin|>"),
        *("<｜begin▁of▁sentence｜>", "<｜end｜>", "<|mixed｜>", "＜｜wide｜＞"),
    ],
)
def test_control_tokens_go(token: str) -> None:
    assert sanitise_assistant_text(f"{token}Hi{token} there{token}{token}!") == "Hi there!"


@pytest.mark.spec("HIST-4", "HIST-5")
@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ('[Tool Call: read (ID: c1)]\nArguments: {"a": "}]", "b": [1, {}]}\nHello', "Hello"),
        ('[tool call: read] arguments : ["x"] Hello', " Hello"),
        ('Look:\n[Tool Call: read]\nArguments: "a \\" b"\nHello', "Look:\nHello"),
        ("[Tool Call: read]\nArguments: none at all\nHello", "Hello"),
        ("[Tool Call: read]\nArguments: none at all", ""),
        ("[Tool Call: read]\nHello", "Hello"),
        ("say [Tool Call: read] hello", "say  hello"),
        ("[Tool Call: a]\n[Tool Call: b]\nHello", "Hello"),
        ('before [Tool Call: read]\nArguments: {"a": 1', "before "),
        ('before [Tool Call: read]\nArguments: {"a: 1}\nafter', "before "),
        ('before [Tool Call: read]\nArguments: "a\nafter', "before "),
        ("before [Tool Call: read", "before "),
        ('[Tool Result for ID c1]\n{"a": [1]}\nHello', "Hello"),
        ("[Tool Result for ID c1]\nline one\nline two\n\nHello", "\nHello"),
        ("[Tool Result for ID c1]\nline one\n \t\r\nHello", " \t\r\nHello"),
        ("[Tool Result: ok]\nline one", ""),
        ("[Tool Result]\nx\n[Tool Call: y]\nArguments: {}\nHello", "Hello"),
        ("[Tool Result]\n[Tool Result]\n[1, 2]\nHello", "Hello"),
        ("[Tool Result]\nx [Historical context: z] Hello", " Hello"),
        ("[Tool Result] inline stays", " inline stays"),
        ("[Tool Result]\n[1, 2", ""),
        ("[Historical context: a different model said this.]\nHello", "Hello"),
        ("say [Historical context] hello", "say  hello"),
        ("before [Historical context: never closed", "before "),
        ("[Tool Result]  \r\nx\r\n", ""),
    ],
)
def test_downgraded_tool_text_goes_with_what_belongs_to_it(text: str, expected: str) -> None:
    assert sanitise_assistant_text(text) == expected


@pytest.mark.spec("HIST-5")
@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("a[TOOL_CALL]{tool => 'x'}[/TOOL_CALL]b", "ab"),
        ("a[ tool_result ]x[ / tool_result ]b", "ab"),
        ("a[TOOL_CALL]x[/TOOL_RESULT]b", "a"),
        ("a[TOOL_CALL]never closed", "a"),
        ("a[/TOOL_CALL]b", "ab"),
    ],
)
def test_bracket_blocks_go(text: str, expected: str) -> None:
    assert sanitise_assistant_text(text) == expected


@pytest.mark.spec("HIST-5")
@pytest.mark.parametrize("tag", [*THINKING_TAGS, *MEMORY_TAGS])
@pytest.mark.parametrize(
    "code",
    [
        "`<{0}>`",
        "`<{0}>x</{0}>`",
        "``a ` <{0}> b``",
        "`two\nlines <{0}>`",
        "```\n<{0}>x</{0}>\n```",
        "```xml\n<{0}>\n\n```js\n```",
        "~~~\n<{0}>\n```\n~~~",
        "   ````\n```\n<{0}>\n````",
        "```\n<{0}> never closed",
        "```a``` `<{0}>`",
    ],
)
def test_memory_and_thinking_tags_in_code_are_left_alone(tag: str, code: str) -> None:
    text = f"See:\n{code.format(tag)}"

    assert sanitise_assistant_text(text) == text
    assert sanitise_assistant_text(f"<{tag}>x</{tag}>{text}") == text


@pytest.mark.spec("HIST-5")
@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("an odd ` tick\n\n<think>x</think>y ` here", "an odd ` tick\n\ny ` here"),
        ("an odd ` tick\n \t\n<think>x</think>y ` here", "an odd ` tick\n \t\ny ` here"),
        ("`` no pair ` <think>x</think>y", "`` no pair ` y"),
        ("```\ncode\n```\n<think>x</think>y", "```\ncode\n```\ny"),
        ("`a`<think>x</think>`b`", "`a``b`"),
        ("`a ``b` c`` <think>x</think>y", "`a ``b` c`` y"),
        ("`a ``b`` <think>x</think>` y", "`a ``b`` <think>x</think>` y"),
        ("    ```\n<think>x</think>y", "    ```\ny"),
        ("```\n```` <think>x</think>\n```\n<think>x</think>y", "```\n```` <think>x</think>\n```\ny"),
        ("~~~\n```\n~~\n~~~\n<think>x</think>y", "~~~\n```\n~~\n~~~\ny"),
        ("<think>a `</think>` b</think>c", "c"),
    ],
)
def test_where_code_begins_and_ends(text: str, expected: str) -> None:
    assert sanitise_assistant_text(text) == expected


@pytest.mark.spec("HIST-4")
def test_a_tool_tag_mentioned_in_code_does_not_take_the_rest_with_it() -> None:
    mention = "Use `<tool_call>` or `[TOOL_CALL]`, then `</tool_call>`; `<invoke/>` too."
    whole = "```\n<tool_call>{}</tool_call>\n```\nok"

    assert sanitise_assistant_text("Use `<tool_call>` here.") == "Use `<tool_call>` here."
    assert sanitise_assistant_text("Use `[TOOL_CALL]` here.") == "Use `[TOOL_CALL]` here."
    assert sanitise_assistant_text("End with `</tool_call>`, `<tool_call/>`.") == (
        "End with `</tool_call>`, `<tool_call/>`."
    )
    assert sanitise_assistant_text(whole) == "```\n\n```\nok"
    assert sanitise_assistant_text(mention) == "Use ``; `<invoke/>` too."


@pytest.mark.spec("HIST-5")
@pytest.mark.parametrize(
    ("text", "expected"),
    [
        # MiniMax before control tokens: the token is still there when the invoke tag is looked for.
        ("<inv<|x|>oke>a", "<invoke>a"),
        # Control tokens before memory tags, tool XML and thinking tags.
        ("<relevant<|x|>-memories>a", ""),
        ("<tool<|x|>_call>a", ""),
        ("<thi<|x|>nk>a", ""),
        # Memory tags before tool XML.
        ("<tool<relevant-memories>m</relevant-memories>_call>a", ""),
        ("<relevant<tool_call>m</tool_call>-memories>a", "<relevant-memories>a"),
        # Tool XML before bracket blocks before downgraded text.
        ("[TOOL<tool_call>m</tool_call>_CALL]a", ""),
        ("[Tool [TOOL_CALL]m[/TOOL_CALL]Call: x]a", "a"),
        ("[TOOL[Tool Call: x]_CALL]a", "[TOOL_CALL]a"),
        # Thinking tags last.
        ("<thi[Tool Call: x]nk>a", ""),
        ("[Tool <think>m</think>Call: x]a", "[Tool Call: x]a"),
    ],
)
def test_the_stages_run_in_their_order(text: str, expected: str) -> None:
    assert sanitise_assistant_text(text) == expected
