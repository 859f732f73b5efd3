"""outbox.list, outbox.get, outbox.retry, outbox.drop: deliveries that a person looks after."""

from __future__ import annotations

import logging

from openclaw.domain.keys import canonical_key, format_key
from openclaw.gateway.services import Caller, GatewayServices
from openclaw.protocol import params_outbox as params
from openclaw.protocol import results_outbox as results
from openclaw.store.outboxdesk import DeliveryQuery, delivery_view

log = logging.getLogger("openclaw.gateway")


async def list_deliveries(
    services: GatewayServices, _caller: Caller, asked: params.OutboxListParams
) -> results.OutboxList:
    settings = services.settings()
    key = asked.session_key
    if key is not None:
        key = format_key(canonical_key(key, agent_id=settings.default_agent, settings=settings.keys))
    query = DeliveryQuery(
        state=asked.state or "", channel=asked.channel or "", session_key=key or "", limit=asked.limit
    )
    page = await services.outbox.page(query if asked.before is None else query.continued(asked.before))
    return results.OutboxList(
        ts=services.clock.now_ms(),
        deliveries=[delivery_view(row) for row in page.deliveries],
        states=page.states,
        before=page.before,
    )


async def get(
    services: GatewayServices, _caller: Caller, asked: params.OutboxItemParams
) -> results.OutboxItem:
    row = await services.outbox.get(asked.delivery_no)
    return results.OutboxItem(ok=True, delivery=delivery_view(row, whole=True))


async def retry(
    services: GatewayServices, _caller: Caller, asked: params.OutboxItemParams
) -> results.OutboxItem:
    row = await services.outbox.retry(asked.delivery_no, now_ms=services.clock.now_ms())
    log.info("delivery %d on %s is sent again on request", row.delivery_no, row.channel)
    services.channels.postman.wake(row.channel)
    return results.OutboxItem(ok=True, delivery=delivery_view(row, whole=True))


async def drop(
    services: GatewayServices, _caller: Caller, asked: params.OutboxItemParams
) -> results.OutboxItem:
    row = await services.outbox.drop(asked.delivery_no)
    log.info(
        "delivery %d on %s, %s until now, was dropped on request", row.delivery_no, row.channel, row.state
    )
    return results.OutboxItem(ok=True, delivery=delivery_view(row, whole=True))
