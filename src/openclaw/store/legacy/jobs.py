"""Scheduled jobs of the founding file layout: `cron/jobs.json`, read by `doctor` alone (DB-3).

Reading only: a job comes out in today's shape, or a sentence says why it cannot. Whether its
agent exists and when it is due is decided by whoever imports it.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal, cast

import msgspec
from msgspec import Meta, Raw, Struct

from openclaw.domain.doortext import clean_text
from openclaw.domain.jobs import Job, JobDelivery, Payload, Schedule, check_job
from openclaw.errors import InvalidRequest, StoreCorrupt
from openclaw.protocol.intake import is_too_deep, replace_escaped_surrogates

_MAX_ID = 128
_Millis = Annotated[int, Meta(ge=0, le=2**53)]
_Json = dict[str, Any]


class _Job(Struct, rename="camel"):
    id: Annotated[str, Meta(min_length=1, max_length=_MAX_ID)]
    schedule: _Json
    payload: _Json
    name: str = ""
    agent_id: str | None = None
    session_target: str = "isolated"
    session_key: str | None = None
    wake_mode: str = "now"
    delivery: _Json | None = None
    enabled: bool = True
    delete_after_run: bool = False
    description: str | None = None
    created_at_ms: _Millis | None = None
    updated_at_ms: _Millis | None = None


class LegacyJobs(Struct, frozen=True):
    """What a file holds, and why some of it cannot be used."""

    jobs: tuple[Job, ...]
    problems: tuple[str, ...]


class JobsImported(Struct, frozen=True, rename="camel"):
    """What became of the jobs of one file."""

    path: str
    found: int
    imported: int
    already: int
    problems: tuple[str, ...]


def read_jobs(data: bytes, *, default_agent: str, now_ms: int) -> LegacyJobs:
    """The jobs of a `jobs.json`. Raises StoreCorrupt when it is no such file at all."""
    try:
        if is_too_deep(data):
            raise msgspec.DecodeError("too deep")
        whole = msgspec.json.decode(replace_escaped_surrogates(data), type=dict[str, Raw] | list[Raw])
        listed = whole if isinstance(whole, list) else msgspec.json.decode(whole["jobs"], type=list[Raw])
    except (msgspec.DecodeError, UnicodeDecodeError, KeyError):
        raise StoreCorrupt("this is not a list of scheduled jobs") from None
    found: dict[str, Job] = {}
    problems: list[str] = []
    for number, raw in enumerate(listed, 1):
        shown = f"job {number}"
        try:
            old = msgspec.json.decode(raw, type=_Job)
            shown = f"job {number} ({clean_text(old.name or old.id)[:60]})"
            job = check_job(_read(old, default_agent, now_ms))
            found.setdefault(job.id, job)
        except (msgspec.DecodeError, UnicodeDecodeError) as error:
            problems.append(f"{shown}: {error}")
        except InvalidRequest as error:
            problems.append(f"{shown}: {error.message}")
    return LegacyJobs(tuple(found.values()), tuple(problems))


def _read(old: _Job, default_agent: str, now_ms: int) -> Job:
    created = old.created_at_ms or now_ms
    wake: Literal["now", "next-heartbeat"] = "next-heartbeat" if old.wake_mode == "next-heartbeat" else "now"
    return Job(
        id=old.id,
        name=clean_text(old.name).strip()[:200] or old.id,
        agent_id=(old.agent_id or default_agent).strip().lower(),
        schedule=_schedule(old.schedule),
        session_target=old.session_target,
        payload=_payload(old.payload),
        created_at_ms=created,
        updated_at_ms=old.updated_at_ms or created,
        wake_mode=wake,
        delivery=_delivery(old),
        enabled=old.enabled,
        delete_after_run=old.delete_after_run,
        description=old.description,
        current_key=old.session_key if old.session_target == "current" else None,
    )


def _schedule(old: _Json) -> Schedule:
    if old.get("kind") == "at" and "at" not in old:
        # The older of two spellings; its number was written as text now and then.
        at = old.get("atMs")
        old = {**old, "at": int(at) if isinstance(at, str) and at.isascii() and at.isdigit() else at}
    return cast(Schedule, msgspec.convert(old, Schedule))


def _payload(old: _Json) -> Payload:
    timeout = old.get("timeoutSeconds")
    if isinstance(timeout, float):
        old = {**old, "timeoutSeconds": int(timeout)}
    return cast(Payload, msgspec.convert(old, Payload))


def _delivery(old: _Job) -> JobDelivery:
    """As the job says; a job from before there was a `delivery` says it in its payload."""
    said, told = old.delivery, old.payload
    if said is None:
        wanted = told.get("deliver")
        announces = old.session_target == "isolated" and wanted is not False
        said = {"mode": "announce" if announces or wanted is True else "none"}
        if said["mode"] == "announce":
            said |= {"channel": told.get("channel") or told.get("provider"), "to": told.get("to")}
    mode = "announce" if said.get("mode") == "deliver" else said.get("mode", "none")
    kept = {name: said.get(name) for name in ("channel", "to", "accountId", "threadId")}
    texts = {name: str(value) for name, value in kept.items() if value not in (None, "", "last")}
    return msgspec.convert({"mode": mode, **texts}, JobDelivery)
