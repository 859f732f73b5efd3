"""Skills: folders of a workspace whose SKILL.md says what they are good for (LOOP-2).

The head of the file is read here, and the list that a model is shown is made. The model reads the
rest of a skill itself when it needs it; nothing here opens files.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import Final

import msgspec
from msgspec import Struct

MAX_NAME_CHARS: Final = 64
MAX_DESCRIPTION_CHARS: Final = 1024
MAX_LISTED: Final = 100
MAX_LIST_CHARS: Final = 18_000
_MARK: Final = "---"
_KEY = re.compile(r"([A-Za-z][A-Za-z0-9_-]{0,63}):(?:[ \t]|$)")


class SkillHead(Struct, frozen=True):
    """What the beginning of a SKILL.md says."""

    name: str
    description: str


class SkillProblem(Struct, frozen=True):
    """Why a SKILL.md cannot be listed, and what would help."""

    reason: str


class Skill(Struct, frozen=True):
    """One skill of a workspace. `path` is relative to it."""

    name: str
    description: str
    path: str


class SkillList(Struct, frozen=True):
    """The part of a prompt that lists skills; `shown` are those that it holds, with their lines."""

    text: str = ""
    shown: tuple[tuple[str, str], ...] = ()


def read_skill(text: str) -> SkillHead | SkillProblem:
    """The name and description from the front matter at the beginning of `text`."""
    lines = text.removeprefix("\ufeff").splitlines()
    if not lines or lines[0].rstrip() != _MARK:
        return SkillProblem("it does not begin with a line of three dashes and its name and description")
    end = next((at for at, line in enumerate(lines[1:], 1) if line.rstrip() == _MARK), None)
    if end is None:
        return SkillProblem("its head has no end; close it with a line of three dashes")
    fields = _fields(lines[1:end])
    name, description = fields.get("name", ""), fields.get("description", "")
    if not name:
        return SkillProblem("it has no name; write `name: …` in its head")
    if len(name) > MAX_NAME_CHARS:
        return SkillProblem(f"its name is longer than {MAX_NAME_CHARS} characters")
    if not description:
        return SkillProblem("it has no description; write `description: …` in its head")
    return SkillHead(name, description[:MAX_DESCRIPTION_CHARS])


def _fields(lines: Sequence[str]) -> dict[str, str]:
    """The top-level texts of a head, each on one line. What is nested deeper is passed over."""
    found: dict[str, list[str]] = {}
    current: list[str] = []
    for line in lines:
        key = _KEY.match(line)
        if key is not None:
            current = [line[key.end() :]]
            found.setdefault(key[1].lower(), current)
        elif line[:1] in (" ", "\t"):
            current.append(line)
    return {name: _value(parts) for name, parts in found.items()}


def _value(parts: list[str]) -> str:
    first = parts[0].strip()
    if first[:1] in ("|", ">") and first.strip("|>+-0123456789") == "":
        parts = parts[1:]
    text = " ".join(" ".join(parts).split())
    if len(text) > 1 and text[0] == text[-1] == "'":
        return text[1:-1].replace("''", "'").strip()
    if len(text) > 1 and text[0] == text[-1] == '"':
        try:
            return " ".join(msgspec.json.decode(text, type=str).split())
        except (msgspec.DecodeError, UnicodeError):
            return text[1:-1].strip()
    return text


def list_skills(skills: Iterable[Skill], heading: str) -> SkillList:
    """What a prompt says about them under `heading`, in the order given, as far as there is room."""
    shown: list[tuple[str, str]] = []
    left_out, room = 0, MAX_LIST_CHARS
    for skill in skills:
        line = f"- {skill.name}: {skill.description} ({skill.path})"
        if left_out or len(shown) == MAX_LISTED or len(line) > room:
            left_out += 1
            continue
        room -= len(line) + 1
        shown.append((skill.name, line))
    if not shown:
        return SkillList()
    lines = [line for _, line in shown]
    if left_out:
        lines.append(f"- and {left_out} more below skills/, which are not listed here")
    return SkillList("\n".join((f"{heading}\n", *lines)), tuple(shown))
