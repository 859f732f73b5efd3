"""The system prompt: who the agent is, where it works, which rules hold.

Byte-stable between turns (LOOP-2): nothing volatile goes in here. What a single
turn adds stands at its end, so that the common prefix stays the same.
"""

from __future__ import annotations

from importlib.resources import files

from openclaw.engine.settings import AgentSettings


def _text(name: str) -> str:
    return files("openclaw.domain").joinpath("texts", name).read_text(encoding="utf-8").strip()


_TEMPLATE = _text("system.txt")


def system_prompt(agent: AgentSettings, extra: str | None = None) -> str:
    text = _TEMPLATE.format(name=agent.name, workspace=agent.workspace)
    return f"{text}\n\n{extra}" if extra else text


def greeting_prompt() -> str:
    """Added to the turn of a bare `/new` or `/reset` (LIFE-17, LIFE-18)."""
    return _text("greeting.txt")
