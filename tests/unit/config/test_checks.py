"""Rules that look at two settings at once."""

from __future__ import annotations

import pytest

from openclaw.config.checks import is_time_zone
from tests.unit.config.reading import check, config_of, problems_of, warnings_of


@pytest.mark.spec("CFG-3")
def test_agent_ids_are_unique_in_any_case() -> None:
    text = "{agents: {list: [{id: 'bob'}, {id: 'ann'}, {id: 'Bob'}]}}"
    assert problems_of(text) == ['agents.list[2].id: another agent above has the id "bob" already']


@pytest.mark.spec("ROUTE-1")
def test_only_the_first_default_counts() -> None:
    text = "{agents: {list: [{id: 'a'}, {id: 'b', default: true}, {id: 'c', default: true}]}}"
    assert problems_of(text) == []
    assert warnings_of(text) == ["agents.list[2].default: another agent above is the default; it counts"]


@pytest.mark.spec("CFG-3", "ROUTE-1")
def test_bindings_name_agents_that_exist() -> None:
    binding = "bindings: [{agentId: '%s', match: {channel: 'telegram'}}]"
    assert problems_of("{" + binding % "main" + "}") == []
    assert problems_of("{" + binding % "MAIN" + "}") == []
    assert problems_of("{" + binding % "other" + "}") == [
        'bindings[0].agentId: no agent "other" in agents.list'
    ]
    agents = "agents: {list: [{id: 'home'}]}, "
    assert problems_of("{" + agents + binding % "Home" + "}") == []
    assert problems_of("{" + agents + binding % "main" + "}") == [
        'bindings[0].agentId: no agent "main" in agents.list'
    ]


@pytest.mark.spec("VIS-3")
@pytest.mark.parametrize(
    ("text", "path"),
    [
        (
            "{agents: {defaults: {sandbox: {sessionToolsVisibility: 'all'}}}}",
            "agents.defaults.sandbox.sessionToolsVisibility",
        ),
        (
            "{agents: {list: [{id: 'a', sandbox: {sessionToolsVisibility: 'all'}}]}}",
            "agents.list[0].sandbox.sessionToolsVisibility",
        ),
    ],
)
def test_a_key_that_cannot_lift_the_clamp_says_so(text: str, path: str) -> None:
    assert config_of(text)
    [warning] = warnings_of(text)
    assert warning.startswith(f'{path}: "all" has no effect')


MODEL_PLACES = [
    "agents: {defaults: {model: %s}}",
    "agents: {defaults: {model: {primary: %s}}}",
    "agents: {defaults: {model: {fallbacks: [%s]}}}",
    "agents: {defaults: {subagents: {model: %s}}}",
    "agents: {defaults: {subagents: {model: {primary: %s}}}}",
    "agents: {defaults: {compaction: {model: %s}}}",
    "agents: {defaults: {compaction: {memoryFlush: {model: %s}}}}",
    "agents: {defaults: {heartbeat: {model: %s}}}",
    "agents: {list: [{id: 'a', model: %s}]}",
    "agents: {list: [{id: 'a', subagents: {model: {fallbacks: [%s]}}}]}",
    "agents: {list: [{id: 'a', heartbeat: {model: %s}}]}",
]


@pytest.mark.spec("CFG-3")
@pytest.mark.parametrize("place", MODEL_PLACES)
def test_model_references_name_a_known_provider(place: str) -> None:
    providers = "models: {providers: {Acme: {models: [{id: 'm'}]}}}"
    assert problems_of("{" + providers + ", " + place % "'acme/m'" + "}") == []
    assert problems_of("{" + place % "'anthropic/some-model'" + "}") == []
    [problem] = problems_of("{" + providers + ", " + place % "'acne/m'" + "}")
    path, _, reason = problem.partition(": ")
    assert path.startswith("agents.")
    assert reason == 'names the provider "acne", which is not in models.providers; did you mean "acme"?'


@pytest.mark.spec("CFG-3")
@pytest.mark.parametrize("ref", ["gpt", "/m", "openai/", "/"])
def test_a_model_reference_has_two_parts(ref: str) -> None:
    [problem] = problems_of(f"{{agents: {{defaults: {{model: '{ref}'}}}}}}")
    assert problem == f'agents.defaults.model: expected "provider/model", found "{ref}"'


@pytest.mark.spec("CFG-21")
def test_a_model_may_be_named_by_its_alias() -> None:
    known = "models: {'openai/gpt-4.1': {alias: 'Smart'}, 'openai/gpt-4.1-mini': {}}"
    assert problems_of("{agents: {defaults: {model: 'smart', " + known + "}}}") == []
    [problem] = problems_of("{agents: {defaults: {model: 'smrt', " + known + "}}}")
    assert problem == 'agents.defaults.model: expected "provider/model" or an alias (smart), found "smrt"'
    [problem] = problems_of("{agents: {defaults: {models: {'nobody/x': {}}}}}")
    assert problem.startswith('agents.defaults.models["nobody/x"]: names the provider "nobody"')


@pytest.mark.spec("CFG-10")
@pytest.mark.parametrize("name", ["global", "Unknown", "current", "agent", "node-x"])
def test_main_key_is_not_a_reserved_word(name: str) -> None:
    assert problems_of(f"{{session: {{mainKey: '{name}'}}}}") == [
        f'session.mainKey: "{name}" cannot name a session; use a plain word'
    ]


@pytest.mark.spec("MAINT-1")
def test_retention_is_a_duration_or_false() -> None:
    [problem] = problems_of("{session: {maintenance: {resetArchiveRetention: true}}}")
    assert problem.startswith("session.maintenance.resetArchiveRetention: true says nothing")
    [problem] = problems_of("{cron: {sessionRetention: true}}")
    assert problem.startswith("cron.sessionRetention: true says nothing")
    assert problems_of("{session: {maintenance: {maxDiskBytes: '1mb', highWaterBytes: '2mb'}}}") == [
        "session.maintenance.highWaterBytes: larger than maxDiskBytes"
    ]
    assert problems_of("{session: {maintenance: {maxDiskBytes: '2mb', highWaterBytes: '2mb'}}}") == []


@pytest.mark.spec("PRUNE-2")
def test_pruning_numbers_agree() -> None:
    base = "{agents: {defaults: {contextPruning: {%s}}}}"
    assert problems_of(base % "softTrim: {maxChars: 3000}") == []
    assert problems_of(base % "softTrim: {maxChars: 2999}") == [
        "agents.defaults.contextPruning.softTrim: headChars and tailChars together exceed maxChars (2999)"
    ]
    assert problems_of(base % "hardClearRatio: 0.3") == []
    assert problems_of(base % "hardClearRatio: 0.29") == [
        "agents.defaults.contextPruning.hardClearRatio: below softTrimRatio (0.3)"
    ]


@pytest.mark.spec("AUTO-7")
def test_active_hours_name_a_time_zone() -> None:
    base = "{agents: {defaults: {heartbeat: {activeHours: {start: '08:00', end: '24:00', timezone: '%s'}}}}}"
    assert problems_of(base % "Europe/Madrid") == []
    assert problems_of(base % "local") == []
    assert problems_of(base % "Mars/Olympus") == [
        "agents.defaults.heartbeat.activeHours.timezone:"
        ' expected "local" or a name such as "Europe/Madrid", found "Mars/Olympus"'
    ]
    per_agent = "{agents: {list: [{id: 'a', heartbeat: {activeHours: {timezone: '../etc/passwd'}}}]}}"
    assert [problem.path for problem in check(per_agent).problems] == [
        "agents.list[0].heartbeat.activeHours.timezone"
    ]


@pytest.mark.spec("AUTO-7")
@pytest.mark.parametrize("name", ["", "/etc/passwd", "..", "a" * 5000, "Europe"])
def test_strange_time_zone_names_do_not_crash(name: str) -> None:
    assert is_time_zone(name) is False


@pytest.mark.spec("CFG-7")
@pytest.mark.parametrize("bind", ["'lan'", "'0.0.0.0'", "'::'", "'custom', customBindHost: '10.0.0.5'"])
@pytest.mark.parametrize("auth", ["", "auth: {mode: 'token'}", "auth: {mode: 'none', token: 'x'}"])
def test_no_open_door_beyond_loopback(bind: str, auth: str) -> None:
    assert problems_of(f"{{gateway: {{bind: {bind}, {auth}}}}}") == [
        "gateway.bind: refused beyond loopback without authentication;"
        " set gateway.auth.token or gateway.auth.password"
    ]


@pytest.mark.spec("CFG-7")
@pytest.mark.parametrize(
    "auth", ["token: 't'", "password: 'p'", "mode: 'token', token: 't'", "mode: 'password', password: 'p'"]
)
def test_a_credential_opens_the_door(auth: str) -> None:
    assert problems_of(f"{{gateway: {{bind: 'lan', auth: {{{auth}}}}}}}") == []


@pytest.mark.spec("CFG-7")
@pytest.mark.parametrize("bind", ["loopback", "auto", "localhost", "127.0.0.1", "::1"])
def test_loopback_is_the_default_and_needs_nothing(bind: str) -> None:
    assert config_of("{}").gateway.bind == "loopback"
    assert config_of(f"{{gateway: {{bind: '{bind}'}}}}").gateway.bind == "loopback"


@pytest.mark.spec("CFG-7")
def test_authentication_modes_need_their_part() -> None:
    assert problems_of("{gateway: {auth: {mode: 'password'}}}") == [
        'gateway.auth.mode: "password" needs gateway.auth.password'
    ]
    assert problems_of("{gateway: {auth: {mode: 'none'}}}") == []
    assert warnings_of("{gateway: {auth: {mode: 'none'}}}") == [
        'gateway.auth.mode: "none" lets every program on this machine use the gateway'
    ]
    assert problems_of("{gateway: {bind: 'custom', auth: {token: 't'}}}") == [
        'gateway.bind: "custom" needs gateway.customBindHost'
    ]
    assert problems_of("{gateway: {mode: 'remote'}}") == ['gateway.mode: "remote" needs gateway.remote.url']
    assert problems_of("{gateway: {mode: 'remote', remote: {url: 'ws://h:1'}}}") == []


@pytest.mark.spec("AUTO-6")
def test_webhooks_have_a_token_of_their_own() -> None:
    assert problems_of("{hooks: {enabled: true}}") == ["hooks.enabled: webhooks need hooks.token"]
    assert problems_of("{hooks: {enabled: true, token: 'a'}}") == []
    assert problems_of("{hooks: {token: 'same'}, gateway: {auth: {token: 'same'}}}") == [
        "hooks.token: must differ from gateway.auth.token: a webhook is not an operator"
    ]
