"""What of a message can be found, and how it is folded (SRCH-2, SRCH-3).

The index holds words that are already folded here, separated by single spaces, so
that SQLite and PostgreSQL find the same rows: all they do is split on the ASCII space
and look for consecutive words. Folding ignores case and diacritics; writing without
spaces (Han, Kana, Hangul, Thai, Lao, Khmer, Myanmar) is cut into overlapping pairs,
so that any two characters in a row are found. This room folds and compares; it does
not rank, and it does not know a database.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator
from functools import lru_cache
from typing import Any, NamedTuple

from openclaw.domain.display import text_of_content
from openclaw.domain.doortext import clean_text, cut
from openclaw.domain.redaction import redact
from openclaw.domain.sanitise import sanitise_assistant_text
from openclaw.errors import InvalidRequest

QUERY_MAX_TOKENS = 256
SNIPPET_WIDTH = 160
TOKEN_MAX_CHARS = 128
_SNIPPET_SCAN_CHARS = 64 * 1024
_ELLIPSIS = "…"

Phrase = tuple[str, ...]


def searchable_text(message: dict[str, Any]) -> str:
    """The text of a message that search may find: what a person or the assistant said, nothing else."""
    role = message.get("role")
    if role == "user":
        return text_of_content(message)
    if role == "assistant":
        return sanitise_assistant_text(text_of_content(message))
    return ""


def index_text(text: str) -> str:
    """The folded words of a text with one space between them, each cut to 128 characters."""
    if text.isascii():
        return _fold_ascii(text)
    text = _compose(text)
    folded = text.translate({ord(char): _fold(char) for char in set(text)})
    return " ".join(token for word in folded.split() for token in _split_word(word))


def query_terms(text: str) -> tuple[Phrase, ...]:
    """The phrases that must all be found, folded like the index; empty when there is nothing to look for.

    Each word of the query is one phrase. It has several tokens when punctuation or writing without
    spaces divides it; these must follow one another.
    """
    phrases = tuple(dict.fromkeys(tuple(index_text(word).split()) for word in text.split()))
    phrases = tuple(phrase for phrase in phrases if phrase)
    if sum(map(len, phrases)) > QUERY_MAX_TOKENS:
        raise InvalidRequest(
            f"The search text is too long: at most {QUERY_MAX_TOKENS} words. Search for fewer words.",
            max_tokens=QUERY_MAX_TOKENS,
        )
    return phrases


def matches(indexed: str, terms: tuple[Phrase, ...]) -> bool:
    """Whether an index text holds every phrase as whole, consecutive tokens. The reference semantics."""
    padded = f" {indexed} "
    return bool(terms) and all(f" {' '.join(phrase)} " in padded for phrase in terms)


def snippet(
    text: str,
    terms: tuple[Phrase, ...],
    width: int = SNIPPET_WIDTH,
    known_secrets: frozenset[str] = frozenset(),
) -> str:
    """At most `width` characters of the text around its first hit, on one line, secrets masked (SRCH-2).

    Without a hit (it may have been masked) the snippet is the start of the text.
    """
    line = _compose(" ".join(redact(clean_text(text), known_secrets).text.split()))
    if len(line) <= width:
        return line
    if width <= 2 * len(_ELLIPSIS):
        return cut(line, width)
    hit = _first_hit(line[:_SNIPPET_SCAN_CHARS], terms)
    # A third of the room shows what led to the hit; at the end of the text the room is filled from there.
    start = max(0, min(hit - width // 3, len(line) - width))
    head = _ELLIPSIS if start > 0 else ""
    tail = _ELLIPSIS if start + width < len(line) else ""
    return head + line[start + len(head) : start + width - len(tail)] + tail


# -- folding -----------------------------------------------------------------------------------

_ASCII_TABLE = bytes(
    byte if chr(byte).isalnum() and byte < 128 else ord(" ") for byte in bytes(range(256)).lower()
)
# Letters that Unicode does not take apart but that people search for by their plain letter.
_PLAIN_LETTERS = {"ø": "o", "ł": "l", "đ": "d", "ħ": "h", "ŧ": "t", "ı": "i", "æ": "ae", "œ": "oe"}
# Marks that a search ignores: combining diacritics, Hebrew and Arabic points, variation selectors.
# Vowel signs of Indic and South-East Asian scripts are not among them: they are part of the word.
_IGNORED_MARK = re.compile(
    "[\u0300-\u036f\u0483-\u0489\u0591-\u05bd\u05bf\u05c1\u05c2\u05c4\u05c5\u05c7"
    "\u0610-\u061a\u0640\u064b-\u065f\u0670\u06d6-\u06dc\u06df-\u06e4\u06e7\u06e8\u06ea-\u06ed"
    "\u1ab0-\u1aff\u1dc0-\u1dff\u20d0-\u20ff\ufe00-\ufe0f\ufe20-\ufe2f\U000e0100-\U000e01ef]+"
)
# Scripts that are written without spaces between words; Hangul, because its endings stick to the word.
_UNSPACED = (
    "\u0e00-\u0eff\u1000-\u109f\u1100-\u11ff\u1780-\u17ff\u2e80-\u2fdf\u3005-\u3007\u3021-\u3029"
    "\u3031-\u3035\u3038-\u303c\u3041-\u30ff\u3105-\u318e\u31a0-\u31bf\u31f0-\u31ff\u3400-\u4dbf"
    "\u4e00-\u9fff\ua960-\ua97c\ua9e0-\ua9fe\uaa60-\uaa7f\uac00-\ud7fb\uf900-\ufaff\uff66-\uffdc"
    "\U0001b000-\U0001b16f\U00020000-\U0003ffff"
)
_RUN = re.compile(f"(?P<unspaced>[{_UNSPACED}]+)|[^{_UNSPACED}]+")
_HALF_WIDTH_KANA = re.compile("[\uff65-\uff9f]+")
# Putting marks into canonical order takes quadratic time; no word has more than a few in a row.
_TOO_MANY_MARKS = re.compile(r"([^\w\s]{32})[^\w\s]+")


def _fold_ascii(text: str) -> str:
    words = text.encode("ascii").translate(_ASCII_TABLE).split()
    return b" ".join(word[:TOKEN_MAX_CHARS] for word in words).decode("ascii")


def _compose(text: str) -> str:
    """Marks joined to their letters; half-width kana, which spell a sound with two characters, widened."""
    text = _TOO_MANY_MARKS.sub(r"\1", text)
    text = _HALF_WIDTH_KANA.sub(lambda kana: unicodedata.normalize("NFKC", kana.group()), text)
    return unicodedata.normalize("NFC", text)


@lru_cache(maxsize=16384)
def _fold(char: str) -> str:
    """One character folded, on its own: a part of a text folds to a part of the folded text."""
    decomposed = unicodedata.normalize("NFKD", unicodedata.normalize("NFKD", char).casefold())
    plain = "".join(_PLAIN_LETTERS.get(part, part) for part in _IGNORED_MARK.sub("", decomposed))
    return "".join(_as_word_part(part) for part in unicodedata.normalize("NFC", plain))


def _as_word_part(char: str) -> str:
    category = unicodedata.category(char)
    if category[0] in "LNM":
        return char
    # Format characters (joiners, soft hyphens, direction marks) are invisible and divide nothing.
    return "" if category == "Cf" else " "


def _split_word(word: str) -> Iterator[str]:
    for run in _RUN.finditer(word):
        chars = run.group()
        if run["unspaced"] is None or len(chars) == 1:
            yield chars[:TOKEN_MAX_CHARS]
        else:
            for index in range(len(chars) - 1):
                yield chars[index : index + 2]


# -- finding the place -------------------------------------------------------------------------


class _Located(NamedTuple):
    token: str
    start: int


def _first_hit(text: str, terms: tuple[Phrase, ...]) -> int:
    """Where the first phrase that occurs in the text starts; 0 when none does."""
    located = list(_located_tokens(text))
    indexed = f" {' '.join(item.token for item in located)} "
    places = [indexed.find(f" {' '.join(phrase)} ") for phrase in terms]
    hit = min((place for place in places if place >= 0), default=-1)
    return located[indexed.count(" ", 0, hit)].start if hit >= 0 else 0


def _located_tokens(text: str) -> Iterator[_Located]:
    """The tokens of `index_text`, each with the place in the composed text where it starts."""
    word: list[str] = []
    places: list[int] = []
    for place, char in enumerate(text + " "):
        for part in _fold(char):
            if part != " ":
                word.append(part)
                places.append(place)
            elif word:
                yield from _located_in_word("".join(word), places)
                word, places = [], []


def _located_in_word(word: str, places: list[int]) -> Iterator[_Located]:
    for run in _RUN.finditer(word):
        for step, token in enumerate(_split_word(run.group())):
            yield _Located(token, places[run.start() + step])
