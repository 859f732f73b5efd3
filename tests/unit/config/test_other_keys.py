"""The remaining keys of the configuration: parsed, refused when wrong, in their typed place (CFG-21)."""

from __future__ import annotations

import pytest

from openclaw.config import views
from openclaw.domain.queueing import resolve_queue
from tests.unit.config.reading import config_of, problems_of

pytestmark = pytest.mark.spec("CFG-21")

FULL_AGENTS = """{agents: {defaults: {
  workspace: "/w", timeoutSeconds: "1h", maxConcurrent: 2, contextTokens: 100000,
  thinkingDefault: "high", verboseDefault: "on",
  model: {primary: "openai/a", fallbacks: ["anthropic/b"]},
  models: {"openai/a": {alias: "quick", params: {temperature: 0.5}}},
  contextPruning: {mode: "off", ttl: 10, keepLastAssistants: 1, softTrimRatio: 0.1, hardClearRatio: 0.2,
    minPrunableToolChars: 5, softTrim: {maxChars: 100, headChars: 10, tailChars: 20},
    hardClear: {enabled: false, placeholder: "[gone]"}, tools: {allow: ["read"], deny: ["exec*"]}},
  compaction: {mode: "safeguard", reserveTokens: 1, reserveTokensFloor: 0, keepRecentTokens: 3,
    model: "openai/c", timeoutSeconds: 60, identifierPolicy: "custom", identifierInstructions: "keep ids",
    notifyUser: true, maxActiveTranscriptBytes: "1mb",
    memoryFlush: {enabled: false, softThresholdTokens: 9, prompt: "p", systemPrompt: "s", model: "openai/d"}},
  budget: {perSessionUsd: 1, perDayUsd: 2.5, perTreeUsd: 0},
}}}"""


def refused(text: str) -> str:
    [problem] = problems_of(text)
    return problem.partition(": ")[0]


def test_agents_defaults() -> None:
    defaults = config_of(FULL_AGENTS).agents.defaults
    assert (defaults.workspace, defaults.timeout_seconds, defaults.max_concurrent) == ("/w", 3600, 2)
    assert (defaults.context_tokens, defaults.thinking_default, defaults.verbose_default) == (
        100_000,
        "high",
        "on",
    )
    assert defaults.models["openai/a"].alias == "quick"
    assert defaults.models["openai/a"].params == {"temperature": 0.5}
    untouched = config_of("{}").agents.defaults
    assert (untouched.timeout_seconds, untouched.max_concurrent) == (172_800, 4)
    assert refused("{agents: {defaults: {thinkingDefault: 'lots'}}}") == "agents.defaults.thinkingDefault"
    assert refused("{agents: {defaults: {verboseDefault: 'loud'}}}") == "agents.defaults.verboseDefault"
    assert refused("{agents: {defaults: {maxConcurrent: 0}}}") == "agents.defaults.maxConcurrent"
    assert refused("{agents: {defaults: {contextTokens: 0}}}") == "agents.defaults.contextTokens"
    assert (
        refused("{agents: {defaults: {models: {'openai/a': 'quick'}}}}")
        == 'agents.defaults.models["openai/a"]'
    )


@pytest.mark.spec("PRUNE-2")
def test_agents_defaults_context_pruning() -> None:
    pruning = config_of(FULL_AGENTS).agents.defaults.context_pruning
    assert (pruning.mode, pruning.ttl_ms, pruning.keep_last_assistants) == ("off", 600_000, 1)
    assert (pruning.soft_trim_ratio, pruning.hard_clear_ratio) == (0.1, 0.2)
    assert (pruning.min_prunable_tool_chars, pruning.hard_clear.placeholder) == (5, "[gone]")
    trim = pruning.soft_trim
    assert (trim.max_chars, trim.head_chars, trim.tail_chars) == (100, 10, 20)
    assert (pruning.hard_clear.enabled, pruning.tools.allow, pruning.tools.deny) == (
        False,
        ("read",),
        ("exec*",),
    )
    default = config_of("{}").agents.defaults.context_pruning
    assert (default.mode, default.ttl_ms, default.keep_last_assistants) == ("cache-ttl", None, 3)
    assert (default.soft_trim_ratio, default.hard_clear_ratio) == (0.3, 0.5)
    assert default.min_prunable_tool_chars == 50_000
    assert (default.soft_trim.max_chars, default.soft_trim.head_chars, default.soft_trim.tail_chars) == (
        4000,
        1500,
        1500,
    )
    assert default.hard_clear.enabled
    assert default.hard_clear.placeholder == "[Old tool result content cleared]"
    base = "{agents: {defaults: {contextPruning: {%s}}}}"
    assert refused(base % "mode: 'always'") == "agents.defaults.contextPruning.mode"
    assert refused(base % "ttl: '5 min'") == "agents.defaults.contextPruning.ttl"


@pytest.mark.spec("COMP-5", "FLUSH-5")
def test_agents_defaults_compaction() -> None:
    compaction = config_of(FULL_AGENTS).agents.defaults.compaction
    assert (compaction.mode, compaction.model, compaction.timeout_seconds) == ("safeguard", "openai/c", 60)
    assert (compaction.reserve_tokens, compaction.reserve_tokens_floor, compaction.keep_recent_tokens) == (
        1,
        0,
        3,
    )
    assert (compaction.identifier_policy, compaction.identifier_instructions) == ("custom", "keep ids")
    assert (compaction.notify_user, compaction.max_active_transcript_bytes) == (True, 1_048_576)
    flush = compaction.memory_flush
    assert (flush.enabled, flush.soft_threshold_tokens, flush.prompt, flush.system_prompt, flush.model) == (
        False,
        9,
        "p",
        "s",
        "openai/d",
    )
    default = config_of("{}").agents.defaults.compaction
    assert (default.mode, default.reserve_tokens, default.reserve_tokens_floor) == ("default", 16_384, 20_000)
    assert (default.keep_recent_tokens, default.timeout_seconds, default.notify_user) == (20_000, 900, False)
    assert (default.identifier_policy, default.max_active_transcript_bytes) == ("strict", None)
    assert (default.memory_flush.enabled, default.memory_flush.soft_threshold_tokens) == (True, 4000)
    base = "{agents: {defaults: {compaction: {%s}}}}"
    assert refused(base % "mode: 'fast'") == "agents.defaults.compaction.mode"
    assert refused(base % "identifierPolicy: 'lax'") == "agents.defaults.compaction.identifierPolicy"
    assert refused(base % "memoryFlush: {enabled: 1}") == "agents.defaults.compaction.memoryFlush.enabled"


def test_agents_defaults_budget() -> None:
    budget = config_of(FULL_AGENTS).agents.defaults.budget
    assert (budget.per_session_usd, budget.per_day_usd, budget.per_tree_usd) == (1.0, 2.5, 0.0)
    default = config_of("{}").agents.defaults.budget
    assert (default.per_session_usd, default.per_day_usd, default.per_tree_usd) == (None, None, None)
    assert (
        refused("{agents: {defaults: {budget: {perTreeUsd: Infinity}}}}")
        == "agents.defaults.budget.perTreeUsd"
    )


def test_tools() -> None:
    text = """{tools: {
      allow: ["group:fs"], deny: ["exec"],
      byProvider: {openai: {profile: "minimal", deny: ["web_*"]}},
      sandbox: {tools: {allow: ["read"], deny: ["write"]}},
      agentToAgent: {enabled: true, allow: ["home", "w*"]},
      sessions_spawn: {attachments: {enabled: true, maxTotalBytes: "2mb", maxFiles: 3, maxFileBytes: 9,
        retainOnSessionKeep: true}},
    }}"""
    config = config_of(text)
    rules = views.tool_rules(config)
    assert (rules.allow, rules.deny) == (("group:fs",), ("exec",))
    assert (rules.by_provider["openai"].profile, rules.by_provider["openai"].deny) == ("minimal", ("web_*",))
    assert views.sandbox_tool_rules(config).allow == ("read",)
    assert views.sandbox_tool_rules(config).deny == ("write",)
    policy = views.visibility_policy(config, "main")
    assert (policy.agent_to_agent_enabled, policy.agent_to_agent_allow) == (True, ("home", "w*"))
    attachments = config.tools.sessions_spawn.attachments
    assert (attachments.enabled, attachments.max_total_bytes, attachments.max_files) == (True, 2_097_152, 3)
    assert (attachments.max_file_bytes, attachments.retain_on_session_keep) == (9, True)
    default = config_of("{}").tools
    assert (default.agent_to_agent.enabled, default.agent_to_agent.allow) == (False, ())
    plain = default.sessions_spawn.attachments
    assert (plain.enabled, plain.max_files, plain.max_file_bytes, plain.max_total_bytes) == (
        False,
        50,
        1_048_576,
        5_242_880,
    )
    assert refused("{tools: {byProvider: {openai: {profile: 'x'}}}}") == "tools.byProvider.openai.profile"
    assert refused("{tools: {agentToAgent: {enabled: 'on'}}}") == "tools.agentToAgent.enabled"
    assert refused("{tools: {sessionsSpawn: {}}}") == "tools.sessionsSpawn"


@pytest.mark.spec("QUE-3", "QUE-4")
def test_messages_queue() -> None:
    text = """{messages: {queue: {mode: "collect", debounceMs: "1s", cap: 5, drop: "old",
      byChannel: {Slack: "steer+backlog"}, debounceMsByChannel: {slack: 7}}}}"""
    queue = views.queue_config(config_of(text))
    general = resolve_queue(queue, channel="telegram")
    assert (general.mode, general.debounce_ms, general.cap, general.drop) == ("collect", 1000, 5, "old")
    slack = resolve_queue(queue, channel="slack")
    assert (slack.mode, slack.debounce_ms) == ("steer-backlog", 7)
    built_in = resolve_queue(views.queue_config(config_of("{}")), channel="slack")
    assert (built_in.mode, built_in.debounce_ms, built_in.cap, built_in.drop) == (
        "steer",
        500,
        20,
        "summarize",
    )
    assert refused("{messages: {queue: {mode: 'later'}}}") == "messages.queue.mode"
    assert refused("{messages: {queue: {drop: 'all'}}}") == "messages.queue.drop"
    assert refused("{messages: {queue: {byChannel: {slack: 'x'}}}}") == "messages.queue.byChannel.slack"


@pytest.mark.spec("ROUTE-4")
def test_messages_inbound() -> None:
    settings = views.debounce_settings(
        config_of("{messages: {inbound: {debounceMs: 2000, byChannel: {WhatsApp: 0}}}}")
    )
    assert (settings.debounce_ms, settings.by_channel) == (2000, {"whatsapp": 0})
    assert views.debounce_settings(config_of("{}")).debounce_ms == 0
    assert refused("{messages: {inbound: {debounceMs: -1}}}") == "messages.inbound.debounceMs"


def test_messages_group_chat() -> None:
    group_chat = config_of(
        "{messages: {groupChat: {mentionPatterns: ['@claw'], historyLimit: 20}}}"
    ).messages.group_chat
    assert (group_chat.mention_patterns, group_chat.history_limit) == (("@claw",), 20)
    assert (
        refused("{messages: {groupChat: {mentionPatterns: '@claw'}}}") == "messages.groupChat.mentionPatterns"
    )


def test_commands() -> None:
    text = """{commands: {text: false, native: true, config: true, debug: true, restart: false, bash: true,
      allowFrom: {telegram: [123], "*": ["+1"]}, ownerAllowFrom: ["telegram:9", 8],
      useAccessGroups: false}}"""
    commands = config_of(text).commands
    assert (commands.text, commands.native, commands.config, commands.debug) == (False, True, True, True)
    assert (commands.restart, commands.bash, commands.use_access_groups) == (False, True, False)
    assert commands.allow_from == {"telegram": ("123",), "*": ("+1",)}
    assert commands.owner_allow_from == ("telegram:9", "8")
    default = config_of("{}").commands
    assert (default.text, default.native, default.config, default.debug) == (True, "auto", False, False)
    assert (default.restart, default.bash, default.allow_from, default.use_access_groups) == (
        True,
        False,
        None,
        True,
    )
    assert config_of("{commands: {allowFrom: ['a']}}").commands.allow_from == ("a",)
    assert refused("{commands: {bash: 'no'}}") == "commands.bash"


def test_gateway() -> None:
    text = """{gateway: {mode: "remote", port: 19000, bind: "custom", customBindHost: "10.0.0.2",
      auth: {mode: "password", token: "t", password: "p"},
      remote: {url: "wss://g", token: "r", password: "q"},
      reload: {mode: "hot", debounceMs: 50}, allowedHosts: ["claw.lan"],
      controlUi: {enabled: false, allowedOrigins: ["https://ui"]},
      http: {endpoints: {chatCompletions: {enabled: true}, responses: {enabled: true}}}}}"""
    gateway = config_of(text).gateway
    assert (gateway.mode, gateway.port, gateway.bind, gateway.custom_bind_host) == (
        "remote",
        19000,
        "custom",
        "10.0.0.2",
    )
    assert (gateway.auth.mode, gateway.auth.token, gateway.auth.password) == ("password", "t", "p")
    assert (gateway.remote.url, gateway.remote.token, gateway.remote.password) == ("wss://g", "r", "q")
    assert (gateway.reload.mode, gateway.reload.debounce_ms) == ("hot", 50)
    assert (gateway.allowed_hosts, gateway.control_ui.allowed_origins) == (("claw.lan",), ("https://ui",))
    assert not gateway.control_ui.enabled
    assert gateway.http.endpoints.chat_completions.enabled
    assert gateway.http.endpoints.responses.enabled
    default = config_of("{}").gateway
    assert (default.mode, default.port, default.bind, default.auth.mode) == ("local", 18789, "loopback", None)
    assert (default.reload.mode, default.reload.debounce_ms) == ("hybrid", 300)
    assert not default.http.endpoints.chat_completions.enabled
    assert not default.http.endpoints.responses.enabled
    assert refused("{gateway: {bind: 'tailnet'}}") == "gateway.bind"
    assert refused("{gateway: {port: 65536}}") == "gateway.port"
    assert refused("{gateway: {auth: {mode: 'trust-me'}}}") == "gateway.auth.mode"
    assert refused("{gateway: {reload: {mode: 'sometimes'}}}") == "gateway.reload.mode"


@pytest.mark.spec("AUTO-6", "MAINT-6")
def test_cron_and_hooks() -> None:
    text = """{cron: {enabled: false, maxConcurrentRuns: 3, sessionRetention: "2h", webhookToken: "w"},
      hooks: {enabled: true, token: "h", path: "/in", maxBodyBytes: "1kb", defaultSessionKey: "hook:x",
        allowRequestSessionKey: true, allowedSessionKeyPrefixes: ["hook:"], allowedAgentIds: ["main"]}}"""
    config = config_of(text)
    cron, hooks = config.cron, config.hooks
    assert (cron.enabled, cron.max_concurrent_runs, cron.session_retention_ms) == (False, 3, 7_200_000)
    assert cron.webhook_token == "w"
    assert (hooks.enabled, hooks.token, hooks.path, hooks.max_body_bytes) == (True, "h", "/in", 1024)
    assert (hooks.default_session_key, hooks.allow_request_session_key) == ("hook:x", True)
    assert (hooks.allowed_session_key_prefixes, hooks.allowed_agent_ids) == (("hook:",), ("main",))
    default = config_of("{}")
    assert (default.cron.enabled, default.cron.max_concurrent_runs) == (True, 1)
    assert (default.hooks.enabled, default.hooks.path, default.hooks.max_body_bytes) == (
        False,
        "/hooks",
        262_144,
    )
    assert (default.hooks.allow_request_session_key, default.hooks.allowed_agent_ids) == (False, None)
    assert refused("{cron: {maxConcurrentRuns: 0}}") == "cron.maxConcurrentRuns"
    for path in ("hooks", "/", "/../x", "/a b"):
        assert refused(f"{{hooks: {{path: '{path}'}}}}") == "hooks.path"


def test_models_providers() -> None:
    text = """{models: {providers: {local: {baseUrl: "http://127.0.0.1:1/v1", apiKey: "k",
      api: "openai-completions", models: [{id: "m/1", name: "M", contextWindow: 1000, maxTokens: 10,
        reasoning: true, input: ["text", "image"],
        cost: {input: 1, output: 2.5, cacheRead: 0, cacheWrite: 3}},
        {id: "m2"}]}}},
      agents: {defaults: {models: {"local/m/1": {alias: "em"}, "openai/x": {}}}}}"""
    config = config_of(text)
    first, second = views.provider_models(config)
    assert (first.provider, first.model.id, first.alias, first.api) == (
        "local",
        "m/1",
        "em",
        "openai-completions",
    )
    assert (first.base_url, first.api_key, first.model.context_window) == ("http://127.0.0.1:1/v1", "k", 1000)
    assert (first.model.max_tokens, first.model.reasoning, first.model.input) == (10, True, ("text", "image"))
    assert first.model.cost is not None
    assert (first.model.cost.output, first.model.cost.cache_write) == (2.5, 3.0)
    assert (second.model.cost, second.alias, second.model.input) == (None, None, ("text",))
    candidates = [(one.provider, one.model, one.alias) for one in views.model_candidates(config)]
    assert candidates == [("local", "m/1", "em"), ("local", "m2", None), ("openai", "x", None)]
    assert views.resolve_alias(config, " EM ") == "local/m/1"
    assert views.resolve_alias(config, "openai/x") == "openai/x"
    base = "{models: {providers: {p: {%s}}}}"
    assert refused(base % "api: 'grpc'") == "models.providers.p.api"
    assert refused(base % "models: [{}]") == "models.providers.p.models[0].id"
    assert refused(base % "models: [{id: 'x', input: ['smell']}]") == "models.providers.p.models[0].input[0]"
    assert (
        refused(base % "models: [{id: 'x', cost: {input: -1}}]") == "models.providers.p.models[0].cost.input"
    )


def test_logging_and_store() -> None:
    config = config_of("{logging: {level: 'debug'}, store: {url: 'postgresql://h/db'}}")
    assert (config.logging.level, config.store.url) == ("debug", "postgresql://h/db")
    assert (config_of("{}").logging.level, config_of("{}").store.url) == ("info", None)
    assert refused("{logging: {level: 'chatty'}}") == "logging.level"
    [problem] = problems_of("{store: {url: 'mysql://user:secret@h'}}")
    assert (
        problem == 'store.url: expected a URL that starts with "sqlite://" or "postgresql://", found a string'
    )
