"""logs.tail and diagnostics.list: the gateway's log, and the few events of its life that outlive it."""

from __future__ import annotations

import asyncio
from functools import partial

from openclaw.gateway.logtail import read_page
from openclaw.gateway.services import Caller, GatewayServices
from openclaw.protocol import params_system as params
from openclaw.protocol import results_system as results


async def tail(services: GatewayServices, _caller: Caller, asked: params.LogsTailParams) -> results.LogsTail:
    read = partial(
        read_page, services.about.logs, limit=asked.limit, max_bytes=asked.max_bytes, cursor=asked.cursor
    )
    page = await asyncio.to_thread(read)
    return results.LogsTail(
        file=page.file,
        cursor=page.cursor,
        size=page.size,
        lines=list(page.lines),
        truncated=page.truncated,
        reset=page.reset,
    )


async def events(
    services: GatewayServices, _caller: Caller, asked: params.DiagnosticsListParams
) -> results.DiagnosticsList:
    found = await services.diagnostics.newest(asked.limit)
    return results.DiagnosticsList(
        events=[results.DiagnosticShown(at=one.at, kind=one.kind, detail=one.detail) for one in found]
    )
