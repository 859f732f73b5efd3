"""Every database agrees with the plain model, whatever is done to it and in whatever order.

`MODEL_STEPS=200000 scripts/long tests/conformance/test_state_machine.py` is the long run.
"""

from __future__ import annotations

import os
import time
from collections import Counter

import pytest

from openclaw.store import search
from tests.conformance.machine import BACKENDS, STEPS_PER_EXAMPLE, run_machine, table
from tests.conformance.operations import WEIGHTS

LONG_STEPS = int(os.environ.get("MODEL_STEPS", "200000"))
EXAMPLES = 60
MORE_ROUNDS = 5

PROVES = pytest.mark.spec("DB-14", "DB-15", "LIFE-21", "LIFE-24", "SRCH-3")


@pytest.fixture(autouse=True)
def fold_often(monkeypatch: pytest.MonkeyPatch) -> None:
    """So that an example of a few dozen steps meets both sides of the search index."""
    monkeypatch.setattr(search, "FOLD_EVERY", 8)


def untried(histogram: Counter[str]) -> set[str]:
    return set(WEIGHTS) - {kind.lower().removesuffix(" together") for kind in histogram}


@PROVES
@pytest.mark.parametrize("name", BACKENDS)
def test_a_store_agrees_with_the_model(name: str) -> None:
    histogram = run_machine(name, EXAMPLES)
    for _ in range(MORE_ROUNDS):
        # Which rules an example uses is a matter of luck; now and then a whole round leaves a kind out.
        if not untried(histogram):
            break
        histogram += run_machine(name, EXAMPLES // 2)
    print(f"\n{name}\n{table(histogram)}")
    assert sum(histogram.values()) > EXAMPLES * STEPS_PER_EXAMPLE / 4
    assert untried(histogram) == set(), "a kind of operation was never tried"


@pytest.mark.long
@PROVES
@pytest.mark.parametrize("name", BACKENDS)
def test_a_store_agrees_with_the_model_for_long(name: str) -> None:
    histogram: Counter[str] = Counter()
    started = time.monotonic()
    while sum(histogram.values()) < LONG_STEPS:
        histogram += run_machine(name, 200)
        print(f"{name}: {sum(histogram.values())} steps, {time.monotonic() - started:.0f} s", flush=True)
    print(f"\n{name}: {time.monotonic() - started:.0f} s\n{table(histogram)}")
    assert sum(histogram.values()) >= LONG_STEPS
