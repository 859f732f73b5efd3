"""The files of helpers on disk: laid into the workspace where the helper reads them, taken away after it.

The rows are the truth (SPAWN-17). A folder is written before the commit that makes
its rows, and is named by the helper's id; whatever a crash leaves behind is told by
the rows: a folder without rows goes, rows without a folder are written again. Everything
that touches the disk runs on a worker thread.
"""

from __future__ import annotations

import asyncio
import logging
import os
import shutil
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path

from openclaw.domain.spawnfiles import FOLDER, SpawnFile
from openclaw.engine.ports import Clock
from openclaw.engine.settings import EngineSettings
from openclaw.engine.tools.workspace.rooted import MissingFile, Root
from openclaw.errors import OpenClawError
from openclaw.store.attachments import Attachments
from openclaw.store.spawns import Spawns

log = logging.getLogger("openclaw.subagents")
GRACE_MS = 600_000  # a folder may wait so long for the commit that makes its rows
_DIRECTORY = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC


def folder_of(child_key: str) -> str:
    """Where the files of a helper lie, from the top of its workspace."""
    return f"{FOLDER}/{child_key.rpartition(':')[2]}"


async def lay_out(workspace: str, child_key: str, files: tuple[SpawnFile, ...]) -> None:
    """Write the files of a helper into its workspace. Raises what a workspace tool would."""
    await asyncio.to_thread(_write, workspace, folder_of(child_key), files)


def _write(workspace: str, folder: str, files: tuple[SpawnFile, ...]) -> None:
    with Root(workspace, create=True) as root:
        for file in files:
            root.write(f"{folder}/{file.path}", file.data)


class HandedFiles:
    """Keeps the folders as the rows say; the sweep asks for it."""

    def __init__(
        self, rows: Attachments, spawns: Spawns, settings: Callable[[], EngineSettings], clock: Clock
    ) -> None:
        self._rows = rows
        self._spawns = spawns
        self._settings = settings
        self._clock = clock

    async def tidy(self) -> tuple[int, int]:
        """Write folders that are missing, take away those that nobody needs; how many of each."""
        settings = self._settings()
        having = await self._rows.children()
        written = removed = 0
        sharing: dict[str, list[str]] = {}
        for name, agent in settings.agents.items():
            if agent.workspace:
                sharing.setdefault(agent.workspace, []).append(name)
        for workspace, agents in sharing.items():
            wanted = {key.rpartition(":")[2]: key for key in having if key.split(":")[1] in agents}
            try:
                there = await asyncio.to_thread(_folders, workspace)
                for child_id in wanted.keys() - there.keys():
                    await lay_out(workspace, wanted[child_id], await self._rows.of_child(wanted[child_id]))
                    written += 1
                for child_id in sorted(there.keys() - wanted.keys()):
                    if await self._is_done_with(child_id, agents, there):
                        removed += await asyncio.to_thread(_remove, workspace, child_id)
            except OpenClawError as error:
                log.warning("files of helpers in %s: %s; it is tried again", workspace, error)
        return written, removed

    async def _is_done_with(self, child_id: str, agents: list[str], there: Mapping[str, int]) -> bool:
        if self._clock.now_ms() - there[child_id] >= GRACE_MS:
            return True
        keys = [f"agent:{agent}:subagent:{child_id}" for agent in agents]
        return any([await self._spawns.of_child(key) is not None for key in keys])


def _folders(workspace: str) -> dict[str, int]:
    """The folders of helpers with the time of their last change; links are none of ours."""
    found: dict[str, int] = {}
    with suppress(MissingFile, FileNotFoundError):
        if not Path(workspace).is_dir():
            return found
        with Root(workspace) as root, os.scandir(root.absolute(FOLDER)) as entries:
            for entry in entries:
                if entry.is_dir(follow_symlinks=False):
                    found[entry.name] = entry.stat(follow_symlinks=False).st_mtime_ns // 1_000_000
    return found


def _remove(workspace: str, child_id: str) -> bool:
    with Root(workspace) as root:
        directory = os.open(root.absolute(FOLDER), _DIRECTORY)
    try:
        shutil.rmtree(child_id, dir_fd=directory)
        return True
    except OSError as error:
        log.warning("the files of helper %s could not be removed: %s", child_id, error)
        return False
    finally:
        os.close(directory)
