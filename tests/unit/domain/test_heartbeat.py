"""Heartbeats: quiet hours, and what of an answer is worth telling (AUTO-7)."""

from __future__ import annotations

from datetime import datetime
from zoneinfo import ZoneInfo

import pytest

from openclaw.domain.heartbeat import PROMPT, ActiveHours, is_active, minute_of_day, worth_telling

MADRID = ZoneInfo("Europe/Madrid")


def at(hour: int, minute: int = 0) -> int:
    return int(datetime(2026, 7, 1, hour, minute, tzinfo=MADRID).timestamp() * 1000)


@pytest.mark.spec("AUTO-7")
@pytest.mark.parametrize(
    ("start", "end", "inside", "outside"),
    [
        ("08:00", "22:00", [(8, 0), (21, 59)], [(7, 59), (22, 0)]),
        ("22:00", "06:30", [(22, 0), (0, 0), (6, 29)], [(6, 30), (21, 59)]),
        ("08:00", "24:00", [(8, 0), (23, 59)], [(0, 0), (7, 59)]),
        ("09:00", "09:00", [(0, 0), (9, 0), (23, 59)], []),
    ],
)
def test_active_hours(
    start: str, end: str, inside: list[tuple[int, int]], outside: list[tuple[int, int]]
) -> None:
    hours = ActiveHours(minute_of_day(start), minute_of_day(end), MADRID)
    assert all(is_active(hours, at(*when)) for when in inside)
    assert not any(is_active(hours, at(*when)) for when in outside)
    assert is_active(None, at(3))


@pytest.mark.spec("AUTO-7")
@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("HEARTBEAT_OK", ""),
        ("  HEARTBEAT_OK.\n", ""),
        ("HEARTBEAT_OK all is quiet", ""),
        ("all is quiet HEARTBEAT_OK", ""),
        ("HEARTBEAT_OK HEARTBEAT_OK", ""),
        ("The cellar is flooded", "The cellar is flooded"),
        ("HEARTBEAT_OK " + "x" * 300, ""),
        ("HEARTBEAT_OK " + "x" * 301, "x" * 301),
        ("I replied HEARTBEAT_OK to Ann", "I replied HEARTBEAT_OK to Ann"),
        ("", ""),
    ],
)
def test_an_acknowledgement_is_swallowed(text: str, told: str) -> None:
    assert worth_telling(text, 300) == told


def test_the_prompt_names_the_file_and_the_answer() -> None:
    assert "HEARTBEAT.md" in PROMPT and "HEARTBEAT_OK" in PROMPT
