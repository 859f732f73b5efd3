"""Which single files of the founding layout were imported, by their content: one row each (DB-3)."""

from __future__ import annotations

from hashlib import sha256

from openclaw.store.database import Transaction
from openclaw.store.statements import load_statements

SQL = load_statements("import_marks.sql")


def mark_imported(tx: Transaction, name: str, data: bytes) -> None:
    """`name` is the file's path below the state directory."""
    tx.run(SQL["write"], (_row(name), sha256(data).hexdigest()))


def is_imported(tx: Transaction, name: str, data: bytes) -> bool:
    """Whether this very content was imported last."""
    found = tx.row(SQL["read"], (_row(name),))
    return found is not None and found[0] == sha256(data).hexdigest()


def _row(name: str) -> str:
    return f"imported.{name}"
