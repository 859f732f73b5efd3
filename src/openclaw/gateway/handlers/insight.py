"""explain, security.audit: why things are as they are, and what to look at. Nothing is changed by asking."""

from __future__ import annotations

import msgspec

from openclaw.gateway.services import Caller, GatewayServices
from openclaw.protocol import params_insight as params
from openclaw.protocol import results_insight as results


async def explain(
    services: GatewayServices, _caller: Caller, asked: params.ExplainParams
) -> results.Explained:
    told = await services.explain(asked)
    return msgspec.convert(msgspec.to_builtins(told), results.Explained)


async def audit(
    services: GatewayServices, _caller: Caller, asked: params.SecurityAuditParams
) -> results.SecurityAudited:
    report = await services.audit(asked)
    return msgspec.convert(msgspec.to_builtins(report), results.SecurityAudited)
