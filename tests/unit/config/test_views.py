"""Channels, bindings and agents as the rest of the product asks for them."""

from __future__ import annotations

from pathlib import Path

import pytest

from openclaw.config import views
from openclaw.config.agent_view import ModelChoice, merge_models
from openclaw.config.agents_section import ModelChoiceConfig
from openclaw.domain.routing import Accept, Drop, Envelope, Pending, choose_agent, gate_group
from openclaw.errors import InvalidRequest
from tests.unit.config.reading import config_of, problems_of

ENV = {"HOME": "/home/ann"}

CHANNELS = """{channels: {
  defaults: {groupPolicy: "open"},
  telegram: {
    allowFrom: [111, "*"], groupPolicy: "allowlist", groupAllowFrom: ["222"], dmPolicy: "pairing",
    retry: {attempts: 3},
    groups: {
      "*": {requireMention: true, tools: {deny: ["exec"]}},
      "-100": {requireMention: false, topics: {"9": {x: 1}}, tools: {allow: ["read"], alsoAllow: ["x"]}},
      "-200": {allowFrom: [333], enabled: true},
      "-300": {enabled: false},
    },
    accounts: {biz: {groupPolicy: "disabled", groups: {}}, alt: {groupAllowFrom: ["444"], token: "t"}},
    defaultAccount: "biz",
  },
  slack: {allowFrom: ["U1"]},
}}"""


def envelope(channel: str, group: str, sender: str, *, mentioned: bool = False) -> Envelope:
    return Envelope(
        channel=channel, peer_kind="group", peer_id=group, sender_id=sender, was_mentioned=mentioned
    )


@pytest.mark.spec("CFG-21", "ROUTE-3")
@pytest.mark.parametrize(
    ("channel", "group", "sender", "outcome"),
    [
        ("telegram", "-100", "222", Accept("mention_not_required")),
        ("telegram", "-100", "999", Drop("sender_not_listed")),
        ("telegram", "-555", "222", Pending()),
        ("telegram", "-200", "333", Pending()),
        ("telegram", "-200", "222", Drop("sender_not_listed")),
        ("slack", "C1", "U1", Pending()),
        ("matrix", "!r", "@u", Pending()),
    ],
)
def test_group_rules(channel: str, group: str, sender: str, outcome: object) -> None:
    config = config_of(CHANNELS)
    rules = views.group_rules(config, channel, group)
    assert gate_group(envelope(channel, group, sender), rules, settings=views.key_settings(config)) == outcome


@pytest.mark.spec("CFG-21", "ROUTE-3")
def test_group_rules_of_an_account() -> None:
    config = config_of(CHANNELS)
    assert views.group_rules(config, "Telegram", "-100", "biz").policy == "disabled"
    assert views.group_rules(config, "telegram", "-100", "biz").groups is None
    assert views.group_rules(config, "telegram", "-100", "alt").senders == ("444",)
    assert views.group_rules(config, "telegram", "-100", "alt").policy == "allowlist"
    assert views.group_rules(config, "telegram", "-100").groups == ["*", "-100", "-200"]
    nothing = views.group_rules(config_of("{}"), "telegram", "-1")
    assert (nothing.policy, nothing.groups, nothing.senders, nothing.require_mention) == (
        "allowlist",
        None,
        None,
        True,
    )


@pytest.mark.spec("CFG-21", "TOOL-4")
def test_group_tool_rules() -> None:
    config = config_of(CHANNELS)
    assert views.group_tool_rules(config, "telegram", "-100").allow == ("read",)
    assert views.group_tool_rules(config, "telegram", "-100").also_allow == ("x",)
    assert views.group_tool_rules(config, "TELEGRAM", "-200").deny == ("exec",)
    assert views.group_tool_rules(config, "slack", "C1").deny == ()


@pytest.mark.spec("CFG-21")
def test_channel_keys_of_a_connector_are_kept() -> None:
    config = config_of(CHANNELS)
    telegram = views.channel(config, "Telegram")
    assert telegram.extra == {"retry": {"attempts": 3}}
    assert telegram.groups["-100"].extra == {"topics": {"9": {"x": 1}}}
    assert telegram.accounts["alt"].extra == {"token": "t"}
    assert (telegram.dm_policy, telegram.default_account, telegram.allow_from) == (
        "pairing",
        "biz",
        ("111", "*"),
    )
    assert views.channel(config, "irc").extra == {}
    assert config_of("{channels: {x: {extra: 5}}}").channels["x"].extra == {"extra": 5}
    assert problems_of("{channels: {x: {dmPolicy: 'any'}}}") == [
        'channels.x.dmPolicy: expected one of "allowlist", "disabled", "open", "pairing", found "any"'
    ]
    assert problems_of("{channels: {x: {groups: {a: {requireMention: 'yes'}}}}}") == [
        'channels.x.groups.a.requireMention: expected true or false, found "yes"'
    ]


@pytest.mark.spec("KEY-3")
def test_owner_ids() -> None:
    config = config_of(
        CHANNELS.replace("{channels", "{commands: {ownerAllowFrom: ['telegram:9', 111]}, channels", 1)
    )
    assert views.owner_ids(config) == ("telegram:9", "111", "U1")


@pytest.mark.spec("CFG-21", "ROUTE-1")
def test_bindings() -> None:
    text = """{agents: {list: [{id: "home"}, {id: "Work", default: true}]}, bindings: [
      {agentId: "home", match: {channel: "telegram", peer: {kind: "dm", id: 42}}, comment: "me"},
      {agentId: "work", match: {channel: "discord", guildId: "g", roles: ["admin"], accountId: "*",
        teamId: "t"}},
    ]}"""
    config = config_of(text)
    first, second = views.bindings(config)
    assert first.match.peer is not None
    assert (first.match.peer.kind, first.match.peer.id) == ("direct", "42")
    assert (second.match.guild_id, second.match.roles, second.match.account_id) == ("g", ("admin",), "*")
    assert second.match.team_id == "t"
    direct = Envelope(channel="telegram", peer_kind="direct", peer_id="42")
    refs, keys = views.agent_refs(config), views.key_settings(config)
    assert choose_agent(direct, views.bindings(config), refs, keys).agent_id == "home"
    other = Envelope(channel="telegram", peer_kind="direct", peer_id="43")
    assert choose_agent(other, views.bindings(config), refs, keys).agent_id == "work"
    assert views.default_agent_id(config) == "work"
    assert problems_of("{bindings: [{agentId: 'main'}]}") == ["bindings[0].match: required, but missing"]
    assert problems_of("{bindings: [{agentId: 'main', match: {channel: 'x'}, type: 'acp'}]}") == [
        'bindings[0].type: expected "route", found "acp"'
    ]


AGENTS = """{
  messages: {groupChat: {mentionPatterns: ["@all"]}},
  tools: {profile: "coding"},
  agents: {
    defaults: {
      workspace: "~/ws", model: {primary: "openai/a", fallbacks: ["openai/b"]}, timeoutSeconds: 100,
      thinkingDefault: "low", verboseDefault: "on", contextTokens: 9000,
      sandbox: {mode: "non-main", workspaceAccess: "rw"},
      subagents: {model: "openai/s", maxConcurrent: 3, maxChildrenPerAgent: 200, runTimeoutSeconds: 5,
        announceTimeoutMs: 10, requireAgentId: true, delegationMode: "prefer", thinking: "high"},
      heartbeat: {every: "1h", target: "last", ackMaxChars: 5},
      budget: {perDayUsd: 5, perTreeUsd: 1},
    },
    list: [
      {id: "main"},
      {id: "Work", name: "W", model: "openai/w", timeoutSeconds: 0, thinkingDefault: "off",
        workspace: "/work",
        sandbox: {mode: "all", scope: "session", sessionToolsVisibility: "spawned"},
        subagents: {maxConcurrent: 1, model: {primary: "openai/x", fallbacks: []}},
        heartbeat: {every: 0, to: 5, model: "openai/h", activeHours: {start: "08:00", end: "22:00"}},
        tools: {profile: "minimal", alsoAllow: ["read"], byProvider: {openai: {deny: ["exec"]}}},
        budget: {perDayUsd: 0}, identity: {name: "Wanda", emoji: "W"}, groupChat: {mentionPatterns: ["@w"]}},
      {id: "idle"},
    ],
  },
}"""


@pytest.mark.spec("CFG-21")
def test_an_agent_inherits_the_defaults() -> None:
    main = views.agent(config_of(AGENTS), "main", ENV)
    assert (main.agent_id, main.is_default, main.workspace) == ("main", True, Path("/home/ann/ws"))
    assert main.model == ModelChoice("openai/a", ("openai/b",))
    assert (main.timeout_seconds, main.thinking_default, main.verbose_default) == (100, "low", "on")
    assert (main.context_tokens, main.mention_patterns, main.name) == (9000, ("@all",), None)
    assert (main.sandbox.mode, main.sandbox.scope, main.sandbox.workspace_access) == (
        "non-main",
        "session",
        "rw",
    )
    limits = main.subagents
    assert (limits.model.primary, limits.max_concurrent, limits.max_children_per_agent) == (
        "openai/s",
        3,
        200,
    )
    assert (limits.run_timeout_seconds, limits.announce_timeout_ms, limits.thinking) == (5, 10, "high")
    assert (limits.require_agent_id, limits.delegation_mode) == (True, "prefer")
    assert main.heartbeat is not None
    assert (main.heartbeat.every_ms, main.heartbeat.target, main.heartbeat.ack_max_chars) == (
        3_600_000,
        "last",
        5,
    )
    assert (main.budget.per_day_usd, main.budget.per_tree_usd, main.budget.per_session_usd) == (
        5.0,
        1.0,
        None,
    )


@pytest.mark.spec("CFG-21")
def test_an_agents_own_settings_win() -> None:
    config = config_of(AGENTS)
    work = views.agent(config, " WORK ", ENV)
    assert (work.agent_id, work.name, work.is_default, work.workspace) == ("work", "W", False, Path("/work"))
    assert work.model == ModelChoice("openai/w", ("openai/b",))
    assert (work.timeout_seconds, work.thinking_default, work.verbose_default) == (0, "off", "on")
    assert (work.sandbox.mode, work.sandbox.scope, work.sandbox.workspace_access) == ("all", "session", "rw")
    assert (work.subagents.max_concurrent, work.subagents.max_children_per_agent) == (1, 200)
    assert work.subagents.model == ModelChoice("openai/x", ())
    assert work.heartbeat is not None
    assert (work.heartbeat.every_ms, work.heartbeat.to, work.heartbeat.target) == (0, "5", "last")
    assert work.heartbeat.active_hours is not None
    assert (work.heartbeat.active_hours.start, work.heartbeat.active_hours.timezone) == ("08:00", "local")
    assert (work.budget.per_day_usd, work.budget.per_tree_usd) == (0.0, 1.0)
    assert (work.identity.name, work.identity.emoji, work.mention_patterns) == ("Wanda", "W", ("@w",))
    rules = views.agent_tool_rules(config, "work")
    assert (rules.profile, rules.also_allow, rules.by_provider["openai"].deny) == (
        "minimal",
        ("read",),
        ("exec",),
    )
    assert views.agent_tool_rules(config, "main").profile is None
    assert views.visibility_policy(config, "WORK").sandbox_session_tools == "spawned"


@pytest.mark.spec("CFG-21", "SPAWN-12")
def test_built_in_values_hold_without_a_file() -> None:
    main = views.agent(config_of("{}"), "main", {"OPENCLAW_STATE_DIR": "/s"})
    assert (main.workspace, main.model, main.timeout_seconds) == (
        Path("/s/workspace"),
        ModelChoice(),
        172_800,
    )
    assert (main.sandbox.mode, main.sandbox.session_tools_visibility) == ("off", "spawned")
    limits = main.subagents
    assert (limits.max_concurrent, limits.archive_after_minutes, limits.max_spawn_depth) == (8, 60, 1)
    assert (limits.max_children_per_agent, limits.run_timeout_seconds, limits.announce_timeout_ms) == (
        5,
        0,
        120_000,
    )
    assert (limits.require_agent_id, limits.delegation_mode, limits.allow_agents) == (False, "suggest", None)
    assert main.heartbeat is None
    assert views.default_agent_id(config_of("{}")) == "main"
    assert views.agent_ids(config_of("{}")) == ("main",)


@pytest.mark.spec("AUTO-7")
def test_a_heartbeat_that_is_asked_for_has_its_defaults() -> None:
    main = views.agent(config_of("{agents: {defaults: {heartbeat: {}}}}"), "main", ENV)
    assert main.heartbeat is not None
    assert (main.heartbeat.every_ms, main.heartbeat.ack_max_chars, main.heartbeat.target) == (
        None,
        300,
        "none",
    )
    times = "{agents: {defaults: {heartbeat: {activeHours: {start: '%s'}}}}}"
    for wrong in ("8:00", "24:01", "25:00", "noon"):
        [problem] = problems_of(times % wrong)
        assert problem.startswith("agents.defaults.heartbeat.activeHours.start: expected a time of day")


@pytest.mark.spec("CFG-21", "SPAWN-12")
@pytest.mark.parametrize(("children", "fits"), [(0, False), (1, True), (200, True), (201, False)])
def test_children_per_agent_range(children: int, fits: bool) -> None:
    problems = problems_of(f"{{agents: {{defaults: {{subagents: {{maxChildrenPerAgent: {children}}}}}}}}}")
    assert (problems == []) is fits


@pytest.mark.spec("CFG-21")
def test_workspaces_of_further_agents_stand_beside_the_first() -> None:
    config = config_of(AGENTS)
    assert views.agent(config, "idle", ENV).workspace == Path("/home/ann/ws-idle")
    plain = config_of("{agents: {list: [{id: 'a'}, {id: 'b'}]}}")
    assert views.agent(plain, "b", ENV).workspace == Path("/home/ann/.openclaw/workspace-b")
    assert views.agent(plain, "a", ENV).workspace == Path("/home/ann/.openclaw/workspace")


@pytest.mark.spec("CFG-21")
def test_an_unknown_agent_is_refused_by_name() -> None:
    with pytest.raises(InvalidRequest, match='no agent "ghost"; configured: main, work, idle'):
        views.agent(config_of(AGENTS), "ghost", ENV)


@pytest.mark.spec("LOOP-7")
@pytest.mark.parametrize(
    ("own", "base", "merged"),
    [
        (None, None, ModelChoice()),
        (None, "p/a", ModelChoice("p/a")),
        ("p/b", "p/a", ModelChoice("p/b")),
        ("p/b", ModelChoiceConfig("p/a", ("p/c",)), ModelChoice("p/b", ("p/c",))),
        (ModelChoiceConfig("p/b", ()), ModelChoiceConfig("p/a", ("p/c",)), ModelChoice("p/b", ())),
        (ModelChoiceConfig(None, ("p/d",)), ModelChoiceConfig("p/a", ("p/c",)), ModelChoice("p/a", ("p/d",))),
    ],
)
def test_model_choices_merge(
    own: str | ModelChoiceConfig | None, base: str | ModelChoiceConfig | None, merged: ModelChoice
) -> None:
    assert merge_models(own, base) == merged
