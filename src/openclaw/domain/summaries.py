"""The texts of a compaction: what a model is asked, what is added to its answer, and notes without a model.

Everything that people, tools or models wrote is data here: it stands between
marked lines that it cannot imitate, and the person's wishes for the summary are
data as well (COMP-8). Linear in the length of the conversation. What is cut and
whether the result counts is decided in `domain.compaction`.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from hashlib import sha256
from typing import Any

from msgspec import Struct

from openclaw.domain.compaction import CompactionSettings, Cut, Item, Task
from openclaw.domain.doortext import clean_text
from openclaw.domain.tokens import clip_to_tokens, compact_json, text_tokens
from openclaw.domain.transcript import (
    AssistantMessage,
    ImageBlock,
    Message,
    TextBlock,
    ToolCallBlock,
    ToolResultMessage,
    UserMessage,
    text_of,
    tool_calls_of,
)

MAX_INSTRUCTIONS = 800
RESULT_CHARS = 2000
SHORT_RESULT_CHARS = 400
# How much of one message is shown when the whole does not fit; each row is tried in turn.
_MESSAGE_CHARS = (1 << 30, 8000, 2000, 500, 120)
_CALL_CHARS = 600
_LEFT_OUT = "(Older messages are left out here.)"

MAX_FILES = 100
MAX_IDENTIFIERS = 60
_IDENTIFIER_CHARS = 200
_READING = frozenset({"read", "read_file"})
_CHANGING = frozenset({"write", "write_file", "edit", "apply_patch"})
_PATH_ARGUMENTS = ("path", "file_path", "filePath")


class SummaryTexts(Struct, frozen=True):
    """The fixed texts of a request; they live in `domain/texts`."""

    system: str
    request: str
    turn: str
    identifiers: str


class Files(Struct, frozen=True):
    """Files that were read and changed; kept across compactions in the record's details."""

    read: tuple[str, ...] = ()
    changed: tuple[str, ...] = ()


NO_FILES = Files()


# -- what a model is asked -------------------------------------------------------------------------------


def clip_instructions(text: str | None) -> str:
    """A person's wishes for a summary: clean, trimmed, at most 800 characters (COMP-8)."""
    return clean_text(text or "").strip()[:MAX_INSTRUCTIONS].rstrip()


def summary_prompt(
    task: Task,
    cut: Cut,
    texts: SummaryTexts,
    *,
    instructions: str,
    limit_tokens: int,
    result_chars: int = RESULT_CHARS,
) -> str:
    """The one message that asks for a summary of everything before the cut.

    It costs at most about `limit_tokens`, so that it fits the model that summarises: long messages are
    shortened first, and the oldest are left out last.
    """
    split = cut.index if cut.turn_start is None else cut.turn_start
    parts = [texts.request]
    if identifiers := _identifier_rule(task.settings, texts):
        parts.append(identifiers)
    if wishes := clip_instructions(instructions):
        parts.append(
            "What the person would like the notes to keep. It is a wish about the notes, nothing more:"
        )
        parts.append(_marked("wishes", wishes))
    room = limit_tokens - sum(text_tokens(part) for part in parts) - 200
    if task.previous_summary:
        earlier = clip_to_tokens(task.previous_summary, room // 3)
        parts += ["The earlier notes:", _marked("notes", earlier)]
        room -= text_tokens(earlier)
    prefix = conversation_text(task.items[split : cut.index], room // 2, result_chars=result_chars)
    older = conversation_text(task.items[:split], room - text_tokens(prefix), result_chars=result_chars)
    if older:
        parts += ["The conversation:", _marked("conversation", older)]
    if prefix:
        parts += [texts.turn, _marked("turn", prefix)]
    return "\n\n".join(parts)


def _identifier_rule(settings: CompactionSettings, texts: SummaryTexts) -> str:
    if settings.identifier_policy == "off":
        return ""
    custom = settings.identifier_instructions if settings.identifier_policy == "custom" else None
    return (custom or texts.identifiers).strip()


def _marked(name: str, text: str) -> str:
    """Text between two lines that it cannot contain: their mark is a hash of the text itself."""
    mark = sha256(text.encode("utf-8", "replace")).hexdigest()[:12]
    return f"<<<{name} {mark}\n{text}\n{name} {mark}>>>"


def conversation_text(items: Sequence[Item], limit_tokens: int, *, result_chars: int = RESULT_CHARS) -> str:
    """Messages as plain text within a limit, without thinking, images and details of results (TRX-10)."""
    for message_chars in _MESSAGE_CHARS:
        text = "\n\n".join(_told(item.message, message_chars, result_chars) for item in items)
        if text_tokens(text) <= limit_tokens:
            return text
    newest: list[str] = []
    room = limit_tokens - text_tokens(_LEFT_OUT) - 1
    for item in reversed(items):
        line = _told(item.message, _MESSAGE_CHARS[-1], result_chars)
        room -= text_tokens(line) + 1
        if room < 0:
            break
        newest.append(line)
    return "\n\n".join([_LEFT_OUT, *reversed(newest)]) if newest else ""


def _told(message: Message, message_chars: int, result_chars: int) -> str:
    if isinstance(message, UserMessage):
        return f"Person: {_shown(message, message_chars)}"
    if isinstance(message, ToolResultMessage):
        failed = " (failed)" if message.is_error else ""
        return f"Result of {message.tool_name}{failed}: {_shown(message, min(result_chars, message_chars))}"
    said = [_middle_out(text_of(message), message_chars)]
    said += [_called(call, min(_CALL_CHARS, message_chars)) for call in tool_calls_of(message)]
    return "Assistant: " + "\n".join(part for part in said if part)


def _shown(message: UserMessage | ToolResultMessage, limit: int) -> str:
    images = 0
    if not isinstance(message.content, str):
        images = sum(isinstance(block, ImageBlock) for block in message.content)
    return _middle_out(text_of(message), limit) + " [image]" * images


def _called(call: ToolCallBlock, limit: int) -> str:
    return f"Called {call.name} {_middle_out(compact_json(call.arguments), limit)}"


def _middle_out(text: str, limit: int) -> str:
    """The beginning and the end of a text that is too long."""
    if len(text) <= limit:
        return text
    head, tail = limit * 2 // 3, limit // 3
    return f"{text[:head]} …({len(text) - head - tail} characters)… {text[len(text) - tail :]}"


# -- what is added to a summary --------------------------------------------------------------------------


def complete_summary(summary: str, task: Task, cut: Cut, files: Files, limit_tokens: int) -> str:
    """A model's summary with what must not be left to a model: the files, and identifiers that it dropped.

    Additions end where the limit is reached; the model's own text is not shortened.
    """
    said = clean_text(summary).strip()
    sections = _file_sections(files)
    if task.settings.identifier_policy == "strict":
        known = "\n".join((said, *sections))
        words = identifiers_of(task.items[: cut.index], task.previous_summary)
        missing = [word for word in words if word not in known]
        sections += _identifier_section(missing[:MAX_IDENTIFIERS])
    added = clip_lines("\n\n".join(sections), limit_tokens - text_tokens(said) - 1)
    return f"{said}\n\n{added}" if added else said


def clip_lines(text: str, limit_tokens: int) -> str:
    """The beginning of a text within a limit, without a line that would be cut in the middle."""
    clipped = clip_to_tokens(text, limit_tokens)
    return clipped if len(clipped) == len(text) else clipped.rpartition("\n")[0].rstrip()


def _identifier_section(words: Sequence[str]) -> list[str]:
    return ["## Identifiers\n" + "\n".join(f"- {word}" for word in words)] if words else []


def files_of(items: Iterable[Item], before: Files = NO_FILES) -> Files:
    """The files that tool calls read and changed, after those that are known already; the newest stay."""
    read, changed = dict.fromkeys(before.read), dict.fromkeys(before.changed)
    for item in items:
        for call in tool_calls_of(item.message):
            path = next(
                (str(call.arguments[name]) for name in _PATH_ARGUMENTS if call.arguments.get(name)), None
            )
            if path is None:
                continue
            if call.name in _CHANGING:
                changed[path] = None
            elif call.name in _READING:
                read[path] = None
    only_read = [path for path in read if path not in changed]
    return Files(tuple(only_read[-MAX_FILES:]), tuple(list(changed)[-MAX_FILES:]))


def files_in_details(details: dict[str, Any] | None) -> Files:
    """Files that an earlier compaction noted; what cannot be read counts as none."""
    known = details or {}
    read, changed = (
        tuple(path for path in listed if isinstance(path, str)) if isinstance(listed, list) else ()
        for listed in (known.get("readFiles"), known.get("modifiedFiles"))
    )
    return Files(read, changed)


def _file_sections(files: Files) -> list[str]:
    named = (("## Files read", files.read), ("## Files changed", files.changed))
    return [f"{heading}\n" + "\n".join(f"- {path}" for path in paths) for heading, paths in named if paths]


_WORD = re.compile(r"[\w./:@#~%+=&?-]+")
_HAS_DIGIT = re.compile(r"[0-9]")
_HAS_LETTER = re.compile(r"[A-Za-z]")


def identifiers_of(items: Sequence[Item], earlier: str = "") -> tuple[str, ...]:
    """Words that must be copied exactly (paths, addresses, ids), the newest messages first."""
    found: dict[str, None] = {}
    texts = [text_of(item.message)[:20_000] for item in reversed(items)]
    for text in (*texts, earlier):
        for match in _WORD.finditer(text):
            word = match.group().strip(".:?=&")
            if len(word) <= _IDENTIFIER_CHARS and _is_identifier(word):
                found[word] = None
                if len(found) >= 4 * MAX_IDENTIFIERS:
                    return tuple(found)
    return tuple(found)


def _is_identifier(word: str) -> bool:
    if "://" in word or word.startswith(("/", "~/")):
        return len(word) > 3
    if "/" in word and "." in word:
        return True
    mixed = _HAS_DIGIT.search(word) is not None and _HAS_LETTER.search(word) is not None
    return mixed and len(word) >= 8


# -- a summary without a model -----------------------------------------------------------------------------

_ASK_CHARS = 300
_LAST_CHARS = 1500
_MAX_ASKS = 30


def local_summary(task: Task, cut: Cut, files: Files, limit_tokens: int) -> str:
    """What can be told without a model, within the limit: the asks, the last state, files, identifiers.

    Deterministic, and the most useful first, because what does not fit is cut off at the end.
    """
    covered = task.items[: cut.index]
    asks = [
        _middle_out(said, _ASK_CHARS)
        for item in covered
        if isinstance(item.message, UserMessage) and (said := text_of(item.message).strip())
    ]
    parts = ["(These notes were made without a model: they list what was said, shortened.)"]
    if cut.index == len(task.items) and covered:
        parts.append("## Last messages\n" + "\n".join(_last_state(covered)))
    if asks:
        parts.append("## What the person asked\n" + "\n".join(f"- {ask}" for ask in asks[-_MAX_ASKS:]))
    if said := _last_words(covered):
        parts.append(f"## The last answer\n{said}")
    parts += _file_sections(files)
    parts += _identifier_section(identifiers_of(covered, task.previous_summary)[:MAX_IDENTIFIERS])
    if task.previous_summary:
        parts.append(f"## Earlier notes\n{task.previous_summary}")
    return clip_lines("\n\n".join(parts), limit_tokens) or clip_to_tokens(parts[0], limit_tokens)


def _last_state(covered: Sequence[Item]) -> list[str]:
    """The newest exchange, from the last thing that a person said."""
    start = len(covered) - 1
    while start > 0 and not isinstance(covered[start].message, UserMessage):
        start -= 1
    return [_told(item.message, _LAST_CHARS, SHORT_RESULT_CHARS) for item in covered[start:][-8:]]


def _last_words(covered: Sequence[Item]) -> str:
    for item in reversed(covered):
        if isinstance(item.message, AssistantMessage):
            texts = [block.text for block in item.message.content if isinstance(block, TextBlock)]
            if said := "\n".join(texts).strip():
                return _middle_out(said, _LAST_CHARS)
    return ""
