"""Who may use a workspace tool, and how its arguments are read.

The rule itself is `domain.toolpolicy.decide_tool_use`; this room asks it with what
the call knows, and adds whether the workspace may be read or written at all.
"""

from __future__ import annotations

import threading
from typing import Any, TypeVar

import msgspec

from openclaw.domain.toolpolicy import Refused, decide_tool_use
from openclaw.engine.ports import ToolContext, ToolSpec
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


def require(tool: str, context: ToolContext, *, writes: bool = False) -> None:
    """Raises Forbidden, with the way out, unless this turn may use the tool (AMB-34, AMB-35)."""
    # Notes are files of the workspace, so they share the fate of the file tools.
    judged = "read" if tool == "memory" else tool
    decided = decide_tool_use(
        judged, caller_is_owner=context.owner, sandboxed=context.sandboxed, sandbox_backend=False
    )
    if isinstance(decided, Refused):
        raise Forbidden(decided.message if judged == tool else f"{tool}: {decided.message}")
    access = context.workspace_access
    if access == "none" or (writes and access != "rw"):
        wanted = "rw" if writes else "ro"
        raise Forbidden(
            f"{tool}: the workspace of this session may not be {'written' if writes else 'read'}. "
            f"Set agents.defaults.sandbox.workspaceAccess to {wanted}."
        )


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
