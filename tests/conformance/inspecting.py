"""What a database says about itself: its tables and columns, asked in its own words."""

from __future__ import annotations

from openclaw.store.database import Database
from openclaw.store.sqlite import SqliteDatabase
from tests.conformance.making import select

# The index is a virtual table with tables of its own.
_SQLITE_SEARCH = {"search", "search_data", "search_idx", "search_config"}
_SQLITE_TABLES = "SELECT name FROM sqlite_schema WHERE type = 'table' AND name NOT LIKE 'sqlite_%'"
_SQLITE_COLUMNS = 'SELECT name, "notnull" FROM pragma_table_info(?) ORDER BY cid'
_POSTGRES_TABLES = (
    "SELECT relname FROM pg_class WHERE relkind = 'r' AND relnamespace = current_schema()::regnamespace"
)
_POSTGRES_COLUMNS = (
    "SELECT attname, attnotnull::int FROM pg_attribute WHERE attrelid = CAST(CAST(? AS TEXT) AS regclass) "
    "AND attnum > 0 AND NOT attisdropped ORDER BY attnum"
)


async def tables_of(database: Database) -> set[str]:
    """The tables that hold rows of ours, without what only one database has for its index and its version."""
    if isinstance(database, SqliteDatabase):
        return {name for (name,) in await select(database, _SQLITE_TABLES)} - _SQLITE_SEARCH
    return {name for (name,) in await select(database, _POSTGRES_TABLES)} - {"search", "openclaw_schema"}


async def columns_of(database: Database, table: str) -> dict[str, bool]:
    """The columns of a table in order, each with whether it must be known."""
    sql = _SQLITE_COLUMNS if isinstance(database, SqliteDatabase) else _POSTGRES_COLUMNS
    return {name: bool(required) for name, required in await select(database, sql, table)}
