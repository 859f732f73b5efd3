"""Normalisation of assistant text for recall (HIST-4, HIST-5).

Models leak scaffolding into their text: thinking tags, injected memories, tool calls
written as XML or prose, control tokens. A view removes it, in a fixed order, without
trimming. Every stage is one pass over the text, however the tags are nested or left
open. This room only removes; it does not mask, cut or judge.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Mapping
from typing import NamedTuple


def sanitise_assistant_text(text: str) -> str:
    """The text without leaked scaffolding; text without any comes back as the same object.

    The order is that of HIST-5: MiniMax XML, control tokens, memory tags, tool XML, bracket blocks,
    downgraded tool text, thinking tags. A block that never closes reaches to the end of the text.
    """
    if "<" in text or "＜" in text:
        text = _strip_blocks(text, _MINIMAX_TAG, _MINIMAX_ENDS)
        text = _CONTROL_TOKEN.sub("", text)
        text = _strip_blocks(text, _MEMORY_TAG, _MEMORY_ENDS, spare_code=True)
        text = _strip_blocks(text, _TOOL_TAG, _TOOL_ENDS)
    if "[" in text:
        text = _strip_blocks(text, _BRACKET_TAG, _BRACKET_ENDS)
        text = _strip_downgraded(text)
    if "<" in text:
        text = _strip_blocks(text, _THINKING_TAG, _THINKING_ENDS, spare_code=True)
    return text


# -- tags --------------------------------------------------------------------------------------

_ANY_CASE = re.IGNORECASE | re.ASCII
_TAG = r"<\s*+(?P<slash>/?)\s*+(?P<name>{names})(?![\w:.-])"
# A finished tag, or one that the end of the text cut off.
_WHOLE_TAIL = r"(?P<tail>[^<>]*+(?:>|\Z))"
# Tool payloads are often malformed: an opening tag counts even when its `>` is missing.
_LOOSE_TAIL = r"(?P<tail>[^<>]*+>)?"

_MINIMAX_TAG = re.compile(_TAG.format(names="invoke|minimax:tool_call") + _LOOSE_TAIL, _ANY_CASE)
_MINIMAX_ENDS = {
    "invoke": ("invoke", "minimax:tool_call"),
    "minimax:tool_call": ("minimax:tool_call",),
}
_TOOL_NAMES = ("tool_call", "tool_calls", "function_call", "function_calls")
_TOOL_TAG = re.compile(_TAG.format(names="|".join(_TOOL_NAMES)) + _LOOSE_TAIL, _ANY_CASE)
_TOOL_ENDS = {name: (name,) for name in _TOOL_NAMES}
_MEMORY_NAMES = ("relevant-memories", "relevant_memories")
_MEMORY_TAG = re.compile(_TAG.format(names="|".join(_MEMORY_NAMES)) + _WHOLE_TAIL, _ANY_CASE)
_MEMORY_ENDS = dict.fromkeys(_MEMORY_NAMES, _MEMORY_NAMES)
_THINKING_NAMES = (
    *("think", "thinking", "thought", "antthinking"),
    *("antml:think", "antml:thinking", "mm:think"),
)
_THINKING_TAG = re.compile(_TAG.format(names="|".join(_THINKING_NAMES)) + _WHOLE_TAIL, _ANY_CASE)
_THINKING_ENDS = dict.fromkeys(_THINKING_NAMES, _THINKING_NAMES)
_BRACKET_NAMES = ("tool_call", "tool_result")
_BRACKET_TAG = re.compile(
    rf"\[\s*+(?P<slash>/?)\s*+(?P<name>{'|'.join(_BRACKET_NAMES)})\s*+(?P<tail>\])", _ANY_CASE
)
_BRACKET_ENDS = {name: (name,) for name in _BRACKET_NAMES}

# Both bars of a control token may be full width. `f <| x |> g` is code: a token has no leading space.
_CONTROL_TOKEN = re.compile(r"[<＜][|｜](?!\s)[^|｜<>＜＞\n]++[|｜][>＞]")


class _Tag(NamedTuple):
    start: int
    end: int
    name: str
    opens: bool
    in_code: bool


def _strip_blocks(
    text: str, pattern: re.Pattern[str], ends: Mapping[str, tuple[str, ...]], *, spare_code: bool = False
) -> str:
    """Remove each block from its opening tag to the first tag that ends it, and stray tags.

    With `spare_code` tags inside code do not count at all. Without it a whole block inside code goes
    too, but a single tag there is a mention, not a payload that was cut off.
    """
    tags = _find_tags(text, pattern)
    if spare_code:
        tags = [tag for tag in tags if not tag.in_code]
    if not tags:
        return text
    closing = _closing_tags(tags, ends)
    kept: list[str] = []
    cursor = index = 0
    while index < len(tags):
        tag, end = tags[index], closing[index]
        index += 1
        if end is None and tag.in_code:
            continue
        kept.append(text[cursor : tag.start])
        if end is not None:
            cursor = tags[end].end
            index = end + 1
        elif tag.opens:
            return "".join(kept)
        else:
            cursor = tag.end
    kept.append(text[cursor:])
    return "".join(kept)


def _find_tags(text: str, pattern: re.Pattern[str]) -> list[_Tag]:
    found = list(pattern.finditer(text))
    if not found:
        return []
    code = _code_regions(text)
    return [
        _Tag(
            start=match.start(),
            end=match.end(),
            name=match["name"].lower(),
            opens=not match["slash"] and not (match["tail"] or "").endswith("/>"),
            in_code=_is_inside(code, match.start()),
        )
        for match in found
    ]


def _closing_tags(tags: list[_Tag], ends: Mapping[str, tuple[str, ...]]) -> list[int | None]:
    """For each opening tag the index of the first later tag that closes it. One pass from the end."""
    closing: list[int | None] = [None] * len(tags)
    nearest: dict[str, int] = {}
    for index in range(len(tags) - 1, -1, -1):
        tag = tags[index]
        if tag.opens:
            closing[index] = min((nearest[name] for name in ends[tag.name] if name in nearest), default=None)
        else:
            nearest[tag.name] = index
    return closing


# -- code --------------------------------------------------------------------------------------

_CODE_MARK = re.compile(
    r"^[ ]{0,3}(?P<fence>`{3,}+|~{3,}+)(?P<info>[^\n]*+)|(?P<ticks>`++)|(?P<blank>\n[ \t\r]*+(?=\n))",
    re.MULTILINE,
)


_TICKS = re.compile(r"`++")


class _Regions(NamedTuple):
    starts: list[int]
    ends: list[int]

    def add(self, start: int, end: int) -> None:
        """Append a region; earlier ones that it holds are dropped, so that both lists stay sorted."""
        while self.starts and self.starts[-1] >= start:
            self.starts.pop()
            self.ends.pop()
        self.starts.append(start)
        self.ends.append(end)


def _is_inside(regions: _Regions, position: int) -> bool:
    index = bisect_right(regions.starts, position) - 1
    return index >= 0 and position < regions.ends[index]


def _code_regions(text: str) -> _Regions:
    """Fenced blocks (to the end of the text when left open) and inline spans, which end with a paragraph."""
    regions = _Regions([], [])
    ticks_open: dict[int, int] = {}
    fence, fence_start = "", 0
    for mark in _CODE_MARK.finditer(text):
        if fence:
            if _closes_fence(mark, fence):
                regions.add(fence_start, mark.end())
                fence = ""
        elif mark["fence"] and not (mark["fence"][0] == "`" and "`" in mark["info"]):
            fence, fence_start = mark["fence"], mark.start()
            ticks_open.clear()
        elif mark["blank"]:
            ticks_open.clear()
        else:
            _match_ticks(text, mark, ticks_open, regions)
    if fence:
        regions.add(fence_start, len(text))
    return regions


def _closes_fence(mark: re.Match[str], fence: str) -> bool:
    return bool(mark["fence"]) and mark["fence"].startswith(fence) and not mark["info"].strip()


def _match_ticks(text: str, mark: re.Match[str], ticks_open: dict[int, int], regions: _Regions) -> None:
    """Pair equal runs of backticks. A line that starts like a fence but is inline code holds several."""
    for run in _TICKS.finditer(text, *mark.span()):
        length = len(run.group())
        opened = ticks_open.pop(length, None)
        if opened is None or _is_inside(regions, opened):
            ticks_open[length] = run.start()
        else:
            regions.add(opened, run.end())


# -- downgraded tool text ----------------------------------------------------------------------

_MARKER = re.compile(
    r"\[(?:(?P<call>tool call:)|(?P<result>tool result(?=[\s:\]]))|historical context(?=[\s:\]]))"
    r"[^\]]*+(?P<close>\])?",
    _ANY_CASE,
)
_ARGUMENTS = re.compile(r"\s*+arguments\s*+:\s*+", _ANY_CASE)
_NEXT_LINE = re.compile(r"[ \t]*+\r?\n")
_RESULT_END = re.compile(
    r"\n[ \t]*+\r?(?=\n)|\[(?=tool (?:call:|result[\s:\]])|historical context)", _ANY_CASE
)
_STRUCTURE = re.compile(r'["{}\[\]]')
_STRING = re.compile(r'"(?:[^"\\]|\\.)*+"', re.DOTALL)


def _strip_downgraded(text: str) -> str:
    """Remove tool calls with their arguments, tool results with their output, and historical context."""
    kept: list[str] = []
    cursor = 0
    marker = _MARKER.search(text)
    while marker is not None:
        kept.append(text[cursor : marker.start()])
        end = _end_of_downgraded(text, marker)
        if end is None:
            return "".join(kept)
        if marker.start() == 0 or text[marker.start() - 1] == "\n":
            line_break = _NEXT_LINE.match(text, end)
            end = end if line_break is None else line_break.end()
        cursor = end
        marker = _MARKER.search(text, end)
    kept.append(text[cursor:])
    return "".join(kept)


def _end_of_downgraded(text: str, marker: re.Match[str]) -> int | None:
    """Where the marker and what belongs to it end; None when that is cut off and the rest goes too."""
    if marker["close"] is None:
        return None
    end = marker.end()
    if marker["call"]:
        arguments = _ARGUMENTS.match(text, end)
        return end if arguments is None else _end_of_json(text, arguments.end())
    if marker["result"]:
        output = _NEXT_LINE.match(text, end)
        return end if output is None else _end_of_output(text, output.end())
    return end


def _end_of_output(text: str, start: int) -> int | None:
    """A JSON value, or text up to an empty line or the next marker: what follows is the answer."""
    if text.startswith(("{", "["), start) and _MARKER.match(text, start) is None:
        return _end_of_json(text, start)
    found = _RESULT_END.search(text, start)
    return len(text) if found is None else found.start()


def _end_of_json(text: str, start: int) -> int | None:
    """The end of the JSON value at `start`, or of the line when there is none; None when it never ends."""
    if text.startswith('"', start):
        string = _STRING.match(text, start)
        return None if string is None else string.end()
    if not text.startswith(("{", "["), start):
        line_end = text.find("\n", start)
        return len(text) if line_end < 0 else line_end
    depth = 0
    found = _STRUCTURE.search(text, start)
    while found is not None:
        position = found.end()
        if found.group() == '"':
            string = _STRING.match(text, found.start())
            if string is None:
                return None
            position = string.end()
        elif found.group() in "{[":
            depth += 1
        else:
            depth -= 1
            if depth == 0:
                return position
        found = _STRUCTURE.search(text, position)
    return None
