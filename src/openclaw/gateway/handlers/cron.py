"""cron.*: scheduled jobs over the wire (AUTO-2)."""

from __future__ import annotations

from typing import Any

import msgspec

from openclaw.domain.jobs import AtTime, Job, JobDelivery
from openclaw.errors import InvalidRequest
from openclaw.gateway.services import Caller, GatewayServices, Json, resolve_seed
from openclaw.protocol import params_cron as params
from openclaw.protocol import results_cron as results
from openclaw.protocol.events import CronTold
from openclaw.store.jobs import StoredJob


async def list_jobs(
    services: GatewayServices, _caller: Caller, asked: params.CronListParams
) -> results.CronList:
    jobs = [
        stored
        for stored in await services.cron.all()
        if (asked.include_disabled or stored.job.enabled)
        and (asked.agent_id is None or stored.job.agent_id == asked.agent_id.lower())
    ]
    return results.CronList(jobs=[shown(stored) for stored in jobs])


async def status(
    services: GatewayServices, _caller: Caller, _asked: params.CronStatusParams
) -> results.CronStatus:
    jobs = await services.cron.all()
    due = [stored.next_at for stored in jobs if stored.next_at is not None and stored.job.enabled]
    return results.CronStatus(
        enabled=services.cron.enabled, jobs=len(jobs), next_wake_at_ms=min(due, default=None)
    )


async def add(services: GatewayServices, _caller: Caller, asked: params.CronAddParams) -> Json:
    now_ms, settings = services.clock.now_ms(), services.settings()
    agent_id = (asked.agent_id or settings.default_agent).lower()
    current = None
    if asked.session_target == "current":
        current = resolve_seed(services, asked.session_key or "main", agent_id).session_key
    once = isinstance(asked.schedule, AtTime)
    delivery = asked.delivery
    if delivery is None:
        delivery = JobDelivery(mode="announce" if asked.session_target == "isolated" else "none")
    stored = await services.cron.add(
        Job(
            id=services.ids.uuid(),
            name=asked.name,
            agent_id=agent_id,
            schedule=asked.schedule,
            session_target=asked.session_target,
            payload=asked.payload,
            created_at_ms=now_ms,
            updated_at_ms=now_ms,
            wake_mode=asked.wake_mode,
            delivery=delivery,
            enabled=asked.enabled,
            delete_after_run=once if asked.delete_after_run is None else asked.delete_after_run,
            description=asked.description,
            current_key=current,
        )
    )
    return _told(services, "added", stored)


async def update(services: GatewayServices, _caller: Caller, asked: params.CronUpdateParams) -> Json:
    changes: dict[str, Any] = {
        field.name: value
        for field in msgspec.structs.fields(asked.patch)
        if (value := getattr(asked.patch, field.name)) is not msgspec.UNSET
    }
    changed = await services.cron.change(asked.id, lambda job: msgspec.structs.replace(job, **changes))
    if changed is None:
        raise _unknown(asked.id)
    return _told(services, "updated", changed)


async def remove(
    services: GatewayServices, _caller: Caller, asked: params.CronJobParams
) -> results.CronRemoved:
    removed = await services.cron.remove(asked.id)
    if removed:
        services.hub.broadcast("cron", CronTold(job_id=asked.id, action="removed"))
    return results.CronRemoved(ok=True, removed=removed)


async def run(services: GatewayServices, _caller: Caller, asked: params.CronRunParams) -> results.CronRan:
    ran = await services.cron.run_now(asked.id, asked.mode)
    if ran:
        services.hub.broadcast("cron", CronTold(job_id=asked.id, action="started"))
    reason = None if ran else "not-due" if asked.mode == "due" else "busy"
    return results.CronRan(ok=True, ran=ran, reason=reason)


async def runs(services: GatewayServices, _caller: Caller, asked: params.CronRunsParams) -> results.CronRuns:
    if await services.cron.get(asked.id) is None and not await services.cron.runs(asked.id, 1):
        raise _unknown(asked.id)
    entries = [msgspec.to_builtins(run) for run in await services.cron.runs(asked.id, asked.limit)]
    return results.CronRuns(entries=entries)


def shown(stored: StoredJob) -> Json:
    """A job as clients see it."""
    job: Json = msgspec.to_builtins(stored.job)
    return job | {
        "enabled": stored.job.enabled,
        "wakeMode": stored.job.wake_mode,
        "delivery": msgspec.to_builtins(stored.job.delivery) | {"mode": stored.job.delivery.mode},
        "state": {"nextRunAtMs": stored.next_at},
    }


def _told(services: GatewayServices, action: str, stored: StoredJob) -> Json:
    job = shown(stored)
    services.hub.broadcast("cron", CronTold(job_id=stored.job.id, action=action, job=job))
    return job


def _unknown(job_id: str) -> InvalidRequest:
    return InvalidRequest(f"no job has the id {job_id[:80]!r}; cron.list shows them")
