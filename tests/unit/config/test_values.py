"""Durations and sizes as people write them."""

from __future__ import annotations

import math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from openclaw.config.values import MS_PER_UNIT, format_duration, parse_duration_ms, parse_size


@pytest.mark.spec("CFG-3")
@pytest.mark.parametrize(
    ("value", "unit", "ms"),
    [
        ("250ms", "m", 250),
        ("90s", "ms", 90_000),
        ("5m", "d", 300_000),
        ("1.5h", "m", 5_400_000),
        ("30d", "m", 2_592_000_000),
        ("30D", "m", 2_592_000_000),
        (" 2 h ", "m", 7_200_000),
        (5, "m", 300_000),
        ("5", "m", 300_000),
        (0, "m", 0),
        (0.5, "s", 500),
        ("0m", "m", 0),
        ("", "m", None),
        ("m", "m", None),
        ("5w", "m", None),
        ("5 minutes", "m", None),
        ("-5m", "m", None),
        (-1, "m", None),
        ("1e5s", "m", None),
        ("٣m", "m", None),
        (math.inf, "m", None),
        (math.nan, "m", None),
        (10**400, "m", None),
        ("999999999999999d", "m", None),
        ("1h30m", "m", None),
        ("9" * 5000 + "s", "m", None),
    ],
)
def test_durations(value: str | float, unit: str, ms: int | None) -> None:
    assert parse_duration_ms(value, unit) == ms


@pytest.mark.spec("CFG-3")
@pytest.mark.parametrize(
    ("value", "size"),
    [
        (4096, 4096),
        ("4096", 4096),
        ("512b", 512),
        ("2kb", 2048),
        ("1.5 MB", 1_572_864),
        ("1gb", 1_073_741_824),
        ("1tb", None),
        ("kb", None),
        (-1, None),
    ],
)
def test_sizes(value: str | float, size: int | None) -> None:
    assert parse_size(value) == size


@pytest.mark.spec("CFG-3")
@given(st.integers(0, 10**12))
@settings(max_examples=100, deadline=None)
def test_a_written_duration_reads_back(ms: int) -> None:
    assert parse_duration_ms(format_duration(ms), "d") == ms


@pytest.mark.spec("CFG-3")
@pytest.mark.parametrize(
    ("ms", "text"), [(300_000, "5m"), (86_400_000, "1d"), (0, "0d"), (1500, "1500ms"), (7_200_000, "2h")]
)
def test_durations_are_written_in_the_largest_unit(ms: int, text: str) -> None:
    assert format_duration(ms) == text
    assert set(MS_PER_UNIT) == {"ms", "s", "m", "h", "d"}
