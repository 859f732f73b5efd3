"""What a request must look like before anybody asks who sent it: host, origin, headers, body.

Made against pages in the owner's browser, which can reach this port but not read its answers
(docs/topics/pitfalls.md). Pure questions about headers, and one bounded reading of a body.
Credentials belong to `credentials`.
"""

from __future__ import annotations

import asyncio
from typing import Final, TypeVar

import msgspec
from aiohttp import web

from openclaw.domain.hosts import is_loopback
from openclaw.gateway.http.answers import Refusal
from openclaw.protocol.auth import normalize_origin
from openclaw.protocol.intake import contains_nul, is_too_deep, replace_escaped_surrogates, to_utf8
from openclaw.protocol.violations import describe_violation

LOOPBACK_HOSTS: Final = frozenset(("localhost", "127.0.0.1", "::1"))
MAX_BODY_BYTES: Final = 26_214_400
BODY_WAIT_S: Final = 60.0
# Reading more JSON than this takes longer than the event loop may stand still.
LARGE_BODY: Final = 256 * 1024
CONTENT_POLICY: Final = (
    "default-src 'self'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; "
    "object-src 'none'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)
SECURITY_HEADERS: Final = {
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "X-Frame-Options": "DENY",
    "Content-Security-Policy": CONTENT_POLICY,
    "Permissions-Policy": "camera=(), microphone=(), geolocation=()",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cross-Origin-Opener-Policy": "same-origin",
}
Body = TypeVar("Body")


# -- where it comes from -----------------------------------------------------------------------------


def host_name(host: str) -> str:
    """The name in a Host header, without its port, lower-cased; brackets of IPv6 removed."""
    text = host.strip().lower()
    if text.startswith("["):
        return text[1:].partition("]")[0]
    return text.rsplit(":", 1)[0] if text.count(":") == 1 else text


def is_forwarded(request: web.Request) -> bool:
    """A reverse proxy speaks for somebody else: its peer is not local (PITFALLS)."""
    return any(name in request.headers for name in ("X-Forwarded-For", "Forwarded", "X-Real-IP"))


def is_local(request: web.Request) -> bool:
    """Whether the peer is this machine, and speaks for itself."""
    return is_loopback(request.remote or "") and not is_forwarded(request)


def own_origin(request: web.Request) -> str | None:
    """The origin that a page of this gateway has, as the browser that sent this request knows it.

    The name has passed the list of hosts. A page cannot set `X-Forwarded-Proto` without asking
    first, and is never answered with leave to.
    """
    scheme = "https" if is_https(request) else "http"
    return normalize_origin(f"{scheme}://{request.host}")


def is_https(request: web.Request) -> bool:
    return request.scheme == "https" or request.headers.get("X-Forwarded-Proto", "").lower() == "https"


def has_own_origin(request: web.Request) -> bool:
    """Whether a browser says that this gateway's own page sent this, port included."""
    origin = request.headers.get("Origin")
    if origin is not None:
        own = own_origin(request)
        return own is not None and normalize_origin(origin) == own
    return request.headers.get("Sec-Fetch-Site") == "same-origin"


def check_host(request: web.Request, allowed: frozenset[str]) -> None:
    """A page that rebinds its name to this address is refused by the name it used."""
    if host_name(request.host) not in allowed:
        raise Refusal(403, "forbidden", "host not allowed; add it to gateway.allowedHosts")


def check_origin(request: web.Request) -> None:
    """Another page may not ask with its own name on the request. A program sends no such header."""
    if "Origin" in request.headers and not has_own_origin(request):
        raise _foreign()


def check_site(request: web.Request) -> None:
    """Nor may it without a name, as its images and links do, ask for more than what is open to everybody."""
    if request.headers.get("Sec-Fetch-Site", "none") not in ("none", "same-origin"):
        raise _foreign()


def _foreign() -> Refusal:
    return Refusal(403, "forbidden", "origin not allowed: another web page may not use this gateway")


# -- what it brings ----------------------------------------------------------------------------------


def check_json_type(request: web.Request) -> None:
    """A page may post text and forms to any address; JSON it may post only to its own."""
    if request.content_type != "application/json":
        raise Refusal(415, "unsupported_media_type", "send the body with Content-Type: application/json")
    if request.headers.get("Content-Encoding", "identity").lower() != "identity":
        raise Refusal(415, "unsupported_media_type", "send the body without Content-Encoding")


async def read_json(request: web.Request, kind: type[Body], *, limit: int = MAX_BODY_BYTES) -> Body:
    """The body as a value of `kind`, within bounds of size, time and depth. Raises Refusal."""
    data = await read_body(request, limit)
    if len(data) > LARGE_BODY:
        return await asyncio.to_thread(_decode, data, kind)
    return _decode(data, kind)


async def read_body(request: web.Request, limit: int) -> bytes:
    """The body, within bounds of size and time. Raises Refusal."""
    too_large = Refusal(413, "payload_too_large", f"the body has more than {limit} bytes")
    if (request.content_length or 0) > limit:
        raise too_large
    data = bytearray()
    try:
        async with asyncio.timeout(BODY_WAIT_S):
            async for chunk in request.content.iter_any():
                data += chunk
                if len(data) > limit:
                    raise too_large
    except TimeoutError:
        raise Refusal(408, "timeout", "the body did not arrive in time") from None
    return bytes(data)


def _decode(data: bytes, kind: type[Body]) -> Body:
    text = to_utf8(data)
    if text is None:
        raise Refusal(400, "invalid_request_error", "the body is not UTF-8")
    if is_too_deep(text):
        raise Refusal(400, "invalid_request_error", "the body is nested too deeply")
    if contains_nul(text):
        raise Refusal(400, "invalid_request_error", "text must not contain NUL characters; remove them")
    try:
        return msgspec.json.decode(replace_escaped_surrogates(text), type=kind)
    except msgspec.ValidationError as error:
        message = f"invalid body: {describe_violation(error, kind)}"
        raise Refusal(400, "invalid_request_error", message) from None
    except msgspec.DecodeError:
        raise Refusal(400, "invalid_request_error", "the body must be JSON") from None
