"""The browsers that are signed in, as digests of their cookies: few, kept together in one row.

A digest opens nothing by itself. Who may sign in, and for how long, is the gateway's to decide.
"""

from __future__ import annotations

import msgspec
from msgspec import Struct

from openclaw.store.database import Database, Transaction
from openclaw.store.statements import load_statements

SQL = load_statements("signins.sql")
ROW = "browser.signins"


class KeptSignin(Struct, frozen=True, array_like=True):
    """One browser: the SHA-256 of its cookie, and when it is over."""

    digest: bytes
    expires_at: int


class KeptSignins(Struct, frozen=True):
    """Who is signed in, and under which secret of the gateway: a slow hash of it with a salt of its own."""

    salt: bytes
    under: bytes
    signins: tuple[KeptSignin, ...]


_decode = msgspec.json.Decoder(KeptSignins).decode


class SigninBook:
    def __init__(self, database: Database) -> None:
        self._database = database

    async def read(self) -> KeptSignins | None:
        """What was written last."""
        found = await self._database.read(lambda tx: tx.row(SQL["read"], (ROW,)))
        return None if found is None else _decode(found[0])

    async def write(self, kept: KeptSignins) -> None:
        """Keep these and no others. Returns once they are on disk."""
        text = msgspec.json.encode(kept).decode("ascii")

        def unit(tx: Transaction) -> None:
            tx.run(SQL["write"], (ROW, text))

        await self._database.write(unit)
