"""What people are shown of a turn besides its answer: tools, thinking, what it used (CMD-10, CMD-11).

Decides the levels of one turn and puts what they ask for into words. It sends nothing
and stores nothing; none of these words ever becomes part of a conversation.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

from msgspec import Struct

from openclaw.domain.doortext import clean_text, cut
from openclaw.domain.entry import ReasoningLevel, ResponseUsage, SessionEntry
from openclaw.domain.redaction import redact
from openclaw.domain.tokens import compact_json
from openclaw.domain.transcript import (
    AssistantMessage,
    ThinkingBlock,
    ToolCallBlock,
    ToolResultMessage,
    text_of,
)

Verbosity = Literal["off", "on", "full"]
_VERBOSITIES: dict[str, Verbosity] = {"off": "off", "on": "on", "full": "full"}
_REASONINGS: dict[str, ReasoningLevel] = {"off": "off", "on": "on", "stream": "stream"}
ARGUMENT_CHARS = 160
RESULT_CHARS = 1500
THINKING_CHARS = 6000
CUT_MARK = "…"
# Of a tool's arguments, the one that tells most in a single line.
_TELLING = ("command", "path", "url", "query", "pattern", "task", "message", "sessionKey")


class ShownLevels(Struct, frozen=True):
    """The levels of one turn. `reasoning` None: nobody has chosen; clients that ask for it may have it."""

    verbose: Verbosity = "off"
    reasoning: ReasoningLevel | None = None
    usage: ResponseUsage = "off"


def resolve_shown(
    entry: SessionEntry,
    *,
    verbose: str | None = None,
    reasoning: str | None = None,
    verbose_default: str | None = None,
) -> ShownLevels:
    """The words of the message come first, then the session's choice, then the agent's (CMD-10)."""
    words = (verbose, entry.verbose_level, verbose_default)
    thinking = (reasoning, entry.reasoning_level)
    return ShownLevels(
        next((_VERBOSITIES[word] for word in words if word in _VERBOSITIES), "off"),
        next((_REASONINGS[word] for word in thinking if word in _REASONINGS), None),
        entry.response_usage or "off",
    )


# -- tools -------------------------------------------------------------------------------------


def calls_text(calls: Sequence[ToolCallBlock], secrets: frozenset[str] = frozenset()) -> str:
    """One line for each call: the tool and the argument that tells most."""
    return "\n".join(_call_line(call, secrets) for call in calls)


def _call_line(call: ToolCallBlock, secrets: frozenset[str]) -> str:
    name = _one_line(call.name, ARGUMENT_CHARS)
    if not call.arguments:
        return f"[tool] {name}"
    telling = next((call.arguments[key] for key in _TELLING if key in call.arguments), call.arguments)
    told = telling if isinstance(telling, str) else compact_json(telling)
    # What cannot be a whole secret any more after the cut must be masked before it.
    shown = _one_line(redact(cut(told, ARGUMENT_CHARS * 8), secrets).text, ARGUMENT_CHARS)
    return f"[tool] {name}: {shown}" if shown else f"[tool] {name}"


def results_text(results: Sequence[ToolResultMessage], secrets: frozenset[str] = frozenset()) -> str:
    """What tools answered, each under its name and cut."""
    return "\n\n".join(_result_part(result, secrets) for result in results)


def _result_part(result: ToolResultMessage, secrets: frozenset[str]) -> str:
    head = f"[{'failed' if result.is_error else 'result'}] {_one_line(result.tool_name, ARGUMENT_CHARS)}"
    told = redact(cut(text_of(result), RESULT_CHARS * 4), secrets).text.strip()
    return f"{head}\n{_shortened(told, RESULT_CHARS)}" if told else head


def _one_line(text: str, limit: int) -> str:
    return _shortened(" ".join(clean_text(text).split()), limit)


def _shortened(text: str, limit: int) -> str:
    return text if len(text) <= limit else f"{cut(text, limit)}{CUT_MARK}"


# -- thinking ----------------------------------------------------------------------------------


def thinking_of(message: AssistantMessage) -> str:
    """What the model thought aloud, as it wrote it."""
    return "\n\n".join(
        block.thinking.strip()
        for block in message.content
        if isinstance(block, ThinkingBlock) and block.thinking.strip()
    )


def thinking_text(thought: str) -> str:
    """Thinking as a message of its own, marked so that nobody takes it for the answer."""
    return f"[thinking]\n{_shortened(thought.strip(), THINKING_CHARS)}"


# -- what it used ------------------------------------------------------------------------------


class Used(Struct, frozen=True):
    """What the model calls of one turn used together. `cost_usd` None: at least one had no price."""

    input: int
    output: int
    cached: int = 0
    cost_usd: float | None = None
    model: str = ""
    # Tokens of the last request and its answer, and how many fit.
    context: int = 0
    window: int = 0


def usage_line(level: ResponseUsage, used: Used | None) -> str:
    """The line below a reply, or nothing (CMD-11)."""
    if level == "off" or used is None:
        return ""
    tokens = f"{used.input:,} tokens in, {used.output:,} out"
    if level == "tokens":
        return f"[usage] {tokens}"
    parts = [tokens]
    if used.cached:
        parts.append(f"{used.cached:,} of them cached")
    parts.append("cost not known" if used.cost_usd is None else f"about ${used.cost_usd:.4f}")
    if used.window:
        parts.append(f"context {round(100 * used.context / used.window)} %")
    if used.model:
        parts.append(used.model)
    return f"[usage] {'; '.join(parts)}"


# -- compaction --------------------------------------------------------------------------------

COMPACTION_BEGINS = "[context] The conversation is getting long; older parts are being summarised."


def compaction_ended_text(tokens: tuple[int, int] | None) -> str:
    """The end of a compaction that nobody asked for: tokens before and after, or that nothing changed."""
    if tokens is None:
        return "[context] Nothing was summarised; the conversation goes on as it was."
    before, after = tokens
    return (
        f"[context] Older parts were summarised: {before:,} → {after:,} tokens. /compact undo takes it back."
    )
