"""Completion of commands, and walking through earlier inputs."""

from __future__ import annotations

from openclaw.domain.commandtable import command_rows
from openclaw.tui.composing import MAX_SUGGESTIONS, Recall, is_command, read_commands, suggest

COMMANDS = read_commands(
    [
        {"textAliases": ["/status"], "description": "How it is", "acceptsArgs": False},
        {"textAliases": ["/stop", "/abort"], "description": "End the turn"},
        {
            "textAliases": ["/think", "/t"],
            "description": "How hard",
            "acceptsArgs": True,
            "args": [
                {"name": "level", "choices": [{"value": "off"}, {"value": "high"}, {"value": "higher"}]}
            ],
        },
        {"nothing": "known"},
    ]
)


def labels(text: str) -> list[str]:
    return [one.label for one in suggest(text, COMMANDS)]


def test_commands_that_begin_so_come_before_those_that_contain_it() -> None:
    assert labels("/st") == ["/status", "/stop"]
    assert labels("/ST") == ["/status", "/stop"]
    assert labels("/t") == ["/think", "/status", "/stop"]
    assert labels("/abo") == ["/stop"], "an alias finds its command"
    assert labels("/") == ["/status", "/stop", "/think"]
    assert labels("/zzz") == labels("st") == labels("") == labels("/st\n") == labels(" /st") == []
    taken = {one.label: one.text for one in suggest("/", COMMANDS)}
    assert taken == {"/status": "/status", "/stop": "/stop", "/think": "/think "}


def test_known_words_complete_an_argument() -> None:
    assert labels("/think ") == ["off", "high", "higher"]
    assert labels("/t hig") == ["high", "higher"]
    assert labels("/think high") == ["higher"], "what stands there is no suggestion"
    assert [one.text for one in suggest("/t h", COMMANDS)] == ["/t high", "/t higher"]
    assert labels("/status x") == labels("/nothing x") == []


def test_a_whole_command_can_be_sent_as_it_stands() -> None:
    assert is_command("/abort", COMMANDS) and is_command(" /STATUS ", COMMANDS)
    assert not is_command("/sta", COMMANDS) and not is_command("/status now", COMMANDS)


def test_the_table_of_the_gateway_is_understood() -> None:
    commands = read_commands(command_rows())
    assert {"/status", "/new", "/help"} <= {command.names[0] for command in commands}
    assert len(suggest("/", commands)) == min(len(commands), MAX_SUGGESTIONS)
    assert any(command.choices for command in commands)
    assert read_commands([{"textAliases": ["/x\x1b[2J"]}])[0].names == ("/x\ufffd[2J",)


def test_earlier_inputs_and_back_to_what_was_being_typed() -> None:
    recall = Recall(["one", "two"])
    assert recall.later() is None
    assert recall.earlier("dra") == "two"
    assert recall.earlier("two") == "one"
    assert recall.earlier("one") is None
    assert recall.later() == "two"
    assert recall.later() == "dra"
    assert recall.later() is None
    recall.add("two")
    recall.add("three")
    assert [recall.earlier(""), recall.earlier(""), recall.earlier("")] == ["three", "two", "one"]
    recall.add("three")
    assert recall.earlier("") == "three"
    assert recall.earlier("three") == "two", "the same line twice in a row is one"
