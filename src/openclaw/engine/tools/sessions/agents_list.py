"""agents_list: the agents that this session may hand work to with sessions_spawn (AGL-1, AGL-2)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from openclaw.domain.toolpolicy import SpawnAgents
from openclaw.engine.ports import ToolContext, ToolOutcome, ToolSpec
from openclaw.engine.settings import EngineSettings
from openclaw.engine.tools.sessions.parameters import Parameters, answer, read_parameters, tool_spec


class AgentsListParameters(Parameters, frozen=True):
    """None."""


class AgentsListTool:
    """`spawnable` says which agents sessions of an agent may spawn."""

    def __init__(
        self, settings: Callable[[], EngineSettings], spawnable: Callable[[str], SpawnAgents]
    ) -> None:
        self._settings = settings
        self._spawnable = spawnable

    @property
    def spec(self) -> ToolSpec:
        return _SPEC

    async def call(self, arguments: dict[str, Any], context: ToolContext) -> ToolOutcome:
        read_parameters(arguments, AgentsListParameters)
        allowed, settings = self._spawnable(context.agent_id), self._settings()
        return answer(
            {
                "requester": context.agent_id,
                "allowAny": allowed.allow_any,
                "agents": [show_agent(agent_id, settings) for agent_id in allowed.agent_ids],
            }
        )


def show_agent(agent_id: str, settings: EngineSettings) -> dict[str, Any]:
    agent = settings.agents.get(agent_id)
    if agent is None:
        return {"id": agent_id, "configured": False}
    shown: dict[str, Any] = {"id": agent_id}
    if agent.name != agent_id:
        shown["name"] = agent.name
    model = agent.default_model
    return {**shown, "configured": True, "model": f"{model.provider}/{model.model}"}


_SPEC = tool_spec(
    "agents_list",
    "List the agents that you may pass as agentId to sessions_spawn; your own comes first.",
    AgentsListParameters,
)
