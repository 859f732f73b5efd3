"""Telegram's reading of HTML: which tags it takes, how it refuses the others, and what people see."""

from __future__ import annotations

import html
import re

TAGS = frozenset(
    {
        "b",
        "strong",
        "i",
        "em",
        "u",
        "ins",
        "s",
        "strike",
        "del",
        "tg-spoiler",
        "a",
        "code",
        "pre",
        "blockquote",
    }
)
_TAG = re.compile(r"<(/?)([a-zA-Z][a-zA-Z-]*)((?:\s+[a-z-]+=\"[^\"<>]*\")*)\s*>")


class EntityError(Exception):
    """Bad Request: can't parse entities."""


def read_html(text: str) -> tuple[str, list[dict[str, object]]]:
    """The visible text and its entities, in UTF-16 units as Telegram counts. Raises EntityError."""
    shown: list[str] = []
    length = 0
    stack: list[tuple[str, int, str]] = []
    entities: list[dict[str, object]] = []
    at = 0
    while at < len(text):
        if text[at] != "<":
            end = text.find("<", at)
            part = html.unescape(text[at : end if end >= 0 else len(text)])
            shown.append(part)
            length += units(part)
            at = end if end >= 0 else len(text)
            continue
        tag = _TAG.match(text, at)
        if tag is None:
            raise EntityError(f"can't parse entities: Unsupported start tag at byte offset {at}")
        name = tag[2].lower()
        if name not in TAGS:
            raise EntityError(f'can\'t parse entities: Unsupported start tag "{name}" at byte offset {at}')
        if tag[1]:
            if not stack or stack[-1][0] != name:
                raise EntityError(f"can't parse entities: Unmatched end tag at byte offset {at}")
            _, start, attributes = stack.pop()
            entities.append({"type": name, "offset": start, "length": length - start, "with": attributes})
        else:
            stack.append((name, length, html.unescape(tag[3].strip())))
        at = tag.end()
    if stack:
        raise EntityError(
            f"can't parse entities: Can't find end tag corresponding to start tag \"{stack[-1][0]}\""
        )
    return "".join(shown), entities


def units(text: str) -> int:
    return len(text.encode("utf-16-le", "surrogatepass")) // 2
