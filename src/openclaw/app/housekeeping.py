"""When the gateway runs maintenance: after writes that add sessions, and on a slow timer (MAINT-2).

It never runs at start-up and never on the way of a message: it waits, and the work
itself is cut into slices that yield to everybody. A failure is logged and the next
turn of the timer tries again.
"""

from __future__ import annotations

import asyncio
import logging

from openclaw.engine.events import EngineEvent, InputTaken, SessionChanged
from openclaw.engine.ports import Clock
from openclaw.errors import OpenClawError
from openclaw.store.maintenance import MaintenanceReport
from openclaw.store.upkeep import Upkeep

log = logging.getLogger("openclaw.maintenance")

EVERY_S = 600.0  # ages move with the clock, also when nobody writes
SETTLE_S = 3.0  # sessions that come together are looked at together
AT_MOST_EVERY_S = 60.0


class Housekeeper:
    """Runs maintenance of one gateway. `observe` is part of the event sink and costs next to nothing."""

    def __init__(self, upkeep: Upkeep, clock: Clock) -> None:
        self._upkeep = upkeep
        self._clock = clock
        self._due = asyncio.Event()
        self._told = ""

    def observe(self, event: EngineEvent) -> None:
        """A session that was created may be one too many."""
        created = isinstance(event, InputTaken) and event.created
        if created or (isinstance(event, SessionChanged) and event.reason == "create"):
            self._due.set()

    async def run_forever(self) -> None:
        """Wait for a reason, run, rest; until the gateway stops."""
        while True:
            await self._wait_for_reason()
            await self._clock.sleep(SETTLE_S)
            self._due.clear()
            await self.run_once()
            await self._clock.sleep(AT_MOST_EVERY_S)

    async def _wait_for_reason(self) -> None:
        timer = asyncio.ensure_future(self._clock.sleep(EVERY_S))
        writes = asyncio.ensure_future(self._due.wait())
        try:
            await asyncio.wait((timer, writes), return_when=asyncio.FIRST_COMPLETED)
        finally:
            timer.cancel()
            writes.cancel()

    async def run_once(self) -> None:
        """One run, with a line in the log when there is something to tell."""
        began = self._clock.monotonic()
        try:
            report = await self._upkeep.maintain(now_ms=self._clock.now_ms())
        except (OpenClawError, OSError) as error:
            log.error("maintenance stopped: %s; it is tried again later", error)
            return
        except Exception:
            log.exception("maintenance failed; it is tried again later")
            return
        self._tell(report, self._clock.monotonic() - began)

    def _tell(self, report: MaintenanceReport, took_s: float) -> None:
        if report.plan.mode == "warn":
            self._warn(report)
            return
        purged = report.purged
        if not (report.archived or report.deleted or purged.windows or report.dropped or purged.held_back):
            return
        log.info(
            "maintenance: %d sessions archived, %d deleted, %d transcripts purged (%d archive files written, "
            "%d removed, %d held back) in %.1f s",
            report.archived, report.deleted, purged.windows, purged.archives, report.dropped,
            purged.held_back, took_s,
        )  # fmt: skip

    def _warn(self, report: MaintenanceReport) -> None:
        """In mode `warn` people are told once, and again when it changes (MAINT-5)."""
        plan = report.plan
        text = f"{plan.archive} sessions to archive, {plan.delete} to delete, {plan.purge} to purge"
        if plan.over_budget:
            text += "; the disk budget is exceeded"
        due = plan.archive or plan.delete or plan.purge or plan.over_budget
        if due and text != self._told:
            log.warning(
                "maintenance is in mode warn and changed nothing: %s. Clean up with: "
                "openclaw sessions cleanup --enforce",
                text,
            )
        self._told = text
