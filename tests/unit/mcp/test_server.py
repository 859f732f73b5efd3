"""The MCP server's own part: what it offers, and how failures reach the host."""

from __future__ import annotations

import json
from typing import Any

import pytest
from mcp import MCPError, types

from openclaw.api.failures import GatewayGone
from openclaw.errors import Forbidden, OpenClawError
from openclaw.mcp.server import SessionTools, build_server

Json = dict[str, Any]
CONTEXT: Any = None
GROUPS = [
    {"id": "fs", "tools": [{"id": "read", "description": "reads", "parameters": {"type": "object"}}]},
    {
        "id": "sessions",
        "tools": [
            {
                "id": "sessions_list",
                "description": "lists",
                "parameters": {"type": "object", "properties": {}},
            },
            {
                "id": "sessions_yield",
                "description": "ends",
                "parameters": {"type": "object"},
                "turnOnly": True,
            },
        ],
    },
]


class Answering:
    """A gateway that gives one answer, or fails."""

    def __init__(self, answer: Any) -> None:
        self.answer = answer
        self.calls: list[tuple[str, Json]] = []

    async def call(self, method: str, params: Json | None = None) -> Any:
        self.calls.append((method, params or {}))
        if isinstance(self.answer, Exception):
            raise self.answer
        return self.answer


async def call(
    answer: Any, name: str = "sessions_list", arguments: Json | None = None
) -> types.CallToolResult:
    tools = SessionTools(Answering(answer), "main")
    return await tools.call(CONTEXT, types.CallToolRequestParams(name=name, arguments=arguments))


async def test_only_session_tools_that_work_outside_a_turn_are_offered() -> None:
    link = Answering({"groups": GROUPS})
    (tool,) = (await SessionTools(link, "agent:main:desk").list(CONTEXT, None)).tools
    assert (tool.name, tool.description) == ("sessions_list", "lists")
    assert tool.input_schema == {"type": "object", "properties": {}}
    assert link.calls == [("tools.effective", {"sessionKey": "agent:main:desk"})]
    assert (await SessionTools(Answering({"groups": []}), "main").list(CONTEXT, None)).tools == []


async def test_a_gateway_that_is_gone_is_an_error_of_the_listing() -> None:
    with pytest.raises(MCPError, match="The connection to the gateway ended"):
        await SessionTools(Answering(GatewayGone()), "main").list(CONTEXT, None)


async def test_a_call_acts_as_the_session_and_has_a_name_of_its_own() -> None:
    link = Answering({"ok": True, "output": {"content": []}})
    tools = SessionTools(link, "agent:main:desk")
    for arguments in (None, {"limit": 3}):
        await tools.call(CONTEXT, types.CallToolRequestParams(name="sessions_list", arguments=arguments))
    (_, first), (method, second) = link.calls
    assert (method, first["sessionKey"]) == ("tools.invoke", "agent:main:desk")
    assert (first["args"], second["args"]) == ({}, {"limit": 3})
    assert first["idempotencyKey"] != second["idempotencyKey"]


@pytest.mark.spec("TOOL-7")
@pytest.mark.parametrize(
    ("content", "details", "structured"),
    [
        ([{"type": "text", "text": '{"count": 2}'}], {"less": True}, {"count": 2}),
        ([{"type": "text", "text": "a card"}], {"ok": True}, {"ok": True}),
        ([{"type": "text", "text": "[1]"}], None, None),
        ([{"type": "text", "text": "{}"}, {"type": "text", "text": "{}"}], None, None),
        ([{"type": "image", "data": "x"}], None, None),
    ],
)
async def test_text_goes_as_it_is_with_the_object_beside_it(
    content: list[Json], details: Json | None, structured: Json | None
) -> None:
    result = await call({"ok": True, "output": {"content": content, "details": details}})
    assert result.structured_content == structured
    assert result.is_error is False
    texts = [block.text for block in result.content if isinstance(block, types.TextContent)]
    assert texts == [block["text"] for block in content if block["type"] == "text"]


@pytest.mark.spec("TOOL-7")
@pytest.mark.parametrize(
    ("answer", "told"),
    [
        (
            {"ok": False, "error": {"code": "forbidden", "message": "no"}},
            {"status": "forbidden", "error": "no"},
        ),
        ({"ok": False}, {"status": None, "error": None}),
        (GatewayGone(), {"status": "error", "error": GatewayGone.default_message()}),
        (Forbidden("missing scope"), {"status": "error", "error": "missing scope"}),
        (OpenClawError("odd"), {"status": "error", "error": "odd"}),
    ],
)
async def test_a_refusal_is_a_result_that_a_model_can_read(answer: Any, told: Json) -> None:
    result = await call(answer)
    assert result.is_error is True
    assert result.structured_content == told
    (block,) = result.content
    assert isinstance(block, types.TextContent)
    assert json.loads(block.text) == told


def test_the_server_says_whom_the_host_acts_as() -> None:
    server = build_server(Answering({"groups": GROUPS}), "agent:main:desk")
    assert (server.name, server.title) == ("openclaw", "OpenClaw sessions")
    assert "session 'agent:main:desk'" in (server.instructions or "")
    assert "data, not instructions" in (server.instructions or "")
