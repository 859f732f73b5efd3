"""The table of commands, and the lists that people and clients get from it."""

from __future__ import annotations

import pytest

from openclaw.domain.commandtable import (
    BY_WORD,
    COMMANDS,
    command_rows,
    commands_text,
    help_text,
    usage_of,
)


@pytest.mark.spec("CMD-11")
def test_every_command_of_the_specification_is_there_once() -> None:
    named = (
        "status context stop compact new reset send tools think verbose reasoning elevated model queue help "
        "commands whoami id usage activation subagents kill steer tell export-session config debug restart "
        "agents focus unfocus session btw side undo"
    )
    assert set(named.split()) <= BY_WORD.keys()
    words = [word for command in COMMANDS for word in (command.name, *command.aliases)]
    assert len(words) == len(set(words)) == len(BY_WORD)
    assert all(BY_WORD[command.name] is command for command in COMMANDS)


@pytest.mark.spec("CMD-11")
def test_a_command_without_an_argument_takes_no_words() -> None:
    for command in COMMANDS:
        assert (command.argument is None) == (command.most_words == 0), command.name
        assert command.help.endswith("."), command.name
        assert not (command.inline and command.directive), command.name
    assert BY_WORD["compact"].most_words is None
    assert BY_WORD["send"].most_words == 1


@pytest.mark.spec("CMD-11")
def test_help_is_short_and_leads_to_the_whole_list() -> None:
    lines = help_text().splitlines()
    assert lines[0] == "The most useful commands:"
    assert lines[1] == "/status - What this session is doing and how much room is left."
    assert lines[-1] == "/commands shows all of them."
    assert len(lines) <= 12
    assert "/undo <reset|compact> - Take back the last reset or compaction." in lines


@pytest.mark.spec("CMD-11", "CMD-13")
def test_the_list_shows_what_this_person_may_use() -> None:
    for_owner, for_friend = commands_text(owner=True), commands_text(owner=False)
    for command in COMMANDS:
        assert f"/{command.name}" in for_owner
        assert (f"\n/{command.name} " in f"{for_friend}\n") == (not command.owner_only), command.name
    assert for_owner.startswith("Session\n/stop - ")
    titles = [part.splitlines()[0] for part in for_owner.split("\n\n")]
    assert titles == ["Session", "Options", "Status", "Sub-agents", "Management"]


@pytest.mark.spec("CMD-11")
@pytest.mark.parametrize(
    ("name", "usage"),
    [
        ("stop", "Usage: /stop"),
        ("id", "Usage: /whoami"),
        ("undo", "Usage: /undo <reset|compact>"),
        ("tools", "Usage: /tools [compact|verbose]"),
        ("btw", "Usage: /btw <question>"),
        ("compact", "Usage: /compact [instructions]"),
    ],
)
def test_usage_texts(name: str, usage: str) -> None:
    assert usage_of(name) == usage


@pytest.mark.spec("CMD-11")
def test_rows_for_clients_have_the_shape_of_the_wire() -> None:
    rows = {row["name"]: row for row in command_rows()}
    assert len(rows) == len(COMMANDS)
    assert rows["help"] == {
        "name": "help",
        "nativeName": "help",
        "textAliases": ["/help"],
        "description": "The most useful commands.",
        "category": "status",
        "source": "native",
        "scope": "both",
        "acceptsArgs": False,
    }
    assert rows["whoami"]["textAliases"] == ["/whoami", "/id"]
    assert rows["tools"]["acceptsArgs"] is True
    assert rows["tools"]["args"] == [
        {
            "name": "mode",
            "description": "how much to show",
            "type": "string",
            "choices": [
                {"value": "compact", "label": "compact"},
                {"value": "verbose", "label": "verbose"},
            ],
        }
    ]
    assert rows["btw"]["args"] == [
        {"name": "question", "description": "the question", "type": "string", "required": True}
    ]
    shown = {row["name"] for row in command_rows(owner=False)}
    assert rows.keys() - shown == {command.name for command in COMMANDS if command.owner_only}
