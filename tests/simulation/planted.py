"""Bugs to plant: each breaks one promise of the engine, so that the simulation can be seen to find it.

Applied through a monkeypatch, never left in.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from typing import Any

import pytest
from msgspec.structs import replace

from openclaw.domain.transcript import UserMessage
from openclaw.engine import replies, runs
from openclaw.engine.lanes import Lanes
from openclaw.engine.runcontext import RunView
from openclaw.engine.runs import Run
from openclaw.engine.started import StartedRun
from openclaw.engine.toolwork import ToolWork, Worked
from openclaw.engine.turns import Incoming, Receipt, Turns
from openclaw.engine.workers import Workers, lane_of
from openclaw.store import inbox
from openclaw.store import runs as run_rows

Plant = Callable[[pytest.MonkeyPatch], None]


def _answer_first(patch: pytest.MonkeyPatch) -> None:
    """A message is acknowledged while its commit is on its way."""
    accept = Turns.accept

    async def hasty(self: Turns, incoming: Incoming) -> Receipt:
        task = asyncio.ensure_future(accept(self, incoming))
        await asyncio.sleep(0)
        return task.result() if task.done() else Receipt(incoming.run_id, incoming.seed.session_key, 0)

    patch.setattr(Turns, "accept", hasty)


def _absorb_twice(patch: pytest.MonkeyPatch) -> None:
    """What is steered into a run stands in its transcript twice."""
    absorb = run_rows.absorb

    def twice(tx: Any, run: Any, admissions: Any, draft_inputs: Any, now_ms: int) -> Any:
        def doubled(session: Any, inputs: Any) -> Any:
            drafts = draft_inputs(session, inputs)
            return [*drafts, *drafts]

        return absorb(tx, run, admissions, doubled, now_ms)

    patch.setattr(run_rows, "absorb", twice)


def _forget_to_look(patch: pytest.MonkeyPatch) -> None:
    """A worker goes home after its run without looking what waits."""
    execute, wake = Workers._execute, Workers.wake

    async def and_home(self: Workers, start: StartedRun) -> bool:
        await execute(self, start)
        return False

    def once(self: Workers, session_key: str) -> None:
        if not self.is_busy(session_key):
            wake(self, session_key)

    patch.setattr(Workers, "_execute", and_home)
    patch.setattr(Workers, "wake", once)


def _no_fence(patch: pytest.MonkeyPatch) -> None:
    """A run that is taken over after a crash keeps the fence of its former owner."""
    kept = run_rows.SQL["take_over"].replace("fence = fence + 1", "fence = fence + 0")
    assert kept != run_rows.SQL["take_over"]
    patch.setitem(run_rows.SQL, "take_over", kept)


def _drop_a_result(patch: pytest.MonkeyPatch) -> None:
    """Of tools that run together, the result of the last is forgotten."""
    run = ToolWork.run

    async def forgetful(self: ToolWork, calls: Sequence[Any]) -> list[Worked]:
        worked = await run(self, calls)
        return worked[:-1] if len(worked) > 2 else worked

    patch.setattr(ToolWork, "run", forgetful)


def _lose_the_queue(patch: pytest.MonkeyPatch) -> None:
    """A reset removes what waits instead of cancelling it."""
    patch.setitem(
        inbox.SQL,
        "cancel_all",
        "DELETE FROM inbox WHERE session_key = $1 AND state = 'queued' RETURNING run_id",
    )


def _two_workers(patch: pytest.MonkeyPatch) -> None:
    """Waking a session always starts a worker, also beside the one that is there."""

    def always(self: Workers, session_key: str) -> None:
        self._busy[session_key] = True
        self._spawn(self._work(session_key, lane_of(session_key), None, entered=False))

    patch.setattr(Workers, "wake", always)


def _steer_too_early(patch: pytest.MonkeyPatch) -> None:
    """What is steered into a run comes before the results of the calls that run."""
    run_tools = Run.run_tools

    async def impatient(self: Run, calls: Sequence[Any]) -> bool:
        await self.take_steering()
        return await run_tools(self, calls)

    patch.setattr(Run, "run_tools", impatient)


def _leave_calls_open(patch: pytest.MonkeyPatch) -> None:
    """After a crash, calls stay without a result."""

    async def nothing(_self: Run) -> None:
        return

    patch.setattr(Run, "_close_open_calls", nothing)


def _leak_a_place(patch: pytest.MonkeyPatch) -> None:
    """An aborted run keeps its place in the lane."""
    abort = Workers.abort

    async def leaking(self: Workers, session_key: str, reason: str) -> str | None:
        stopped = await abort(self, session_key, reason)
        if stopped is not None and isinstance(self.lanes, Lanes):
            self.lanes.lane(lane_of(session_key)).active += 1
        return stopped

    patch.setattr(Workers, "abort", leaking)


def _walk_away(patch: pytest.MonkeyPatch) -> None:
    """A run that is stopped does not wait for the commit that is on its way."""

    async def cut(write: Any, note: Any) -> Any:
        kept = await write
        note(kept)
        return kept

    patch.setattr(runs, "uncut", cut)


def _reply_twice(patch: pytest.MonkeyPatch) -> None:
    """A reply is put into the outbox under two keys."""
    reply_of = replies.reply_of

    def twice(*args: Any) -> Any:
        reply = reply_of(*args)
        again = tuple(replace(one, idempotency_key=f"{one.idempotency_key}:2") for one in reply.deliveries)
        return replace(reply, deliveries=(*reply.deliveries, *again))

    patch.setattr(runs, "reply_of", twice)


def _say_nothing(patch: pytest.MonkeyPatch) -> None:
    """The end of a run that timed out or failed is not told."""
    tell = Run._tell_ended

    def silent(self: Run, end: Any, *rest: Any) -> None:
        if end.outcome != "error":
            tell(self, end, *rest)

    patch.setattr(Run, "_tell_ended", silent)


def _tell_the_time(patch: pytest.MonkeyPatch) -> None:
    """The first message of every request carries the time of the call."""
    shown_to = RunView.shown_to

    async def dated(self: RunView, target: Any) -> Any:
        first, *rest = await shown_to(self, target)
        if isinstance(first, UserMessage) and isinstance(first.content, str):
            first = replace(first, content=f"{first.content} (now {self._clock.now_ms()})")
        return (first, *rest)

    patch.setattr(RunView, "shown_to", dated)


PLANTED: dict[str, Plant] = {
    "acknowledged before the commit": _answer_first,
    "absorbed twice": _absorb_twice,
    "nobody looks after a run what waits": _forget_to_look,
    "a resumed run keeps its old fence": _no_fence,
    "the result of a tool is dropped": _drop_a_result,
    "a reset loses the queue": _lose_the_queue,
    "two workers in one session": _two_workers,
    "steered before the results are kept": _steer_too_early,
    "calls stay open after a crash": _leave_calls_open,
    "a place in the lane leaks on abort": _leak_a_place,
    "a stopped run walks away from its commit": _walk_away,
    "a reply is prepared twice": _reply_twice,
    "the end of a failed run is not told": _say_nothing,
    "the time moves the beginning of requests": _tell_the_time,
}
