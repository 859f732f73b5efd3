"""system-presence, channels.status, question.list: who and what is connected.

Questions do not exist in this gateway: their list is empty, which is true.
"""

from __future__ import annotations

from openclaw.gateway.services import Caller, GatewayServices, Json
from openclaw.protocol import params_system as params
from openclaw.protocol import results_system as results


async def presence(services: GatewayServices, _caller: Caller, _asked: params.NoParams) -> list[Json]:
    return services.about.presence.entries()


async def channels(
    services: GatewayServices, _caller: Caller, _asked: params.ChannelsStatusParams
) -> results.ChannelsStatus:
    view = services.about.channels()
    return results.ChannelsStatus(
        ts=services.clock.now_ms(),
        channel_order=list(view.order),
        channel_labels=dict(view.labels),
        channel_meta=[{"id": name, "label": view.labels.get(name, name)} for name in view.order],
        channels=dict(view.states),
        channel_accounts=dict(view.accounts),
        channel_default_account_id=dict(view.default_accounts),
    )


async def questions(
    _services: GatewayServices, _caller: Caller, _asked: params.NoParams
) -> results.QuestionList:
    return results.QuestionList(questions=[])
