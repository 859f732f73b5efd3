"""What sub-agents may use, who may be spawned, and who may run commands (SPAWN-6..12)."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from openclaw.domain.entry import SubagentRole
from openclaw.domain.toolpolicy import (
    OWNER_TOOLS,
    SESSION_TOOLS,
    TOOL_GROUPS,
    MaySpawn,
    MayUse,
    Refused,
    Removed,
    SpawnAgents,
    SpawnForbidden,
    SpawnInto,
    SubagentFacts,
    ToolRules,
    ToolStages,
    decide_spawn_agent,
    decide_spawn_limits,
    decide_tool_use,
    effective_tools,
    spawnable_agents,
)

ALL_TOOLS = tuple(dict.fromkeys(tool for group in TOOL_GROUPS.values() for tool in group))
NO_RULES = ToolRules()


def subagent_tools(
    role: SubagentRole,
    depth: int,
    max_depth: int,
    rules: ToolRules = NO_RULES,
    parent_tools: tuple[str, ...] | None = None,
) -> set[str]:
    facts = SubagentFacts(role=role, depth=depth, max_depth=max_depth, rules=rules, parent_tools=parent_tools)
    return set(effective_tools(ALL_TOOLS, ToolStages(subagent=facts)).tools)


@pytest.mark.spec("SPAWN-9", "SPAWN-10")
def test_a_leaf_has_everything_but_session_tools() -> None:
    assert subagent_tools("leaf", 1, 1) == set(ALL_TOOLS) - set(SESSION_TOOLS) - {"cron", "gateway"}
    assert subagent_tools("leaf", 2, 3) == set(ALL_TOOLS) - set(SESSION_TOOLS) - {"cron", "gateway"}


@pytest.mark.spec("SPAWN-9")
def test_an_orchestrator_also_manages_children() -> None:
    orchestration = {"sessions_spawn", "subagents", "sessions_list", "sessions_history", "sessions_yield"}
    assert subagent_tools("orchestrator", 1, 2) == subagent_tools("leaf", 1, 2) | orchestration


@pytest.mark.spec("SPAWN-9", "SPAWN-11")
def test_depth_and_not_the_role_decides_about_spawning() -> None:
    """A limit that was lowered after the spawn holds at once (AMB-4)."""
    assert "sessions_spawn" in subagent_tools("orchestrator", 1, 2)
    assert "sessions_spawn" not in subagent_tools("orchestrator", 2, 2)
    assert "sessions_spawn" not in subagent_tools("orchestrator", 3, 2)
    assert "sessions_list" in subagent_tools("orchestrator", 2, 2)
    facts = SubagentFacts(role="orchestrator", depth=2, max_depth=2)
    removed = effective_tools(("Sessions_Spawn",), ToolStages(subagent=facts)).removed
    assert removed == (Removed("Sessions_Spawn", "subagent", "depth 2 of 2"),)
    assert SubagentFacts(role="leaf", depth=1).max_depth == 1


@pytest.mark.spec("SPAWN-11")
@pytest.mark.parametrize("tool", ["gateway", "agents_list", "session_status", "cron", "sessions_send"])
@pytest.mark.parametrize("role", ["leaf", "orchestrator"])
def test_tools_denied_to_every_subagent(tool: str, role: SubagentRole) -> None:
    facts = SubagentFacts(role=role, depth=1, max_depth=5)
    removed = effective_tools((tool,), ToolStages(subagent=facts)).removed
    assert removed == (Removed(tool, "subagent", "denied to sub-agents"),)


@pytest.mark.spec("SPAWN-11")
@pytest.mark.parametrize("tool", ["subagents", "sessions_list", "sessions_history", "sessions_spawn"])
def test_tools_denied_to_leaves_only(tool: str) -> None:
    leaf = SubagentFacts(role="leaf", depth=1, max_depth=2)
    removed = effective_tools((tool,), ToolStages(subagent=leaf)).removed
    assert removed == (Removed(tool, "subagent", "denied to leaf sub-agents"),)
    orchestrator = SubagentFacts(role="orchestrator", depth=1, max_depth=2)
    assert effective_tools((tool,), ToolStages(subagent=orchestrator)).tools == (tool,)


@pytest.mark.spec("SPAWN-11")
def test_also_allow_gives_back_session_tools_and_nothing_else() -> None:
    rules = ToolRules(also_allow=("sessions_send", "Session_*", "sessions_spawn", "cron", "gateway"))
    given_back = subagent_tools("leaf", 1, 1, rules) - subagent_tools("leaf", 1, 1)
    assert given_back == {"sessions_send", "session_status"}
    # Below the depth limit spawning can be given back too.
    assert "sessions_spawn" in subagent_tools("leaf", 1, 2, rules)
    assert subagent_tools("leaf", 1, 2, ToolRules(also_allow=("group:sessions",))) >= set(SESSION_TOOLS)


@pytest.mark.spec("SPAWN-10", "SPAWN-11")
def test_deny_adds_and_allow_makes_it_allow_only() -> None:
    denied = ToolRules(deny=("exec",), also_allow=("exec", "sessions_list"))
    assert subagent_tools("leaf", 1, 1, denied) == (subagent_tools("leaf", 1, 1) | {"sessions_list"}) - {
        "exec"
    }
    only = ToolRules(allow=("read", "sessions_send"), also_allow=("sessions_list",))
    # Naming a denied tool in `allow` does not give it back; `alsoAllow` does.
    assert subagent_tools("leaf", 1, 1, only) == {"read", "sessions_list"}


@pytest.mark.spec("SPAWN-10")
def test_a_child_never_has_more_than_its_parent() -> None:
    rules = ToolRules(also_allow=("sessions_list",))
    assert subagent_tools("leaf", 1, 1, rules, ("READ", "sessions_send")) == {"read"}
    assert subagent_tools("leaf", 1, 1, rules, ()) == set()
    facts = SubagentFacts(role="leaf", depth=1, parent_tools=("read",))
    removed = effective_tools(("exec",), ToolStages(subagent=facts)).removed
    assert removed == (Removed("exec", "subagent", "not a tool of the parent"),)


# -- who may be spawned ----------------------------------------------------------------------------------

CONFIGURED = ("main", "work", "home")


@pytest.mark.spec("SPAWN-6", "AGL-1", "AGL-2")
def test_which_agents_can_be_spawned() -> None:
    assert spawnable_agents("work", None, CONFIGURED) == SpawnAgents(False, ("work",))
    assert spawnable_agents("work", (), CONFIGURED) == SpawnAgents(False, ("work",))
    assert spawnable_agents("work", ("*",), CONFIGURED) == SpawnAgents(True, ("work", "home", "main"))
    assert spawnable_agents("work", (" * ",), CONFIGURED) == SpawnAgents(True, ("work", "home", "main"))
    assert spawnable_agents("work", ("main", "HOME", "work"), CONFIGURED) == SpawnAgents(
        False, ("work", "home", "main")
    )
    assert spawnable_agents("main", ("h*", "ghost", " "), CONFIGURED) == SpawnAgents(
        False, ("main", "ghost", "home")
    )


@pytest.mark.spec("SPAWN-6")
def test_without_a_list_only_the_own_agent() -> None:
    assert decide_spawn_agent("work", "work", None, CONFIGURED) == SpawnInto("work")
    assert decide_spawn_agent("work", " WORK ", None, CONFIGURED) == SpawnInto("work")
    refused = decide_spawn_agent("work", "main", None, CONFIGURED)
    assert refused == SpawnForbidden(
        "agent-not-allowed", "This agent may not be spawned here. Allowed: work."
    )
    assert decide_spawn_agent("work", "main", ("*",), CONFIGURED) == SpawnInto("main")


@pytest.mark.spec("SPAWN-7")
def test_leaving_the_agent_out_means_the_own_one() -> None:
    for allow in (None, (), ("main",), ("*",)):
        assert decide_spawn_agent("work", None, allow, CONFIGURED) == SpawnInto("work")
    refused = decide_spawn_agent("work", None, ("main",), CONFIGURED, require_agent_id=True)
    assert refused == SpawnForbidden("agent-required", "Name an agentId. Allowed: work, main.")
    named = decide_spawn_agent("work", "main", ("main",), CONFIGURED, require_agent_id=True)
    assert named == SpawnInto("main")


@pytest.mark.spec("SPAWN-7")
def test_naming_the_own_agent_needs_it_in_a_set_list() -> None:
    assert decide_spawn_agent("work", "work", ("main", "work"), CONFIGURED) == SpawnInto("work")
    assert decide_spawn_agent("work", "work", ("main",), CONFIGURED) == SpawnForbidden(
        "agent-not-allowed", "This agent may not be spawned here. Allowed: main."
    )
    assert decide_spawn_agent("work", "work", ("main", "home"), CONFIGURED) == SpawnForbidden(
        "agent-not-allowed", "This agent may not be spawned here. Allowed: home, main."
    )
    assert decide_spawn_agent("work", "work", (), CONFIGURED) == SpawnForbidden(
        "agent-not-allowed",
        "This agent may not be spawned here. Allowed: none by name; leave agentId out for the own agent.",
    )


@pytest.mark.spec("SPAWN-7")
def test_a_denial_lists_what_is_allowed_and_hides_what_exists() -> None:
    existing = decide_spawn_agent("work", "home", ("main",), CONFIGURED)
    invented = decide_spawn_agent("work", "no such agent\x00", ("main",), CONFIGURED)
    assert existing == invented
    assert existing == SpawnForbidden(
        "agent-not-allowed", "This agent may not be spawned here. Allowed: work, main."
    )
    assert decide_spawn_agent("work", "ghost", ("*",), CONFIGURED) == SpawnForbidden(
        "agent-unknown", "No such agent is configured. Allowed: work, home, main."
    )


# -- limits ------------------------------------------------------------------------------------------------


@pytest.mark.spec("SPAWN-9", "SPAWN-12")
@pytest.mark.parametrize(
    ("depth", "max_depth", "child"),
    [
        (0, 1, MaySpawn(1, "leaf", "none")),
        (0, 2, MaySpawn(1, "orchestrator", "children")),
        (1, 2, MaySpawn(2, "leaf", "none")),
        (1, 3, MaySpawn(2, "orchestrator", "children")),
        (4, 5, MaySpawn(5, "leaf", "none")),
        # out of range
        (0, 0, MaySpawn(1, "leaf", "none")),
        (4, 6, MaySpawn(5, "leaf", "none")),
    ],
)
def test_depth_makes_the_role_of_the_child(depth: int, max_depth: int, child: MaySpawn) -> None:
    assert decide_spawn_limits(depth=depth, max_depth=max_depth, active_children=0, max_children=5) == child


@pytest.mark.spec("SPAWN-12")
@pytest.mark.parametrize(
    ("depth", "max_depth", "words"),
    [(1, 1, "depth 1 of 1"), (2, 2, "depth 2 of 2"), (3, 2, "depth 3 of 2"), (5, 9, "depth 5 of 5")],
)
def test_the_depth_limit(depth: int, max_depth: int, words: str) -> None:
    refused = decide_spawn_limits(depth=depth, max_depth=max_depth, active_children=0, max_children=5)
    assert refused == SpawnForbidden("depth", f"Sub-agents may not spawn deeper: {words}.")


@pytest.mark.spec("SPAWN-12")
@pytest.mark.parametrize(
    ("active", "most", "words"),
    [(5, 5, "5 of 5"), (6, 5, "6 of 5"), (1, 0, "1 of 1"), (200, 900, "200 of 200")],
)
def test_the_children_limit(active: int, most: int, words: str) -> None:
    refused = decide_spawn_limits(depth=0, max_depth=1, active_children=active, max_children=most)
    assert refused == SpawnForbidden("children", f"Too many active sub-agents: {words}.")
    below = decide_spawn_limits(depth=0, max_depth=1, active_children=active - 2, max_children=most)
    assert isinstance(below, MaySpawn)


@pytest.mark.spec("SPAWN-9", "SPAWN-12")
@settings(max_examples=100, deadline=None)
@given(st.integers(-3, 9))
def test_a_chain_of_spawns_ends_at_the_depth_limit(max_depth: int) -> None:
    depth, roles = 0, []
    while True:
        decision = decide_spawn_limits(depth=depth, max_depth=max_depth, active_children=0, max_children=1)
        if isinstance(decision, SpawnForbidden):
            break
        depth = decision.depth
        roles.append(decision.role)
    assert depth == min(max(max_depth, 1), 5)
    assert roles[-1] == "leaf"
    assert set(roles[:-1]) <= {"orchestrator"}


# -- who may run commands ----------------------------------------------------------------------------------


@pytest.mark.spec("TOOL-4")
@pytest.mark.parametrize("tool", ["exec", "process", "write", "edit", "apply_patch", "EXEC"])
def test_commands_run_for_owners_or_inside_the_sandbox(tool: str) -> None:
    """AMB-35: others get a refusal that names both ways out."""
    name = tool.lower()
    assert name in OWNER_TOOLS
    assert decide_tool_use(tool, caller_is_owner=True, sandboxed=False, sandbox_backend=False) == MayUse()
    assert decide_tool_use(tool, caller_is_owner=False, sandboxed=True, sandbox_backend=True) == MayUse()
    refused = decide_tool_use(tool, caller_is_owner=False, sandboxed=False, sandbox_backend=True)
    assert refused == Refused(
        "owner-only",
        f"{name} runs for owners only, or inside the sandbox. Add the sender to "
        "commands.ownerAllowFrom, or set agents.defaults.sandbox.mode.",
    )


@pytest.mark.spec("TOOL-4")
def test_other_tools_run_for_everybody() -> None:
    for tool in ("read", "grep", "list", "web_fetch", "sessions_list"):
        assert (
            decide_tool_use(tool, caller_is_owner=False, sandboxed=False, sandbox_backend=False) == MayUse()
        )


@pytest.mark.spec("TOOL-4")
@pytest.mark.parametrize("tool", ["read", "write", "edit", "list", "grep", "apply_patch", "exec", "Process"])
@pytest.mark.parametrize("owner", [True, False])
def test_a_sandbox_without_a_backend_names_the_missing_part(tool: str, owner: bool) -> None:
    """AMB-34: being sandboxed is a policy fact, with or without a backend."""
    refused = decide_tool_use(tool, caller_is_owner=owner, sandboxed=True, sandbox_backend=False)
    assert refused == Refused(
        "no-sandbox-backend",
        f"{tool.lower()} needs a sandbox, and no sandbox backend is installed. "
        "Install bubblewrap (apt install bubblewrap), or set agents.defaults.sandbox.mode to off.",
    )
    broken = decide_tool_use(
        tool, caller_is_owner=owner, sandboxed=True, sandbox_backend=False, problem="it is shut. Open it"
    )
    assert broken == Refused(
        "no-sandbox-backend",
        f"{tool.lower()} needs a sandbox, and it is shut. Open it, "
        "or set agents.defaults.sandbox.mode to off.",
    )
    for free in ("web_fetch", "sessions_list", "memory_get"):
        assert decide_tool_use(free, caller_is_owner=owner, sandboxed=True, sandbox_backend=False) == MayUse()
