"""The answers of methods that show and use tools from outside a turn."""

from __future__ import annotations

from openclaw.protocol.results import Answer, Json


class ToolsCatalog(Answer, frozen=True, kw_only=True):
    """Every tool of the gateway, whether or not a policy lets the agent use it."""

    agent_id: str
    profiles: list[Json]
    groups: list[Json]


class ToolsEffective(Answer, frozen=True, kw_only=True):
    """What the next turn of a session may use. A tool carries the JSON Schema of its arguments.

    A tool marked `turnOnly` has a meaning inside a turn alone and cannot be invoked.
    """

    agent_id: str
    session_key: str
    groups: list[Json]


class ToolsInvoked(Answer, frozen=True, kw_only=True):
    """A refusal or failure of the tool is an answer too: `ok` is false and `error` says what to do (TOOL-7).

    `output` has the tool's `content` blocks and, where the tool answers with an object, its `details`;
    `error` has a `code` ("error" or "forbidden") and a `message`.
    """

    ok: bool
    tool_name: str
    output: Json | None = None
    error: Json | None = None
