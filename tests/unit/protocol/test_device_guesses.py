"""Wrong guesses: how many, from where, and for how long an address is shut out."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from openclaw.protocol.guesses import MAX_ADDRESSES, GuessLimiter, GuessLimits, guess_source

LIMITS = GuessLimits()


def test_the_defaults() -> None:
    assert (LIMITS.max_attempts, LIMITS.window_ms, LIMITS.lockout_ms) == (10, 60_000, 300_000)
    assert LIMITS.exempt_loopback and MAX_ADDRESSES == 4096


class TestLimiter:
    def test_the_tenth_wrong_guess_shuts_out_for_the_whole_lockout(self) -> None:
        limiter = GuessLimiter(LIMITS)
        assert [limiter.count("a", 1000) for _ in range(9)] == [False] * 9
        assert limiter.wait_ms("a", 1000) is None
        assert limiter.count("a", 1000)
        assert limiter.wait_ms("a", 1000) == 300_000
        assert limiter.wait_ms("a", 300_999) == 1
        assert limiter.wait_ms("b", 1000) is None
        assert limiter.wait_ms("a", 301_000) is None
        assert len(limiter) == 0

    def test_after_a_lockout_counting_begins_anew(self) -> None:
        limiter = GuessLimiter(GuessLimits(max_attempts=2, lockout_ms=10))
        assert [limiter.count("a", 0), limiter.count("a", 1)] == [False, True]
        assert limiter.wait_ms("a", 11) is None
        assert [limiter.count("a", 11), limiter.count("a", 11)] == [False, True]

    def test_only_the_last_window_counts(self) -> None:
        limiter = GuessLimiter(GuessLimits(max_attempts=2))
        assert not limiter.count("a", 0)
        assert not limiter.count("a", 60_000)
        assert limiter.count("a", 119_999)

    def test_one_attempt_may_be_the_last(self) -> None:
        assert GuessLimiter(GuessLimits(max_attempts=1)).count("a", 0)

    def test_without_a_window_only_the_same_moment_counts(self) -> None:
        limiter = GuessLimiter(GuessLimits(max_attempts=1, window_ms=0))
        assert not limiter.count("a", 5)

    def test_the_table_is_bounded_and_the_last_guessers_stay(self) -> None:
        limiter = GuessLimiter(GuessLimits(max_attempts=2), max_addresses=3)
        for name in ("a", "b", "c", "a", "d"):
            limiter.count(name, 0)
        assert len(limiter) == 3
        assert limiter.wait_ms("a", 1) == 299_999
        assert not limiter.count("b", 1)  # forgotten: this is its first one
        assert limiter.count("d", 1)

    @settings(max_examples=200, deadline=None)
    @given(st.lists(st.tuples(st.sampled_from("abcde"), st.integers(0, 40_000)), max_size=60))
    def test_never_more_tries_than_allowed(self, steps: list[tuple[str, int]]) -> None:
        limiter, now_ms = GuessLimiter(GuessLimits(max_attempts=3, lockout_ms=100_000), 4), 0
        tried: dict[str, list[int]] = {}
        for name, pause_ms in steps:
            now_ms += pause_ms
            wait_ms = limiter.wait_ms(name, now_ms)
            assert wait_ms is None or 0 < wait_ms <= 100_000
            if wait_ms is None:
                limiter.count(name, now_ms)
                tried.setdefault(name, []).append(now_ms)
            assert len(limiter) <= 4
        if len(tried) <= 4:
            for times in tried.values():
                for first, last in zip(times, times[3:], strict=False):
                    assert last - first >= 60_000


class TestSource:
    def source(
        self, address: str, limits: GuessLimits = LIMITS, browser: bool = False, loopback: bool = False
    ) -> str | None:
        return guess_source(address, browser=browser, loopback=loopback, limits=limits)

    def test_programs_on_this_machine_are_exempt_and_pages_are_not(self) -> None:
        assert self.source("127.0.0.1", loopback=True) is None
        strict = GuessLimits(exempt_loopback=False)
        assert self.source("127.0.0.1", strict, loopback=True) == "127.0.0.1"
        for limits in (LIMITS, strict):
            page = self.source("127.0.0.1", limits, browser=True, loopback=True)
            assert page not in (None, "127.0.0.1")

    def test_a_proxy_on_this_machine_is_counted(self) -> None:
        assert self.source("127.0.0.1") == "127.0.0.1"

    @pytest.mark.parametrize(
        ("address", "name"),
        [
            ("192.0.2.7", "192.0.2.7"),
            ("2001:db8:1:2:3:4:5:6", "2001:db8:1:2::/64"),
            ("2001:db8:1:2::1", "2001:db8:1:2::/64"),
            ("2001:db8:1:3::1", "2001:db8:1:3::/64"),
            ("::ffff:192.0.2.7", "192.0.2.7"),
            ("fe80::1%eth0", "fe80::/64"),
            ("", ""),
            ("x" * 100, "x" * 64),
        ],
    )
    def test_a_network_is_one_guesser(self, address: str, name: str) -> None:
        assert self.source(address, browser=True) == name
        assert self.source(address) == name
