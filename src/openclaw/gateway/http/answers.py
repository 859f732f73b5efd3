"""Answers and refusals over HTTP, in the two dialects that clients know.

`/v1` speaks as OpenAI's servers do; everything else says `ok` and an error with a type. This is
the only place where an exception becomes a status.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

import msgspec
from aiohttp import web

from openclaw.errors import Forbidden, OpenClawError, Overloaded, SessionNotFound, StoreError, Unavailable
from openclaw.protocol.errors import wire_error

Json = dict[str, Any]
Dialect = Literal["house", "openai"]


class Refusal(Exception):
    """A request that ends here, with a status and a sentence that names the fix."""

    def __init__(
        self, status: int, kind: str, message: str, *, code: str | None = None,
        details: Json | None = None, headers: Mapping[str, str] | None = None,
    ) -> None:  # fmt: skip
        super().__init__(message)
        self.status = status
        self.kind = kind
        self.message = message
        self.code = code
        self.details = details
        self.headers = dict(headers or {})


def unauthorized() -> Refusal:
    """No credential, or a wrong one: the answer does not tell which."""
    return Refusal(401, "unauthorized", "Unauthorized", headers={"WWW-Authenticate": "Bearer"})


def json_answer(body: object, status: int = 200, headers: Mapping[str, str] | None = None) -> web.Response:
    return web.Response(
        body=msgspec.json.encode(body),
        status=status,
        content_type="application/json",
        headers={"Cache-Control": "no-store", **(headers or {})},
    )


def refusal_of(error: OpenClawError) -> Refusal:
    """What the wire's error is over HTTP."""
    shape = wire_error(error)
    if isinstance(error, Forbidden):
        status, kind = 403, "forbidden"
    elif isinstance(error, SessionNotFound):
        status, kind = 404, "not_found"
    elif isinstance(error, Overloaded):
        status, kind = 429, "rate_limited"
    elif isinstance(error, (Unavailable, StoreError)):
        status, kind = 503, "unavailable"
    else:
        status, kind = 400, "invalid_request_error"
    return Refusal(status, kind, shape.message, details=shape.details)


def refused(refusal: Refusal, dialect: Dialect) -> web.Response:
    return json_answer(refusal_body(refusal, dialect), refusal.status, refusal.headers)


def refusal_body(refusal: Refusal, dialect: Dialect) -> Json:
    error: Json = {"message": refusal.message, "type": refusal.kind}
    if refusal.status == 401:
        return {"error": error}
    if refusal.details:
        error["details"] = refusal.details
    if dialect == "openai":
        return {"error": error | {"param": None, "code": refusal.code}}
    return {"ok": False, "error": error}
