"""Bugs of helpers and exchanges for the simulation to find, each planted into the product for one test."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest
from msgspec.structs import replace

from openclaw.engine import aftermath, children, subagents
from openclaw.engine.lanes import Lanes
from openclaw.store import inbox, spawns
from tests.simulation.planted import Plant


def _forget_the_completion(patch: pytest.MonkeyPatch) -> None:
    """A helper is settled, and its requester hears nothing."""
    settle = spawns.settle

    def silently(tx: Any, child_key: str, body: Any, _completion: Any, now_ms: int) -> bool:
        return settle(tx, child_key, body, None, now_ms)

    patch.setattr(spawns, "settle", silently)


def _cancel_completions(patch: pytest.MonkeyPatch) -> None:
    """A stop or a reset also cancels what finished helpers had handed over."""
    patch.setitem(inbox.SQL, "cancel_all", inbox.SQL["discard"])


def _hand_over_twice(patch: pytest.MonkeyPatch) -> None:
    """A completion is put into the inbox under two names."""
    settle = spawns.settle

    def twice(tx: Any, child_key: str, body: Any, completion: Any, now_ms: int) -> bool:
        done = settle(tx, child_key, body, completion, now_ms)
        if done and completion is not None:
            inbox.enqueue(tx, replace(completion, run_id=f"{completion.run_id}:2"), now_ms)
        return done

    patch.setattr(spawns, "settle", twice)


def _stay_asleep(patch: pytest.MonkeyPatch) -> None:
    """Who waited for a helper goes on waiting for it after its end."""
    patch.setitem(spawns.SQL, "end_wait", "DELETE FROM waits WHERE session_key = $1 AND target = $2 AND 0")


def _leave_failed_ones_open(patch: pytest.MonkeyPatch) -> None:
    """A helper whose run fails is never settled, and the sweep does not look for it."""
    at_end = subagents.at_end_of_child

    def only_good_ends(tx: Any, start: Any, end: Any, reply: str, now_ms: int, woken: list[str]) -> None:
        if end.outcome == "ok":
            at_end(tx, start, end, reply, now_ms, woken)

    patch.setattr(aftermath, "at_end_of_child", only_good_ends)
    patch.setattr(children, "_settle_if_lost", lambda *_args: None)


def _count_nobody(patch: pytest.MonkeyPatch) -> None:
    """The limit of helpers is asked and never counted."""
    patch.setattr(spawns, "count_active", lambda _tx, _parent_key: 0)


def _leave_twice(patch: pytest.MonkeyPatch) -> None:
    """Each of several waits of one run gives the place of the run back."""

    @asynccontextmanager
    async def outside(self: Lanes, name: str, _who: str) -> AsyncIterator[None]:
        lane = self.lane(name)
        lane.leave()
        try:
            yield
        finally:
            await lane.enter(first=True)

    patch.setattr(Lanes, "outside", outside)


PLANTED_FAMILY: dict[str, Plant] = {
    "a settled helper tells nobody": _forget_the_completion,
    "a stop cancels results": _cancel_completions,
    "a completion is handed over twice": _hand_over_twice,
    "a parent goes on waiting for a helper that is done": _stay_asleep,
    "a failed helper is never settled": _leave_failed_ones_open,
    "the limit of helpers is not counted": _count_nobody,
    "two waits give one place back twice": _leave_twice,
}
