"""Who may use a workspace tool, and how its arguments are read.

The rule itself is `domain.toolpolicy.decide_tool_use`; this room asks it with what
the call knows, and adds which directory the call works in, and whether it may be
read or written at all.
"""

from __future__ import annotations

import threading
from typing import Any, TypeVar

import msgspec

from openclaw.domain.toolpolicy import NO_BACKEND, Refused, decide_tool_use
from openclaw.engine.ports import Sandbox, ToolContext, ToolSpec
from openclaw.engine.sandbox import Scratch
from openclaw.errors import Forbidden, InvalidRequest

T = TypeVar("T", bound=msgspec.Struct)
_LOCKS = 32


class Arguments(msgspec.Struct, frozen=True, forbid_unknown_fields=True, rename="camel"):
    """The arguments of a tool; a parameter that is not named is a mistake worth telling."""


def read_arguments(arguments: dict[str, Any], kind: type[T]) -> T:
    """The arguments as a value. Raises InvalidRequest that names the parameter (TOOL-7)."""
    try:
        return msgspec.convert(arguments, kind)
    except msgspec.ValidationError as error:
        raise InvalidRequest(f"invalid arguments: {error}")


class Access:
    """Asked by every workspace tool before it touches anything. Sandboxed turns need a sandbox."""

    def __init__(self, sandbox: Sandbox | None = None, scratch: Scratch | None = None) -> None:
        self.sandbox = sandbox
        self._scratch = scratch

    async def enter(self, tool: str, context: ToolContext, *, writes: bool = False) -> str:
        """The directory that this turn may use the tool in (AMB-34, AMB-35).

        Raises Forbidden, with the way out, where it may not. A sandboxed session that has no part of the
        workspace gets a folder of its own instead; notes have no place there.
        """
        # Notes are files of the workspace, so they share the fate of the file tools.
        judged = "read" if tool == "memory" else tool
        problem = NO_BACKEND
        if context.sandboxed and self.sandbox is not None:
            problem = await self.sandbox.problem() or ""
        decided = decide_tool_use(
            judged,
            caller_is_owner=context.owner,
            sandboxed=context.sandboxed,
            sandbox_backend=not problem,
            problem=problem,
        )
        if isinstance(decided, Refused):
            raise Forbidden(decided.message if judged == tool else f"{tool}: {decided.message}")
        access = context.workspace_access
        if access == "none" and context.sandboxed and context.scratch and self._scratch and tool == judged:
            return await self._scratch.open(context.scratch)
        if access == "none" or (writes and access != "rw"):
            wanted = "rw" if writes else "ro"
            raise Forbidden(
                f"{tool}: the workspace of this session may not be {'written' if writes else 'read'}. "
                f"Set agents.defaults.sandbox.workspaceAccess to {wanted}."
            )
        return context.workspace


NO_SANDBOX = Access()


class WriteLocks:
    """One writer per workspace at a time: two edits of one answer must not undo one another."""

    def __init__(self) -> None:
        self._locks = tuple(threading.Lock() for _ in range(_LOCKS))

    def of(self, workspace: str) -> threading.Lock:
        return self._locks[hash(workspace) % _LOCKS]


def object_spec(
    name: str,
    description: str,
    properties: dict[str, Any],
    required: tuple[str, ...] = (),
    *,
    parallel: bool = True,
) -> ToolSpec:
    """A tool as a model is told about it: an object of named parameters and no others."""
    schema: dict[str, Any] = {"type": "object", "properties": properties, "additionalProperties": False}
    if required:
        schema["required"] = list(required)
    return ToolSpec(name, description, schema, parallel)
