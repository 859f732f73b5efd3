"""/stop and /kill: end what runs, and say so only when it has ended (CMD-5, CMD-6, QUE-7, PITFALLS C8).

What waits is cancelled when the command is taken, in the same commit. What runs is
aborted here, the session's own run first, so that it starts nothing more; then
everything that it spawned. A run that does not end by being asked is closed on its
row with a new fence, which shuts its former owner out.
"""

from __future__ import annotations

from collections.abc import Sequence

from msgspec import Struct

from openclaw.engine.commands.ports import CommandServices, Reply, Request
from openclaw.engine.events import InputCancelled
from openclaw.store.records import RunRow, SessionRow
from openclaw.store.runs import RunEnd, RunLost

PATIENCE_S = 15.0
_LOOK_S = 0.05
_MOST_PASSES = 5


class Stopped(Struct, frozen=True):
    """What was stopped: own runs, runs of sub-agents, inputs that waited; and runs that would not end."""

    own: int = 0
    children: int = 0
    waiting: int = 0
    stubborn: int = 0


async def stop(request: Request, services: CommandServices) -> Reply:
    """Stop the session and everything below it. The command was taken, and its queue is empty already."""
    taken = request.taken
    assert taken is not None, "/stop is taken before it is carried out"
    key = request.session_key
    own = [run for run in taken.active if run.session_key == key]
    waiting = _tell_cancelled(taken.cancelled, services)
    ended = await end_runs(own, services)
    below = await _end_descendants(key, services)
    await _close_below(key, services)
    return Reply(
        stop_text(Stopped(ended, below.children, waiting + below.waiting, below.stubborn + len(own) - ended))
    )


async def stop_child(child: SessionRow, services: CommandServices) -> Stopped:
    """Stop one sub-agent and everything below it."""
    rows = [child, *(row for row, _ in await services.commands.descendants(child.session_key))]
    waiting = sum([await _cancel_waiting(row, services) for row in rows])
    run = await services.store.active_run(child.session_key)
    own = [run] if run is not None else []
    ended = await end_runs(own, services, "kill")
    below = await _end_descendants(child.session_key, services)
    await _close_below(child.session_key, services)
    if services.powers.close_children is not None:
        await services.powers.close_children((child.session_key,), True)
    return Stopped(0, ended + below.children, waiting + below.waiting, below.stubborn + len(own) - ended)


async def _end_descendants(session_key: str, services: CommandServices) -> Stopped:
    """Abort what runs below a session.

    Looks again after each pass, because a child that was starting may appear late. What starts after
    this moment belongs to somebody's newer message and is left alone.
    """
    now_ms = services.clock.now_ms()
    ended = left = waiting = 0
    for _ in range(_MOST_PASSES):
        below = await services.commands.descendants(session_key)
        active = [(row, run) for row, run in below if run is not None and run.started_at <= now_ms]
        if not active:
            return Stopped(0, ended, waiting)
        for row, _run in active:
            waiting += await _cancel_waiting(row, services)
        done = await end_runs([run for _, run in active], services)
        ended, left = ended + done, len(active) - done
    return Stopped(0, ended, waiting, left)


async def _close_below(session_key: str, services: CommandServices) -> None:
    """Settle helpers that were stopped before they had begun, the deepest first. Nobody is told: all stop."""
    if services.powers.close_children is not None:
        below = await services.commands.descendants(session_key)
        await services.powers.close_children(tuple(row.session_key for row, _ in reversed(below)), False)


async def end_runs(runs: Sequence[RunRow], services: CommandServices, reason: str = "stop") -> int:
    """Abort runs and wait until their rows say that they have ended; how many have."""
    for run in runs:
        await services.powers.abort_run(run.session_key, run.run_id, reason)
    ended = 0
    for run in runs:
        ended += await _ended(run, services) or await _close(run, services, reason)
    return ended


async def _ended(run: RunRow, services: CommandServices) -> bool:
    waited_s = 0.0
    while True:
        row = await services.store.run(run.run_id)
        if row is None or row.state == "ended":
            return True
        if waited_s >= PATIENCE_S:
            return False
        await services.clock.sleep(_LOOK_S)
        waited_s += _LOOK_S


async def _close(run: RunRow, services: CommandServices, reason: str) -> bool:
    """Take the run away from whoever holds it and end it; whatever they still write is refused."""
    store, now_ms = services.store, services.clock.now_ms()
    ours = await store.take_over(run.run_id, reason, now_ms=now_ms)
    if ours is None:
        return True
    try:
        await store.finish(ours, (), RunEnd("aborted", reason), now_ms=now_ms)
    except RunLost:
        row = await store.run(run.run_id)
        return row is None or row.state == "ended"
    return True


async def _cancel_waiting(row: SessionRow, services: CommandServices) -> int:
    cancelled = await services.store.cancel(row.session_key)
    return _tell_cancelled([(row, run_id) for run_id in cancelled], services)


def _tell_cancelled(cancelled: Sequence[tuple[SessionRow, str]], services: CommandServices) -> int:
    for row, run_id in cancelled:
        services.emit(InputCancelled(run_id, row.session_key, row.agent_id))
    return len(cancelled)


def stop_text(stopped: Stopped) -> str:
    """What `/stop` answers: how many were stopped, and what could not be."""
    parts = []
    if stopped.own:
        parts.append("the run")
    if stopped.children:
        parts.append(_many(stopped.children, "sub-agent run"))
    if not parts and not stopped.waiting and not stopped.stubborn:
        return "Nothing was running."
    text = f"Stopped {' and '.join(parts)}." if parts else "Nothing was running."
    if stopped.waiting:
        text += f" {_many(stopped.waiting, 'waiting message').capitalize()} will not run."
    if stopped.stubborn:
        text += f" {_many(stopped.stubborn, 'run').capitalize()} did not end; send /stop again."
    return text


def _many(number: int, noun: str) -> str:
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"
