"""The session tools of a gateway, with what they take from its configuration.

Part of the composition root: a new session tool is made here and nowhere else.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from msgspec import Struct

from openclaw import __version__
from openclaw.app.settings import SettingsSource
from openclaw.config.agent_view import agent, agent_ids
from openclaw.config.load import LoadedConfig
from openclaw.domain.toolpolicy import SpawnAgents, spawnable_agents
from openclaw.engine.events import EventSink
from openclaw.engine.ports import Tool
from openclaw.engine.tools.sessions.agents_list import AgentsListTool
from openclaw.engine.tools.sessions.powers import Powers as Acting
from openclaw.engine.tools.sessions.reach import Reach
from openclaw.engine.tools.sessions.rows import RowView
from openclaw.engine.tools.sessions.session_status import Powers, SessionStatusTool
from openclaw.engine.tools.sessions.sessions_history import SessionsHistoryTool
from openclaw.engine.tools.sessions.sessions_list import SessionsListTool
from openclaw.engine.tools.sessions.sessions_search import SessionsSearchTool
from openclaw.engine.tools.sessions.sessions_send import SessionsSendTool
from openclaw.engine.tools.sessions.sessions_spawn import SessionsSpawnTool
from openclaw.engine.tools.sessions.sessions_yield import SessionsYieldTool
from openclaw.engine.tools.sessions.subagents import SubagentsTool
from openclaw.store.database import Database
from openclaw.store.recall import Recall
from openclaw.store.records import SessionRow
from openclaw.store.store import Store


class ToolGround(Struct, frozen=True):
    """What the tools stand on; `in_force` is asked anew each time, so that a reload counts."""

    in_force: Callable[[], LoadedConfig]
    env: Mapping[str, str]
    source: SettingsSource
    secrets: Callable[[], frozenset[str]]
    emit: EventSink

    def spawnable(self, agent_id: str) -> SpawnAgents:
        """The agents that sessions of this one may spawn; an agent that is gone may spawn itself only."""
        config = self.in_force().config
        known = agent_ids(config)
        allow = agent(config, agent_id, self.env).subagents.allow_agents if agent_id in known else None
        return spawnable_agents(agent_id, allow, known)

    def transcript_path(self, row: SessionRow) -> str | None:
        """Where `sessions export --save` writes the transcript (AMB-6)."""
        from openclaw.app.offline import describe_export  # it imports the gateway, which imports this room

        exported = describe_export(
            row.session_key, row.entry.session_id, row.agent_id, "jsonl", self.in_force(), self.env
        )
        return None if exported.saved_as is None else str(exported.saved_as)


def session_tools(database: Database, ground: ToolGround, acting: Acting) -> tuple[Tool, ...]:
    settings, secrets = ground.source.current, ground.secrets
    store, recall = Store(database), Recall(database)
    reach = Reach(recall, lambda: settings().keys, ground.source.visibility)
    powers = Powers(settings, ground.source.check_model, ground.emit, __version__)
    return (
        SessionsListTool(store, recall, reach, RowView(settings, ground.transcript_path), secrets),
        SessionsHistoryTool(reach, recall, secrets),
        SessionsSearchTool(store, reach, secrets),
        SessionStatusTool(store, recall, reach, powers),
        AgentsListTool(settings, ground.spawnable),
        SessionsSendTool(reach, acting),
        SessionsSpawnTool(acting),
        SessionsYieldTool(),
        SubagentsTool(acting),
    )
