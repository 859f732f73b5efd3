"""JSON5 text to a `Document`: our own reader, because it must know where everything stands.

Comments, trailing commas, bare and escaped keys, single quotes, line continuations,
hexadecimal, signed infinities and NaN, a byte order mark. Refused beyond the grammar:
duplicate keys (the second would silently win), nesting deeper than 64, NUL characters
and lone surrogates. One pass, linear in the length of the text (CFG-1).
"""

from __future__ import annotations

import re
import unicodedata

from openclaw.config.nodes import (
    Array,
    Document,
    Member,
    Node,
    Object,
    Position,
    Scalar,
    line_starts_of,
    position_of,
)
from openclaw.errors import ConfigInvalid

MAX_DEPTH = 64
MAX_NUMBER_LENGTH = 400
_EXCERPT_BEFORE = 50
_EXCERPT_AFTER = 30

_BLANK = re.compile("[\t\n\v\f\r \u00a0\ufeff\u2028\u2029\u1680\u2000-\u200a\u202f\u205f\u3000]+")
_LINE_COMMENT = re.compile("//[^\n\r\u2028\u2029]*")
_STRING_RUN = {'"': re.compile(r'[^"\\\n\r]+'), "'": re.compile(r"[^'\\\n\r]+")}
_NUMBER = re.compile(
    r"[+-]?(?:(?P<word>Infinity|NaN)|(?P<hex>0[xX][0-9a-fA-F]+)"
    r"|(?P<decimal>(?:(?:0|[1-9][0-9]*)(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][+-]?[0-9]+)?))"
)
_HEX_DIGITS = re.compile("[0-9a-fA-F]+")
_SURROGATE = re.compile("[\ud800-\udfff]")
_WORD = re.compile(r"[\w$]+")
_ESCAPES = {"b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t", "v": "\v"}
_CONSTANTS: dict[str, bool | None] = {"true": True, "false": False, "null": None}
_LINE_BREAKS = "\n\r\u2028\u2029"
_START_CATEGORIES = frozenset({"Lu", "Ll", "Lt", "Lm", "Lo", "Nl"})
_PART_CATEGORIES = _START_CATEGORIES | {"Mn", "Mc", "Nd", "Pc"}
_JOINERS = "\u200c\u200d"


class Json5Error(ConfigInvalid):
    """The text is not JSON5."""

    def __init__(self, name: str, text: str, offset: int, reason: str) -> None:
        starts = line_starts_of(text)
        self.position: Position = position_of(starts, offset)
        self.reason = reason
        self.excerpt = _excerpt(text, starts[self.position.line - 1], offset)
        # With the place in the text below it, unless nothing stands there.
        self.shown = f"{reason}\n{self.excerpt}" if self.excerpt else reason
        super().__init__(
            f"{name}:{self.position.line}:{self.position.column}: {self.shown}",
            line=self.position.line,
            column=self.position.column,
            reason=reason,
        )


def parse(text: str, name: str = "config") -> Document:
    """Parse a whole text. Raises Json5Error, which names the place and what was expected there."""
    nul = text.find("\0")
    if nul != -1:
        raise Json5Error(name, text, nul, "found a NUL character; this does not look like a text file")
    return _Parser(text, name).document()


def after_blanks(text: str, at: int) -> int:
    """The next offset that holds neither a blank nor a comment; an unclosed comment is not stepped over."""
    while True:
        blank = _BLANK.match(text, at)
        if blank:
            at = blank.end()
        comment = _LINE_COMMENT.match(text, at)
        if comment:
            at = comment.end()
        elif text.startswith("/*", at) and (close := text.find("*/", at + 2)) != -1:
            at = close + 2
        else:
            return at


def is_identifier(text: str) -> bool:
    """Whether a key may stand without quotes."""
    return bool(text) and _is_start(text[0]) and all(_is_part(char) for char in text)


class _Parser:
    def __init__(self, text: str, name: str) -> None:
        self.text = text
        self.name = name
        self.at = 0
        self.depth = 0

    def document(self) -> Document:
        self.skip()
        if self.at == len(self.text):
            raise self.error(self.at, "the file is empty; expected an object, at least {}")
        root = self.value()
        self.skip()
        if self.at < len(self.text):
            raise self.error(self.at, f"expected the end of the file, found {self.found()}")
        return Document(name=self.name, text=self.text, root=root, line_starts=line_starts_of(self.text))

    # -- what stands between values --------------------------------------------------------

    def skip(self) -> None:
        """Step over blanks and comments."""
        at = after_blanks(self.text, self.at)
        if self.text.startswith("/*", at):
            raise self.error(at, "this comment is never closed; expected */")
        self.at = at

    def error(self, offset: int, reason: str) -> Json5Error:
        return Json5Error(self.name, self.text, offset, reason)

    def found(self) -> str:
        """What stands here, for a message."""
        if self.at >= len(self.text):
            return "the end of the file"
        char = self.text[self.at]
        if char == "#":
            return '"#" (comments start with //)'
        if char.isprintable():
            return f'"{char}"'
        return f"the character U+{ord(char):04X}"

    # -- values ----------------------------------------------------------------------------

    def value(self) -> Node:
        char = self.text[self.at : self.at + 1]
        if char == "{":
            return self.object()
        if char == "[":
            return self.array()
        if char in ('"', "'"):
            start = self.at
            return Scalar(self.string(char), start, self.at)
        if char.isdigit() or char in ("+", "-", "."):
            return self.number()
        return self.word()

    def enter(self) -> int:
        self.depth += 1
        if self.depth > MAX_DEPTH:
            raise self.error(self.at, f"nested deeper than {MAX_DEPTH} levels")
        self.at += 1
        return self.at - 1

    def object(self) -> Object:
        start = self.enter()
        members: list[Member] = []
        seen: dict[str, int] = {}
        self.skip()
        while not self.text.startswith("}", self.at):
            member = self.member()
            if member.key in seen:
                starts = line_starts_of(self.text)
                first = position_of(starts, seen[member.key]).line
                again = position_of(starts, member.key_start).line
                shown = self.text[member.key_start : member.key_end][:60]
                raise self.error(
                    member.key_start,
                    f"the key {shown} stands twice in this object, on line {first} and on line {again};"
                    " keep one of them",
                )
            seen[member.key] = member.key_start
            members.append(member)
            self.separator("}")
        self.at += 1
        self.depth -= 1
        return Object(tuple(members), start, self.at)

    def member(self) -> Member:
        key_start = self.at
        char = self.text[self.at : self.at + 1]
        key = self.string(char) if char in ('"', "'") else self.identifier()
        key_end = self.at
        self.skip()
        if not self.text.startswith(":", self.at):
            raise self.error(self.at, f'expected ":" after the key, found {self.found()}')
        self.at += 1
        self.skip()
        return Member(key, key_start, key_end, self.value())

    def array(self) -> Array:
        start = self.enter()
        items: list[Node] = []
        self.skip()
        while not self.text.startswith("]", self.at):
            items.append(self.value())
            self.separator("]")
        self.at += 1
        self.depth -= 1
        return Array(tuple(items), start, self.at)

    def separator(self, close: str) -> None:
        """After an element: a comma and what follows it, or the closing bracket."""
        self.skip()
        if self.text.startswith(",", self.at):
            self.at += 1
            self.skip()
        elif not self.text.startswith(close, self.at):
            raise self.error(self.at, f'expected "," or "{close}" after this value, found {self.found()}')

    def number(self) -> Scalar:
        start = self.at
        match = _NUMBER.match(self.text, start)
        if match is None:
            raise self.error(start, f"expected a number, found {self.text[start : start + 12]!r}")
        self.at = match.end()
        if self.at < len(self.text) and _is_part(self.text[self.at]):
            raise self.error(start, "this is not a number; text needs quotes, and numbers no leading zeros")
        literal = match.group()
        if len(literal) > MAX_NUMBER_LENGTH:
            raise self.error(start, f"a number of more than {MAX_NUMBER_LENGTH} digits")
        return Scalar(_number_value(literal, match.lastgroup == "hex"), start, self.at)

    def word(self) -> Scalar:
        start = self.at
        match = _WORD.match(self.text, start)
        if match is None:
            raise self.error(start, f"expected a value, found {self.found()}")
        word = match.group()
        self.at = match.end()
        if word in _CONSTANTS:
            return Scalar(_CONSTANTS[word], start, self.at)
        if word in ("Infinity", "NaN"):
            return Scalar(float(word), start, self.at)
        raise self.error(start, f'expected a value, found the word "{word[:40]}" (text needs quotes)')

    # -- strings and keys ------------------------------------------------------------------

    def string(self, quote: str) -> str:
        start = self.at
        self.at += 1
        run = _STRING_RUN[quote]
        parts: list[str] = []
        while True:
            plain_run = run.match(self.text, self.at)
            if plain_run:
                parts.append(plain_run.group())
                self.at = plain_run.end()
            char = self.text[self.at : self.at + 1]
            if char == quote:
                self.at += 1
                return self.without_lone_surrogates("".join(parts), start)
            if char != "\\":
                raise self.error(
                    start, f"this text is never closed; expected {quote} before the end of the line"
                )
            self.at += 1
            parts.append(self.escape())

    def escape(self) -> str:
        """The value of an escape; the cursor stands just behind the backslash."""
        backslash = self.at - 1
        char = self.text[self.at : self.at + 1]
        self.at += 1
        if char in _ESCAPES:
            return _ESCAPES[char]
        if char in ("x", "u"):
            return chr(self.hex_digits(2 if char == "x" else 4, backslash))
        if char == "\r" and self.text.startswith("\n", self.at):
            self.at += 1
            return ""
        if char and char in _LINE_BREAKS:
            return ""
        if char == "0" and not self.text[self.at : self.at + 1].isdigit():
            return "\0"
        if not char or char in "0123456789":
            raise self.error(backslash, "unknown escape; write \\xHH or \\uHHHH for a character code")
        return char

    def hex_digits(self, count: int, offset: int) -> int:
        digits = self.text[self.at : self.at + count]
        if len(digits) < count or not _HEX_DIGITS.fullmatch(digits):
            raise self.error(offset, f"expected {count} hexadecimal digits in this escape")
        self.at += count
        return int(digits, 16)

    def without_lone_surrogates(self, text: str, start: int) -> str:
        """Join escaped surrogate pairs; half of a pair alone is no character and is refused."""
        if not _SURROGATE.search(text):
            return text
        try:
            return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le")
        except UnicodeDecodeError:
            raise self.error(
                start, "this text has half of a surrogate pair; write the character itself"
            ) from None

    def identifier(self) -> str:
        """A key without quotes: an ECMAScript identifier, unicode escapes included."""
        start = self.at
        parts: list[str] = []
        while self.at < len(self.text):
            char = self.text[self.at]
            offset = self.at
            self.at += 1
            if char == "\\":
                if not self.text.startswith("u", self.at):
                    raise self.error(offset, "expected \\uHHHH in this key")
                self.at += 1
                char = chr(self.hex_digits(4, offset))
                if not (_is_part(char) if parts else _is_start(char)):
                    raise self.error(offset, "this escape is not allowed in a key without quotes")
            elif not (_is_part(char) if parts else _is_start(char)):
                self.at = offset
                break
            parts.append(char)
        if not parts:
            if self.text[start : start + 1].isdigit() or self.text.startswith("-", start):
                raise self.error(start, "a key that starts with a digit or a sign needs quotes")
            raise self.error(start, f'expected a key or "}}", found {self.found()}')
        return "".join(parts)


def _number_value(literal: str, is_hex: bool) -> int | float:
    if is_hex:
        return int(literal, 16)
    if literal.lstrip("+-").isdigit():
        return int(literal)
    return float(literal)


def _is_start(char: str) -> bool:
    return char in "$_" or unicodedata.category(char) in _START_CATEGORIES


def _is_part(char: str) -> bool:
    return char in "$_" or char in _JOINERS or unicodedata.category(char) in _PART_CATEGORIES


def _excerpt(text: str, line_start: int, offset: int) -> str:
    """The line around an offset with a caret below it, bounded and safe to print; nothing of an empty one."""
    begin = max(line_start, offset - _EXCERPT_BEFORE)
    end = min(len(text), offset + _EXCERPT_AFTER)
    for line_break in "\r\n":
        found = text.find(line_break, offset, end)
        end = end if found == -1 else found
    shown = "".join(char if char.isprintable() else "·" for char in text[begin:end])
    return f"    {shown}\n    {' ' * (offset - begin)}^" if shown.strip() else ""
