"""SIGKILL at every named point between two changes, and at random: what was acknowledged is there, once."""

from __future__ import annotations

import random
import re
from pathlib import Path

import pytest

from openclaw.store import failpoints
from openclaw.store.failpoints import POINTS
from tests.faults.killing import kill_at_point, kill_at_random, points_of

SOURCE = Path(failpoints.__file__).parent
SEED = 8  # a script that comes by every point
RANDOM_KILLS = 30
LONG_KILLS = 2000

PROVES = pytest.mark.spec("DB-15", "DB-16", "REST-1")


def test_the_list_of_points_is_the_code() -> None:
    marked = [
        name
        for path in sorted(SOURCE.glob("*.py"))
        for name in re.findall(r'failpoints\.reach\("([^"]+)"\)', path.read_text(encoding="utf-8"))
    ]
    assert sorted(marked) == sorted(POINTS)
    assert len(set(POINTS)) == len(POINTS)


def test_nobody_watches_by_default() -> None:
    seen: list[str] = []
    failpoints.reach("commit.done")
    failpoints.watch(seen.append)
    failpoints.reach("commit.done")
    failpoints.watch(None)
    failpoints.reach("commit.done")
    assert seen == ["commit.done"]


@PROVES
def test_a_kill_at_every_point() -> None:
    passes = points_of(SEED)
    assert [point for point, count in passes.items() if count == 0] == []
    for point, count in passes.items():
        # In the middle of the script, where there is something to lose.
        nth = (count + 1) // 2
        killed = kill_at_point(point, SEED, nth)
        print(f"{point:28} killed at its pass {nth} of {count}, {killed.steps} steps acknowledged")
        assert (point, killed.code, killed.problems) == (point, -9, [])
    print(f"{len(POINTS)} of {len(POINTS)} points")


@PROVES
def test_a_kill_at_any_moment() -> None:
    _kill_at_random(RANDOM_KILLS, seed=20261116)


@pytest.mark.long
@PROVES
def test_a_kill_at_any_moment_for_long() -> None:
    _kill_at_random(LONG_KILLS, seed=20261117)


@pytest.mark.long
@PROVES
def test_a_kill_at_every_pass_of_every_point() -> None:
    kills = 0
    for point, count in points_of(SEED).items():
        for nth in range(1, count + 1):
            killed = kill_at_point(point, SEED, nth)
            assert (point, nth, killed.problems) == (point, nth, [])
            if killed.code == 0:
                # How many share a commit is a matter of the moment: the last passes may not come.
                assert nth > count * 0.9
                break
            assert (point, nth, killed.code) == (point, nth, -9)
            kills += 1
    print(f"{kills} kills")


def _kill_at_random(count: int, seed: int) -> None:
    chance, steps, tries, killed_off = random.Random(seed), 0, 0, 0
    while killed_off < count:
        killed = kill_at_random(chance)
        assert (tries, killed.problems) == (tries, [])
        assert killed.code in (-9, 0)
        steps, tries, killed_off = steps + killed.steps, tries + 1, killed_off + (killed.code == -9)
        # A process that came to its end before its shot proves nothing; few do.
        assert killed_off > tries * 0.8 - 5
    print(f"{killed_off} kills of {tries} processes, {steps} acknowledged steps, nothing lost")
