"""The founding documents' configuration examples load verbatim and mean what they say."""

from __future__ import annotations

import json

import pytest

from openclaw.config import views
from openclaw.config.load import load_or_raise
from openclaw.domain.policy import SendFacts, decide_send
from tests.unit.config.reading import FOUNDING, check, config_of, founding_examples

EXAMPLES = founding_examples()


@pytest.mark.spec("CFG-1")
def test_there_are_examples_in_every_language() -> None:
    assert len(EXAMPLES) == 9
    assert {name.split(".")[1] for name in EXAMPLES} == {"es", "hi", "th", "en"}


@pytest.mark.spec("CFG-1", "CFG-3")
@pytest.mark.parametrize("name", EXAMPLES)
def test_loads_without_a_word_of_complaint(name: str) -> None:
    loaded = load_or_raise(FOUNDING / name, {})
    assert loaded.problems == ()
    assert loaded.warnings == ()
    assert loaded.raw_text == EXAMPLES[name]


@pytest.mark.spec("CFG-10", "CFG-11")
def test_the_full_session_example() -> None:
    config = config_of(EXAMPLES["session.es.2.json5"])
    session = config.session
    assert (session.scope, session.dm_scope, session.main_key) == ("per-sender", "main", "main")
    assert session.identity_links == {"alice": ("telegram:123456789", "discord:987654321012345678")}
    assert session.store == "~/.openclaw/agents/{agentId}/sessions/sessions.json"
    assert session.reset_triggers == ("/new", "/reset")
    rules = views.reset_rules(config)
    assert rules.reset is not None
    assert (rules.reset.mode, rules.reset.at_hour, rules.reset.idle_minutes) == ("daily", 4, 120)
    assert (rules.by_type["direct"].mode, rules.by_type["direct"].idle_minutes) == ("idle", 240)
    assert (rules.by_type["thread"].mode, rules.by_type["thread"].at_hour) == ("daily", 4)
    assert rules.by_type["group"].idle_minutes == 120
    assert rules.by_channel["discord"].idle_minutes == 10080


@pytest.mark.spec("SEND-2", "SEND-3")
@pytest.mark.parametrize("name", [name for name in EXAMPLES if "sendPolicy" in EXAMPLES[name]])
def test_send_policy_examples_block_what_they_name(name: str) -> None:
    policy = views.send_policy(config_of(EXAMPLES[name]))
    blocked = SendFacts(key="agent:main:discord:group:1", channel="discord", chat_type="group")
    allowed = SendFacts(key="agent:main:telegram:group:1", channel="telegram", chat_type="group")
    assert decide_send(policy, blocked).action == "deny"
    assert decide_send(policy, allowed).action == "allow"
    cron = SendFacts(key="agent:main:cron:nightly", channel="internal")
    assert decide_send(policy, cron).action == ("deny" if name.startswith("session.es") else "allow")


@pytest.mark.spec("VIS-3", "CFG-20")
@pytest.mark.parametrize("language", ["es", "hi", "th"])
def test_sandbox_visibility_examples(language: str) -> None:
    config = config_of(EXAMPLES[f"session_tool.{language}.2.json5"])
    assert views.visibility_policy(config, "main").sandbox_session_tools == "spawned"
    assert views.agent(config, "main", {"HOME": "/h"}).sandbox.session_tools_visibility == "spawned"


@pytest.mark.spec("TOOL-3", "CFG-20")
def test_messaging_profile_with_delegation() -> None:
    rules = views.tool_rules(config_of(EXAMPLES["session_tool.en.1.json5"]))
    assert rules.profile == "messaging"
    assert rules.also_allow == ("sessions_spawn", "sessions_yield", "subagents")


@pytest.mark.spec("CFG-1")
def test_json_examples_are_json_as_well() -> None:
    plain_json = [name for name in EXAMPLES if name.endswith(".json")]
    assert len(plain_json) == 3
    for name in plain_json:
        assert check(json.dumps(json.loads(EXAMPLES[name]))).config == config_of(EXAMPLES[name])
