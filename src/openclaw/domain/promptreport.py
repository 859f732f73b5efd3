"""What the model is given besides the conversation, measured (CMD-3, CMD-4).

The value that a run leaves behind about its system prompt, and the texts that
`/context` makes of it. It counts characters; it never holds the text itself.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Literal

import msgspec
from msgspec import Struct

CHARS_PER_TOKEN = 4
_MOST_LINES = 30

FileState = Literal["OK", "TRUNCATED", "MISSING"]


class InjectedFile(Struct, frozen=True, rename="camel"):
    """A workspace file: how long it is, and how much of it the prompt holds."""

    name: str
    raw_chars: int
    injected_chars: int
    missing: bool = False

    @property
    def state(self) -> FileState:
        if self.missing:
            return "MISSING"
        return "TRUNCATED" if self.injected_chars < self.raw_chars else "OK"


class PartSize(Struct, frozen=True, rename="camel"):
    """A tool or a skill, and how many characters it takes."""

    name: str
    chars: int


class PromptReport(Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True):
    """The make-up of one system prompt. `source`: measured by the last run, or estimated now."""

    system_chars: int
    files: tuple[InjectedFile, ...] = ()
    tools: tuple[PartSize, ...] = ()
    skills: tuple[PartSize, ...] = ()
    session_tokens: int | None = None
    context_tokens: int | None = None
    source: Literal["run", "estimate"] = "run"

    @property
    def tool_chars(self) -> int:
        return sum(tool.chars for tool in self.tools)

    @property
    def skill_chars(self) -> int:
        return sum(skill.chars for skill in self.skills)


def tokens_of(chars: int) -> int:
    """About how many tokens a text of this length is, rounded up."""
    return -(-chars // CHARS_PER_TOKEN)


def report_from_stored(stored: dict[str, Any] | None) -> PromptReport | None:
    """A report as it was kept on the entry; None when there is none that can be read (ENT-11)."""
    if stored is None:
        return None
    try:
        return msgspec.convert(stored, PromptReport)
    except msgspec.ValidationError:
        return None


# -- texts -------------------------------------------------------------------------------------

EXPLANATION = (
    "The context is everything that the model is given for a turn: the system prompt with its "
    "workspace files, the descriptions of the tools, and the conversation.\n"
    "/context list - what is in it and how large it is\n"
    "/context detail - also each tool and skill, the largest first\n"
    "/context json - the same for machines"
)


def list_text(report: PromptReport) -> str:
    """`/context list`."""
    return "\n".join(_summary_lines(report))


def detail_text(report: PromptReport) -> str:
    """`/context detail`: the list, then tools and skills by size."""
    lines = _summary_lines(report)
    lines += _part_lines("Tools, the largest first:", report.tools)
    lines += _part_lines("Skills, the largest first:", report.skills)
    return "\n".join(lines)


def json_text(report: PromptReport) -> str:
    """`/context json`."""
    shown: dict[str, Any] = msgspec.to_builtins(report)
    shown["source"] = report.source
    shown["files"] = [msgspec.to_builtins(file) | {"state": file.state} for file in report.files]
    return msgspec.json.format(msgspec.json.encode(shown), indent=2).decode()


def _summary_lines(report: PromptReport) -> list[str]:
    measured = (
        "measured by the last run" if report.source == "run" else "estimated; no run has measured it yet"
    )
    lines = [
        f"Context ({measured})",
        f"System prompt: {_size(report.system_chars)}",
        f"Workspace files: {len(report.files) or 'none'}",
    ]
    lines += [f"- {_file_line(file)}" for file in report.files[:_MOST_LINES]]
    if len(report.files) > _MOST_LINES:
        lines.append(f"- and {len(report.files) - _MOST_LINES} more")
    lines.append(f"Skills: {_count(report.skills)} {_size(report.skill_chars)}")
    lines.append(f"Tool schemas: {_count(report.tools)} {_size(report.tool_chars)}")
    lines.append(f"Session: {_session(report)}")
    return lines


def _file_line(file: InjectedFile) -> str:
    if file.missing:
        return f"{file.name}: MISSING"
    raw, injected = _size(file.raw_chars), _size(file.injected_chars)
    return f"{file.name}: {file.state}, raw {raw}, injected {injected}"


def _part_lines(title: str, parts: Iterable[PartSize]) -> list[str]:
    ordered = sorted(parts, key=lambda part: (-part.chars, part.name))
    if not ordered:
        return []
    lines = ["", title, *(f"- {part.name}: {_size(part.chars)}" for part in ordered[:_MOST_LINES])]
    if len(ordered) > _MOST_LINES:
        lines.append(f"- and {len(ordered) - _MOST_LINES} more")
    return lines


def _count(parts: tuple[PartSize, ...]) -> str:
    return f"{len(parts)}," if parts else "none,"


def _session(report: PromptReport) -> str:
    if report.session_tokens is None:
        return "tokens not known yet"
    if not report.context_tokens:
        return f"{report.session_tokens:,} tokens"
    share = 100 * report.session_tokens // report.context_tokens
    return f"{report.session_tokens:,} of {report.context_tokens:,} tokens ({share} %)"


def _size(chars: int) -> str:
    return f"{chars:,} chars (~{tokens_of(chars):,} tokens)"
