"""The visible table of tools, and the one place where a tool is called.

A tool never takes a run down: an unknown name, wrong arguments and an exception
are results that say what to do (TOOL-7).
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Sequence
from typing import Any

from openclaw.domain.doortext import clean_text
from openclaw.domain.transcript import TextBlock
from openclaw.engine.ports import Tool, ToolContext, ToolOutcome, ToolSpec
from openclaw.errors import OpenClawError

log = logging.getLogger("openclaw.tools")
MAX_RESULT_CHARS = 200_000
INVALID_JSON = "__invalid_json"  # how an adapter marks arguments that it could not read


class ToolRegistry:
    def __init__(self, tools: Iterable[Tool]) -> None:
        self._tools = {tool.spec.name: tool for tool in tools}

    def names(self) -> tuple[str, ...]:
        return tuple(sorted(self._tools))

    def specs(self, allowed: Sequence[str]) -> tuple[ToolSpec, ...]:
        """What a model is told, sorted by name so that the prompt prefix stays the same."""
        return tuple(self._tools[name].spec for name in sorted(allowed) if name in self._tools)

    async def call(
        self, name: str, arguments: dict[str, Any], context: ToolContext, allowed: Sequence[str]
    ) -> ToolOutcome:
        """Call a tool that this agent may use."""
        if name not in allowed or name not in self._tools:
            return failure(
                f"there is no tool {name!r} here; available: {', '.join(sorted(allowed)) or 'none'}"
            )
        if INVALID_JSON in arguments:
            return failure(f"the arguments of {name} were not valid JSON; call it again with a JSON object")
        try:
            outcome = await self._tools[name].call(arguments, context)
        except OpenClawError as error:
            return failure(error.message)
        except Exception:
            log.exception("tool %s failed in %s", name, context.session_key)
            return failure(f"{name} failed inside the gateway; the log has the details")
        return _bounded(outcome)


def failure(text: str) -> ToolOutcome:
    return ToolOutcome((TextBlock(text),), is_error=True)


def _bounded(outcome: ToolOutcome) -> ToolOutcome:
    """Text at the door: cleaned, and cut at a size that no transcript chokes on."""
    content = tuple(
        TextBlock(_cut(clean_text(block.text))) if isinstance(block, TextBlock) else block
        for block in outcome.content
    )
    return ToolOutcome(content, outcome.is_error, outcome.details)


def _cut(text: str) -> str:
    if len(text) <= MAX_RESULT_CHARS:
        return text
    return f"{text[:MAX_RESULT_CHARS]}\n[cut: {len(text) - MAX_RESULT_CHARS} more characters]"
