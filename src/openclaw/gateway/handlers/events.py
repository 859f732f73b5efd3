"""wake, system-event, last-heartbeat: telling a session what happened (CLI-7).

The key is typed and resolved like everywhere else; an unknown agent is refused by name.
What an event does to the session is decided in `engine.waking`.
"""

from __future__ import annotations

from openclaw.domain.keys import format_key, main_session_key
from openclaw.gateway.services import Caller, GatewayServices, resolve_seed
from openclaw.protocol import params_system as params
from openclaw.protocol import results_system as results
from openclaw.store.records import SessionSeed


async def wake(services: GatewayServices, caller: Caller, asked: params.WakeParams) -> results.EventTaken:
    seed = _meant(services, caller, asked.session_key, asked.agent_id)
    if asked.mode == "now":
        await services.about.waking.wake(seed, asked.text)
    else:
        await services.about.waking.tell(seed, asked.text)
    return results.EventTaken(ok=True, session_key=seed.session_key)


async def system_event(
    services: GatewayServices, caller: Caller, asked: params.SystemEventParams
) -> results.EventTaken:
    seed = _meant(services, caller, asked.session_key, asked.agent_id)
    await services.about.waking.tell(seed, asked.text)
    return results.EventTaken(ok=True, session_key=seed.session_key)


async def last_heartbeat(
    services: GatewayServices, _caller: Caller, _asked: params.NoParams
) -> results.LastHeartbeat | None:
    """The last beat of any agent since the start; null when none was due yet."""
    beat = services.heartbeats.last
    if beat is None:
        return None
    return results.LastHeartbeat(ts=beat.ts, status=beat.status, reason=beat.reason, agent_id=beat.agent_id)


def _meant(
    services: GatewayServices, caller: Caller, session_key: str | None, agent_id: str | None
) -> SessionSeed:
    settings = services.settings()
    if session_key is None:
        owner = (agent_id or settings.default_agent).lower()
        session_key = format_key(main_session_key(owner, settings.keys))
    return resolve_seed(services, session_key, agent_id, caller.channel)
