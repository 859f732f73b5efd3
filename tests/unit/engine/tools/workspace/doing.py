"""Calling workspace tools as a run does: through the registry, with a context."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec

from openclaw.domain.transcript import TextBlock
from openclaw.engine.ports import Tool, ToolContext, ToolOutcome
from openclaw.engine.tools.registry import ToolRegistry

NOON_MS = 1_767_268_800_000  # 2026-01-01 12:00 UTC


def context_of(workspace: Path | str, **facts: Any) -> ToolContext:
    base = ToolContext(
        "agent:main:main", "sid", "main", "run", "call", NOON_MS, owner=True, workspace=str(workspace)
    )
    return msgspec.structs.replace(base, **facts)


async def call(tool: Tool, context: ToolContext, **arguments: Any) -> ToolOutcome:
    registry = ToolRegistry((tool,))
    return await registry.call(tool.spec.name, arguments, context, registry.names())


def said(outcome: ToolOutcome) -> str:
    return "\n".join(block.text for block in outcome.content if isinstance(block, TextBlock))


def refused(outcome: ToolOutcome, status: str = "error") -> str:
    """The error of a refusal, after checking that it is one (TOOL-7)."""
    assert outcome.is_error
    answer = msgspec.json.decode(said(outcome), type=dict[str, str])
    assert answer == outcome.details
    assert answer["status"] == status, answer
    return answer["error"]
