"""config.get, config.set, config.patch, config.apply, config.schema: the config file, for its owner.

Changes are compare-and-set on the hash that the client read, and few per minute. What
the file may hold is decided by validation; see `gateway.configdoor`.
"""

from __future__ import annotations

import asyncio
import logging

from openclaw.gateway.configdoor import ConfigWritten, issue, schema_of_config
from openclaw.gateway.services import Caller, GatewayServices
from openclaw.protocol import params_system as params
from openclaw.protocol import results_system as results

log = logging.getLogger("openclaw.gateway")


async def get(services: GatewayServices, _caller: Caller, _asked: params.NoParams) -> results.ConfigRead:
    shown = await services.about.config.show()
    return results.ConfigRead(
        path=shown.path,
        exists=shown.exists,
        raw=shown.raw,
        parsed=shown.parsed,
        resolved=shown.config,
        valid=not shown.issues,
        config=shown.config,
        hash=shown.hash,
        issues=[issue(problem) for problem in shown.issues],
        warnings=[issue(problem) for problem in shown.warnings],
        legacy_issues=[],
    )


async def set_(
    services: GatewayServices, caller: Caller, asked: params.ConfigWriteParams
) -> results.ConfigChanged:
    """Replace the whole text; also `config.apply`, which differs in other gateways by restarting them."""
    services.about.writes.spend("config.set", caller.client)
    return _changed(await services.about.config.replace(asked.raw, asked.base_hash))


async def apply(
    services: GatewayServices, caller: Caller, asked: params.ConfigWriteParams
) -> results.ConfigChanged:
    services.about.writes.spend("config.apply", caller.client)
    return _changed(await services.about.config.replace(asked.raw, asked.base_hash))


async def patch(
    services: GatewayServices, caller: Caller, asked: params.ConfigWriteParams
) -> results.ConfigChanged:
    services.about.writes.spend("config.patch", caller.client)
    return _changed(await services.about.config.patch(asked.raw, asked.base_hash))


async def schema(services: GatewayServices, _caller: Caller, _asked: params.NoParams) -> results.ConfigSchema:
    made = await asyncio.to_thread(schema_of_config)
    return results.ConfigSchema(schema=made, ui_hints={}, version=services.version)


def _changed(written: ConfigWritten) -> results.ConfigChanged:
    plan, action = written.plan, written.action
    log.info("config changed by a client: %s", ", ".join(plan.changed_paths[:20]) or "no setting")
    return results.ConfigChanged(
        ok=True,
        path=written.shown.path,
        hash=written.shown.hash,
        config=written.shown.config,
        changed_paths=list(plan.changed_paths),
        applied=action.apply,
        restart_required=list(plan.restart_required),
        reason=action.reason,
        warnings=[issue(problem) for problem in written.shown.warnings],
    )
