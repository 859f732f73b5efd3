"""grep: find text in the files of the workspace; plain text unless a regular expression is asked for."""

from __future__ import annotations

import asyncio
import os
import sys
from asyncio.subprocess import DEVNULL, PIPE
from typing import Annotated, Any

import msgspec
from msgspec import Meta

from openclaw.domain.transcript import TextBlock
from openclaw.engine.ports import ToolContext, ToolOutcome, ToolSpec
from openclaw.engine.tools.workspace import searching
from openclaw.engine.tools.workspace.access import NO_SANDBOX, Access, Arguments, object_spec, read_arguments
from openclaw.engine.tools.workspace.rooted import check_path
from openclaw.engine.tools.workspace.searching import TIME_S, Found, Search, check_pattern, search, show
from openclaw.errors import InvalidRequest

MAX_MATCHES = 500
_PROCESSES = 2
_START_UP_S = 20.0  # a busy machine needs this long to start an interpreter


class GrepArguments(Arguments, frozen=True):
    pattern: str
    path: str = "."
    glob: str = ""
    regex: bool = False
    ignore_case: bool = False
    limit: Annotated[int, Meta(ge=1, le=MAX_MATCHES)] = 100


class GrepTool:
    def __init__(self, access: Access = NO_SANDBOX, *, time_s: float = TIME_S) -> None:
        self._access = access
        self._time_s = time_s
        # Searches by regular expression wait for one another, not the threads that everybody shares.
        self._apart = asyncio.Semaphore(_PROCESSES)

    @property
    def spec(self) -> ToolSpec:
        return _SPEC

    async def call(self, arguments: dict[str, Any], context: ToolContext) -> ToolOutcome:
        asked = read_arguments(arguments, GrepArguments)
        workspace = await self._access.enter("grep", context)
        check_pattern(asked.pattern)
        check_path(asked.path)
        request = Search(
            workspace, asked.pattern, asked.path, asked.glob, asked.regex, asked.ignore_case,
            asked.limit, self._time_s,
        )  # fmt: skip
        if asked.regex:
            async with self._apart:
                found = await search_apart(request)
        else:
            found = await asyncio.to_thread(search, request)
        if found.error:
            raise InvalidRequest(found.error)
        details = {"matches": len(found.matches), "files": found.files, "truncated": bool(found.stopped)}
        return ToolOutcome((TextBlock(show(found)),), details=details)


async def search_apart(asked: Search) -> Found:
    """A search in a process of its own, which does not outlive its time or this call."""
    # Nothing of the gateway's environment goes along: a search needs the way to this package only.
    environment = {"PYTHONPATH": os.pathsep.join(part for part in sys.path if part)}
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-P", "-m", searching.__name__,
        stdin=PIPE, stdout=PIPE, stderr=DEVNULL, env=environment, start_new_session=True,
    )  # fmt: skip
    answer = b""
    try:
        async with asyncio.timeout(asked.time_s + _START_UP_S):
            answer, _ = await process.communicate(msgspec.json.encode(asked))
    except TimeoutError:
        pass
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()
    if process.returncode != 0:  # killed, by us or by the limit on its processor time
        return Found(stopped=f"out of time after {asked.time_s:g} s; use a simpler pattern")
    return msgspec.json.decode(answer, type=Found)


_SPEC = object_spec(
    "grep",
    "Find lines in the files of your workspace. The pattern is plain text; set regex for a regular "
    "expression. glob narrows the files, as in *.py.",
    {
        "pattern": {"type": "string"},
        "path": {"type": "string", "description": "a file or directory, relative to the workspace"},
        "glob": {"type": "string"},
        "regex": {"type": "boolean"},
        "ignoreCase": {"type": "boolean"},
        "limit": {"type": "integer", "minimum": 1, "maximum": MAX_MATCHES},
    },
    ("pattern",),
)
