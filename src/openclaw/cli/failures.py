"""What can go wrong between the command line and a gateway, each with a word for scripts.

    OpenClawError
    └── GatewayFailure
        ├── GatewayUnreachable    unreachable   nothing answers there
        ├── GatewayTimeout        timeout       it answered too late
        ├── GatewayClosed         closed        the connection ended before the answer
        ├── NotAGateway           protocol      something else answers there
        ├── VersionsDiffer        protocol      the two sides speak different versions
        ├── NotLetIn              auth          the gateway refused the connection
        └── RequestRefused        request       the gateway refused this call

The message names the fix where there is one. Sentences are made by whoever raises.
"""

from __future__ import annotations

from typing import Any, ClassVar

from openclaw.errors import ConfigInvalid, OpenClawError

Json = dict[str, Any]


class GatewayFailure(OpenClawError):
    """The gateway could not be asked."""

    type: ClassVar[str] = "gateway"

    @property
    def wire_code(self) -> str:
        """The code for `--json`: the gateway's own where it gave one."""
        return str(self.fields.get("wire_code") or self.code)

    @property
    def may_retry(self) -> bool:
        return bool(self.fields.get("may_retry", self.retryable))


class GatewayUnreachable(GatewayFailure):
    """No gateway answers."""

    type = "unreachable"
    code = "UNAVAILABLE"
    retryable = True


class GatewayTimeout(GatewayFailure):
    """The gateway did not answer in time."""

    type = "timeout"
    code = "TIMEOUT"
    retryable = True


class GatewayClosed(GatewayFailure):
    """The gateway closed the connection."""

    type = "closed"
    code = "UNAVAILABLE"
    retryable = True


class NotAGateway(GatewayFailure):
    """What answers there is not an openclaw gateway."""

    type = "protocol"
    code = "PROTOCOL_ERROR"


class VersionsDiffer(GatewayFailure):
    """The gateway speaks another version of the protocol."""

    type = "protocol"
    code = "PROTOCOL_MISMATCH"


class NotLetIn(GatewayFailure):
    """The gateway did not let this client in."""

    type = "auth"
    code = "UNAUTHORIZED"


class RequestRefused(GatewayFailure):
    """The gateway refused the call."""

    type = "request"
    code = "INVALID_REQUEST"


def failure_body(error: OpenClawError) -> Json:
    """A failure as `--json` prints it (CLI-5): always these keys."""
    if isinstance(error, GatewayFailure):
        kind, code, retryable = error.type, error.wire_code, error.may_retry
    else:
        kind = "config" if isinstance(error, ConfigInvalid) else "usage"
        code, retryable = error.code, error.retryable
    shown = {"type": kind, "code": code, "message": error.message, "retryable": retryable}
    return {"ok": False, "error": shown}
