"""Bindings of places to sessions as rows: at most one per place, gone with its session (BIND-1).

Whether a binding still counts is `domain.bindings`' to say; here it is kept, found,
used and taken away, each in the commit of what caused it.
"""

from __future__ import annotations

from msgspec import Struct

from openclaw.domain.bindings import Binding, BindingTerms, BoundPlace, Holds, Lapsed, judge
from openclaw.store import sessions
from openclaw.store.database import Database, Row, Transaction
from openclaw.store.records import SessionRow
from openclaw.store.statements import load_statements

SQL = load_statements("bindings.sql")
MOST_LISTED = 100
MOST_LOOKED_AT = 10_000


class Bound(Struct, frozen=True):
    """A place that belongs to a session which exists."""

    binding: Binding
    session: SessionRow


# -- units of work -----------------------------------------------------------------------------------


def bind(tx: Transaction, binding: Binding) -> None:
    """Give a place to a session; whoever had it before has it no more."""
    place = binding.place
    tx.run(
        SQL["bind"],
        (
            place.channel, place.account_id, place.to, place.thread_id, binding.session_key, binding.origin,
            binding.bound_at, binding.used_at, binding.idle_ms, binding.max_age_ms,
        ),
    )  # fmt: skip


def unbind(tx: Transaction, place: BoundPlace) -> str | None:
    """Free a place; the session that had it."""
    row = tx.row(SQL["unbind"], _key(place))
    return None if row is None else str(row[0])


def unbind_session(tx: Transaction, session_key: str) -> None:
    """Free every place of a session."""
    tx.run(SQL["unbind_session"], (session_key,))


def use(tx: Transaction, place: BoundPlace, now_ms: int) -> None:
    """A message came: the place was used."""
    tx.run(SQL["use"], (now_ms, *_key(place)))


def set_terms(tx: Transaction, place: BoundPlace, idle_ms: int | None, max_age_ms: int | None) -> None:
    tx.run(SQL["set_terms"], (idle_ms, max_age_ms, *_key(place)))


def of_place(tx: Transaction, place: BoundPlace) -> Binding | None:
    row = tx.row(SQL["of_place"], _key(place))
    return None if row is None else _binding(row)


# -- verbs -------------------------------------------------------------------------------------------


class Bindings:
    """The durable verbs, each one transaction."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def bound(self, place: BoundPlace, terms: BindingTerms, now_ms: int) -> Bound | None:
        """The session that a place belongs to now; None where routing decides."""

        def query(tx: Transaction) -> Bound | None:
            binding = of_place(tx, place)
            if binding is None or isinstance(judge(binding, terms, now_ms), Lapsed):
                return None
            session = sessions.find(tx, binding.session_key)
            return None if session is None or session.entry.archived_at else Bound(binding, session)

        return await self._database.read(query)

    async def of_session(self, session_key: str) -> tuple[Binding, ...]:
        """The places of a session, oldest first."""
        params = (session_key, MOST_LISTED)
        return await self._database.read(lambda tx: tuple(map(_binding, tx.rows(SQL["of_session"], params))))

    async def of_family(self, session_key: str) -> tuple[Binding, ...]:
        """The places of a session and of the helpers that it started, oldest first."""
        params = (session_key, MOST_LISTED)
        return await self._database.read(lambda tx: tuple(map(_binding, tx.rows(SQL["of_family"], params))))

    async def lapse(self, terms: BindingTerms, now_ms: int) -> tuple[Binding, ...]:
        """Take away what has ended, unless it was used meanwhile. With bindings off, all stay."""
        if not terms.enabled:
            return ()
        known = await self._database.read(
            lambda tx: tuple(map(_binding, tx.rows(SQL["all"], (MOST_LOOKED_AT,))))
        )
        over = [one for one in known if not isinstance(judge(one, terms, now_ms), Holds)]
        if not over:
            return ()

        def unit(tx: Transaction) -> tuple[Binding, ...]:
            return tuple(
                one
                for one in over
                if tx.row(SQL["unbind_unused"], (*_key(one.place), one.bound_at, one.used_at)) is not None
            )

        return await self._database.write(unit)


def _key(place: BoundPlace) -> tuple[str, str, str, str]:
    return place.channel, place.account_id, place.to, place.thread_id


def _binding(row: Row) -> Binding:
    return Binding(BoundPlace(*row[:4]), row[4], row[5], row[6], row[7], row[8], row[9])
