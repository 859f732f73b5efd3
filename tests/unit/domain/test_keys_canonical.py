"""What people, tools and clients type, and the key that it means."""

from __future__ import annotations

import pytest

from openclaw.domain.groups import CLIENT_LABELS
from openclaw.domain.keys import (
    KeySettings,
    KeyShape,
    SessionKey,
    canonical_key,
    display_key,
    format_key,
    main_session_key,
    parse_key,
)
from openclaw.errors import InvalidSessionKey

SETTINGS = KeySettings()
GLOBAL = KeySettings(scope="global")
WORK = KeySettings(main_key="Work")
OWN = "agent:ops:discord:channel:9"


def meant(
    text: str,
    *,
    agent_id: str = "ops",
    settings: KeySettings = SETTINGS,
    current: str | None = None,
    provider: str | None = None,
) -> str:
    key = canonical_key(text, agent_id=agent_id, settings=settings, current=current, provider=provider)
    return format_key(key)


def refusal(text: str, *, current: str | None = None, provider: str | None = None) -> str:
    with pytest.raises(InvalidSessionKey) as caught:
        canonical_key(text, agent_id="ops", settings=SETTINGS, current=current, provider=provider)
    return caught.value.message


@pytest.mark.spec("KEY-1", "KEY-2", "KEY-23")
@pytest.mark.parametrize(
    "text", ["main", "MAIN", " main ", "ｍａｉｎ", "agent:ops:main", "Agent:OPS:Main", ":main:"]
)
def test_main_means_the_main_key_of_the_agent(text: str) -> None:
    assert meant(text) == "agent:ops:main"
    assert meant("main", agent_id="Other Agent") == "agent:other-agent:main"
    assert meant("agent:other:main") == "agent:other:main"


@pytest.mark.spec("KEY-1", "KEY-23")
def test_a_configured_main_key_and_main_are_aliases() -> None:
    """The setting is honoured in lower case, and `main` stays an alias of it (AMB-24)."""
    assert WORK.main_key == "work"
    for text in ("main", "work", "WORK", "agent:ops:main", "agent:ops:work"):
        assert meant(text, settings=WORK) == "agent:ops:work"
    assert meant("main:thread:5", settings=WORK) == "agent:ops:work:thread:5"
    assert meant("work") == "agent:ops:work"
    assert canonical_key("work", agent_id="ops", settings=SETTINGS).shape is KeyShape.other


@pytest.mark.spec("KEY-1")
@pytest.mark.parametrize(
    "main_key",
    ["global", "Unknown", "current", "agent", "node-1", "a:b", "ａ：b", "x" * 65, "a\0", "a\u200b", "\ud800"],
)
def test_a_main_key_that_means_something_else_is_refused(main_key: str) -> None:
    with pytest.raises(InvalidSessionKey, match=r"session\.mainKey"):
        KeySettings(main_key=main_key)


@pytest.mark.spec("KEY-1", "KEY-17")
def test_settings_have_the_founding_defaults() -> None:
    spelled_out = KeySettings("main", "per-sender", frozenset({"matrix", "signal"}))
    assert spelled_out == SETTINGS
    assert KeySettings(main_key="  ").main_key == "main"
    assert KeySettings(main_key="x" * 64).main_key == "x" * 64
    assert meant("discord:group:9") != meant("main")


@pytest.mark.spec("KEY-22", "KEY-14")
@pytest.mark.parametrize(
    ("text", "key"),
    [
        ("proj1", "agent:ops:proj1"),
        ("Dashboard:ABC", "agent:ops:dashboard:abc"),
        ("cron:Job1", "agent:ops:cron:job1"),
        ("hook:x", "agent:ops:hook:x"),
        ("node-PI", "agent:ops:node-pi"),
        ("node:pi", "agent:ops:node-pi"),
        ("subagent:x", "agent:ops:subagent:x"),
        ("telegram:direct:7", "agent:ops:telegram:dm:7"),
        ("dm:7", "agent:ops:dm:7"),
        ("slack:ROOM:C1", "agent:ops:slack:channel:c1"),
        ("matrix:group:AbC", "agent:ops:matrix:group:AbC"),
        ("agent:main:cron:Job1", "agent:main:cron:job1"),
        ("agents", "agent:ops:agents"),
    ],
)
def test_a_bare_key_belongs_to_the_agent(text: str, key: str) -> None:
    assert meant(text) == key
    assert meant(key, agent_id="somebody-else") == key


@pytest.mark.spec("KEY-22")
@pytest.mark.parametrize(
    "text", ["agent", "agent:", "agent:ops", "agent:ops:", "", " ", "::", "x" * 513, "a\0b"]
)
def test_what_is_no_key_is_refused_with_a_hint(text: str) -> None:
    message = refusal(text, current=OWN)
    assert message.startswith("session key ")
    assert "Write " in message or "Remove it" in message


@pytest.mark.spec("KEY-22")
def test_the_full_form_must_fit_into_a_request_again() -> None:
    fits = "x" * (512 - len("agent:ops:"))
    assert len(meant(fits)) == 512
    assert "longer than 512" in refusal(fits + "x")


@pytest.mark.spec("KEY-12")
@pytest.mark.parametrize(
    ("text", "provider", "key"),
    [
        ("group:7", "telegram", "agent:ops:telegram:group:7"),
        ("GROUP:AbC", " Signal ", "agent:ops:signal:group:AbC"),
        ("group:AbC", "whatsapp", "agent:ops:whatsapp:group:abc"),
        ("room:7", "slack", "agent:ops:slack:channel:7"),
        ("channel:7", "discord", "agent:ops:discord:channel:7"),
        ("agent:main:group:7", "telegram", "agent:main:telegram:group:7"),
        ("group:7:topic:5", "telegram", "agent:ops:telegram:group:7:topic:5"),
        ("discord:group:7", "telegram", "agent:ops:discord:group:7"),
        ("dm:7", "telegram", "agent:ops:dm:7"),
        ("main", "telegram", "agent:ops:main"),
        ("group", "telegram", "agent:ops:group"),
        ("group::", "telegram", "agent:ops:group"),
    ],
)
def test_a_legacy_group_takes_its_channel_from_the_context(text: str, provider: str, key: str) -> None:
    assert meant(text, provider=provider) == key


@pytest.mark.spec("KEY-12")
def test_a_legacy_group_without_a_channel() -> None:
    assert "<channel>:group:7" in refusal("group:7")
    assert meant("agent:ops:group:7") == "agent:ops:group:7"
    assert "not a channel id" in refusal("group:7", provider="a b")


@pytest.mark.spec("KEY-18", "KEY-19")
@pytest.mark.parametrize(
    "text", ["current", " CURRENT ", "openclaw-tui", "OpenClaw-Control-UI", "webchat", "cli"]
)
def test_current_and_client_labels_are_the_own_session(text: str) -> None:
    assert meant(text, current=OWN) == OWN
    assert meant(text, current="Agent:Ops:MAIN") == "agent:ops:main"
    assert meant(text, current="agent:ops:main", settings=GLOBAL) == "global"
    assert "session of the caller" in refusal(text)


@pytest.mark.spec("KEY-18", "KEY-19")
def test_only_the_label_alone_is_a_label() -> None:
    assert {"openclaw-tui", "cli", "openclaw-macos", "openclaw-ios", "webchat-ui"} <= CLIENT_LABELS
    assert meant("agent:ops:openclaw-tui", current=OWN) == "agent:ops:openclaw-tui"
    assert meant("cli-test", current=OWN) == "agent:ops:cli-test"
    assert meant("current:x", current=OWN) == "agent:ops:current:x"
    for label in CLIENT_LABELS:
        assert label == label.lower()
        assert meant(label, current=OWN) == OWN


@pytest.mark.spec("KEY-15", "KEY-16")
def test_reserved_keys_stay_as_they_are() -> None:
    for settings in (SETTINGS, GLOBAL):
        assert meant("global", settings=settings) == "global"
        assert meant(" UNKNOWN", settings=settings) == "unknown"
    assert meant("agent:ops:global") == "global"


@pytest.mark.spec("KEY-16", "KEY-23")
def test_under_global_scope_main_is_global() -> None:
    for text in ("main", "agent:ops:main", "agent:other:main", "global", "agent:ops:global"):
        assert meant(text, settings=GLOBAL) == "global"
    assert meant("work", settings=KeySettings(main_key="work", scope="global")) == "global"
    assert main_session_key("ops", GLOBAL) == SessionKey(KeyShape.global_)
    assert meant("main:thread:5", settings=GLOBAL) == "agent:ops:main:thread:5"
    assert meant("discord:group:9", settings=GLOBAL) == "agent:ops:discord:group:9"
    assert parse_key("agent:ops:main", GLOBAL).shape is KeyShape.main


@pytest.mark.spec("KEY-1")
def test_the_main_session_of_an_agent() -> None:
    assert main_session_key("Ops", SETTINGS) == SessionKey(KeyShape.main, "ops", "main")
    assert format_key(main_session_key("ops", WORK)) == "agent:ops:work"


@pytest.mark.spec("KEY-2", "KEY-16")
@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("agent:ops:main", "main"),
        ("agent:other:main", "agent:other:main"),
        ("agent:ops:main:thread:5", "agent:ops:main:thread:5"),
        ("agent:ops:cron:x", "agent:ops:cron:x"),
        ("global", "main"),
        ("unknown", "unknown"),
    ],
)
def test_tools_spell_their_own_main_session_main(text: str, shown: str) -> None:
    assert display_key(parse_key(text, SETTINGS), agent_id="ops", settings=SETTINGS) == shown


@pytest.mark.spec("KEY-2", "KEY-16")
def test_what_is_shown_can_be_typed_again() -> None:
    for settings in (SETTINGS, GLOBAL, WORK):
        own = main_session_key("ops", settings)
        assert display_key(own, agent_id="OPS", settings=settings) == "main"
        assert canonical_key("main", agent_id="ops", settings=settings) == own
    left_over = parse_key("agent:ops:main", GLOBAL)
    assert display_key(left_over, agent_id="ops", settings=GLOBAL) == "agent:ops:main"
