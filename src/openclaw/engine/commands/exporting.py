"""/export-session: one session as a JSON Lines file inside the agent's workspace (CMD-11).

The file never lands outside the workspace and never replaces another one.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import BinaryIO

from openclaw.engine.settings import EngineSettings
from openclaw.errors import InvalidRequest
from openclaw.store.export import Export
from openclaw.store.store import Store

_FOLDER = "exports"


def workspace_export(
    store: Store, export: Export, settings: Callable[[], EngineSettings]
) -> Callable[[str, str | None], Awaitable[str]]:
    """The power behind the command: (session key, path) -> where the file is."""

    async def write(session_key: str, path: str | None) -> str:
        row = await store.session(session_key)
        window = await export.window_of(session_key)
        if row is None or window is None:
            raise InvalidRequest("There is nothing to export yet.")
        workspace = Path(settings().agent(row.agent_id).workspace)
        wanted = path or f"{_FOLDER}/{window.session_id}.jsonl"
        file = await asyncio.to_thread(_create, workspace, wanted)
        try:
            async for piece in export.lines(window, cwd=str(workspace)):
                await asyncio.to_thread(file.write, piece)
        finally:
            await asyncio.to_thread(file.close)
        return file.name

    return write


def _create(workspace: Path, wanted: str) -> BinaryIO:
    """The new file; folders are made. What a symbolic link leads to counts, not where the link is."""
    if "\0" in wanted or len(wanted) > 1000:
        raise InvalidRequest("The path must be a short file name inside the workspace.")
    home = workspace.resolve()
    target = (home / wanted).resolve()
    if target == home or not target.is_relative_to(home):
        raise InvalidRequest(f"The file must be inside the workspace {home}.")
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise InvalidRequest(f"{target.parent} cannot be made: {error.strerror}.")
    try:
        return target.open("xb")
    except FileExistsError:
        raise InvalidRequest(f"{target} is there already; name another file.")
    except OSError as error:
        raise InvalidRequest(f"{target} cannot be written: {error.strerror}.")
