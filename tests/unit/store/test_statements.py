"""The statements: all of them named, with parameters in order, and understood by the database."""

from __future__ import annotations

import re
from importlib.resources import files

import pytest

from openclaw.store import statements
from openclaw.store.database import Transaction
from openclaw.store.sqlite import SqliteDatabase
from openclaw.store.statements import load_statements, read_sql

FILES = sorted(
    item.name
    for item in files("openclaw.store").joinpath("sql").iterdir()
    if item.name != "schema.sql" and "postgres" not in item.name
)


def load(monkeypatch: pytest.MonkeyPatch, text: str) -> dict[str, str]:
    monkeypatch.setattr(statements, "read_sql", lambda _: text)
    return load_statements.__wrapped__("planted.sql")


def test_a_file_is_cut_at_its_names(monkeypatch: pytest.MonkeyPatch) -> None:
    text = "-- a heading\n\n-- name: one\nSELECT $1\n  , $2, $1\n\n-- name: two_b\n-- why\nSELECT 2\n"
    assert load(monkeypatch, text) == {"one": "SELECT $1\n  , $2, $1", "two_b": "-- why\nSELECT 2"}
    assert load(monkeypatch, "-- nothing here\n") == {}
    assert load(monkeypatch, "-- name: plain\nSELECT 1") == {"plain": "SELECT 1"}


@pytest.mark.parametrize(
    ("text", "found"),
    [("SELECT $2, $1", "[2, 1]"), ("SELECT $1, $3", "[1, 3]"), ("SELECT $2", "[2]"), ("SELECT $0", "[0]")],
)
def test_parameters_out_of_order_are_refused(monkeypatch: pytest.MonkeyPatch, text: str, found: str) -> None:
    with pytest.raises(
        ValueError, match=re.escape("planted.sql: bad: parameters must first appear as $1, $2, …")
    ) as caught:
        load(monkeypatch, f"-- name: good\nSELECT $1\n-- name: bad\n{text}")
    assert str(caught.value).endswith(f"found {found}")


def test_a_file_is_read_once() -> None:
    assert load_statements("runs.sql") is load_statements("runs.sql")
    assert "CREATE TABLE sessions" in read_sql("schema.sql")


@pytest.mark.parametrize("file_name", FILES)
async def test_every_statement_fits_the_schema(database: SqliteDatabase, file_name: str) -> None:
    loaded = load_statements(file_name)
    assert len(loaded) == read_sql(file_name).count("-- name: ") > 0

    def explain(tx: Transaction) -> list[int]:
        plans = (
            tx.rows("EXPLAIN " + text, (None,) * len(set(re.findall(r"\$\d+", text))))
            for text in loaded.values()
        )
        return [len(plan) for plan in plans]

    assert all(await database.write(explain))


def test_statements_are_never_put_together_from_pieces() -> None:
    """SQL comes from the files; code that builds it from text would be a door for whoever writes the text."""
    pattern = re.compile(r"f\"\"\"|f['\"](SELECT|INSERT|UPDATE|DELETE|WITH)\b", re.I)
    for item in files("openclaw.store").iterdir():
        # `salvage` copies tables by the names that our own schema gives them, whatever the damaged file says.
        if item.name.endswith(".py") and item.name != "salvage.py":
            assert not pattern.search(item.read_text(encoding="utf-8")), item.name
