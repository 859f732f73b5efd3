"""Direct sessions that no message reaches any more, because all direct messages go to `main` now (CLI-8).

They are left behind when `session.dmScope` returns to "main". Retiring one is archiving
it: every word stays, and it is not activity. A session that is pinned, running or in
use is left alone.
"""

from __future__ import annotations

from collections import Counter
from functools import partial
from typing import Final

from msgspec import Struct

from openclaw.domain.keys import KeySettings, KeyShape, parse_key
from openclaw.errors import InvalidSessionKey
from openclaw.store import retention, sessions
from openclaw.store.database import Database, Transaction
from openclaw.store.statements import load_statements

SQL = load_statements("dmscope.sql")
# Others write between two pages.
PAGE: Final = 200


class _Direct(Struct, frozen=True):
    session_no: int
    version: int
    session_key: str
    agent_id: str
    kind: str


class DirectSessions:
    """The direct sessions of one store, judged by how keys are read today."""

    def __init__(self, database: Database, keys: KeySettings) -> None:
        self._database = database
        self._keys = keys

    async def retire(
        self, *, now_ms: int, agent_id: str | None = None, in_use: str | None = None, dry_run: bool = False
    ) -> Counter[str]:
        """Archive every direct session, or only count them; how many, agent by agent."""
        retired: Counter[str] = Counter()
        after: int | None = 0
        while after is not None:
            unit = partial(
                self._page,
                after=after,
                agent_id=agent_id or "",
                in_use=in_use,
                now_ms=now_ms,
                dry_run=dry_run,
            )
            done, after = await (self._database.read(unit) if dry_run else self._database.write(unit))
            retired += done
        return retired

    def _page(
        self, tx: Transaction, *, after: int, agent_id: str, in_use: str | None, now_ms: int, dry_run: bool
    ) -> tuple[Counter[str], int | None]:
        found = [_Direct(*row) for row in tx.rows(SQL["candidates"], (after, agent_id, PAGE))]
        stale = [row for row in found if row.session_key != in_use and self._is_direct(row.session_key)]
        for row in stale:
            if not dry_run:
                tx.run(retention.SQL["archive"], (now_ms, row.session_no, row.version))
                tx.run(sessions.SQL["uncount"], (row.agent_id, row.kind, 0))
                tx.run(sessions.SQL["count"], (row.agent_id, row.kind, 1))
        return Counter(row.agent_id for row in stale), found[-1].session_no if len(found) == PAGE else None

    def _is_direct(self, session_key: str) -> bool:
        try:
            return parse_key(session_key, self._keys).shape is KeyShape.direct
        except InvalidSessionKey:
            return False
