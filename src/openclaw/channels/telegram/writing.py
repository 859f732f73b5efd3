"""A reply as Telegram shows it: pieces of its size, each as its HTML with the plain text to fall back on.

Values only. Models write Markdown, often half of it: what has no partner stays as it was
typed, so that the markup made here is always whole. Visible text never grows by this, and
a piece that fits as it was written fits as it is shown.
"""

from __future__ import annotations

import re
from collections import deque
from html import escape

from msgspec import Struct

from openclaw.channels.pieces import split_text

LONGEST = 4096  # what one message holds, counted in UTF-16 units after the markup is read

_FENCE = re.compile(r"^[ \t]{0,3}```[ \t]*([\w+#.-]{0,32})[^\n`]{0,80}$")
_HEADING = re.compile(r"^#{1,6}[ \t]+(?=\S)")
_LINK = re.compile(r"\[([^\[\]\n]{1,400})\]\(((?:https?|tg|mailto):[^\s()<>\"]{1,1500})\)")
_TICKS = re.compile(r"`+")
_MARK = re.compile(r"\*\*|__|~~|\|\||[*_]")
_TAGS = {"**": "b", "__": "b", "~~": "s", "||": "tg-spoiler", "*": "i", "_": "i"}


class Piece(Struct, frozen=True):
    """One message: as HTML, and as it was written."""

    html: str
    plain: str


def units(text: str) -> int:
    """The length of a text as Telegram counts it."""
    if len(text) > LONGEST:  # too long however it is counted; a long rest is not measured for every piece
        return len(text)
    return len(text) + sum(1 for char in text if char > "\uffff")


def pieces_of(text: str, longest: int = LONGEST) -> list[Piece]:
    """A reply as messages; none for a text without anything to show."""
    return [Piece(to_html(part), part) for part in split_text(text, longest, size=units) if part.strip()]


def to_html(markdown: str) -> str:
    """Telegram's HTML for a piece of Markdown: well nested, whatever was written. Linear in its length."""
    shown: list[str] = []
    words: list[str] = []
    quoted: list[str] = []
    lines = markdown.split("\n")
    closings = deque(at for at, line in enumerate(lines) if _FENCE.match(line))
    at = 0
    while at < len(lines):
        while closings and closings[0] <= at:
            closings.popleft()
        fence = _FENCE.match(lines[at])
        if fence and closings:
            _flush(shown, words, quoted)
            shown.append(_code_block(fence[1], lines[at + 1 : closings[0]]))
            at = closings[0] + 1
            continue
        line = lines[at]
        if line.startswith(">"):
            _flush(shown, words, [])
            quoted.append(line[1:].removeprefix(" "))
        else:
            _flush(shown, [], quoted)
            words.append(line)
        at += 1
    _flush(shown, words, quoted)
    return "\n".join(shown)


def _flush(shown: list[str], words: list[str], quoted: list[str]) -> None:
    """Put down the lines that were gathered as one run of text or as one quotation."""
    if quoted:
        shown.append(f"<blockquote>{_paragraph(quoted)}</blockquote>")
    if words:
        shown.append(_paragraph(words))
    words.clear()
    quoted.clear()


def _code_block(language: str, lines: list[str]) -> str:
    body = escape("\n".join(lines), quote=False)
    if language:
        return f'<pre><code class="language-{escape(language)}">{body}</code></pre>'
    return f"<pre>{body}</pre>"


def _paragraph(lines: list[str]) -> str:
    """Lines of text: a heading stands by itself, marks may go from one line to the next."""
    parts: list[str] = []
    run: list[str] = []
    for line in lines:
        heading = _HEADING.match(line)
        if heading is None:
            run.append(line)
            continue
        if run:
            parts.append(_inline("\n".join(run)))
            run = []
        parts.append(f"<b>{_inline(line[heading.end() :], bold=True)}</b>")
    if run:
        parts.append(_inline("\n".join(run)))
    return "\n".join(parts)


# -- inside a paragraph ----------------------------------------------------------------------------


class _Open(Struct, frozen=True):
    mark: str
    slot: int  # which part of the output holds the mark, to become a tag when its partner comes


class _Inline:
    """One pass over a text. A mark becomes a tag only when its partner is found inside the same marks."""

    def __init__(self, bold: bool) -> None:
        self.parts: list[str] = []
        self._stack: list[_Open] = []
        self._taken = {"**", "__"} if bold else set[str]()

    def word(self, text: str) -> None:
        self.parts.append(escape(text, quote=False))

    def mark(self, mark: str, before: str, behind: str) -> None:
        # Inside a word only `**`, `~~` and `||` count: snake_case and 2*3*4 are not meant as form.
        wordy = mark in ("_", "__", "*")
        closes = bool(before) and not before.isspace() and not (wordy and behind.isalnum())
        opens = bool(behind) and not behind.isspace() and not (wordy and before.isalnum())
        if closes and any(one.mark == mark for one in self._stack):
            self._close(mark)
        elif opens and mark not in self._taken:
            self._taken |= _same_tag(mark)
            self._stack.append(_Open(mark, len(self.parts)))
            self.word(mark)
        else:
            self.word(mark)

    def _close(self, mark: str) -> None:
        while True:  # what was opened inside and never closed stays as it was typed
            opened = self._stack.pop()
            self._taken -= _same_tag(opened.mark)
            if opened.mark == mark:
                break
        if opened.slot == len(self.parts) - 1:  # nothing between the two
            self.word(mark)
            return
        tag = _TAGS[mark]
        self.parts[opened.slot] = f"<{tag}>"
        self.parts.append(f"</{tag}>")


def _same_tag(mark: str) -> set[str]:
    """A tag does not stand inside itself: the marks that would put it there."""
    return {other for other, tag in _TAGS.items() if tag == _TAGS[mark]}


def _inline(text: str, *, bold: bool = False) -> str:
    out = _Inline(bold)
    codes = _code_spans(text)
    at = 0
    while at < len(text):
        next_code = codes[0] if codes else None
        end = len(text) if next_code is None else next_code[0]
        _words(out, text, at, end)
        if next_code is None:
            break
        start, stop, ticks = codes.popleft()
        inner = text[start + ticks : stop - ticks]
        out.parts.append(f"<code>{escape(inner, quote=False)}</code>")
        at = stop
    return "".join(out.parts)


def _words(out: _Inline, text: str, start: int, end: int) -> None:
    """Text between code spans: links and marks."""
    at = start
    while at < end:
        link = text.find("[", at, end)
        found = _LINK.match(text, link, end) if link >= 0 else None
        stop = end if link < 0 else link
        _marks(out, text, at, stop)
        if link < 0:
            return
        if found is None:
            out.word("[")
            at = link + 1
            continue
        out.parts.append(f'<a href="{escape(found[2])}">{escape(found[1], quote=False)}</a>')
        at = found.end()


def _marks(out: _Inline, text: str, start: int, end: int) -> None:
    at = start
    for found in _MARK.finditer(text, start, end):
        if found.start() > at:
            out.word(text[at : found.start()])
        before = text[found.start() - 1 : found.start()] if found.start() else ""
        out.mark(found[0], before, text[found.end() : found.end() + 1])
        at = found.end()
    if at < end:
        out.word(text[at:end])


def _code_spans(text: str) -> deque[tuple[int, int, int]]:
    """Where code stands between equal runs of backticks: start, end, and how many ticks."""
    runs = [(found.start(), len(found[0])) for found in _TICKS.finditer(text)]
    by_length: dict[int, deque[int]] = {}
    for position, length in runs:
        by_length.setdefault(length, deque()).append(position)
    spans: deque[tuple[int, int, int]] = deque()
    behind = 0
    for position, length in runs:
        if position < behind:
            continue
        waiting = by_length[length]
        while waiting and waiting[0] <= position:
            waiting.popleft()
        if waiting and waiting[0] > position + length:
            stop = waiting[0] + length
            spans.append((position, stop, length))
            behind = stop
    return spans
