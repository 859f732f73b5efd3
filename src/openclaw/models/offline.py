"""The built-in `offline` model: a small rule-based agent for a start without any key.

It says plainly that it is one, yet really calls the tools it is offered, so that
the whole way of a message can be seen working. It is deterministic, touches no
network and no clock, and pretends to no understanding.
"""

from __future__ import annotations

import re
from collections.abc import AsyncGenerator, Callable, Mapping
from typing import Any

import msgspec
from msgspec import Struct

from openclaw.domain.doortext import clean_text
from openclaw.domain.transcript import (
    AssistantBlock,
    AssistantMessage,
    Message,
    StopReason,
    TextBlock,
    ToolCallBlock,
    ToolResultMessage,
    UserMessage,
    text_of,
)
from openclaw.engine.ports import ModelDone, ModelEvent, ModelRequest, TextDelta
from openclaw.models.accounting import estimate_tokens, make_usage
from openclaw.models.offline_tasks import HELP_LINES, answer_as_helper, follow_up, read_order

API = "offline"

WHO_I_AM = "I am the built-in offline model: a few fixed rules, not an AI."
HOW_TO_CONNECT = "To talk to a real model, run `openclaw onboard`."
HELP = f"""{WHO_I_AM} I understand these messages:
- "list sessions": I call the tool sessions_list and tell you what it found
- "status": I call the tool session_status and show you its card
{HELP_LINES}
- "help": this text
Anything else I repeat to you. {HOW_TO_CONNECT}"""


class Rule(Struct, frozen=True):
    """When the words of a short message contain one of `phrases`: call `tool`, or else say `reply`."""

    phrases: tuple[str, ...]
    tool: str = ""
    reply: str = ""


# First match wins.
RULES = (
    Rule(("list sessions", "show sessions", "sessions"), tool="sessions_list"),
    Rule(("status",), tool="session_status"),
    Rule(("help", "what can you do"), reply=HELP),
)

# A long message that happens to contain "status" is not a command.
_COMMAND_WORDS = 8
_QUOTED_CHARS = 200
_CARD_CHARS = 1500
_LISTED_SESSIONS = 10
_WORD = re.compile(r"\w+")
_WITH_FOLLOWING_SPACE = re.compile(r"\S+\s*|\s+")


class _Answer(Struct, frozen=True):
    text: str
    tool: str = ""
    arguments: dict[str, Any] = {}


class OfflineModel:
    """Answers by `RULES`, one word per delta."""

    async def stream(self, request: ModelRequest) -> AsyncGenerator[ModelEvent, None]:
        """Stream one answer; see `engine.ports.Model`. It cannot fail."""
        answer = decide_answer(request)
        for word in _WITH_FOLLOWING_SPACE.findall(answer.text):
            yield TextDelta(word)
        content: tuple[AssistantBlock, ...] = (TextBlock(answer.text),)
        stop_reason: StopReason = "stop"
        if answer.tool:
            # Unique within a conversation, and the same when the same request is asked again.
            call_id = f"offline_{request.now_ms}_{len(request.messages)}"
            content += (ToolCallBlock(call_id, answer.tool, answer.arguments),)
            stop_reason = "toolUse"
        usage = make_usage(
            request.target.price,
            input_tokens=estimate_tokens(_request_chars(request)),
            output_tokens=estimate_tokens(len(answer.text)),
        )
        message = AssistantMessage(
            content=content,
            timestamp=request.now_ms,
            api=request.target.api,
            provider=request.target.provider,
            model=request.target.model,
            usage=usage,
            stop_reason=stop_reason,
        )
        yield ModelDone(message)


def decide_answer(request: ModelRequest) -> _Answer:
    """What to say to the end of the conversation, and which tool to call, if any."""
    results = _trailing_results(request.messages)
    if results:
        order = follow_up(results[-1].tool_name, text_of(results[-1]))
        if order is not None and _offers(request, order.tool):
            return _Answer(f"I am calling the tool {order.tool}.", order.tool, order.arguments)
        return _Answer("\n".join(_summarise(result) for result in results))
    last = request.messages[-1] if request.messages else None
    if not isinstance(last, UserMessage):
        return _Answer(HELP)
    said = text_of(last)
    helping = answer_as_helper(said)
    if helping is not None:
        return _Answer(helping)
    order = read_order(said)
    if order is not None:
        if not _offers(request, order.tool):
            return _Answer(f"I would call the tool {order.tool}, but this session does not offer it to me.")
        return _Answer(f"I am calling the tool {order.tool}.", order.tool, order.arguments)
    rule = match_rule(said)
    if rule is None:
        return _Answer(_echo(said))
    if not rule.tool:
        return _Answer(rule.reply)
    if not _offers(request, rule.tool):
        return _Answer(f"I would call the tool {rule.tool}, but this session does not offer it to me.")
    return _Answer(f"I am calling the tool {rule.tool}.", rule.tool)


def _offers(request: ModelRequest, tool: str) -> bool:
    return any(spec.name == tool for spec in request.tools)


def match_rule(said: str) -> Rule | None:
    """The first rule whose phrase stands in the message as whole words; None for longer messages."""
    words = _WORD.findall(said[:_QUOTED_CHARS].lower())
    if len(words) > _COMMAND_WORDS or len(said) > _QUOTED_CHARS:
        return None
    padded = f" {' '.join(words)} "
    for rule in RULES:
        if any(f" {phrase} " in padded for phrase in rule.phrases):
            return rule
    return None


def _echo(said: str) -> str:
    quoted = _shorten(said, _QUOTED_CHARS)
    heard = f"You wrote: “{quoted}”" if quoted else "Your message has no text."
    return f"{heard}\n{WHO_I_AM} Say “help” for what I can do. {HOW_TO_CONNECT}"


def _shorten(text: str, chars: int) -> str:
    """One line of at most `chars` characters."""
    line = " ".join(clean_text(text[: 2 * chars]).split())
    return line if len(line) <= chars and len(text) <= 2 * chars else line[: chars - 1] + "…"


# -- tool results in plain words ---------------------------------------------------------------


class _Session(Struct):
    key: str = "?"
    kind: str = ""
    label: str | None = None


class _SessionList(Struct):
    sessions: list[_Session]
    count: int | None = None


def _summarise_sessions(text: str) -> str | None:
    try:
        listed = msgspec.json.decode(text, type=_SessionList)
    except (msgspec.DecodeError, UnicodeError, RecursionError):
        return None
    count = max(len(listed.sessions), listed.count or 0)
    if count == 0:
        return "There are no sessions that I may see."
    lines = [_session_line(session) for session in listed.sessions[:_LISTED_SESSIONS]]
    rest = count - len(lines)
    if rest:
        lines.append(f"- and {rest} more")
    head = "There is 1 session:" if count == 1 else f"There are {count} sessions:"
    return "\n".join([head, *lines])


def _session_line(session: _Session) -> str:
    notes = [_shorten(note, 60) for note in (session.kind, session.label) if note]
    return f"- {_shorten(session.key, 120)}" + (f" ({', '.join(notes)})" if notes else "")


def _summarise_status(text: str) -> str | None:
    card = clean_text(text[:_CARD_CHARS]).strip()
    return f"This is the status of the session:\n{card}" if card else None


# How to tell the result of a tool; None means that the text is not what was expected.
SUMMARIES: Mapping[str, Callable[[str], str | None]] = {
    "sessions_list": _summarise_sessions,
    "session_status": _summarise_status,
}


def _summarise(result: ToolResultMessage) -> str:
    text = text_of(result)
    if result.is_error:
        why = _shorten(_error_of(text), _QUOTED_CHARS) or "it said nothing."
        return f"The tool {result.tool_name} failed: {why}"
    summarise = SUMMARIES.get(result.tool_name)
    summary = summarise(text) if summarise else None
    if summary is not None:
        return summary
    return f"The tool {result.tool_name} answered: {_shorten(text, _QUOTED_CHARS) or '(nothing)'}"


def _error_of(text: str) -> str:
    """The words of a refusal; the text itself when it is no object that has any."""
    try:
        return str(msgspec.json.decode(text, type=dict[str, Any])["error"])
    except (msgspec.MsgspecError, KeyError, UnicodeError):
        return text


def _trailing_results(messages: tuple[Message, ...]) -> list[ToolResultMessage]:
    results: list[ToolResultMessage] = []
    for message in reversed(messages):
        if not isinstance(message, ToolResultMessage):
            break
        results.append(message)
    return results[::-1]


# -- counting ----------------------------------------------------------------------------------


def _request_chars(request: ModelRequest) -> int:
    return len(request.system) + sum(_message_chars(message) for message in request.messages)


def _message_chars(message: Message) -> int:
    content: Any = message.content
    if isinstance(content, str):
        return len(content)
    return sum(len(block.text) for block in content if isinstance(block, TextBlock))
