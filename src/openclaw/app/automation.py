"""What runs without a person, put together: scheduled jobs and heartbeats."""

from __future__ import annotations

import logging
from typing import Any

import aiohttp

from openclaw.app.engine import Engine, Ground
from openclaw.domain.jobs import Job
from openclaw.engine.cron import Cron, Post
from openclaw.engine.heartbeats import Heartbeats
from openclaw.store.jobs import JobRun, Jobs

log = logging.getLogger("openclaw.cron")
POST_WITHIN_S = 15.0


def build_cron(engine: Engine, ground: Ground) -> Cron:
    return Cron(
        Jobs(ground.database),
        engine.store,
        engine.workers,
        ground.source.current,
        ground.clock,
        ground.ids,
        ground.emit,
        _poster(ground),
        enabled=lambda: ground.in_force().config.cron.enabled,
    )


def build_heartbeats(engine: Engine, ground: Ground) -> Heartbeats:
    return Heartbeats(
        engine.store, engine.turns, engine.workers, ground.source.current, ground.clock, ground.ids
    )


def _poster(ground: Ground) -> Post:
    async def post(job: Job, run: JobRun, text: str) -> bool:
        """Hand a result to the job's own address. Redirects are not followed: the address is what it says."""
        token = ground.in_force().config.cron.webhook_token
        headers = {"Authorization": f"Bearer {token}"} if token else {}
        body: dict[str, Any] = {
            "jobId": job.id,
            "name": job.name,
            "runId": run.run_id,
            "status": run.status,
            "error": run.error,
            "text": text,
            "dueAtMs": run.due_at,
        }
        try:
            async with ground.http.post(
                str(job.delivery.to),
                json=body,
                headers=headers,
                allow_redirects=False,
                timeout=aiohttp.ClientTimeout(total=POST_WITHIN_S),
            ) as answer:
                if answer.status >= 300:
                    log.error("job %s: its webhook answered %d", job.id, answer.status)
                return answer.status < 300
        except (aiohttp.ClientError, TimeoutError, ValueError) as error:
            log.error("job %s: its webhook could not be reached: %s", job.id, error)
            return False

    return post
