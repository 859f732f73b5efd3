"""The skills of a workspace, found off the loop and read again only when a file changed (LOOP-2)."""

from __future__ import annotations

import asyncio
import logging
from collections import OrderedDict
from collections.abc import Callable

from msgspec import Struct

from openclaw.domain.skills import Skill, SkillHead, SkillList, SkillProblem, list_skills, read_skill
from openclaw.engine.texts import text_of_file
from openclaw.engine.tools.results import settle_text
from openclaw.engine.tools.workspace.rooted import FileFacts, Root, shown
from openclaw.errors import OpenClawError

log = logging.getLogger("openclaw.skills")
FOLDER = "skills"
FILE = "SKILL.md"
MAX_HEAD_BYTES = 16 << 10
MAX_LOOKED_AT = 200
_KEPT_WORKSPACES = 32
_HEADING = text_of_file("skills.txt")


class _Known(Struct, frozen=True):
    facts: dict[str, FileFacts]
    heads: dict[str, SkillHead | SkillProblem]
    secrets: frozenset[str]
    listed: SkillList


_NOTHING = _Known({}, {}, frozenset(), SkillList())


class WorkspaceSkills:
    """Remembers what it read, for the workspaces that were asked for last."""

    def __init__(self, secrets: Callable[[], frozenset[str]] = frozenset) -> None:
        self._secrets = secrets
        self._known: OrderedDict[str, _Known] = OrderedDict()

    async def load(self, workspace: str) -> SkillList:
        """The list of skills. Never raises for a file or a missing workspace.

        A file that cannot be listed is left out with a line in the log, once for every change of it.
        """
        known, secrets = self._known.get(workspace, _NOTHING), self._secrets()
        fresh = await asyncio.to_thread(_look, workspace, known, secrets)
        self._known[workspace] = fresh
        self._known.move_to_end(workspace)
        while len(self._known) > _KEPT_WORKSPACES:
            self._known.popitem(last=False)
        return fresh.listed


def _look(workspace: str, known: _Known, secrets: frozenset[str]) -> _Known:
    try:
        with Root(workspace) as root:
            facts = _facts(root)
            if facts == known.facts and secrets == known.secrets:
                return known
            heads = {
                path: known.heads[path] if known.facts.get(path) == one else _head(root, path)
                for path, one in facts.items()
            }
    except OpenClawError:
        return _NOTHING
    for path, head in heads.items():
        if isinstance(head, SkillProblem) and known.heads.get(path) is not head:
            log.warning("the skill %s in %s is not listed: %s", path, shown(workspace), head.reason)
    found = [
        Skill(_line(head.name, secrets), _line(head.description, secrets), path)
        for path, head in heads.items()
        if isinstance(head, SkillHead)
    ]
    return _Known(facts, heads, secrets, list_skills(found, _HEADING))


def _facts(root: Root) -> dict[str, FileFacts]:
    """Every SKILL.md by its path, in alphabetical order of the folders."""
    try:
        folders = root.list(FOLDER).entries
    except OpenClawError:
        return {}  # there are none
    found: dict[str, FileFacts] = {}
    for folder in folders[:MAX_LOOKED_AT]:
        path = f"{FOLDER}/{folder.name}/{FILE}"
        try:
            facts = root.stat(path) if folder.kind in ("directory", "link") else None
        except OpenClawError:
            continue  # a link that leads out, or a name that no path may hold
        if facts is not None:
            found[path] = facts
    return found


def _head(root: Root, path: str) -> SkillHead | SkillProblem:
    try:
        data = root.read(path, MAX_HEAD_BYTES).data
    except OpenClawError as error:
        return SkillProblem(error.message)
    return read_skill(data.decode("utf-8", "replace"))


def _line(text: str, secrets: frozenset[str]) -> str:
    """On one line, and without secrets: it stands in every request (TRX-11)."""
    return " ".join(settle_text(text, len(text), secrets).text.split())
