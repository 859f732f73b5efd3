"""A state directory with a founding layout in it, and ways to look at what became of it."""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import Any

from openclaw.app.doctor import Mode, SqliteReport, session_sqlite
from openclaw.app.offline import offline_store
from openclaw.config.load import LoadedConfig, config_path, load_or_raise
from openclaw.store.export import Export
from openclaw.store.store import Store

# Times of the run itself; everything else must be equal.
_CLOCKED = {"imports": {"imported_at", "changed_ns"}, "sessions": {"archived_at", "more"}}


class Place:
    """A state directory. Every method opens the store for itself and closes it again."""

    def __init__(self, state: Path) -> None:
        self.state = state
        self.env = {"HOME": str(state), "OPENCLAW_STATE_DIR": str(state), "TZ": "UTC"}
        self.folder = state / "agents" / "main" / "sessions"

    @property
    def loaded(self) -> LoadedConfig:
        return load_or_raise(config_path(self.env), self.env)

    async def doctor(self, mode: Mode, agent_id: str | None = None) -> SqliteReport:
        return await session_sqlite(mode, self.loaded, self.env, agent_id)

    def files(self) -> dict[str, tuple[bytes, int]]:
        """Content and time of every file of the layout."""
        found = (path for path in self.folder.iterdir() if path.is_file())
        return {path.name: (path.read_bytes(), path.stat().st_mtime_ns) for path in found}

    async def exported(self, session_id: str) -> bytes:
        async with offline_store(self.loaded.config, self.env, doing="a test") as database:
            export = Export(database)
            window = await export.window_by_id(session_id)
            assert window is not None, session_id
            return b"".join([piece async for piece in export.lines(window, cwd="/w")])

    async def rows(self, sql: str, *params: Any) -> list[tuple[Any, ...]]:
        async with offline_store(self.loaded.config, self.env, doing="a test") as database:
            return await database.read(lambda tx: tx.rows(sql, params))

    async def store_do(self, work: Any) -> Any:
        async with offline_store(self.loaded.config, self.env, doing="a test", create=True) as database:
            return await work(Store(database))

    async def state_hash(self) -> str:
        """One hash over every row of every table, apart from when the import ran."""
        digest = hashlib.sha256()
        names = await self.rows(
            "SELECT name FROM sqlite_schema WHERE type = 'table' AND name NOT LIKE 'sqlite_%' ORDER BY name"
        )
        for (name,) in names:
            columns = await self.rows(f"SELECT name FROM pragma_table_info('{name}')")
            kept = [column for (column,) in columns if column not in _CLOCKED.get(name, set())]
            if name.startswith("search_") and name not in ("search_pending", "search_rows"):
                continue
            if name == "search":
                continue
            for row in await self.rows(f"SELECT {', '.join(kept)} FROM {name} ORDER BY 1, 2"):
                digest.update(repr((name, row)).encode())
        return digest.hexdigest()
