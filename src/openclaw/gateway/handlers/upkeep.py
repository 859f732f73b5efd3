"""sessions.cleanup, sessions.erase, sessions.export, backup.create: looking after the store.

Each is carried out by `store.upkeep`, off the event loop and in slices. These methods
need the owner's scope, and one that began is finished even if its client goes away.
"""

from __future__ import annotations

import logging
from pathlib import Path

import msgspec

from openclaw.engine.events import SessionChanged
from openclaw.errors import InvalidRequest
from openclaw.gateway.services import Caller, GatewayServices, meant_key
from openclaw.protocol import params_upkeep as params
from openclaw.protocol import results_upkeep as results
from openclaw.store.rendering import View
from openclaw.store.tombstones import known_as
from openclaw.store.upkeep import CleanupRequest, ExportAsked

log = logging.getLogger("openclaw.gateway")


async def clean_up(
    services: GatewayServices, _caller: Caller, asked: params.SessionsCleanupParams
) -> results.SessionsCleanup:
    if asked.agent is not None and asked.all_agents:
        raise InvalidRequest("sessions.cleanup: agent and allAgents exclude one another; give one of them")
    active = asked.active_key
    if active is not None:
        active = meant_key(services, active, asked.agent)
    request = CleanupRequest(
        dry_run=asked.dry_run,
        enforce=asked.enforce,
        active_key=active,
        agent_id=asked.agent.lower() if asked.agent else None,
        fix_dm_scope=asked.fix_dm_scope,
    )
    done = await services.upkeep.clean_up(request, now_ms=services.clock.now_ms())
    if done.applied:
        log.info("clean-up: %d archived, %d deleted, %d purged", done.archived, done.deleted, done.purged)
    return msgspec.convert(msgspec.to_builtins(done), results.SessionsCleanup)


async def erase(
    services: GatewayServices, _caller: Caller, asked: params.SessionsEraseParams
) -> results.SessionsErased:
    if not asked.confirm:
        raise InvalidRequest("sessions.erase cannot be undone; send confirm: true to go ahead")
    if (asked.key is None) == (asked.person is None):
        raise InvalidRequest("sessions.erase: name a key or a person, exactly one of them")
    now_ms = services.clock.now_ms()
    if asked.person is not None:
        who = asked.person
        person = known_as(who.channel, who.peer_id, who.account_id)
        receipt = await services.upkeep.erase_person(person, now_ms=now_ms)
    else:
        assert asked.key is not None
        session_key = meant_key(services, asked.key, asked.agent_id)
        row = await services.store.session(session_key)
        receipt = await services.upkeep.erase_session(session_key, now_ms=now_ms)
        if row is not None:
            # What was erased is not told again.
            gone = msgspec.structs.replace(row, first_text=None, last_text=None)
            services.emit(SessionChanged(gone, "delete"))
    log.info("erased on request: receipt %s", receipt.subject)
    return results.SessionsErased(ok=True, receipt=msgspec.to_builtins(receipt))


async def export(
    services: GatewayServices, _caller: Caller, asked: params.SessionsExportParams
) -> results.SessionsExported:
    view = View(asked.format, asked.redact)
    answer = await services.upkeep.export_page(ExportAsked(asked.key, asked.agent_id, view, asked.cursor))
    page = answer.page
    return results.SessionsExported(
        key=answer.session_key,
        session_id=answer.session_id,
        agent_id=answer.agent_id,
        data=page.data,
        seq=page.seq,
        last_seq=page.last_seq,
        cursor=page.cursor,
    )


async def back_up(
    services: GatewayServices, _caller: Caller, asked: params.BackupCreateParams
) -> results.BackupCreated:
    folder = Path(asked.output)
    if not folder.is_absolute():
        raise InvalidRequest("backup.create: output must be an absolute path on the gateway's machine")
    now_ms = services.clock.now_ms()
    try:
        manifest = await services.upkeep.back_up(folder, lambda _done, _all: None, now_ms=now_ms)
    except OSError as error:
        raise InvalidRequest(f"cannot write the backup {folder}: {error.strerror or error}") from error
    log.info("backup of %d inputs written to %s", manifest.last_admission, folder)
    return results.BackupCreated(ok=True, backup=str(folder), manifest=msgspec.to_builtins(manifest))
