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
from openclaw.domain.skills import SkillList
from openclaw.domain.tokens import compact_json
from openclaw.engine.ports import Clock, ModelTarget, ToolSpec
from openclaw.engine.sandbox import INSIDE
from openclaw.engine.settings import AgentSettings
from openclaw.engine.texts import text_of_file
from openclaw.engine.workspace import InjectedFile
from openclaw.store.records import SessionRow

LOOK_EVERY_S = 1.0  # how often a workspace is looked at; a burst of turns does not stat the same files again
MOST_KEPT = 64
_Key = TypeVar("_Key")
_Value = TypeVar("_Value")


_TEMPLATE = text_of_file("system.txt")
_HELPER_TEMPLATE = text_of_file("subagent.txt")
HELPER_FILES = ("AGENTS.md", "TOOLS.md")


_NO_SKILLS = SkillList()


class _Looked(Struct, frozen=True):
    """What a workspace held when it was looked at."""

    at_s: float
    files: tuple[InjectedFile, ...]
    skills: SkillList


class Runtime(Struct, frozen=True):
    """Facts about where a session runs. Only what stays the same from turn to turn belongs here (LOOP-2)."""

    model: str = ""
    host: str = ""
    # Of a group or thread; what reaches a direct session may come from everywhere.
    channel: str | None = None


def runtime_of(session: SessionRow | None, target: ModelTarget, host: str) -> Runtime:
    in_group = session is not None and session.session_type != "direct"
    channel = session.entry.channel if session is not None and in_group else None
    return Runtime(f"{target.provider}/{target.model}", host, channel)


class Prompt(Struct, frozen=True):
    """A rendered prompt, what it was made of, and a digest that changes when it does."""

    text: str
    digest: str
    files: tuple[InjectedFile, ...] = ()
    skills: SkillList = SkillList()


async def _no_skills(_workspace: str) -> SkillList:
    return _NO_SKILLS


class Prompts:
    """The prompts of the agents, each rendered again only when something in it changed."""

    def __init__(
        self,
        load_files: Callable[[str], Awaitable[tuple[InjectedFile, ...]]],
        clock: Clock,
        host: str = "",
        load_skills: Callable[[str], Awaitable[SkillList]] = _no_skills,
    ) -> None:
        self._host = host
        self._load_skills = load_skills
        self._load_files = load_files
        self._clock = clock
        self._looked: OrderedDict[str, _Looked] = OrderedDict()
        self._rendered: OrderedDict[tuple[str, str, str, str, bool, Runtime], Prompt] = OrderedDict()

    async def for_session(
        self, session: SessionRow | None, agent: AgentSettings, target: ModelTarget | None = None
    ) -> Prompt:
        """What requests of a session begin with; a helper has the shorter prompt (SPAWN-19).

        Without a target it is that of the session's own next turn. A sandboxed session is told the place
        inside the sandbox, and nothing of this machine.
        """
        if target is None:
            target = agent.choose_models(session.entry, None)[0] if session else agent.default_model
        helper = session is not None and session.entry.spawned_by is not None
        sandboxed = session is not None and agent.is_sandboxed(session.session_key)
        place = INSIDE if sandboxed else agent.workspace
        runtime = runtime_of(session, target, "" if sandboxed else self._host)
        found = await self._look(agent.workspace)
        key = (agent.agent_id, agent.name, place, agent.zone.key, helper, runtime)
        kept = self._rendered.get(key)
        skills = _NO_SKILLS if helper else found.skills
        if kept is None or kept.files is not found.files or kept.skills is not skills:
            kept = self._rendered[key] = render(
                agent,
                found.files,
                helper=helper,
                place=place,
                runtime=_runtime_text(agent, runtime),
                skills=skills,
            )
            _trim(self._rendered, MOST_KEPT)
        return kept

    async def _look(self, workspace: str) -> _Looked:
        now_s = self._clock.monotonic()
        looked = self._looked.get(workspace)
        if looked is not None and 0 <= now_s - looked.at_s < LOOK_EVERY_S:
            return looked
        files, skills = await self._load_files(workspace), await self._load_skills(workspace)
        if looked is not None:
            # What is equal stays the same value, by which a rendered prompt is known to be current.
            files = looked.files if looked.files == files else files
            skills = looked.skills if looked.skills == skills else skills
        found = self._looked[workspace] = _Looked(now_s, files, skills)
        _trim(self._looked, MOST_KEPT)
        return found


def _trim(kept: OrderedDict[_Key, _Value], most: int) -> None:
    while len(kept) > most:
        kept.popitem(last=False)


def _runtime_text(agent: AgentSettings, runtime: Runtime) -> str:
    facts = (
        ("Host", runtime.host),
        ("Time zone", agent.zone.key),
        ("Model", runtime.model),
        ("Channel", runtime.channel),
    )
    return "\n".join(("# Runtime", "", *(f"{name}: {value}" for name, value in facts if value)))


def render(
    agent: AgentSettings,
    found: Sequence[InjectedFile],
    *,
    helper: bool = False,
    place: str | None = None,
    runtime: str = "",
    skills: SkillList = _NO_SKILLS,
) -> Prompt:
    """The prompt of an agent with these workspace files; a helper gets the working rules only.

    `place` is where it is told to work, unless that is its workspace. What differs between sessions
    stands last, so that they share as much of the beginning as they can.
    """
    template = _HELPER_TEMPLATE if helper else _TEMPLATE
    parts = [template.format(name=agent.name, workspace=place or agent.workspace)]
    shown = [file for file in found if file.text and (not helper or file.name in HELPER_FILES)]
    parts += [f"# {file.name}\n\n{file.text}" for file in shown]
    parts += [skills.text] if skills.text else []
    parts += [runtime] if runtime else []
    text = "\n\n".join(parts)
    return Prompt(text, sha256(text.encode("utf-8", "replace")).hexdigest()[:16], tuple(found), skills)


def digest_of(prompt: Prompt, tools: Sequence[ToolSpec], model: str) -> str:
    """Tells one beginning of requests from the next: text, tools and model (LOOP-2)."""
    parts = "\0".join((prompt.digest, model, *(tool.name for tool in tools)))
    return sha256(parts.encode("utf-8", "replace")).hexdigest()[:16]


def prompt_report(prompt: Prompt, tools: Sequence[ToolSpec], model: str) -> dict[str, Any]:
    """What the prompt is made of, as the session keeps it (CMD-4), with its `digest_of`.

    It measures every tool, so a turn makes one only when the digest has changed.
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
        skills=tuple(PartSize(name, len(line)) for name, line in prompt.skills.shown),
    )
    return {**msgspec.to_builtins(report), "digest": digest_of(prompt, tools, model)}


def system_prompt(agent: AgentSettings) -> str:
    """The prompt of an agent without the files of its workspace."""
    return render(agent, ()).text


def greeting_prompt() -> str:
    """Added to the turn of a bare `/new` or `/reset` (LIFE-17, LIFE-18)."""
    return text_of_file("greeting.txt")
