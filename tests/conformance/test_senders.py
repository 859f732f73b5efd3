"""People on platforms as rows, on every database: codes, admission, and what a group said meanwhile."""

from __future__ import annotations

import pytest

from openclaw.domain.admission import Standing
from openclaw.errors import InvalidRequest
from openclaw.store import senders
from openclaw.store.connectors import LARGEST_NOTE, ConnectorNotes
from openclaw.store.database import Database
from openclaw.store.senders import (
    CODE_LIVES_MS,
    MAX_ASKING,
    MAX_OVERHEARD,
    MAX_SAID_CHARS,
    Asked,
    NewlyHeard,
    Place,
    SenderRef,
    Senders,
)
from tests.conformance.making import NOON

ANN = SenderRef("telegram", "default", "Ann-1")
PLACE = Place("telegram", "default", "-100", "7")


@pytest.mark.spec("CMD-13")
async def test_a_code_is_given_once_and_lets_in_whoever_holds_it(database: Database) -> None:
    people = Senders(database)
    assert await people.standing(ANN) == Standing()
    assert await people.ask(ANN, "Ann", "AAAA2222", now_ms=NOON) == Asked("AAAA2222", new=True)
    assert await people.ask(ANN, "Ann", "BBBB3333", now_ms=NOON + 1) == Asked("AAAA2222", new=False)
    assert await people.standing(ANN) == Standing()
    assert await people.approve("matrix", "AAAA2222", owner=True, now_ms=NOON + 2) is None
    found = await people.approve("telegram", "AAAA2222", owner=True, now_ms=NOON + 2)
    assert found is not None and (found.sender_id, found.name) == ("Ann-1", "Ann")
    assert await people.standing(ANN) == Standing(admitted=True, owner=True)
    assert await people.standing(SenderRef("telegram", "default", "ann-1")) == Standing()
    assert await people.standing(SenderRef("telegram", "work", "Ann-1")) == Standing()
    assert await people.approve("telegram", "AAAA2222", owner=True, now_ms=NOON + 3) is None
    (row,) = await people.list(now_ms=NOON + 4)
    assert (row.state, row.code, row.is_owner, row.decided_at) == ("admitted", None, 1, NOON + 2)
    assert await people.owners() == (ANN,)
    assert await people.remove("telegram", "Ann-1") == 1
    assert await people.standing(ANN) == Standing() and await people.owners() == ()


@pytest.mark.spec("CMD-13")
async def test_a_code_expires_and_strangers_cannot_fill_the_table(database: Database) -> None:
    people = Senders(database)
    assert await people.ask(ANN, None, "AAAA2222", now_ms=NOON) is not None
    late = NOON + CODE_LIVES_MS
    assert await people.approve("telegram", "AAAA2222", owner=False, now_ms=late) is None
    assert await people.list(now_ms=late) == ()
    assert await people.ask(ANN, None, "CCCC4444", now_ms=late) == Asked("CCCC4444", new=True)
    for number in range(MAX_ASKING - 1):
        who = SenderRef("telegram", "default", str(number))
        assert await people.ask(who, None, f"CODE{number:04d}", now_ms=late) is not None
    one_more = SenderRef("telegram", "default", "flood")
    assert await people.ask(one_more, None, "DDDD5555", now_ms=late) is None
    elsewhere = SenderRef("telegram", "work", "flood")
    assert await people.ask(elsewhere, None, "EEEE6666", now_ms=late) == Asked("EEEE6666", new=True)
    assert await people.ask(one_more, None, "FFFF7777", now_ms=late + CODE_LIVES_MS) is not None


async def test_two_strangers_never_share_a_code(database: Database) -> None:
    people = Senders(database)
    assert await people.ask(ANN, None, "SAME2222", now_ms=NOON) is not None
    bob = SenderRef("telegram", "default", "bob")
    assert await people.ask(bob, None, "SAME2222", now_ms=NOON) is None
    assert await people.ask(bob, None, "ELSE3333", now_ms=NOON) == Asked("ELSE3333", new=True)


async def test_somebody_is_let_in_by_name_and_changed(database: Database) -> None:
    people = Senders(database)
    await people.admit(ANN, "Ann", owner=False, now_ms=NOON)
    await people.admit(ANN, None, owner=True, now_ms=NOON + 5)
    (row,) = await people.list("telegram", now_ms=NOON)
    assert (row.name, row.is_owner, row.decided_at, row.asked_at) == ("Ann", 1, NOON + 5, NOON)
    assert await people.list("matrix", now_ms=NOON) == ()
    assert await people.remove("telegram", "Ann-1", "work") == 0
    assert await people.remove("telegram", "Ann-1", "default") == 1


def heard(number: int, said: str = "words", place: Place = PLACE) -> NewlyHeard:
    return NewlyHeard(place, f"m{number}", "9", "Bob", said)


@pytest.mark.spec("ROUTE-3")
async def test_what_was_overheard_is_kept_once_bounded_and_leaves_with_its_turn(database: Database) -> None:
    people = Senders(database)
    assert await people.hear(heard(1, "first"), now_ms=NOON)
    assert not await people.hear(heard(1, "first"), now_ms=NOON + 1)
    assert await people.hear(heard(2, "x" * (MAX_SAID_CHARS + 1)), now_ms=NOON + 2)
    other = Place("telegram", "default", "-100", "8")
    assert await people.hear(heard(3, "elsewhere", other), now_ms=NOON)
    kept = await people.heard(PLACE)
    assert [(one.sender, one.said[:5], len(one.said)) for one in kept] == [
        ("Bob", "first", 5),
        ("Bob", "xxxxx", MAX_SAID_CHARS),
    ]
    for number in range(10, 10 + MAX_OVERHEARD):
        await people.hear(heard(number, str(number)), now_ms=NOON)
    kept = await people.heard(PLACE)
    assert [one.said for one in kept] == [str(number) for number in range(10, 10 + MAX_OVERHEARD)]
    last = kept[-2].overheard_no
    await database.write(lambda tx: senders.forget_heard(tx, PLACE, last))
    assert [one.said for one in await people.heard(PLACE)] == [str(9 + MAX_OVERHEARD)]
    assert [one.said for one in await people.heard(other)] == ["elsewhere"]


async def test_a_connector_keeps_small_notes(database: Database) -> None:
    notes, others = (ConnectorNotes(database, "telegram", name) for name in ("default", "work"))
    assert await notes.recall("offset") is None
    await notes.note("offset", b"1", now_ms=NOON)
    await notes.note("offset", b"2\x00\xff", now_ms=NOON)
    assert await notes.recall("offset") == b"2\x00\xff" and await others.recall("offset") is None
    with pytest.raises(InvalidRequest, match="at most"):
        await notes.note("offset", b"x" * (LARGEST_NOTE + 1), now_ms=NOON)
    assert await notes.recall("offset") == b"2\x00\xff"
