"""The sweep: whatever the rows say is unfinished and nobody works on is taken up again.

Recovery is not a special path: the same query runs at start-up and from here. A
run that shows no sign of life is stopped, the release is verified, and the log
and the session say so (PITFALLS C5).
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable

from openclaw.engine.ports import Clock
from openclaw.engine.runs import Run
from openclaw.engine.workers import Workers
from openclaw.errors import OpenClawError
from openclaw.store.store import Store, Unfinished

log = logging.getLogger("openclaw.watchdog")
EVERY_S = 30.0
STALLED_S = 15 * 60.0  # longer than any single tool or provider may be silent
RELEASE_S = 15.0
_SHOWN = 10


class Watchdog:
    def __init__(
        self,
        store: Store,
        workers: Workers,
        clock: Clock,
        *,
        every_s: float = EVERY_S,
        stalled_s: float = STALLED_S,
        release_s: float = RELEASE_S,
        look_after_children: Callable[[], Awaitable[object]] | None = None,
        note: Callable[[str], Awaitable[None]] | None = None,
    ) -> None:
        self._store = store
        self._workers = workers
        self._clock = clock
        self._every_s = every_s
        self._stalled_s = stalled_s
        self._release_s = release_s
        self._children = look_after_children
        self._note = note

    async def run_forever(self) -> None:
        while True:
            await self._clock.sleep(self._every_s)
            try:
                touched = await self.sweep()
                if touched and self._note is not None:
                    await self._note(f"taken up or released: {', '.join(touched[:_SHOWN])}")
                await self._look_after_children()
            except OpenClawError as error:
                log.error("the sweep failed and is tried again: %s", error)

    async def _look_after_children(self) -> None:
        if self._children is not None:
            await self._children()

    async def sweep(self) -> tuple[str, ...]:
        """Look once; the session keys that were taken up or released."""
        touched = [run.run.session_key for run in await self._stalled()]
        suspected = self._left_alone(await self._store.unfinished())
        if not suspected.runs and not suspected.waiting:
            return tuple(touched)
        # Rows are read before the workers are asked. What ended in between looks left alone, but only once.
        again = self._left_alone(await self._store.unfinished())
        seen = {run.run_id for run in suspected.runs} | set(suspected.waiting)
        for run in again.runs:
            if run.run_id in seen:
                log.warning("run %s has nobody who works on it; going on with it", run.run_id)
                self._workers.resume(run)
                touched.append(run.session_key)
        for session_key in again.waiting:
            if session_key in seen:
                log.warning("inputs wait in %s and nobody looks after them; waking it", session_key)
                self._workers.wake(session_key)
                touched.append(session_key)
        return tuple(touched)

    def _left_alone(self, unfinished: Unfinished) -> Unfinished:
        """The part of it that nobody works on at this moment."""
        active = {run.session_key for run in unfinished.runs}
        return Unfinished(
            tuple(run for run in unfinished.runs if not self._workers.is_busy(run.session_key)),
            tuple(key for key in unfinished.waiting if key not in active and not self._workers.is_busy(key)),
        )

    async def _stalled(self) -> list[Run]:
        """Stop runs without a sign of life, and see that their sessions are free again."""
        now_s = self._clock.monotonic()
        stalled = [
            run
            for run in self._workers.active_runs()
            if now_s - run.last_sign_s > self._stalled_s and not run.settling
        ]
        for run in stalled:
            if self._workers.active_run(run.run.session_key) is not run:
                continue  # it ended while another one was being stopped
            quiet_s = now_s - run.last_sign_s
            log.error("run %s showed no sign of life for %.0f s; stopping it", run.run.run_id, quiet_s)
            try:
                async with asyncio.timeout(self._release_s):
                    await self._workers.abort(run.run.session_key, "stalled")
            except TimeoutError:
                log.error(
                    "run %s did not stop within %.0f s; it is abandoned", run.run.run_id, self._release_s
                )
                await self._workers.abandon(run)
        return stalled
