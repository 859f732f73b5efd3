"""Rapid messages of one sender become one turn (ROUTE-4)."""

from __future__ import annotations

import pytest

from openclaw.domain.queueing import (
    LONGEST_COLLECT_MS,
    Drain,
    QueuedInput,
    QueueSettings,
    WaitUntil,
    plan_drain,
)

STEER = QueueSettings(mode="steer")


def said(admission: int, at: int, until: int | None, *, by: str = "telegram:1", to: str = "c") -> QueuedInput:
    return QueuedInput(
        admission=admission,
        text=f"m{admission}",
        accepted_ms=at,
        channel="telegram",
        to=to,
        principal=by,
        gather_until_ms=until,
    )


def admissions(plan: Drain | WaitUntil) -> list[list[int]]:
    assert isinstance(plan, Drain)
    return [[one.admission for one in batch.inputs] for batch in plan.batches]


@pytest.mark.spec("ROUTE-4")
def test_more_words_of_the_same_sender_are_waited_for_and_become_one_turn() -> None:
    row = [said(1, 1000, 1500), said(2, 1200, 1700), said(3, 1300, 1800)]
    assert plan_drain(STEER, row, 1799) == WaitUntil(1800)
    assert admissions(plan_drain(STEER, row, 1800)) == [[1, 2, 3]]
    assert admissions(plan_drain(QueueSettings(mode="followup"), row, 1800)) == [[1, 2, 3]]


@pytest.mark.spec("ROUTE-4")
def test_what_flushes_ends_the_waiting_and_stays_a_turn_of_its_own() -> None:
    row = [said(1, 1000, 1500), said(2, 1100, None)]
    assert admissions(plan_drain(STEER, row, 1100)) == [[1], [2]]


@pytest.mark.spec("ROUTE-4")
@pytest.mark.parametrize("other", [said(2, 1100, 1600, by="telegram:2"), said(2, 1100, 1600, to="d")])
def test_two_senders_and_two_places_are_never_joined(other: QueuedInput) -> None:
    assert admissions(plan_drain(STEER, [said(1, 1000, 1500), other], 1100)) == [[1], [2]]


@pytest.mark.spec("ROUTE-4")
def test_a_stream_of_messages_cannot_postpone_the_turn_for_ever() -> None:
    last = 1000 + LONGEST_COLLECT_MS
    row = [said(1, 1000, 1500), said(2, last - 1, last + 499)]
    assert plan_drain(STEER, row, last - 1) == WaitUntil(last)
    assert admissions(plan_drain(STEER, row, last)) == [[1, 2]]


def test_a_collecting_session_waits_for_both() -> None:
    row = [said(1, 1000, 1500)]
    collect = QueueSettings(mode="collect", debounce_ms=800)
    assert plan_drain(collect, row, 1400) == WaitUntil(1500)
    assert plan_drain(collect, row, 1500) == WaitUntil(1800)
    assert admissions(plan_drain(collect, row, 1800)) == [[1]]
