"""A reply as events of Matrix: pieces that fit, each as plain body and, where it has form, as HTML.

Values only. An event may have 65,536 bytes with everything in it, so the length of a piece is
counted as the bytes that it takes on the wire, and form is left away where it would not fit.
"""

from __future__ import annotations

import hashlib
import re
from functools import cache
from typing import Any

import msgspec
from markdown_it import MarkdownIt
from msgspec import Struct

from openclaw.channels.pieces import split_text
from openclaw.domain.doortext import clean_text

LONGEST = 12_000
LARGEST_CONTENT = 56_000  # of the event's 65,536 bytes; the rest is for what servers add
_HEAVY = re.compile(r"[\x00-\x1f\"\\&<>\x7f-\U0010ffff]")
_EMPTY_LINE = re.compile(r"\n+\Z")
Content = dict[str, Any]


class Piece(Struct, frozen=True):
    """One message: as it was written, and as HTML where that says more."""

    plain: str
    html: str | None = None


def weight(text: str) -> int:
    """The bytes that a text takes in an event, generously counted."""
    if len(text) > LONGEST:  # too long however it is counted; a long rest is not measured for every piece
        return len(text)
    return len(text) + sum(_extra(char) for char in _HEAVY.findall(text))


def _extra(char: str) -> int:
    return 3 if char > "\x7f" else 5 if char not in '\n"\\' else 1


def pieces_of(text: str, longest: int = LONGEST) -> list[Piece]:
    """A reply as messages; none for a text without anything to show."""
    parts = split_text(clean_text(text), longest, size=weight)
    return [Piece(part, to_html(part)) for part in parts if part.strip()]


@cache
def _renderer() -> MarkdownIt:
    made = MarkdownIt("commonmark", {"html": False, "breaks": True, "maxNesting": 20})
    return made.enable(["table", "strikethrough"]).disable("image")


def to_html(markdown: str) -> str | None:
    """The HTML of a piece of Markdown; None where it says no more than the plain text."""
    shown: str = _EMPTY_LINE.sub("", _renderer().render(markdown))
    if shown.startswith("<p>") and shown.endswith("</p>") and shown.count("<p>") == 1:
        shown = shown[len("<p>") : -len("</p>")]  # a single paragraph needs no paragraph around it
    return shown if "<" in shown.replace("<br />", "") else None


# -- contents --------------------------------------------------------------------------------------


def text_content(piece: Piece, thread_id: str | None) -> Content:
    """A new message. It calls nobody, whatever names stand in it."""
    content: Content = {**_body(piece), "m.mentions": {}}
    if thread_id is not None:
        content["m.relates_to"] = thread_relation(thread_id)
    return _fitting(content)


def edit_content(piece: Piece, event_id: str) -> Content:
    """A message in place of one that stands there. Clients without edits show the words behind a star."""
    new = {**_body(piece), "m.mentions": {}}
    content = {
        "msgtype": "m.text",
        "body": f"* {piece.plain}",
        "m.mentions": {},
        "m.new_content": new,
        "m.relates_to": {"rel_type": "m.replace", "event_id": event_id},
    }
    if _size(content) > LARGEST_CONTENT:
        content["m.new_content"] = {**_body(Piece(piece.plain)), "m.mentions": {}}
    return content


def file_content(name: str, mime: str, size: int, uri: str, thread_id: str | None) -> Content:
    """A file that was uploaded."""
    content: Content = {
        "msgtype": "m.image" if mime.startswith("image/") else "m.file",
        "body": name,
        "filename": name,
        "url": uri,
        "info": {"mimetype": mime, "size": size},
        "m.mentions": {},
    }
    if thread_id is not None:
        content["m.relates_to"] = thread_relation(thread_id)
    return content


def thread_relation(root: str) -> Content:
    """Into a thread; clients that know no threads show an answer to its first message."""
    return {
        "rel_type": "m.thread",
        "event_id": root,
        "is_falling_back": True,
        "m.in_reply_to": {"event_id": root},
    }


def transaction_id(key: str, part: str) -> str:
    """The same for every attempt at the same part of a reply: a homeserver shows it once."""
    named = f"{key}\n{part}".encode("utf-8", "replace")
    return f"oc{hashlib.sha256(named).hexdigest()[:40]}"


def _body(piece: Piece) -> Content:
    content: Content = {"msgtype": "m.text", "body": piece.plain}
    if piece.html is not None:
        content |= {"format": "org.matrix.custom.html", "formatted_body": piece.html}
    return content


def _fitting(content: Content) -> Content:
    if _size(content) <= LARGEST_CONTENT:
        return content
    return {name: value for name, value in content.items() if name not in ("format", "formatted_body")}


def _size(content: Content) -> int:
    return len(msgspec.json.encode(content))
