"""Search verbs as units of work: add a message's words, fold them into the index, find.

Words are folded by `domain.searchtext` before they come here, so that both
databases and the reference semantics agree on what matches. Who may see a session
is asked before anything is counted or cut (VIS-6); the answer is the caller's.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

from msgspec import Struct

from openclaw.domain.searchtext import matches
from openclaw.domain.visibility import SomeRows, TargetFacts, VisibilityScope
from openclaw.store import failpoints
from openclaw.store.database import Row, Transaction
from openclaw.store.statements import load_statements

SQL = load_statements("search_sqlite.sql")
FOLD_EVERY = 64
FIRST_PAGE = 64
LARGEST_PAGE = 4096
WORTH_READING = 16  # of so many texts that match, one that may be seen makes it worth to read on
MOST_PLACES = 500  # windows that a search is narrowed to; in more of them something is found soon
_NEWEST = 1 << 62
_PLACE = "\ue000"  # before the number of a window in the index; folding leaves it in no text

Terms = tuple[tuple[str, ...], ...]
Judge = Callable[[TargetFacts], bool]


class Hit(Struct, frozen=True):
    session_key: str
    session_id: str
    seq: int
    entry_id: str
    role: str
    created_at: int
    body: bytes


class Where(Struct, frozen=True):
    """Which sessions are searched. `judge` decides; `scope` tells beforehand where it can say yes at all."""

    agent_id: str | None = None
    session_key: str | None = None
    scope: VisibilityScope | None = None
    judge: Judge | None = None

    def allows(self, facts: TargetFacts) -> bool:
        return (
            self.agent_id in (None, facts.agent_id)
            and self.session_key in (None, facts.session_key)
            and (self.judge is None or self.judge(facts))
        )


class _Place(Struct, frozen=True):
    """Where a text stands: an entry that matches, in a session that is searched."""

    window_no: int
    seq: int
    session_id: str
    session_key: str


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
    tx: Transaction,
    terms: Terms,
    *,
    agent_id: str | None = None,
    session_key: str | None = None,
    limit: int,
    scope: VisibilityScope | None = None,
    judge: Judge | None = None,
) -> tuple[Hit, ...]:
    """Entries in which every term occurs, newest first. No terms find nothing.

    With `judge` only sessions that it allows count, whatever the limit is. `scope` is a hint that saves
    looking at the others: a session outside it is one that `judge` refuses.
    """
    if not terms:
        return ()
    where = Where(agent_id, session_key, scope, judge)
    seen = _Seen(where)
    pending = (row[1:] for row in tx.rows(SQL["pending"]) if matches(row[0], terms))
    places = seen.allowed(pending)
    if len(places) < limit:
        places += _find_indexed(tx, terms, where, seen, limit - len(places))
    return tuple(_hit(tx, place) for place in places[:limit])


def _find_indexed(tx: Transaction, terms: Terms, where: Where, seen: _Seen, limit: int) -> list[_Place]:
    """Pages of what the index finds. Where much matches and little may be seen, only there is looked."""
    expression, before, size = _expression(terms), _NEWEST, min(max(FIRST_PAGE, limit), LARGEST_PAGE)
    # One session is few windows; those of others are looked up when too much was read for nothing.
    narrowed = where.session_key is not None
    within = _words_of_windows(tx, where) if narrowed else None
    found: list[_Place] = []
    read = 0
    while within != "":
        page = tx.rows(SQL["find"], (expression, within, before, size))
        found += seen.allowed(page)
        read += len(page)
        if len(found) >= limit or len(page) < size:
            break
        before, size = page[-1][0], min(size * 4, LARGEST_PAGE)
        if not narrowed and len(found) * WORTH_READING < read:
            within, narrowed = _words_of_windows(tx, where), True
    return found


def _words_of_windows(tx: Transaction, where: Where) -> str | None:
    """The windows to stay in, as words of the index; empty when there are none, None when too many."""
    numbers: set[int] = set()
    owners = _owners(where)
    if owners is None:
        return None
    for name, owner in owners:
        numbers.update(row[0] for row in tx.rows(SQL[name], (owner, MOST_PLACES + 1)))
        if len(numbers) > MOST_PLACES:
            return None
    return " ".join(f'"{_PLACE}{number}"' for number in sorted(numbers))


def _owners(where: Where) -> list[tuple[str, str]] | None:
    """Whose windows can hold what is looked for, each with the statement that lists them; None: anybody's."""
    if where.session_key is not None:
        return [("windows_of_session", where.session_key)]
    scope = where.scope
    if isinstance(scope, SomeRows) and not scope.agent_patterns:
        owners = [("windows_of_session", scope.own_key)]
        owners += [("windows_of_tree", scope.tree_of)] if scope.tree_of is not None else []
        return owners + ([("windows_of_agent", scope.agent_id)] if scope.agent_id is not None else [])
    return None if where.agent_id is None else [("windows_of_agent", where.agent_id)]


class _Seen:
    """What was decided about the sessions of one search; each is asked about once."""

    def __init__(self, where: Where) -> None:
        self._where = where
        self._decided: dict[str, bool] = {}

    def allowed(self, rows: Iterable[Row]) -> list[_Place]:
        """The places of these rows that count. A row without a session is of one that was deleted."""
        return [
            _Place(row[1], row[2], row[3], row[4]) for row in rows if row[4] is not None and self._may(row)
        ]

    def _may(self, row: Row) -> bool:
        session_key = row[4]
        decided = self._decided.get(session_key)
        if decided is None:
            facts = TargetFacts(
                session_key=session_key, agent_id=row[5], spawned_by=row[6], parent_session_key=row[7],
                registry_owner=row[8], archived=bool(row[9]),
            )  # fmt: skip
            decided = self._decided[session_key] = self._where.allows(facts)
        return decided


def _hit(tx: Transaction, place: _Place) -> Hit:
    said = tx.row(SQL["said"], (place.window_no, place.seq))
    assert said is not None, "what is indexed is in the transcript"
    entry_id, role, created_at, body = said
    return Hit(place.session_key, place.session_id, place.seq, entry_id, role, created_at, body)


def _expression(terms: Terms) -> str:
    """One quoted phrase after the other, all required. Quoting leaves nothing to inject."""
    return " ".join(f'"{" ".join(term).replace(chr(34), "")}"' for term in terms)
