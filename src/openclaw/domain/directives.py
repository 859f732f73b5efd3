"""Directives and shortcuts inside a message: `/think high`, `/queue collect`, `/status` (CMD-10, CMD-12).

Finds them, checks that the word behind a directive means something, and gives back the
message without them. A slash word that is not known, or whose value says nothing, is
text and stays where it is. What a directive does is decided elsewhere.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from itertools import islice
from typing import get_args

from msgspec import Struct

from openclaw.domain.entry import ElevatedLevel, ReasoningLevel
from openclaw.domain.patch import PATCH_FIELDS, THINKING_LEVELS
from openclaw.domain.queueing import QueueClear, QueueSet, parse_queue_directive

DEFAULT_WORD = "default"
_CLEARING = frozenset((DEFAULT_WORD, "inherit", "reset"))
# What people write for a level.
_THINK_ALIASES = {
    "on": "low",
    "none": "off",
    "min": "minimal",
    "mid": "medium",
    "med": "medium",
    "x-high": "xhigh",
    "extra-high": "xhigh",
}
_SWITCH_ALIASES = {"true": "on", "yes": "on", "false": "off", "no": "off"}
LEVELS: Mapping[str, tuple[str, ...]] = {
    "think": THINKING_LEVELS,
    "verbose": PATCH_FIELDS["verboseLevel"].words,
    "reasoning": get_args(ReasoningLevel),
    "elevated": get_args(ElevatedLevel),
}
_MOST_QUEUE_WORDS = 4
# Slash words that are looked at in one message. A text with more of them is a listing, not a request.
MOST_SLASH_WORDS = 200
# A longer message is a document that was pasted; nothing inside it is meant for the gateway.
LONGEST_SEARCHED = 100_000

ModelWord = Callable[[str], bool]


class Asked(Struct, frozen=True):
    """One command and what follows it. `bare`: it was asked for by a word without a slash."""

    name: str
    args: str = ""
    bare: bool = False


class DirectiveReading(Struct, frozen=True):
    """What was found, in order, and the message without it."""

    asked: tuple[Asked, ...]
    rest: str


# A slash word, perhaps addressed (`/think@name`), perhaps with a colon; then white space or the end. What
# must not stand before it is asked after the slash, so that the search leaps from one slash to the next.
_TOKEN = re.compile(r"/(?<!\S/)([A-Za-z][A-Za-z0-9_-]{0,31})(?:@([\w.-]{1,64}))?(?:[ \t]{0,4}:|(?=\s)|\Z)")
_VALUE = re.compile(r"[ \t]{0,8}(\S{1,200})(?!\S)")


def read_level(name: str, word: str) -> str | None:
    """The level that a word means for `think`, `verbose`, `reasoning` or `elevated`.

    `default` means that the session shall not choose any more; None: the word means nothing.
    """
    folded = word.strip().lower()
    if folded in _CLEARING:
        return DEFAULT_WORD
    aliases = _THINK_ALIASES if name == "think" else _SWITCH_ALIASES
    folded = aliases.get(folded, folded)
    return folded if folded in LEVELS[name] else None


def read_directives(
    text: str,
    *,
    names: frozenset[str],
    known: Callable[[str], str | None],
    model_word: ModelWord,
) -> DirectiveReading:
    """Take the directives and shortcuts out of a text.

    `known` gives the name of a command for a lower-case word that counts here. `names` are
    those by which the agent may be addressed, case-folded; a word for somebody else is text.
    """
    if len(text) > LONGEST_SEARCHED:
        return DirectiveReading((), text.strip())
    asked: list[Asked] = []
    pieces: list[str] = []
    kept_to = 0
    for token in islice(_TOKEN.finditer(text), MOST_SLASH_WORDS):
        if token.start() < kept_to:
            continue
        name = known(token[1].lower())
        if name is None or (token[2] is not None and token[2].casefold() not in names):
            continue
        read = _read_value(name, text, token.end(), model_word)
        if read is None:
            continue
        args, end = read
        asked.append(Asked(name, args))
        pieces.append(text[kept_to : token.start()])
        kept_to = end
    if not asked:
        return DirectiveReading((), text.strip())
    return DirectiveReading(tuple(asked), _joined([*pieces, text[kept_to:]]))


def _read_value(name: str, text: str, start: int, model_word: ModelWord) -> tuple[str, int] | None:
    """The value behind a word and where it ends; None when the word is nothing but text."""
    if name == "queue":
        return _read_queue(text, start)
    if name not in LEVELS and name != "model":
        return "", start
    value = _VALUE.match(text, start)
    if value is None:
        return None
    if name == "model":
        return (value[1], value.end()) if model_word(value[1]) else None
    level = read_level(name, value[1])
    return None if level is None else (level, value.end())


def _read_queue(text: str, start: int) -> tuple[str, int] | None:
    """As many words as `/queue` understands together."""
    best: tuple[str, int] | None = None
    words: list[str] = []
    for _ in range(_MOST_QUEUE_WORDS):
        value = _VALUE.match(text, start)
        if value is None:
            break
        words.append(value[1])
        args, start = " ".join(words), value.end()
        if not isinstance(parse_queue_directive(f"/queue {args}"), QueueSet | QueueClear):
            break
        best = args, start
    return best


def _joined(pieces: list[str]) -> str:
    """The pieces in a row: one space where something was taken out of a line, no line left empty by it."""
    last = ""
    parts: list[str] = []
    for piece in pieces:
        trimmed = piece.strip(" \t")
        if not trimmed:
            continue
        if last.endswith("\n"):
            trimmed = trimmed.removeprefix("\n")
        elif last and not trimmed.startswith("\n"):
            parts.append(" ")
        parts.append(trimmed)
        last = trimmed or last
    return "".join(parts).strip()
