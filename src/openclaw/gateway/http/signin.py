"""Signing a browser in without showing it the secret: one-time links, and the cookies they become.

A link is good once, for a minute, and lives in memory. A cookie is a random value of which only the
digest is kept, in a book that outlives the gateway: a page goes on by itself after a restart, unless the
secret of the gateway was changed. Both are bounded in number; the oldest goes first.
"""

from __future__ import annotations

import asyncio
import hashlib
import secrets
from collections import OrderedDict
from collections.abc import Callable
from typing import Final

from msgspec import Struct

from openclaw.store.signins import KeptSignin, KeptSignins, SigninBook

LINK_MS: Final = 60_000
SIGNED_IN_MS: Final = 7 * 24 * 3600 * 1000
MOST_LINKS: Final = 16
MOST_SIGNINS: Final = 64
# 256 random bits in base64url are this long; nothing longer is looked up.
LONGEST_SECRET: Final = 64
SALT_BYTES: Final = 16


class Link(Struct, frozen=True):
    """A fresh link. `code` is shown once and never kept."""

    code: str
    expires_at_ms: int


class Signin(Struct, frozen=True):
    """One browser that is signed in, known by the digest of its cookie."""

    digest: bytes
    expires_at_ms: int


class Signins:
    """`now_ms` is the clock, `secret` gives 256 fresh random bits as text. Without a book all is forgotten.

    Whoever changes a sign-in calls `keep` before saying so to anybody.
    """

    def __init__(
        self, now_ms: Callable[[], int], secret: Callable[[], str], book: SigninBook | None = None
    ) -> None:
        self._now_ms = now_ms
        self._secret = secret
        self._book = book
        self._secret_digest = b""
        self._links: OrderedDict[bytes, int] = OrderedDict()
        self._signins: OrderedDict[bytes, int] = OrderedDict()
        self._closers: dict[bytes, set[Callable[[], None]]] = {}
        # Cookies do not know ports: two gateways on one machine must not overwrite each other's.
        self.cookie_name = "openclaw_signin"

    def name_after(self, port: int) -> None:
        self.cookie_name = f"openclaw_signin_{port}"

    async def recall(self, secret_digest: bytes | None) -> None:
        """Take up the sign-ins of the last start that are not over; none under another secret."""
        self._secret_digest = secret_digest or b""
        kept = None if self._book is None else await self._book.read()
        if kept is None or kept.under != await self._under(kept.salt):
            return
        for one in kept.signins:
            if one.expires_at > self._now_ms():
                self._signins[one.digest] = one.expires_at

    async def keep(self) -> None:
        """Write down who is signed in now; returns once that is on disk."""
        if self._book is None:
            return
        salt = secrets.token_bytes(SALT_BYTES)
        under = await self._under(salt)
        kept = tuple(KeptSignin(digest, expires) for digest, expires in self._signins.items())
        await self._book.write(KeptSignins(salt, under, kept))

    async def _under(self, salt: bytes) -> bytes:
        """Slow on purpose, and beside the loop: a secret may be a short password."""
        return await asyncio.to_thread(
            hashlib.scrypt, self._secret_digest, salt=salt, n=2**14, r=8, p=1, dklen=32
        )

    def make_link(self) -> Link:
        code, expires = self._secret(), self._now_ms() + LINK_MS
        _add(self._links, _digest(code), expires, MOST_LINKS)
        return Link(code, expires)

    def redeem(self, code: str) -> str | None:
        """The value of a new cookie for a code that is still good; the code is spent. None otherwise."""
        expires = None if len(code) > LONGEST_SECRET else self._links.pop(_digest(code), None)
        if expires is None or self._now_ms() >= expires:
            return None
        value = self._secret()
        dropped = _add(self._signins, _digest(value), self._now_ms() + SIGNED_IN_MS, MOST_SIGNINS)
        if dropped is not None:
            self._close(dropped)
        return value

    def find(self, value: str | None) -> Signin | None:
        """The sign-in that a cookie's value stands for, unless it is over."""
        if not value or len(value) > LONGEST_SECRET:
            return None
        digest = _digest(value)
        expires = self._signins.get(digest)
        if expires is None:
            return None
        if self._now_ms() >= expires:
            self.end(digest)
            return None
        return Signin(digest, expires)

    def end(self, digest: bytes) -> bool:
        """Sign one browser out and close its sockets; whether it was signed in."""
        known = self._signins.pop(digest, None) is not None
        self._close(digest)
        return known

    def end_all(self) -> int:
        """Sign every browser out; unused links go too. How many were signed in."""
        self._links.clear()
        ended = tuple(self._signins)
        return sum(self.end(digest) for digest in ended)

    def attach(self, signin: Signin, close: Callable[[], None]) -> Callable[[], None]:
        """A socket that lives by this sign-in: `close` is called when it ends. Returns how to detach."""
        held = self._closers.setdefault(signin.digest, set())
        held.add(close)

        def detach() -> None:
            held.discard(close)
            if not held and self._closers.get(signin.digest) is held:
                del self._closers[signin.digest]

        return detach

    def _close(self, digest: bytes) -> None:
        for close in tuple(self._closers.pop(digest, ())):
            close()


def _add(kept: OrderedDict[bytes, int], digest: bytes, expires: int, most: int) -> bytes | None:
    """Keep one more; the digest of the one that had to go for it."""
    dropped = kept.popitem(last=False)[0] if len(kept) >= most else None
    kept[digest] = expires
    return dropped


def _digest(secret: str) -> bytes:
    return hashlib.sha256(secret.encode("utf-8", "surrogatepass")).digest()
