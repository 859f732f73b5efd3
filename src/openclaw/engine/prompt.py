"""The system prompt: who the agent is, where it works, which rules hold, and the files of its workspace.

Byte-stable between turns (LOOP-2): rendered once and kept until one of its inputs
changes. Nothing volatile goes in here; what a single turn adds stands in front of
its message (`engine.drafts`).
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Awaitable, Callable, Sequence
from hashlib import sha256
from typing import Any, TypeVar

import msgspec
from msgspec import Struct

from openclaw.domain.promptreport import InjectedFile as ReportedFile
from openclaw.domain.promptreport import PartSize, PromptReport
from openclaw.domain.tokens import compact_json
from openclaw.engine.ports import Clock, ToolSpec
from openclaw.engine.settings import AgentSettings
from openclaw.engine.texts import text_of_file
from openclaw.engine.workspace import InjectedFile

LOOK_EVERY_S = 1.0  # how often a workspace is looked at; a burst of turns does not stat the same files again
MOST_KEPT = 64
_Key = TypeVar("_Key")
_Value = TypeVar("_Value")


_TEMPLATE = text_of_file("system.txt")
_HELPER_TEMPLATE = text_of_file("subagent.txt")
HELPER_FILES = ("AGENTS.md", "TOOLS.md")


class Prompt(Struct, frozen=True):
    """A rendered prompt, what it was made of, and a digest that changes when it does."""

    text: str
    digest: str
    files: tuple[InjectedFile, ...] = ()


class Prompts:
    """The prompts of the agents, each rendered again only when something in it changed."""

    def __init__(
        self, load_files: Callable[[str], Awaitable[tuple[InjectedFile, ...]]], clock: Clock
    ) -> None:
        self._load_files = load_files
        self._clock = clock
        self._looked: OrderedDict[str, tuple[float, tuple[InjectedFile, ...]]] = OrderedDict()
        self._rendered: OrderedDict[tuple[str, str, str, bool], Prompt] = OrderedDict()

    async def of(self, agent: AgentSettings, *, helper: bool = False) -> Prompt:
        """The prompt of an agent, or the shorter one of a helper that it started (SPAWN-19)."""
        found = await self._files(agent.workspace)
        key = (agent.agent_id, agent.name, agent.workspace, helper)
        kept = self._rendered.get(key)
        if kept is None or kept.files is not found:
            kept = self._rendered[key] = render(agent, found, helper=helper)
            _trim(self._rendered, MOST_KEPT)
        return kept

    async def _files(self, workspace: str) -> tuple[InjectedFile, ...]:
        now_s = self._clock.monotonic()
        looked = self._looked.get(workspace)
        if looked is not None and 0 <= now_s - looked[0] < LOOK_EVERY_S:
            return looked[1]
        found = await self._load_files(workspace)
        if looked is not None and looked[1] == found:
            found = looked[1]
        self._looked[workspace] = (now_s, found)
        _trim(self._looked, MOST_KEPT)
        return found


def _trim(kept: OrderedDict[_Key, _Value], most: int) -> None:
    while len(kept) > most:
        kept.popitem(last=False)


def render(agent: AgentSettings, found: Sequence[InjectedFile], *, helper: bool = False) -> Prompt:
    """The prompt of an agent with these workspace files; a helper gets the working rules only."""
    template = _HELPER_TEMPLATE if helper else _TEMPLATE
    parts = [template.format(name=agent.name, workspace=agent.workspace)]
    shown = [file for file in found if file.text and (not helper or file.name in HELPER_FILES)]
    parts += [f"# {file.name}\n\n{file.text}" for file in shown]
    text = "\n\n".join(parts)
    return Prompt(text, sha256(text.encode("utf-8", "replace")).hexdigest()[:16], tuple(found))


def prompt_report(prompt: Prompt, tools: Sequence[ToolSpec], model: str) -> dict[str, Any]:
    """What the prompt is made of, as the session keeps it (CMD-4).

    `digest` tells one beginning of requests from the next: text, tools and model (LOOP-2).
    """
    report = PromptReport(
        system_chars=len(prompt.text),
        files=tuple(
            ReportedFile(file.name, file.raw_chars, file.injected_chars, file.state == "MISSING")
            for file in prompt.files
        ),
        tools=tuple(
            PartSize(tool.name, len(compact_json(tool.parameters)) + len(tool.description)) for tool in tools
        ),
    )
    parts = "\0".join((prompt.digest, model, *(tool.name for tool in tools)))
    digest = sha256(parts.encode("utf-8", "replace")).hexdigest()[:16]
    return {**msgspec.to_builtins(report), "digest": digest}


def system_prompt(agent: AgentSettings) -> str:
    """The prompt of an agent without the files of its workspace."""
    return render(agent, ()).text


def greeting_prompt() -> str:
    """Added to the turn of a bare `/new` or `/reset` (LIFE-17, LIFE-18)."""
    return text_of_file("greeting.txt")
