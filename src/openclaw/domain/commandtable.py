"""The visible table of chat commands, and the lists that are made from it (SPEC §22).

One table serves parsing, `/help`, `/commands` and the RPC `commands.list`. `/new` and
`/reset` stand in it for the lists; `resets` reads them (LIFE-13). What a command does
is not known here.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

import msgspec
from msgspec import Struct

Category = Literal["session", "options", "status", "subagents", "management"]


class Argument(Struct, frozen=True, rename="camel", omit_defaults=True):
    """One argument of a command, for help and for clients that draw menus."""

    name: str
    description: str
    choices: tuple[str, ...] = ()
    required: bool = False


class Command(Struct, frozen=True, kw_only=True):
    """One command. `most_words` bounds what may follow it; None means free text."""

    name: str
    help: str
    category: Category
    aliases: tuple[str, ...] = ()
    argument: Argument | None = None
    most_words: int | None = 0
    owner_only: bool = False
    # May stand inside a longer message: answered, taken out, and the rest goes on (CMD-12).
    inline: bool = False
    # Inside a longer message it holds for that message only (CMD-10).
    directive: bool = False


def _argument(name: str, description: str, words: str = "", *, required: bool = False) -> Argument:
    return Argument(name, description, tuple(words.split()), required)


def _command(
    name: str,
    category: Category,
    help: str,
    argument: Argument | None = None,
    *,
    aliases: str = "",
    most_words: int | None = None,
    owner_only: bool = False,
    inline: bool = False,
    directive: bool = False,
) -> Command:
    if argument is None:
        most_words = 0
    return Command(
        name=name,
        help=help,
        category=category,
        aliases=tuple(aliases.split()),
        argument=argument,
        most_words=most_words,
        owner_only=owner_only,
        inline=inline,
        directive=directive,
    )


COMMANDS: tuple[Command, ...] = (
    _command("help", "status", "The most useful commands.", inline=True),
    _command("commands", "status", "Every command.", inline=True),
    _command("status", "status", "What this session is doing and how much room is left.", inline=True),
    _command("whoami", "status", "Who you are here and what you may do.", aliases="id", inline=True),
    _command(
        "context",
        "status",
        "What the model is given besides the conversation.",
        _argument("view", "how much to show", "list detail json"),
        most_words=1,
    ),
    _command(
        "tools",
        "status",
        "The tools of this session.",
        _argument("mode", "how much to show", "compact verbose"),
        most_words=1,
    ),
    _command(
        "usage",
        "options",
        "Show what a reply used below it; cost shows what this session used so far.",
        _argument("mode", "what to show", "off tokens full cost"),
        most_words=1,
    ),
    _command("stop", "session", "Stop everything that runs here, sub-agents included."),
    _command(
        "new",
        "session",
        "Start a new session; a model and a first message may follow.",
        _argument("model", "a model, then the first message"),
    ),
    _command(
        "reset",
        "session",
        "Start over; soft keeps the conversation and renews the prompt only.",
        _argument("mode", "soft, or the first message"),
    ),
    _command(
        "compact",
        "session",
        "Summarise what is older to free room; undo takes the last one back.",
        _argument("instructions", "what the summary must keep, or undo"),
    ),
    _command(
        "undo",
        "session",
        "Take back the last reset or compaction.",
        _argument("what", "what to take back", "reset compact", required=True),
        most_words=1,
    ),
    _command(
        "btw",
        "session",
        "Ask something on the side; the conversation does not remember it.",
        _argument("question", "the question", required=True),
        aliases="side",
    ),
    _command(
        "export-session",
        "session",
        "Write this session to a file in the workspace.",
        _argument("path", "a file inside the workspace"),
        aliases="export",
        owner_only=True,
    ),
    _command(
        "think",
        "options",
        "How long the model may think.",
        _argument("level", "a level or default", "off minimal low medium high xhigh adaptive max default"),
        aliases="thinking t",
        directive=True,
    ),
    _command(
        "verbose",
        "options",
        "How much of the work is shown.",
        _argument("level", "a level or default", "on off full default"),
        aliases="v",
        directive=True,
    ),
    _command(
        "reasoning",
        "options",
        "Whether the model's thinking is shown.",
        _argument("level", "a level or default", "on off stream default"),
        aliases="reason",
        directive=True,
    ),
    _command(
        "elevated",
        "options",
        "Whether tools may act on the host itself.",
        _argument("level", "a level or default", "on off ask full default"),
        aliases="elev",
        owner_only=True,
        directive=True,
    ),
    _command(
        "model",
        "options",
        "Choose the model, or see which ones there are.",
        _argument("model", "a name, a number of the list, list, status or default"),
        aliases="models",
        directive=True,
    ),
    _command(
        "queue",
        "options",
        "What happens with messages that arrive while the agent is busy.",
        _argument("mode", "a mode and its options, or default"),
        directive=True,
    ),
    _command(
        "send",
        "management",
        "Whether replies may leave this session.",
        _argument("mode", "on, off or inherit", "on off inherit"),
        most_words=1,
        owner_only=True,
    ),
    _command(
        "activation",
        "management",
        "When the agent answers in this group.",
        _argument("mode", "when it answers", "mention always"),
        most_words=1,
    ),
    _command(
        "subagents",
        "subagents",
        "See and steer the sub-agents of this session.",
        _argument("action", "what to do", "list info log kill send steer spawn"),
    ),
    _command(
        "kill",
        "subagents",
        "Stop one sub-agent, or all of them.",
        _argument("target", "a number, a name, a key, last or all", required=True),
        most_words=1,
    ),
    _command(
        "steer",
        "subagents",
        "Hand a message to the run in progress.",
        _argument("message", "the message", required=True),
        aliases="tell",
    ),
    _command("agents", "management", "The agents of this gateway."),
    _command(
        "session",
        "management",
        "How long a thread stays bound to a session.",
        _argument("setting", "idle or max-age, and a duration", "idle max-age"),
    ),
    _command("focus", "management", "Bind this thread to a session.", _argument("target", "a session")),
    _command("unfocus", "management", "Unbind this thread."),
    _command(
        "config",
        "management",
        "Show the configuration without its secrets.",
        _argument("action", "show, and a path", "show"),
        owner_only=True,
    ),
    _command(
        "debug",
        "management",
        "Show the settings in force for this session.",
        _argument("action", "what to show", "show"),
        owner_only=True,
    ),
    _command("restart", "management", "How to restart the gateway.", owner_only=True),
)

BY_WORD: Mapping[str, Command] = {
    word: command for command in COMMANDS for word in (command.name, *command.aliases)
}


# -- lists -------------------------------------------------------------------------------------

_USEFUL = ("status", "stop", "new", "compact", "model", "think", "tools", "undo")
_TITLES: Mapping[Category, str] = {
    "session": "Session",
    "options": "Options",
    "status": "Status",
    "subagents": "Sub-agents",
    "management": "Management",
}


def help_text() -> str:
    """`/help`: the commands that most people need."""
    lines = [_line(BY_WORD[name]) for name in _USEFUL]
    return "\n".join(("The most useful commands:", *lines, "", "/commands shows all of them."))


def commands_text(*, owner: bool) -> str:
    """`/commands`: every command that this person may give, by what it is about."""
    parts = []
    for category, title in _TITLES.items():
        shown = [one for one in COMMANDS if one.category == category and (owner or not one.owner_only)]
        parts.append("\n".join((title, *(_line(one) for one in shown))))
    return "\n\n".join(parts)


def usage_of(name: str) -> str:
    """How a command is written: `Usage: /undo <reset|compact>`."""
    command = BY_WORD[name]
    return f"Usage: /{command.name}{_form(command)}"


def _line(command: Command) -> str:
    return f"/{command.name}{_form(command)} - {command.help}"


def _form(command: Command) -> str:
    argument = command.argument
    if argument is None:
        return ""
    inner = "|".join(argument.choices) or argument.name
    return f" <{inner}>" if argument.required else f" [{inner}]"


def command_rows(*, owner: bool = True) -> list[dict[str, Any]]:
    """The table as `commands.list` shows it."""
    return [_row(one) for one in COMMANDS if owner or not one.owner_only]


def _row(command: Command) -> dict[str, Any]:
    row: dict[str, Any] = {
        "name": command.name,
        "nativeName": command.name,
        "textAliases": [f"/{word}" for word in (command.name, *command.aliases)],
        "description": command.help,
        "category": command.category,
        "source": "native",
        "scope": "both",
        "acceptsArgs": command.argument is not None,
    }
    argument = command.argument
    if argument is not None:
        shown = msgspec.to_builtins(argument) | {"type": "string"}
        if argument.choices:
            shown["choices"] = [{"value": word, "label": word} for word in argument.choices]
        row["args"] = [shown]
    return row
