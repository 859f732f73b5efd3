"""The token bucket, against the clock it is given."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from openclaw.protocol.budget import TokenBucket


@pytest.mark.spec("RPC-1")
class TestTokenBucket:
    def test_starts_full_and_refills_at_its_rate(self) -> None:
        bucket = TokenBucket(3, 2, now_ms=1000)
        assert [bucket.take(1000) for _ in range(4)] == [True, True, True, False]
        assert bucket.wait_ms() == 501
        assert bucket.take(1499) is False
        assert bucket.take(1501) is True
        assert bucket.take(1501) is False

    def test_never_holds_more_than_its_capacity(self) -> None:
        bucket = TokenBucket(2, 10, now_ms=0)
        assert [bucket.take(1_000_000) for _ in range(3)] == [True, True, False]

    def test_nothing_to_wait_for_while_there_are_tokens(self) -> None:
        assert TokenBucket(1, 1, 0).wait_ms() == 0

    def test_a_clock_that_steps_back_neither_gains_nor_starves(self) -> None:
        bucket = TokenBucket(1, 1, now_ms=10_000)
        assert bucket.take(10_000) is True
        assert bucket.take(0) is False
        assert bucket.take(1_000) is True

    @settings(max_examples=200, deadline=None)
    @given(st.integers(1, 20), st.integers(1, 50), st.lists(st.integers(0, 400), max_size=200))
    def test_never_more_than_capacity_plus_rate(self, capacity: int, rate: int, gaps: list[int]) -> None:
        bucket, now, taken = TokenBucket(capacity, rate, 0), 0, 0
        for gap in gaps:
            now += gap
            taken += bucket.take(now)
        assert taken <= capacity + now * rate / 1000 + 1e-6
