"""Files that were handed to sub-agents, as units of work (SPAWN-17).

They are rows of the helper's session: made in the commit that makes the helper, gone
with it or with the end of its work. There is no other record of what has to be
cleaned up; whatever lies on a disk is derived from these rows.
"""

from __future__ import annotations

from openclaw.domain.spawnfiles import SpawnFile
from openclaw.store.database import Database, Transaction
from openclaw.store.statements import load_statements

SQL = load_statements("attachments.sql")


def keep(tx: Transaction, child_key: str, files: tuple[SpawnFile, ...], now_ms: int) -> None:
    for file in files:
        row = (child_key, file.path, file.mime_type, len(file.data), file.sha256, file.data, now_ms)
        tx.run(SQL["insert"], row)


def of_child(tx: Transaction, child_key: str) -> tuple[SpawnFile, ...]:
    return tuple(
        SpawnFile(path, body, sha256, mime)
        for path, mime, sha256, body in tx.rows(SQL["of_child"], (child_key,))
    )


def drop(tx: Transaction, child_key: str) -> None:
    """The helper needs its files no more."""
    tx.run(SQL["drop"], (child_key,))


class Attachments:
    """What is asked about files outside a run's own commits."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def of_child(self, child_key: str) -> tuple[SpawnFile, ...]:
        return await self._database.read(lambda tx: of_child(tx, child_key))

    async def children(self, limit: int = 10_000) -> frozenset[str]:
        """The helpers that have files."""
        return await self._database.read(
            lambda tx: frozenset(row[0] for row in tx.rows(SQL["children"], (limit,)))
        )
