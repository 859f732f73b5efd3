"""The channels of one gateway, put together: reception, postman, supervisor and what shows a reply grow."""

from __future__ import annotations

from typing import Any

from openclaw.app.engine import Engine, Ground
from openclaw.channels.base import Connector
from openclaw.channels.front import Channels
from openclaw.channels.live import Listening, LiveReplies
from openclaw.channels.media import Guard
from openclaw.channels.postman import Postman
from openclaw.channels.reception import Reception
from openclaw.channels.registry import Ground as ConnectorGround
from openclaw.channels.registry import find_connector
from openclaw.channels.supervisor import Supervisor, Wanted
from openclaw.channels.threads import ThreadDesk
from openclaw.channels.webhooks import Webhooks
from openclaw.channels.welcome import welcomes
from openclaw.config import views
from openclaw.config.load import state_dir
from openclaw.config.schema import Config
from openclaw.domain.commandtable import COMMANDS
from openclaw.domain.policy import decide_send, send_facts
from openclaw.engine.commands.status import duration
from openclaw.engine.events import RunScope
from openclaw.engine.hooks import Hooks
from openclaw.engine.replies import reply_route
from openclaw.gateway.about import ChannelsView
from openclaw.store.connectors import ConnectorNotes
from openclaw.store.outbox import Delivery
from openclaw.store.senders import Senders

MOST_LINES = 20
_LABELS = {"whatsapp": "WhatsApp", "imessage": "iMessage"}


def build_channels(engine: Engine, ground: Ground, hooks: Hooks) -> Channels:
    def config_now() -> Config:
        return ground.in_force().config

    def listener(scope: RunScope) -> Listening | None:
        """Where a run's reply goes, unless the session may not send (SEND-9)."""
        run = engine.workers.active_run(scope.session_key)
        route = reply_route(run.start) if run is not None and run.run.run_id == scope.run_id else None
        if run is None or route is None or route.channel is None:
            return None
        connector = postman.connector(route.channel, route.account_id)
        facts = send_facts(run.session.entry, scope.session_key, request_channel=route.channel)
        if connector is None or decide_send(ground.source.current().send_policy, facts).action != "allow":
            return None
        wish = views.channel(config_now(), route.channel).extra.get("streaming")
        drafts = connector.abilities.editing and wish in (True, "partial")
        return Listening(route, connector, drafts, thinking=run.shown.reasoning == "stream")

    async def build(wanted: Wanted) -> Connector:
        notes = ConnectorNotes(ground.database, wanted.channel, wanted.account_id)
        menu = tuple((command.name, command.help) for command in COMMANDS)

        async def may_join(inviter: str, room_id: str, direct: bool) -> bool:
            asked = (inviter, room_id, direct)
            return await welcomes(senders, config_now(), wanted.channel, wanted.account_id, asked)

        return await find_connector(wanted.channel)(
            ConnectorGround(
                wanted.channel,
                wanted.account_id,
                wanted.options,
                ground.http,
                ground.clock,
                notes,
                menu,
                webhooks,
                may_join,
            )
        )

    def note_sent(delivery: Delivery, text: str) -> None:
        hooks.note_sent(delivery.session_key, delivery.run_id, delivery.channel, delivery.target, text)

    webhooks, senders = Webhooks(), Senders(ground.database)
    live = LiveReplies(listener, ground.clock, ground.spawn)
    guard = Guard(str(state_dir(ground.env)), str(ground.in_force().path), ground.secrets)
    postman = Postman(ground.database, ground.clock, ground.spawn, live.draft_of, guard, note_sent)
    reception = Reception(ground.database, engine.turns, config_now, ground.clock, ground.ids, postman.wake)
    engine.threads.opener = ThreadDesk(postman)
    supervisor = Supervisor(build, reception, postman, ground.clock, ground.spawn)
    return Channels(reception, postman, supervisor, live, senders, webhooks)


def view_channels(channels: Channels) -> ChannelsView:
    """How every account does, for `status`, `health` and `channels.status`."""
    accounts: dict[str, list[dict[str, Any]]] = {}
    for health in channels.supervisor.health():
        accounts.setdefault(health.channel, []).append(
            {
                "accountId": health.account_id,
                "state": health.state,
                "running": health.state == "running",
                "sinceMs": health.since_ms,
                "restarts": health.restarts,
                "lastError": health.error,
                "credentialsRefreshedAt": health.credentials_refreshed_at,
            }
        )
    for connector in channels.postman.attached():
        rows = accounts.setdefault(connector.channel, [])
        if all(row["accountId"] != connector.account_id for row in rows):
            refreshed = connector.credentials_refreshed_at
            row = {"accountId": connector.account_id, "state": "attached", "running": True}
            rows.append(row | {"credentialsRefreshedAt": refreshed})
    order = tuple(sorted(accounts))
    return ChannelsView(
        order=order,
        labels={name: _LABELS.get(name) or name.capitalize() for name in order},
        states={
            name: {"configured": True, "running": any(row["running"] for row in accounts[name])}
            for name in order
        },
        accounts=accounts,
        default_accounts={name: str(accounts[name][0]["accountId"]) for name in order},
        summary=tuple(_summary(name, row) for name in order for row in accounts[name]),
    )


def _summary(channel: str, row: dict[str, Any]) -> str:
    problem = f": {row['lastError']}" if row.get("lastError") else ""
    return f"{channel} ({row['accountId']}): {row['state']}{problem}"


def channel_lines(channels: Channels, now_ms: int) -> tuple[str, ...]:
    """What `/status` says about every account: how it does, and how old its credentials are (CMD-1)."""
    view = view_channels(channels)
    rows = [(view.labels[name], row) for name in view.order for row in view.accounts[name]]
    lines = [
        f"{label} ({row['accountId']}): {row['state']}, {_credentials(row, now_ms)}"
        for label, row in rows[:MOST_LINES]
    ]
    more = len(rows) - MOST_LINES
    return (*lines, f"{more} more accounts: openclaw channels status") if more > 0 else tuple(lines)


def _credentials(row: dict[str, Any], now_ms: int) -> str:
    refreshed = row.get("credentialsRefreshedAt")
    if refreshed is None:
        return "credentials not checked yet"
    return f"credentials refreshed {duration(now_ms - refreshed)} ago"
