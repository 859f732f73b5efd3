"""What a message asks for, by whom: commands, shortcuts, words that mean stop, and plain text."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from openclaw.domain.commands import (
    OPERATOR,
    STOP_WORDS,
    CommandCaller,
    CommandOnly,
    PlainText,
    Reading,
    Unheard,
    WithText,
    is_stop_word,
    read_message,
)
from openclaw.domain.commandtable import BY_WORD, COMMANDS
from openclaw.domain.directives import Asked

FRIEND = CommandCaller(authorised=True)
STRANGER = CommandCaller()
NAMES = ("@Claw", "Lobster", " ")


def read(text: str, caller: CommandCaller = OPERATOR) -> Reading:
    return read_message(text, caller, mention_names=NAMES, model_word=lambda word: word in ("opus", "gpt"))


def only(name: str, args: str = "", *, bare: bool = False) -> CommandOnly:
    return CommandOnly((Asked(name, args, bare),))


@pytest.mark.spec("CMD-12", "CMD-15")
@pytest.mark.parametrize(
    ("text", "reading"),
    [
        ("/status", only("status")),
        ("  /STATUS \n", only("status")),
        ("/status:", only("status")),
        ("/status@claw", only("status")),
        ("/id", only("whoami")),
        ("/stop", only("stop")),
        ("/compact", only("compact")),
        ("/compact keep the names\nand dates", only("compact", "keep the names\nand dates")),
        ("/compact: keep", only("compact", "keep")),
        ("/send on", only("send", "on")),
        ("/send: on", only("send", "on")),
        ("/send:on", only("send", "on")),
        ("/send", only("send")),
        ("/context detail", only("context", "detail")),
        ("/tools verbose", only("tools", "verbose")),
        ("/side what is this", only("btw", "what is this")),
        ("/tell go left", only("steer", "go left")),
        ("/export a b.jsonl", only("export-session", "a b.jsonl")),
        ("@claw /status", only("status")),
        ("@Claw: /status", only("status")),
        ("<@lobster>, /status", only("status")),
        ("<@!Lobster> /status", only("status")),
        ("[Telegram Alice 10:32] /status", only("status")),
        ("[Telegram Alice 10:32] @claw /send off", only("send", "off")),
        ("[1] [2] [3] [4] /stop", only("stop")),
        ("/reset soft", only("reset", "soft")),
        ("/reset SOFT and go on", only("reset", "SOFT and go on")),
        ("/reset soft\ngo on", only("reset", "soft\ngo on")),
    ],
)
def test_a_command_is_the_whole_message(text: str, reading: Reading) -> None:
    assert read(text) == reading


@pytest.mark.spec("CMD-12", "CMD-15", "SEND-10", "LIFE-14", "COMP-1")
@pytest.mark.parametrize(
    "text",
    [
        "hello",
        "",
        "/",
        "/foo",
        "/foo bar",
        "/statusbar",
        "/stopwatch",
        "/stop now",
        "please /stop",
        "please /compact",
        "please /send on",
        "/send on please",
        "/send on\nplease",
        "/usage full please",
        "/kill one two",
        "/unfocus it",
        "/new",
        "/new opus hello",
        "/reset",
        "/reset softly",
        "/reset now",
        "/stop@crab",
        "@crab /stop",
        "[no end /stop",
        "[two\nlines] /stop",
        "[1] [2] [3] [4] [5] /stop",
        "[" + "x" * 200 + "] /stop",
        "stop it",
        "/undo reset now",
        "http://host/status",
    ],
)
def test_everything_else_is_plain_text(text: str) -> None:
    assert read(text) == PlainText()


@pytest.mark.spec("CMD-10")
@pytest.mark.parametrize(
    ("text", "reading"),
    [
        ("/think high", only("think", "high")),
        ("/think", only("think")),
        ("/think:", only("think")),
        ("/think banana", only("think", "banana")),
        ("/model", only("model")),
        ("/model list", only("model", "list")),
        ("/model 3", only("model", "3")),
        ("/models opus", only("model", "opus")),
        ("/queue", only("queue")),
        ("/queue nonsense", only("queue", "nonsense")),
        ("/queue collect cap:5", only("queue", "collect cap:5")),
        ("/think low /verbose on", CommandOnly((Asked("think", "low"), Asked("verbose", "on")))),
        ("/status /think low", CommandOnly((Asked("status"), Asked("think", "low")))),
        ("/elevated full", only("elevated", "full")),
    ],
)
def test_directives_alone_are_a_command(text: str, reading: Reading) -> None:
    assert read(text) == reading


@pytest.mark.spec("CMD-10", "CMD-12")
@pytest.mark.parametrize(
    ("text", "reading"),
    [
        ("/think high write", WithText((), (Asked("think", "high"),), "write")),
        ("write /model opus", WithText((), (Asked("model", "opus"),), "write")),
        ("hey /status now", WithText(("status",), (), "hey now")),
        ("/help me /help", WithText(("help",), (), "me")),
        (
            "/whoami and /commands, /think low",
            WithText(("whoami",), (Asked("think", "low"),), "and /commands,"),
        ),
        ("@claw /think low go", WithText((), (Asked("think", "low"),), "@claw go")),
        ("[head] go /think low", WithText((), (Asked("think", "low"),), "[head] go")),
    ],
)
def test_inside_a_message_shortcuts_and_directives_are_taken_out(text: str, reading: Reading) -> None:
    assert read(text) == reading


@pytest.mark.spec("CMD-12")
def test_only_four_commands_are_shortcuts() -> None:
    assert [command.name for command in COMMANDS if command.inline] == [
        "help",
        "commands",
        "status",
        "whoami",
    ]
    assert read("now /tools and /context") == PlainText()


# -- who ---------------------------------------------------------------------------------------


@pytest.mark.spec("CMD-13")
@pytest.mark.parametrize("text", ["/status", "/stop", "/send on", "/think high", "/compact x", "/reset soft"])
def test_a_strangers_command_is_not_heard(text: str) -> None:
    assert read(text, STRANGER) == Unheard()


@pytest.mark.spec("CMD-13", "LIFE-14")
@pytest.mark.parametrize(
    "text", ["hey /status", "/think high write", "stop", "wait!", "/new", "/reset", "/foo", "hello"]
)
def test_a_strangers_other_words_are_plain_text(text: str) -> None:
    assert read(text, STRANGER) == PlainText()


@pytest.mark.spec("CMD-13", "CMD-8")
def test_some_commands_are_for_owners() -> None:
    owner_only = {command.name for command in COMMANDS if command.owner_only}
    assert owner_only == {"send", "config", "debug", "export-session", "restart", "elevated"}
    for name in owner_only:
        assert read(f"/{name}", FRIEND) == Unheard(), name
        assert read(f"/{name}", OPERATOR) == only(name), name
        assert read(f"/{name}", CommandCaller(owner=True)) == only(name), name
    assert read("/think low /elevated on", FRIEND) == Unheard()


@pytest.mark.spec("CMD-13")
def test_an_owners_directive_inside_a_friends_text_is_text() -> None:
    assert read("go /elevated full", FRIEND) == PlainText()
    both = read("go /elevated full /think low", FRIEND)
    assert both == WithText((), (Asked("think", "low"),), "go /elevated full")


@pytest.mark.spec("CMD-13")
@pytest.mark.parametrize(
    ("caller", "may"),
    [
        (CommandCaller(), False),
        (CommandCaller(authorised=True), True),
        (CommandCaller(owner=True), True),
        (OPERATOR, True),
    ],
)
def test_who_may_give_commands(caller: CommandCaller, may: bool) -> None:
    assert caller.may_command is may


# -- words that mean stop ----------------------------------------------------------------------


@pytest.mark.spec("CMD-6")
@pytest.mark.parametrize("word", ["stop", "abort", "esc", "exit", "wait", "interrupt"])
@pytest.mark.parametrize("form", ["{}", "{}!", "{}.", "{}...", "{} ?!", " {}。", "{}…"])
def test_a_bare_word_stops(word: str, form: str) -> None:
    for text in (form.format(word), form.format(word.upper()), form.format(word.capitalize())):
        assert read(text) == only("stop", bare=True), text


@pytest.mark.spec("CMD-6")
@pytest.mark.parametrize(
    "text",
    [
        "стоп", "停止", "停下!", "やめて。", "توقف", "रुको", "detén", "Arrête !", "stopp", "멈춰", "ｓｔｏｐ",
        "@claw stop",
    ],
)  # fmt: skip
def test_translations_stop_as_well(text: str) -> None:
    assert read(text) == only("stop", bare=True)


@pytest.mark.spec("CMD-6")
@pytest.mark.parametrize(
    "text", ["", "!", "stopping", "wait for me", "don't stop", "s t o p", "stop" + "!" * 37, "st\u200bop"]
)
def test_other_words_do_not_stop(text: str) -> None:
    assert not is_stop_word(text)


@pytest.mark.spec("CMD-6")
def test_the_list_of_stop_words_is_folded_and_short() -> None:
    assert is_stop_word("stop" + "!" * 36)
    assert all(is_stop_word(word) and is_stop_word(f"{word}!") for word in STOP_WORDS)
    assert len(STOP_WORDS) == 59


# -- any text ----------------------------------------------------------------------------------

TOKENS = [f"/{word}" for word in BY_WORD] + [
    "hello",
    "on",
    "high",
    "stop",
    "@claw",
    "\n",
    ":",
    "\x00",
    "\ud800",
]


@pytest.mark.spec("CMD-12", "CMD-13")
@settings(max_examples=300, deadline=None)
@given(st.one_of(st.text(max_size=100), st.lists(st.sampled_from(TOKENS), max_size=6).map(" ".join)))
def test_any_text_has_one_reading_and_a_stranger_gets_nothing(text: str) -> None:
    for caller in (OPERATOR, FRIEND):
        reading = read(text, caller)
        if isinstance(reading, CommandOnly):
            assert reading.asked
            assert all(one.name in BY_WORD for one in reading.asked)
            assert caller.owner or not any(BY_WORD[one.name].owner_only for one in reading.asked)
        if isinstance(reading, WithText):
            assert reading.rest
            assert reading.shortcuts or reading.directives
    assert isinstance(read(text, STRANGER), PlainText | Unheard)


@pytest.mark.spec("CMD-12")
@settings(max_examples=100, deadline=None)
@given(st.sampled_from(sorted(BY_WORD)), st.sampled_from(("", ":", "@claw", "@CLAW:")), st.booleans())
def test_case_colon_and_address_make_no_difference(word: str, suffix: str, upper: bool) -> None:
    written = f"/{word.upper() if upper else word}{suffix}"
    assert read(written) == read(f"/{word}")
