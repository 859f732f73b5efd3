"""Who may use which workspace tool, and how a refusal reads (AMB-34, AMB-35)."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

import pytest

from openclaw.engine.ports import Tool, ToolContext
from openclaw.engine.tools.workspace.access import NO_SANDBOX, WriteLocks, read_arguments
from openclaw.engine.tools.workspace.edit import EditTool
from openclaw.engine.tools.workspace.exec import ExecTool
from openclaw.engine.tools.workspace.grep import GrepTool
from openclaw.engine.tools.workspace.list import ListTool
from openclaw.engine.tools.workspace.memory import MemoryTool
from openclaw.engine.tools.workspace.read import ReadArguments, ReadTool
from openclaw.engine.tools.workspace.write import WriteTool
from openclaw.errors import InvalidRequest
from tests.unit.engine.tools.workspace.doing import call, context_of, refused, said

LOCKS = WriteLocks()
TOOLS: dict[str, Tool] = {
    "read": ReadTool(),
    "list": ListTool(),
    "grep": GrepTool(),
    "write": WriteTool(LOCKS),
    "edit": EditTool(LOCKS),
    "exec": ExecTool({"PATH": "/usr/bin:/bin"}),
    "memory": MemoryTool(LOCKS, lambda: ZoneInfo("UTC")),
}
ARGUMENTS: dict[str, dict[str, Any]] = {
    "read": {"path": "a.txt"},
    "list": {},
    "grep": {"pattern": "old"},
    "write": {"path": "a.txt", "content": "new"},
    "edit": {"path": "a.txt", "oldText": "old", "newText": "new"},
    "exec": {"command": "echo new > a.txt"},
    "memory": {"action": "append", "text": "remember"},
}
WRITING = ("write", "edit", "exec", "memory")


@pytest.fixture
def place(tmp_path: Path) -> Path:
    (tmp_path / "a.txt").write_text("old")
    return tmp_path


@pytest.mark.parametrize("name", ["write", "edit", "exec"])
async def test_only_owners_change_files_and_run_commands(place: Path, name: str) -> None:
    answer = await call(TOOLS[name], context_of(place, owner=False), **ARGUMENTS[name])
    assert refused(answer, "forbidden") == (
        f"{name} runs for owners only, or inside the sandbox. Add the sender to "
        "commands.ownerAllowFrom, or set agents.defaults.sandbox.mode."
    )
    assert (place / "a.txt").read_text() == "old"
    assert not (await call(TOOLS[name], context_of(place), **ARGUMENTS[name])).is_error
    assert (place / "a.txt").read_text().strip() == "new"


@pytest.mark.parametrize("name", ["read", "list", "grep", "memory"])
async def test_everybody_may_read_and_note(place: Path, name: str) -> None:
    outcome = await call(TOOLS[name], context_of(place, owner=False), **ARGUMENTS[name])
    assert not outcome.is_error, said(outcome)


def test_nobody_is_an_owner_unless_the_run_says_so() -> None:
    plain = ToolContext("k", "s", "a", "r", "c", 0)
    assert (plain.owner, plain.workspace, plain.workspace_access, plain.sandboxed) == (False, "", "rw", False)


@pytest.mark.parametrize("name", sorted(TOOLS))
@pytest.mark.parametrize("owner", [True, False])
async def test_in_a_sandbox_that_is_not_installed_file_tools_name_the_missing_part(
    place: Path, name: str, owner: bool
) -> None:
    context = context_of(place, sandboxed=True, owner=owner)
    error = refused(await call(TOOLS[name], context, **ARGUMENTS[name]), "forbidden")
    assert error.startswith(name)
    assert "no sandbox backend is installed" in error
    assert "apt install bubblewrap" in error
    assert "agents.defaults.sandbox.mode" in error
    assert os.listdir(place) == ["a.txt"]
    assert (place / "a.txt").read_text() == "old"


@pytest.mark.spec("DB-19")
@pytest.mark.parametrize("name", sorted(TOOLS))
@pytest.mark.parametrize("access", ["ro", "none"])
async def test_access_to_the_workspace_bounds_the_tools(place: Path, name: str, access: str) -> None:
    outcome = await call(TOOLS[name], context_of(place, workspace_access=access), **ARGUMENTS[name])
    if access == "ro" and name not in WRITING:
        assert not outcome.is_error
        return
    verb, wanted = ("written", "rw") if name in WRITING else ("read", "ro")
    assert refused(outcome, "forbidden") == (
        f"{name}: the workspace of this session may not be {verb}. "
        f"Set agents.defaults.sandbox.workspaceAccess to {wanted}."
    )
    assert os.listdir(place) == ["a.txt"]
    assert (place / "a.txt").read_text() == "old"


@pytest.mark.spec("TOOL-7")
@pytest.mark.parametrize("name", [name for name in sorted(TOOLS) if name != "list"])
async def test_a_missing_parameter_is_named(place: Path, name: str) -> None:
    first = next(iter(ARGUMENTS[name]))
    error = refused(await call(TOOLS[name], context_of(place)))
    assert error.startswith("invalid arguments: ")
    assert f"`{first}`" in error


@pytest.mark.spec("TOOL-7")
@pytest.mark.parametrize("name", sorted(TOOLS))
async def test_an_unknown_parameter_is_named(place: Path, name: str) -> None:
    error = refused(await call(TOOLS[name], context_of(place), **ARGUMENTS[name], colour="red"))
    assert "`colour`" in error


@pytest.mark.parametrize("name", sorted(TOOLS))
async def test_an_agent_without_a_workspace_is_told(name: str) -> None:
    assert "agents.defaults.workspace" in refused(await call(TOOLS[name], context_of(""), **ARGUMENTS[name]))


@pytest.mark.parametrize("name", sorted(TOOLS))
def test_a_tool_tells_a_model_its_parameters(name: str) -> None:
    spec = TOOLS[name].spec
    assert spec.name == name
    assert spec.description.endswith(".")
    assert spec.parameters["additionalProperties"] is False
    assert set(ARGUMENTS[name]) <= set(spec.parameters["properties"])
    assert set(spec.parameters.get("required", ())) <= set(ARGUMENTS[name])


def test_arguments_have_their_bounds() -> None:
    assert read_arguments({"path": "x"}, ReadArguments) == ReadArguments("x", 1, 2000)
    for wrong in ({"path": "x", "offset": 0}, {"path": "x", "limit": 5001}, {"path": 7}):
        with pytest.raises(InvalidRequest, match="invalid arguments"):
            read_arguments(wrong, ReadArguments)


async def test_the_same_workspace_has_the_same_lock() -> None:
    assert LOCKS.of("/a") is LOCKS.of("/a")
    assert await NO_SANDBOX.enter("read", context_of("/a", owner=False)) == "/a"
