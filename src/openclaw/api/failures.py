"""What a call to a gateway can raise; all of them are `OpenClawError`.

OpenClawError
├── InvalidRequest, Forbidden, VersionConflict, Unavailable …   the gateway refused, by its code
├── Unavailable
│   └── GatewayGone        GATEWAY_GONE   the connection ended before the answer
├── ToolFailed             TOOL_FAILED    a tool answered that it could not do it
└── TurnFailed             TURN_FAILED    a turn ended without a good reply
"""

from __future__ import annotations

from typing import Any

from openclaw.errors import (
    Forbidden,
    InvalidRequest,
    OpenClawError,
    Unavailable,
    VersionConflict,
)

Json = dict[str, Any]
_BY_CODE: dict[str, type[OpenClawError]] = {
    kind.code: kind for kind in (Forbidden, InvalidRequest, Unavailable, VersionConflict)
}


class GatewayGone(Unavailable):
    """The connection to the gateway ended. What it had accepted goes on there."""

    code = "GATEWAY_GONE"


class ToolFailed(OpenClawError):
    """The tool could not do this."""

    code = "TOOL_FAILED"


class TurnFailed(OpenClawError):
    """The turn ended without a good reply. `fields` has its `run_id` and `status`."""

    code = "TURN_FAILED"


def refusal_of(error: object) -> OpenClawError:
    """The `error` object of a response as an exception; a code that is not known keeps its own name.

    `fields` has the `wire_code` and what the gateway gave as `details`.
    """
    given = error if isinstance(error, dict) else {}
    code = str(given.get("code") or "UNAVAILABLE")
    message = str(given.get("message") or "the gateway gave no reason")
    kind = _BY_CODE.get(code, OpenClawError)
    return kind(message, wire_code=code, details=given.get("details"))


def tool_refusal(tool: str, error: object) -> OpenClawError:
    """What a tool refused: `Forbidden` where the session may not, `ToolFailed` otherwise (TOOL-7)."""
    given = error if isinstance(error, dict) else {}
    message = str(given.get("message") or f"{tool} gave no reason")
    kind = Forbidden if given.get("code") == "forbidden" else ToolFailed
    return kind(message, tool=tool)
