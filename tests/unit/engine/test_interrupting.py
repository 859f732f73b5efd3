"""Which run a message in the mode `interrupt` may stop: one that answers only what came before it."""

from __future__ import annotations

from types import SimpleNamespace
from typing import cast

import pytest

from openclaw.engine.runs import Run
from openclaw.engine.turns import came_before
from openclaw.store.inbox import Admission
from openclaw.store.records import SessionRow


def run_of(run_id: str, *admissions: int, absorbed: tuple[str, ...] = ()) -> Run:
    inputs = tuple(SimpleNamespace(admission=number) for number in admissions)
    told = SimpleNamespace(
        run=SimpleNamespace(run_id=run_id), start=SimpleNamespace(inputs=inputs), absorbed=list(absorbed)
    )
    return cast("Run", told)


@pytest.mark.spec("QUE-2")
@pytest.mark.parametrize(
    ("run", "stopped"),
    [
        (run_of("r1", 4), True),
        (run_of("r1", 3, 4), True),
        (run_of("r1", 6), False),  # of a later message, such as a reset that cancelled this one
        (run_of("r1", 4, 6), False),
        (run_of("r5", 5), False),  # its own
        (run_of("r1", 4, absorbed=("r5",)), False),  # it was taken along
        (run_of("r1"), True),  # goes on after a crash, and its input is gone
    ],
)
def test_only_what_came_before_is_interrupted(run: Run, stopped: bool) -> None:
    session = cast("SessionRow", SimpleNamespace())
    assert came_before(run, Admission(session, "r5", 5)) is stopped
