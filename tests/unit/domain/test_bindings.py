"""Bindings of places to sessions: how long they hold, how terms are written, what a thread is called."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from openclaw.domain.bindings import (
    HOUR_MS,
    MAX_TERM_MS,
    Binding,
    BindingTerms,
    BoundPlace,
    Holds,
    Lapsed,
    judge,
    place_of_route,
    read_term,
    route_of_place,
    show_term,
    thread_title,
)
from openclaw.domain.entry import DeliveryContext

NOW = 1_794_744_000_000
DAY = 24 * HOUR_MS
PLACE = BoundPlace("pigeon", "default", "Flock", "T1")


def bound(
    bound_at: int = NOW, used_at: int = NOW, idle_ms: int | None = None, max_age_ms: int | None = None
) -> Binding:

    return Binding(PLACE, "agent:main:subagent:1", "spawn", bound_at, used_at, idle_ms, max_age_ms)


# -- how long ----------------------------------------------------------------------------------------


@pytest.mark.spec("BIND-2")
def test_a_binding_ends_after_a_day_without_a_message_and_not_before() -> None:
    terms = BindingTerms()
    assert judge(bound(), terms, NOW) == Holds(NOW + DAY)
    assert judge(bound(), terms, NOW + DAY - 1) == Holds(NOW + DAY)
    assert judge(bound(), terms, NOW + DAY) == Lapsed("idle")
    used = bound(used_at=NOW + DAY - 1)
    assert judge(used, terms, NOW + DAY) == Holds(NOW + 2 * DAY - 1)


@pytest.mark.spec("BIND-2")
def test_a_binding_that_is_too_old_ends_however_often_it_is_used() -> None:
    terms = BindingTerms(max_age_ms=3 * DAY)
    assert judge(bound(used_at=NOW + 3 * DAY - 1), terms, NOW + 3 * DAY - 1) == Holds(NOW + 3 * DAY)
    assert judge(bound(used_at=NOW + 3 * DAY - 1), terms, NOW + 3 * DAY) == Lapsed("max-age")
    assert judge(bound(), BindingTerms(idle_ms=0), NOW + 10_000 * DAY) == Holds(None)
    assert judge(bound(), BindingTerms(idle_ms=0, max_age_ms=1), NOW) == Holds(NOW + 1)


@pytest.mark.spec("BIND-2")
def test_a_binding_s_own_terms_come_before_the_configured_ones() -> None:
    terms = BindingTerms(idle_ms=DAY, max_age_ms=DAY)
    assert judge(bound(idle_ms=1), terms, NOW + 1) == Lapsed("idle")
    assert judge(bound(idle_ms=0, max_age_ms=0), terms, NOW + 99 * DAY) == Holds(None)
    assert judge(bound(max_age_ms=2), terms, NOW + 2) == Lapsed("max-age")
    assert judge(bound(idle_ms=0), terms, NOW + DAY - 1) == Holds(NOW + DAY)


def test_bindings_that_are_switched_off_do_not_count() -> None:
    assert judge(bound(), BindingTerms(enabled=False), NOW) == Lapsed("off")
    terms = BindingTerms()
    assert (terms.enabled, terms.idle_ms, terms.max_age_ms) == (True, 86_400_000, 0)
    assert (terms.spawn_sessions, terms.default_context) == (True, "fork")


@settings(max_examples=200, deadline=None)
@given(st.integers(0, 10**9), st.integers(0, 10**9), st.integers(0, 10**9), st.integers(0, 10**9))
def test_what_holds_ends_at_the_moment_that_it_says(idle: int, age: int, used: int, later: int) -> None:
    binding = bound(used_at=NOW + used)
    terms = BindingTerms(idle_ms=idle, max_age_ms=age)
    verdict = judge(binding, terms, NOW + used + later)
    if isinstance(verdict, Holds):
        if verdict.until_ms is None:
            assert idle == age == 0
        else:
            assert isinstance(judge(binding, terms, verdict.until_ms - 1), Holds)
            assert isinstance(judge(binding, terms, verdict.until_ms), Lapsed)
    else:
        assert idle or age


# -- places ------------------------------------------------------------------------------------------


def test_a_place_is_where_an_answer_would_go() -> None:
    route = DeliveryContext("pigeon", "Flock", None, "T1")
    assert place_of_route(route) == PLACE
    assert place_of_route(DeliveryContext("pigeon", "Flock", "work")) == BoundPlace("pigeon", "work", "Flock")
    assert route_of_place(PLACE) == DeliveryContext("pigeon", "Flock", "default", "T1")
    assert route_of_place(BoundPlace("pigeon", "work", "Flock")).thread_id is None
    for nowhere in (None, DeliveryContext(), DeliveryContext("pigeon"), DeliveryContext(None, "Flock")):
        assert place_of_route(nowhere) is None


# -- words -------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "term_ms"),
    [
        ("90m", 5_400_000),
        ("12h", 43_200_000),
        (" 7D ", 604_800_000),
        ("off", 0),
        ("Never", 0),
        ("none", 0),
        ("0", 0),
        ("3650d", MAX_TERM_MS),
        ("3651d", None),
        ("0h", None),
        ("", None),
        ("h", None),
        ("12", None),
        ("-1h", None),
        ("1.5h", None),
        ("²h", None),
        ("٣h", None),
        ("12w", None),
        ("9999999m", None),
    ],
)
def test_a_term_as_a_person_writes_it(text: str, term_ms: int | None) -> None:
    assert read_term(text) == term_ms


@settings(max_examples=200, deadline=None)
@given(st.integers(1, 5_000_000))
def test_a_term_that_is_shown_can_be_read_again(minutes: int) -> None:
    shown = show_term(minutes * 60_000)
    assert read_term(shown) == minutes * 60_000


def test_terms_are_shown_in_the_largest_unit_that_fits() -> None:
    assert [show_term(one) for one in (0, DAY, 2 * DAY, HOUR_MS, 25 * HOUR_MS, 90 * 60_000, 1)] == [
        "off", "1d", "2d", "1h", "25h", "90m", "1m",
    ]  # fmt: skip


def test_a_thread_is_called_after_its_label_or_its_task() -> None:
    assert thread_title("Research", "do it") == "Research"
    assert thread_title(None, "  find\n\tthe   best ") == "find the best"
    assert thread_title("", "task") == "task"
    assert thread_title(None, "a\x00b\u202ec") == "abc"
    assert thread_title(None, "\x00") == "helper"
    exact = "x" * 80
    assert thread_title(exact, "t") == exact
    assert thread_title(exact + "y", "t") == "x" * 79 + "…"
    assert thread_title("word " * 40, "t") == ("word " * 16).rstrip()[:79].rstrip() + "…"


@settings(max_examples=200, deadline=None)
@given(st.none() | st.text(max_size=400), st.text(max_size=2000))
def test_a_title_is_one_short_printable_line(label: str | None, task: str) -> None:
    title = thread_title(label, task)
    assert 1 <= len(title) <= 80
    assert title.isprintable()
