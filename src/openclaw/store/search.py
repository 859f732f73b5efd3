"""Search verbs as units of work: add a message's words, fold them into the index, find.

Words are folded by `domain.searchtext` before they come here, so that both
databases and the reference semantics agree on what matches.
"""

from __future__ import annotations

from msgspec import Struct

from openclaw.domain.searchtext import matches
from openclaw.store import failpoints
from openclaw.store.database import Transaction
from openclaw.store.statements import load_statements

SQL = load_statements("search_sqlite.sql")
FOLD_EVERY = 64

Terms = tuple[tuple[str, ...], ...]


class Hit(Struct, frozen=True):
    session_key: str
    session_id: str
    seq: int
    entry_id: str
    role: str
    created_at: int
    body: bytes


def add(tx: Transaction, window_no: int, seq: int, words: str) -> None:
    """Make an entry findable, in the commit of the entry itself (SRCH-3)."""
    added = tx.row(SQL["add_pending"], (window_no, seq, words))
    assert added is not None
    failpoints.reach("search.added")
    if added[0] % FOLD_EVERY == 0:
        fold(tx)


def fold(tx: Transaction) -> None:
    """Move all pending words into the index."""
    tx.run(SQL["fold_words"])
    failpoints.reach("fold.words_indexed")
    tx.run(SQL["fold_rows"])
    failpoints.reach("fold.rows_kept")
    tx.run(SQL["clear_pending"])
    failpoints.reach("fold.done")


def find(
    tx: Transaction, terms: Terms, *, agent_id: str | None, session_key: str | None, limit: int
) -> tuple[Hit, ...]:
    """Entries in which every term occurs, newest first. No terms find nothing."""
    if not terms:
        return ()
    recent = [
        Hit(*row[1:]) for row in tx.rows(SQL["pending"], (agent_id, session_key)) if matches(row[0], terms)
    ]
    if len(recent) >= limit:
        return tuple(recent[:limit])
    indexed = tx.rows(SQL["find"], (_expression(terms), agent_id, session_key, limit - len(recent)))
    return (*recent, *(Hit(*row) for row in indexed))


def _expression(terms: Terms) -> str:
    """An FTS5 expression: every term a quoted phrase, all required. Quoting leaves nothing to inject."""
    return " ".join(f'"{" ".join(term).replace(chr(34), "")}"' for term in terms)
