"""The visible table of tools, and the one place where a tool is called.

A tool never takes a run down: an unknown name, wrong arguments and an exception
are results that say what to do (TOOL-7). Whatever a tool answers is masked and
bounded here, before anybody stores or shows it (TRX-10, TRX-11).
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Iterable, Sequence
from typing import Any, Literal

import msgspec

from openclaw.domain.doortext import clean_text, cut
from openclaw.domain.transcript import TextBlock
from openclaw.engine.ports import Tool, ToolContext, ToolOutcome, ToolSpec
from openclaw.engine.tools.results import settle_outcome, text_chars
from openclaw.errors import Forbidden, OpenClawError

log = logging.getLogger("openclaw.tools")
INVALID_JSON = "__invalid_json"  # how an adapter marks arguments that it could not read
_OFF_LOOP_CHARS = 65_536
_SHOWN_NAME_CHARS = 80
_KEPT_SETS = 100  # agents and kinds of sub-agents that ask for their tools again and again


class ToolRegistry:
    """`secrets` gives the secret values in force; it is asked after every call."""

    def __init__(self, tools: Iterable[Tool], secrets: Callable[[], frozenset[str]] = frozenset) -> None:
        self._tools = {tool.spec.name: tool for tool in tools}
        self._secrets = secrets
        self._told: dict[tuple[str, ...], tuple[ToolSpec, ...]] = {}

    def secrets(self) -> frozenset[str]:
        """The secret values in force, for whoever shows what tools were asked."""
        return self._secrets()

    def names(self) -> tuple[str, ...]:
        return tuple(sorted(self._tools))

    def may_run_beside_others(self, name: str) -> bool:
        """Whether calls of this tool may run at the same time as others; an unknown one only fails."""
        tool = self._tools.get(name)
        return tool is None or tool.spec.parallel

    def may_be_repeated(self, name: str) -> bool:
        """Whether a call that a crash cut off is made again instead of being reported as interrupted."""
        tool = self._tools.get(name)
        return tool is not None and tool.spec.repeatable

    def specs(self, allowed: Sequence[str]) -> tuple[ToolSpec, ...]:
        """What a model is told, sorted by name so that the prompt prefix stays the same."""
        key = tuple(allowed)
        told = self._told.get(key)
        if told is None:
            if len(self._told) >= _KEPT_SETS:
                self._told.clear()
            told = tuple(self._tools[name].spec for name in sorted(key) if name in self._tools)
            self._told[key] = told
        return told

    async def call(
        self, name: str, arguments: dict[str, Any], context: ToolContext, allowed: Sequence[str]
    ) -> ToolOutcome:
        """Call a tool that this agent may use. The outcome is ready to be stored."""
        outcome = await self._call(name, arguments, context, allowed)
        if outcome.effect is not None:
            return outcome  # our own words, made in the commit
        secrets = self._secrets()
        if text_chars(outcome) > _OFF_LOOP_CHARS:
            return await asyncio.to_thread(settle_outcome, outcome, secrets)
        return settle_outcome(outcome, secrets)

    async def _call(
        self, name: str, arguments: dict[str, Any], context: ToolContext, allowed: Sequence[str]
    ) -> ToolOutcome:
        if name not in allowed or name not in self._tools:
            asked, known = cut(name, _SHOWN_NAME_CHARS), ", ".join(sorted(allowed)) or "none"
            return failure(f"there is no tool {asked!r} here; available: {known}")
        if INVALID_JSON in arguments:
            return failure(f"the arguments of {name} were not valid JSON; call it again with a JSON object")
        try:
            return await self._tools[name].call(arguments, context)
        except Forbidden as error:
            return failure(error.message, "forbidden")
        except OpenClawError as error:
            return failure(error.message)
        except Exception:
            log.exception("tool %s failed in %s", name, context.session_key)
            return failure(f"{name} failed inside the gateway; the log has the details")


def failure(text: str, status: Literal["error", "forbidden"] = "error") -> ToolOutcome:
    """A refusal as a result: an object that says what went wrong (TOOL-7)."""
    answer = {"status": status, "error": clean_text(text)}
    return ToolOutcome((TextBlock(msgspec.json.encode(answer).decode()),), is_error=True, details=answer)
