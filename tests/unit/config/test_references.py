"""`${NAME}`: resolved from the given environment, remembered, treated as secret."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from openclaw.config.references import expand, has_references, secret_values
from tests.unit.config.reading import check, config_of, problems_of

KEY = "sk-0123456789abcdefghij"


@pytest.mark.spec("CFG-3")
@pytest.mark.parametrize(
    ("text", "expanded"),
    [
        ("plain", "plain"),
        ("${A}", "one"),
        ("x${A}y${B_2}z", "xoneytwoz"),
        ("$${A}", "${A}"),
        ("$$${A}", "$${A}"),
        ("$A and ${} and ${1A} and ${A", "$A and ${} and ${1A} and ${A"),
        ("costs $5", "costs $5"),
        ("$$", "$$"),
        ("${lower}", "three"),
    ],
)
def test_expands(text: str, expanded: str) -> None:
    assert expand(text, {"A": "one", "B_2": "two", "lower": "three"}).text == expanded


@pytest.mark.spec("CFG-3")
def test_missing_and_empty_variables_are_named_once() -> None:
    expansion = expand("${A}${B}${A}${C}", {"A": "", "C": "c"})
    assert expansion.missing == ("A", "B")
    assert expansion.names == ("A", "B", "C")
    assert expansion.text == "${A}${B}${A}c"
    assert problems_of("{store: {url: '${DB}'}}", {"DB": ""}) == [
        "store.url: the environment variable DB is not set (write $${DB} for the text itself)"
    ]


@pytest.mark.spec("CFG-3")
@given(st.text(max_size=60))
@settings(max_examples=200, deadline=None)
def test_text_without_references_survives_escaping(text: str) -> None:
    escaped = text.replace("${", "$${")
    assert expand(escaped, {}).missing == ()
    assert not has_references(escaped)
    if "$$" not in text:
        assert expand(escaped, {}).text == text


@pytest.mark.spec("TRX-11")
def test_references_are_resolved_anywhere_and_remembered() -> None:
    text = """{
      gateway: { auth: { token: "${TOKEN}" } },
      models: { providers: { p: { apiKey: "Bearer ${KEY}", baseUrl: "https://x/${HOST}" } } },
      channels: { telegram: { botToken: "${BOT}", nested: [{ deep: "${KEY}" }] } },
      agents: { defaults: { contextPruning: { ttl: "${TTL}" }, workspace: "${HOME}/ws" } },
    }"""
    env = {
        "TOKEN": KEY,
        "KEY": "key" * 8,
        "HOST": "h",
        "BOT": "bot" * 8,
        "TTL": "10m",
        "HOME": "/home/a-long-name",
    }
    checked = check(text, env)
    assert checked.problems == ()
    assert checked.config.gateway.auth.token == KEY
    assert checked.config.models.providers["p"].api_key == "Bearer " + "key" * 8
    assert checked.config.channels["telegram"].extra["nested"] == [{"deep": "key" * 8}]
    assert checked.config.agents.defaults.context_pruning.ttl_ms == 600_000
    assert checked.config.agents.defaults.workspace == "/home/a-long-name/ws"
    assert checked.references == {
        "gateway.auth.token": "${TOKEN}",
        "models.providers.p.apiKey": "Bearer ${KEY}",
        "models.providers.p.baseUrl": "https://x/${HOST}",
        "channels.telegram.botToken": "${BOT}",
        "channels.telegram.nested[0].deep": "${KEY}",
        "agents.defaults.contextPruning.ttl": "${TTL}",
        "agents.defaults.workspace": "${HOME}/ws",
    }
    assert checked.referenced_secrets == {KEY, "key" * 8, "h", "bot" * 8, "10m"}


@pytest.mark.spec("TRX-11")
def test_facts_about_the_machine_are_not_secrets() -> None:
    assert secret_values(("HOME", "USER", "KEY"), {"HOME": "/home/x", "USER": "x", "KEY": "k"}) == {"k"}
    assert secret_values(("GONE",), {}) == frozenset()


@pytest.mark.spec("CFG-3")
@pytest.mark.parametrize(
    ("value", "what"), [("a\0b", "a NUL character"), ("caf\udce9", "half of a surrogate pair")]
)
def test_an_environment_that_is_no_text_is_refused(value: str, what: str) -> None:
    assert problems_of("{session: {store: '${X}'}}", {"X": value}) == [
        f"session.store: the text holds {what}; remove it"
    ]


@pytest.mark.spec("CFG-3")
def test_messages_show_the_reference_and_not_what_is_behind_it() -> None:
    [problem] = problems_of("{session: {scope: '${SCOPE}'}}", {"SCOPE": "the-hidden-value"})
    assert problem == 'session.scope: expected one of "global", "per-sender", found "${SCOPE}"'


@pytest.mark.spec("CFG-3")
def test_the_process_environment_is_never_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENCLAW_TEST_ONLY", "leaked")
    assert len(problems_of("{session: {store: '${OPENCLAW_TEST_ONLY}'}}")) == 1
    assert config_of("{session: {store: '$${OPENCLAW_TEST_ONLY}'}}").session.store == "${OPENCLAW_TEST_ONLY}"
