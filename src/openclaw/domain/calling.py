"""Whether words in a group call the agent: by a configured pattern, or by its name (ROUTE-3, LIFE-14).

A platform's own mentions are the connector's business. Patterns are plain text with `*`,
compared word by word without regard to letter case; they are never regular expressions.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Sequence

import msgspec
from msgspec import Struct

from openclaw.domain.resets import without_mention
from openclaw.domain.routing import Envelope
from openclaw.domain.toolpolicy import matches_glob

_WORD = re.compile(r"@?[\w-]+(?:\.[\w-]+)*")
_PATTERN_WORD = re.compile(r"@?[\w*-]+(?:\.[\w*-]+)*")
_FOR_SOMEBODY = re.compile(r"\s*/[A-Za-z][A-Za-z0-9_-]{0,31}@([\w.-]{1,64})(?!\S)")


class CallNames(Struct, frozen=True):
    """How people call an agent: the patterns of the configuration, and the name that it has."""

    patterns: tuple[str, ...] = ()
    name: str | None = None

    @property
    def plain(self) -> tuple[str, ...]:
        """The names that may stand before or behind a command, such as `@name /status` (CMD-12)."""
        given = (*self.patterns, self.name or "")
        bare = (name.strip().removeprefix("@") for name in given if "*" not in name)
        return tuple(dict.fromkeys(name for name in bare if name))


def hear_calls(envelope: Envelope, names: CallNames) -> Envelope:
    """The envelope, marked as calling the agent where its words do.

    A pattern counts everywhere. The bare name counts only where the platform cannot tell who was
    called; elsewhere talking about the agent is not talking to it.
    """
    if envelope.peer_kind == "direct" or envelope.was_mentioned:
        return envelope
    known = names.patterns
    if not envelope.mentions_detectable and names.name:
        known = (*known, names.name)
    if not known:
        return envelope
    return msgspec.structs.replace(
        envelope, was_mentioned=is_called(envelope.text, known), mentions_detectable=True
    )


def is_called(text: str, patterns: Sequence[str]) -> bool:
    """Whether the words of one of the patterns stand in the text, one after the other."""
    words = _WORD.findall(_folded(text))
    return any(_stands_in(words, _PATTERN_WORD.findall(_folded(pattern))) for pattern in patterns)


def command_in(text: str, names: CallNames) -> str | None:
    """The command that a message consists of, without the call that may stand before it; None: it is none."""
    said = without_mention(text.strip(), names.plain)
    return said if said.startswith("/") else None


def is_for_another(text: str, names: CallNames) -> bool:
    """Whether the message is a command that names somebody else: `/status@other` (CMD-12)."""
    named = _FOR_SOMEBODY.match(text[:200])
    return named is not None and _folded(named[1]) not in {_folded(name) for name in names.plain}


def _folded(text: str) -> str:
    return unicodedata.normalize("NFKC", text).casefold()


def _stands_in(words: Sequence[str], wanted: Sequence[str]) -> bool:
    if not wanted:
        return False
    last = len(words) - len(wanted)
    return any(
        all(_is_word(words[start + at], part) for at, part in enumerate(wanted)) for start in range(last + 1)
    )


def _is_word(word: str, wanted: str) -> bool:
    said = word if wanted.startswith("@") else word.removeprefix("@")
    return matches_glob(wanted, said) if "*" in wanted else said == wanted
