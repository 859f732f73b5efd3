"""Two databases, one meaning: the schemas hold the same, and every statement is understood by both."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator
from importlib.resources import files

import pytest

from openclaw.store import postgres
from openclaw.store.database import Transaction
from openclaw.store.postgres import PostgresDatabase
from openclaw.store.sqlite import SqliteDatabase
from openclaw.store.statements import load_statements, load_variants
from tests.conformance.inspecting import columns_of, tables_of
from tests.conformance.making import select
from tests.fakes.postgres_server import shared_server
from tests.unit.store.postgres_driving import opened

FILES = sorted(item.name for item in files("openclaw.store").joinpath("sql").iterdir())
SHARED = [name for name in FILES if "postgres" not in name and name != "schema.sql"]
VARIANTS = [name for name in FILES if name.endswith("_postgres.sql") and name != "schema_postgres.sql"]
# The size of a file, which a server does not tell in the same way.
SQLITE_ONLY = {"used_bytes"}


@pytest.fixture
async def server() -> AsyncIterator[PostgresDatabase]:
    async with opened(shared_server().wiped()) as driver:
        yield driver


@pytest.mark.spec("DB-11", "DB-13")
async def test_both_schemas_have_the_same_tables_columns_and_indexes(
    database: SqliteDatabase, server: PostgresDatabase
) -> None:
    tables = await tables_of(database)
    assert await tables_of(server) == tables
    for table in sorted(tables):
        columns = await columns_of(database, table)
        theirs = await columns_of(server, table)
        assert list(theirs) == list(columns), table
        # A primary key is always known; SQLite does not say so of a number.
        assert {name for name, known in columns.items() if known} <= {
            name for name, known in theirs.items() if known
        }, table
        extra = [name for name in columns if theirs[name] and not columns[name]]
        assert len(extra) <= 1, (table, extra)
    named = await select(database, "SELECT name FROM sqlite_schema WHERE type = 'index' AND sql IS NOT NULL")
    indexes = await select(server, "SELECT indexname FROM pg_indexes WHERE schemaname = 'public'")
    assert set(named) - set(indexes) == set()


@pytest.mark.spec("DB-13")
async def test_both_schemas_refuse_by_the_same_rules(
    database: SqliteDatabase, server: PostgresDatabase
) -> None:
    """As many checks, unique indexes and references on both sides; the suite tries them one by one."""
    script = "\n".join(
        row[0] for row in await select(database, "SELECT sql FROM sqlite_schema WHERE sql <> ''")
    )
    counted = await select(
        server, "SELECT contype, count(*) FROM pg_constraint WHERE conrelid <> 0 GROUP BY contype"
    )
    kinds = {kind.decode() if isinstance(kind, bytes) else kind: count for kind, count in counted}
    assert kinds["c"] == len(re.findall(r"\bCHECK \(", script))
    assert kinds["f"] == len(re.findall(r"\bREFERENCES\b", script))
    unique = "LIKE 'CREATE UNIQUE%WHERE%'"
    ours = await select(database, f"SELECT name FROM sqlite_schema WHERE sql {unique}")
    theirs = await select(server, f"SELECT indexname FROM pg_indexes WHERE indexdef {unique}")
    assert set(ours) == set(theirs) and len(ours) >= 3


@pytest.mark.parametrize("file_name", SHARED)
async def test_every_statement_is_understood_by_postgresql(server: PostgresDatabase, file_name: str) -> None:
    """Without a value for any parameter: the statement alone decides the types."""
    loaded = {
        name: text
        for name, text in load_statements(file_name).items()
        # A mark inside a transaction cannot be explained; the conformance suite runs it.
        if name not in SQLITE_ONLY and "SAVEPOINT" not in text
    }

    def explain(tx: Transaction) -> None:
        for name, text in loaded.items():
            spoken = postgres._VARIANTS.get(text, text)
            try:
                tx.rows("EXPLAIN " + spoken, (None,) * len(set(re.findall(r"\$\d+", spoken))))
            except Exception as error:
                raise AssertionError(f"{file_name}: {name}: {error}") from error

    await server.write(explain)


@pytest.mark.parametrize("file_name", VARIANTS)
def test_a_variant_takes_the_parameters_of_the_statement_it_stands_for(file_name: str) -> None:
    base = next(name for name in (file_name.replace("_postgres", ""), file_name.replace("postgres", "sqlite"))
                if name in FILES)  # fmt: skip
    pairs = load_variants(base, file_name)
    assert pairs and pairs.items() <= postgres._VARIANTS.items()
    for text, spoken in pairs.items():
        assert set(re.findall(r"\$\d+", text)) == set(re.findall(r"\$\d+", spoken))


def test_a_variant_of_nothing_is_refused() -> None:
    with pytest.raises(ValueError, match=r"runs\.sql has no statements \['add_pending'"):
        load_variants("runs.sql", "search_postgres.sql")
