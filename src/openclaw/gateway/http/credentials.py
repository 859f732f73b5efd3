"""Who sent a request: the shared secret as a Bearer, or the cookie of a browser that signed in.

The secret is compared, and wrong guesses are counted, where sockets have it done. Scopes are what the request
asks for in `x-openclaw-scopes`, as far as its credential holds them (RPC-3); without that header a
request may read and write, and nothing of an administrator.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, Literal

from aiohttp import web
from msgspec import Struct

from openclaw.gateway.http.answers import Refusal, unauthorized
from openclaw.gateway.http.guards import has_own_origin, is_local
from openclaw.gateway.http.signin import Signin, Signins
from openclaw.protocol.auth import AuthMode, AuthOk
from openclaw.protocol.connect import NODE, OPERATOR, ConnectParams
from openclaw.protocol.scopes import (
    ADMIN,
    ALL_SCOPES,
    READ,
    WRITE,
    check_scope,
    effective_scopes,
    holds_scope,
)

SCOPES_HEADER: Final = "x-openclaw-scopes"
HOOK_HEADER: Final = "x-openclaw-token"
LONGEST_SECRET: Final = 4096  # more is not worth a digest
DEFAULT_SCOPES: Final = (READ, WRITE)


class HttpCaller(Struct, frozen=True):
    """Who asks, by what, and what of its rights this request uses."""

    method: Literal["secret", "cookie", "none"]
    held: tuple[str, ...]
    scopes: tuple[str, ...]

    def require(self, scope: str) -> None:
        """Raise Forbidden with MISSING_SCOPE unless this request may do it."""
        check_scope(self.scopes, scope)

    @property
    def may_choose_session(self) -> bool:
        """Only a credential with the owner's rights names a session that is not its own."""
        return holds_scope(self.held, ADMIN)


class LockedOut(Struct, frozen=True):
    """This peer has guessed wrong too often."""

    wait_ms: int


# The one comparison of the gateway, which also counts wrong guesses; a missing secret is not one.
# The last argument is the token of webhooks when that is what was asked for, not the gateway's secret.
CheckSecret = Callable[[str, web.Request, str | None], bool | LockedOut]


class SignedIn(Struct, frozen=True):
    """A socket of our own page, and the sign-in that it lives by."""

    signin: Signin
    auth: AuthOk


class Door:
    def __init__(self, mode: AuthMode, check_secret: CheckSecret, signins: Signins) -> None:
        self._mode = mode
        self._check_secret = check_secret
        self._signins = signins

    def admit(self, request: web.Request) -> HttpCaller:
        """Who asks. Raises Refusal: 401 for a stranger, 429 for one who guessed too often."""
        secret = bearer(request)
        if secret is None and self.signed_in(request) is not None:
            return _caller("cookie", request)
        if self._mode == "none" and is_local(request):
            return _caller("none", request)
        if secret is None or self._mode == "none":
            raise unauthorized()
        self._require(secret, request)
        return _caller("secret", request)

    def admit_hook(self, request: web.Request, token: str) -> None:
        """A webhook shows its own `token`, never the gateway's secret. Raises Refusal like `admit`."""
        offered = bearer(request) or request.headers.get(HOOK_HEADER, "")[:LONGEST_SECRET]
        if not offered:
            raise unauthorized()
        self._require(offered, request, hook_token=token)

    def _require(self, offered: str, request: web.Request, hook_token: str | None = None) -> None:
        right = self._check_secret(offered, request, hook_token)
        if isinstance(right, LockedOut):
            raise Refusal(
                429,
                "rate_limited",
                "Too many failed authentication attempts. Please try again later.",
                headers={"Retry-After": str(-(-right.wait_ms // 1000))},
            )
        if not right:
            raise unauthorized()

    def admit_socket(self, request: web.Request, params: ConnectParams) -> SignedIn | None:
        """A `connect` of our own page, which shows its cookie instead of a secret; None for all others."""
        if "Origin" not in request.headers or params.auth is not None or params.role == NODE:
            return None
        signin = self.signed_in(request)
        if signin is None:
            return None
        scopes = effective_scopes(params.scopes, ALL_SCOPES)
        return SignedIn(signin, AuthOk("cookie", OPERATOR, ALL_SCOPES, scopes))

    def signed_in(self, request: web.Request) -> Signin | None:
        """The sign-in of this browser; only a request of our own page may use it."""
        signin = self._signins.find(request.cookies.get(self._signins.cookie_name))
        return signin if signin is not None and has_own_origin(request) else None


def bearer(request: web.Request) -> str | None:
    """The secret of an Authorization header; None without one, or with another scheme."""
    scheme, _, secret = request.headers.get("Authorization", "").partition(" ")
    return (secret.strip()[:LONGEST_SECRET] or None) if scheme.lower() == "bearer" else None


def _caller(method: Literal["secret", "cookie", "none"], request: web.Request) -> HttpCaller:
    """All three are the owner's: the secret, the browser that got a link by it, this very machine."""
    asked = request.headers.get(SCOPES_HEADER)
    wanted = DEFAULT_SCOPES if asked is None else tuple(word.strip() for word in asked[:1000].split(","))
    return HttpCaller(method, ALL_SCOPES, effective_scopes(wanted, ALL_SCOPES))
