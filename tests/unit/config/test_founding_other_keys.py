"""Keys outside `session.*` that the founding documents name, one test each (CFG-20)."""

from __future__ import annotations

import pytest

from openclaw.config import views
from openclaw.config.agent_view import ResolvedAgent
from openclaw.domain.toolpolicy import (
    SpawnForbidden,
    SpawnInto,
    SubagentFacts,
    ToolStages,
    decide_spawn_agent,
    effective_tools,
)
from tests.unit.config.reading import config_of, problems_of, warnings_of

ENV = {"HOME": "/home/ann"}
TOOLS = ("read", "message", "sessions_list", "sessions_send", "sessions_spawn", "subagents", "session_status")


def refused(text: str) -> str:
    [problem] = problems_of(text)
    return problem.partition(": ")[0]


def agent(text: str, agent_id: str = "main") -> ResolvedAgent:
    return views.agent(config_of(text), agent_id, ENV)


@pytest.mark.spec("CFG-20", "SPAWN-6", "SPAWN-7")
def test_agents_list_subagents_allow_agents() -> None:
    text = """{agents: {
      defaults: {subagents: {allowAgents: ["*"]}},
      list: [{id: "main"}, {id: "work", subagents: {allowAgents: ["home"]}}, {id: "home"}],
    }}"""
    configured = views.agent_ids(config_of(text))
    own = agent(text, "work").subagents.allow_agents
    assert own == ("home",)
    assert decide_spawn_agent("work", "home", own, configured) == SpawnInto("home")
    assert isinstance(decide_spawn_agent("work", "main", own, configured), SpawnForbidden)
    inherited = agent(text, "main").subagents.allow_agents
    assert decide_spawn_agent("main", "work", inherited, configured) == SpawnInto("work")
    assert agent("{}").subagents.allow_agents is None
    assert (
        agent("{agents: {list: [{id: 'main', subagents: {allowAgents: []}}]}}").subagents.allow_agents == ()
    )
    wrong = "{agents: {list: [{id: 'a', subagents: {allowAgents: 'home'}}]}}"
    assert refused(wrong) == "agents.list[0].subagents.allowAgents"


@pytest.mark.spec("CFG-20", "ANN-11")
def test_agents_defaults_subagents_archive_after_minutes() -> None:
    base = "{agents: {defaults: {subagents: {archiveAfterMinutes: %s}}}}"
    assert agent("{}").subagents.archive_after_minutes == 60
    assert agent(base % "90").subagents.archive_after_minutes == 90
    assert agent(base % "0").subagents.archive_after_minutes == 0
    assert agent(base % "'1d'").subagents.archive_after_minutes == 1440
    assert refused(base % "-1") == "agents.defaults.subagents.archiveAfterMinutes"


@pytest.mark.spec("CFG-20", "SPAWN-12")
def test_agents_defaults_subagents_max_spawn_depth() -> None:
    base = "{agents: {defaults: {subagents: {maxSpawnDepth: %s}}}}"
    assert agent("{}").subagents.max_spawn_depth == 1
    assert [agent(base % depth).subagents.max_spawn_depth for depth in (1, 5)] == [1, 5]
    for wrong in (0, 6, 1.5, "'2'"):
        assert refused(base % wrong) == "agents.defaults.subagents.maxSpawnDepth"


@pytest.mark.spec("CFG-20", "VIS-3")
def test_agents_defaults_sandbox_session_tools_visibility() -> None:
    base = "{agents: {defaults: {sandbox: {sessionToolsVisibility: '%s'}}}}"
    assert views.visibility_policy(config_of("{}"), "main").sandbox_session_tools == "spawned"
    assert views.visibility_policy(config_of(base % "all"), "main").sandbox_session_tools == "all"
    assert warnings_of(base % "spawned") == []
    assert len(warnings_of(base % "all")) == 1
    assert refused(base % "none") == "agents.defaults.sandbox.sessionToolsVisibility"


@pytest.mark.spec("CFG-20", "SPAWN-10", "SPAWN-11")
def test_tools_subagents_tools() -> None:
    text = """{tools: {subagents: {tools: {
      deny: ["read"], alsoAllow: ["sessions_list"], allow: ["message", "read"],
    }}}}"""
    rules = views.subagent_tool_rules(config_of(text))
    stages = ToolStages(subagent=SubagentFacts(role="leaf", depth=1, rules=rules))
    assert effective_tools(TOOLS, stages).tools == ("message", "sessions_list")
    default = ToolStages(
        subagent=SubagentFacts(role="leaf", depth=1, rules=views.subagent_tool_rules(config_of("{}")))
    )
    assert effective_tools(TOOLS, default).tools == ("read", "message")
    assert refused("{tools: {subagents: {tools: {deny: 'read'}}}}") == "tools.subagents.tools.deny"
    assert refused("{tools: {subagents: {tools: {block: []}}}}") == "tools.subagents.tools.block"


@pytest.mark.spec("CFG-20", "TOOL-3", "TOOL-5")
def test_tools_profile() -> None:
    def tools(profile: str) -> tuple[str, ...]:
        rules = views.tool_rules(config_of(f"{{tools: {{profile: '{profile}'}}}}"))
        return effective_tools(TOOLS, ToolStages(global_rules=rules)).tools

    assert tools("minimal") == ("session_status",)
    assert "sessions_spawn" in tools("coding")
    assert tools("messaging") == ("message", "sessions_list", "sessions_send", "session_status")
    assert tools("full") == TOOLS
    assert views.tool_rules(config_of("{}")).profile is None
    assert refused("{tools: {profile: 'everything'}}") == "tools.profile"


@pytest.mark.spec("CFG-20", "TOOL-3")
def test_tools_also_allow() -> None:
    text = "{tools: {profile: 'messaging', alsoAllow: ['sessions_spawn', 'subagents']}}"
    stages = ToolStages(global_rules=views.tool_rules(config_of(text)))
    allowed = effective_tools(TOOLS, stages).tools
    assert {"sessions_spawn", "subagents"} <= set(allowed)
    assert "read" not in allowed
    assert refused("{tools: {alsoAllow: 'subagents'}}") == "tools.alsoAllow"


@pytest.mark.spec("CFG-20", "VIS-1")
def test_tools_sessions_visibility() -> None:
    assert views.visibility_policy(config_of("{}"), "main").level == "tree"
    for level in ("self", "tree", "agent", "all"):
        config = config_of(f"{{tools: {{sessions: {{visibility: '{level}'}}}}}}")
        assert views.visibility_policy(config, "main").level == level
    assert refused("{tools: {sessions: {visibility: 'everyone'}}}") == "tools.sessions.visibility"
