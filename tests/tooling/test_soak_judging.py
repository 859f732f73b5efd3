"""A soak is judged by its samples: growth after the warm-up, floors that rise, limits that are passed."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest

from benchmarks.soak_gateway import LEAP_EVERY_S, LEAP_MS, FastClock, Sample, take_sample
from benchmarks.soak_judging import Record, by_work, creep, growth, judge, read_samples
from benchmarks.soak_plots import draw_soak
from benchmarks.zero_model import act

MIB = 1 << 20


def sample(number: int, **changed: int) -> Sample:
    plain = Sample(number, number / 10, 100 * MIB, 40, 60, 10, 8 * MIB, number * MIB, 1.0)
    return msgspec.structs.replace(plain, **changed)


def verdicts(samples: list[Sample], errors: int = 0) -> dict[str, bool | None]:
    done = {"turns": 1000, "visits": 3, "errors": errors}
    return {figure.name: figure.ok for figure in judge(Record(1000, 10.0, done, [], samples))}


def test_what_happens_in_the_warm_up_is_no_growth() -> None:
    assert growth([50.0] * 20 + [100.0] * 80) == 0
    assert growth([100.0] * 90 + [106.0] * 10) == pytest.approx(6)
    assert growth([0.0] * 10) == 0


def test_work_in_hand_is_no_leak_but_a_floor_that_rises_is() -> None:
    assert creep([41, 40, 60, 40, 41, 75, 40, 90, 40, 55]) <= 0
    assert creep(list(range(40, 140))) > 20
    assert creep([50] * 100) == 0


def test_a_soak_is_divided_by_its_work_and_not_by_its_minutes() -> None:
    """Half of the samples come from a stall in which nothing was done."""
    busy = [sample(number) for number in range(50)]
    stalled = [sample(50 + number, cpu_s=5) for number in range(50)]
    late = [sample(100 + number, cpu_s=5 + number) for number in range(1, 6)]
    spread = by_work([*busy, *stalled, *late], 11)
    assert [one.cpu_s for one in spread] == [0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10]
    assert by_work(busy, 50) == busy


def test_a_flat_soak_passes_every_bar() -> None:
    found = verdicts([sample(number) for number in range(100)])
    assert False not in found.values()
    assert found["errors"] is True and found["visits"] is None


@pytest.mark.parametrize(
    ("field", "name", "each"),
    [
        ("rss_bytes", "growth of memory after the warm-up", 2 * MIB),
        ("descriptors", "descriptors that stay", 1),
        ("tasks", "tasks that stay", 1),
        ("threads", "threads that stay", 1),
        ("wal_bytes", "largest log of the database", MIB),
    ],
)
def test_whatever_keeps_growing_is_found_and_nothing_else(field: str, name: str, each: int) -> None:
    samples = [sample(number) for number in range(100)]
    grown = [
        msgspec.structs.replace(one, **{field: getattr(one, field) + each * number})
        for number, one in enumerate(samples)
    ]
    assert [key for key, ok in verdicts(grown).items() if ok is False] == [name]


def test_one_error_fails_a_soak() -> None:
    found = verdicts([sample(number) for number in range(100)], errors=1)
    assert [key for key, ok in found.items() if ok is False] == ["errors"]


def test_a_line_that_was_cut_is_left_out(tmp_path: Path) -> None:
    lines = [msgspec.json.encode(sample(number)) for number in range(3)]
    path = tmp_path / "samples.jsonl"
    path.write_bytes(b"\n".join(lines) + b"\n" + lines[0][:10])
    assert read_samples(path) == [sample(0), sample(1), sample(2)]


async def test_a_sample_is_of_this_process(tmp_path: Path) -> None:
    database = tmp_path / "x.sqlite"
    database.write_bytes(b"12345")
    found = take_sample(database, 1.0, 0.5)
    assert found.rss_bytes > 10 * MIB and found.threads >= 1 and found.tasks >= 1
    assert found.descriptors >= 3
    assert (found.database_bytes, found.wal_bytes) == (5, 0)


async def test_the_calendar_leaps_and_durations_do_not(monkeypatch: pytest.MonkeyPatch) -> None:
    now = [1000.0]
    monkeypatch.setattr("benchmarks.soak_gateway.time.monotonic", lambda: now[0])
    clock = FastClock()
    began_ms, began_s = clock.now_ms(), clock.monotonic()
    now[0] += LEAP_EVERY_S - 1
    assert clock.now_ms() - began_ms == (LEAP_EVERY_S - 1) * 1000
    now[0] += 1
    assert clock.now_ms() - began_ms == LEAP_EVERY_S * 1000 + LEAP_MS
    assert clock.monotonic() - began_s == LEAP_EVERY_S


def test_the_pictures_of_a_soak_are_drawn(tmp_path: Path) -> None:
    draw_soak(tmp_path, Record(5000, 60.0, {}, [], [sample(number) for number in range(50)]))
    assert sorted(path.name for path in tmp_path.iterdir()) == [
        "bench-soak-files.svg", "bench-soak-held.svg", "bench-soak-memory.svg",
    ]  # fmt: skip
    assert "Memory over 5,000 turns" in (tmp_path / "bench-soak-memory.svg").read_text()


@pytest.mark.parametrize(
    ("message", "acts"),
    [
        ({"role": "user", "content": "spawn a helper"}, True),
        ({"role": "user", "content": "please spawn"}, False),
        ({"role": "tool", "content": "spawn"}, False),
        ({"role": "user", "content": [{"type": "text", "text": "spawn"}]}, False),
    ],
)
def test_the_acting_model_starts_a_helper_when_it_is_told_to(message: object, acts: bool) -> None:
    answer = act(msgspec.json.encode({"messages": [{"role": "system", "content": ""}, message]}))
    assert (b"sessions_spawn" in answer) is acts
    head, _, body = answer.partition(b"\r\n\r\n")
    assert f"Content-Length: {len(body)}".encode() in head
