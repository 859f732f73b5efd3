"""What a person may type next: earlier inputs, and slash commands that fit. Pure; draws nothing."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, Final

from msgspec import Struct

from openclaw.tui.text import safe_line

Json = dict[str, Any]
MAX_SUGGESTIONS: Final = 50


class Suggestion(Struct, frozen=True):
    """`text` is the whole input with the suggestion taken."""

    text: str
    label: str
    help: str


class SlashCommand(Struct, frozen=True):
    """A row of `commands.list`, as far as typing needs it."""

    names: tuple[str, ...]
    help: str
    takes_argument: bool = False
    choices: tuple[str, ...] = ()


def read_commands(rows: Iterable[Json]) -> list[SlashCommand]:
    """Rows that are not understood are left out: a newer gateway may say more."""
    found = []
    for row in rows:
        names = tuple(safe_line(str(name), 60) for name in row.get("textAliases") or ())
        if names:
            argument: Json = next(iter(row.get("args") or ()), {})
            choices = tuple(str(choice.get("value")) for choice in argument.get("choices") or ())
            help_text = safe_line(str(row.get("description") or ""), 100)
            found.append(SlashCommand(names, help_text, bool(row.get("acceptsArgs")), choices))
    return found


def suggest(text: str, commands: Sequence[SlashCommand]) -> list[Suggestion]:
    """What may complete an input of one line that begins with a slash; nothing for any other."""
    if not text.startswith("/") or "\n" in text:
        return []
    word, blank, argument = text.partition(" ")
    if blank:
        return _suggest_choices(word, argument, commands)
    asked = word.casefold()
    starting = [_suggestion(command) for command in commands if _starts(command, asked)]
    inside = [
        _suggestion(command)
        for command in commands
        if not _starts(command, asked) and asked[1:] and asked[1:] in command.names[0].casefold()
    ]
    return [*starting, *inside][:MAX_SUGGESTIONS]


def is_command(text: str, commands: Sequence[SlashCommand]) -> bool:
    """Whether the input is a command that can be sent as it stands."""
    return any(text.strip().casefold() == name.casefold() for command in commands for name in command.names)


def _starts(command: SlashCommand, asked: str) -> bool:
    return any(name.casefold().startswith(asked) for name in command.names)


def _suggestion(command: SlashCommand) -> Suggestion:
    name = command.names[0]
    return Suggestion(f"{name} " if command.takes_argument else name, name, command.help)


def _suggest_choices(word: str, argument: str, commands: Sequence[SlashCommand]) -> list[Suggestion]:
    for command in commands:
        if word in command.names:
            fitting = [
                choice for choice in command.choices if choice.startswith(argument) and choice != argument
            ]
            return [Suggestion(f"{word} {choice}", choice, command.help) for choice in fitting]
    return []


class Recall:
    """Walks through earlier inputs; what was being typed is found again at the end."""

    def __init__(self, lines: Sequence[str]) -> None:
        self._lines = list(lines)
        self._at = len(self._lines)
        self._draft = ""

    def add(self, line: str) -> None:
        if not self._lines or self._lines[-1] != line:
            self._lines.append(line)
        self._at, self._draft = len(self._lines), ""

    def earlier(self, current: str) -> str | None:
        """The input before; None at the first."""
        if self._at == 0:
            return None
        if self._at == len(self._lines):
            self._draft = current
        self._at -= 1
        return self._lines[self._at]

    def later(self) -> str | None:
        """The input after; None when nothing earlier is shown."""
        if self._at == len(self._lines):
            return None
        self._at += 1
        return self._draft if self._at == len(self._lines) else self._lines[self._at]
