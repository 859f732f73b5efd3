"""What a key tells: thread, chat type, kind, whether it is listed, whether it is an id."""

from __future__ import annotations

import pytest

from openclaw.domain.entry import ChatType
from openclaw.domain.keys import (
    KeySettings,
    KeyShape,
    SessionKey,
    SessionKind,
    ThreadSplit,
    channel_of_key,
    chat_type_of_key,
    is_listed,
    looks_like_session_id,
    parse_key,
    session_kind,
    split_thread,
    strip_agent,
)

SETTINGS = KeySettings()
GLOBAL = KeySettings(scope="global")
UUID = "9029f91c-0240-4609-96d0-c7e71d8bc6d0"


@pytest.mark.spec("KEY-22", "SEND-7")
@pytest.mark.parametrize(
    ("text", "rest"),
    [
        ("agent:main:cron:x", "cron:x"),
        ("AGENT:Main:Telegram:dm:5", "Telegram:dm:5"),
        ("agent::main::x", "x"),
        ("ａｇｅｎｔ:main:x", "x"),
        ("agent:main", "agent:main"),
        ("cron:x:y", "cron:x:y"),
        ("global", "global"),
        ("", ""),
    ],
)
def test_strip_agent(text: str, rest: str) -> None:
    assert strip_agent(text) == rest


@pytest.mark.spec("KEY-24")
@pytest.mark.parametrize(
    ("text", "split"),
    [
        ("agent:main:slack:channel:c:thread:9", ThreadSplit("agent:main:slack:channel:c", "thread", "9")),
        ("agent:main:telegram:group:7:topic:5", ThreadSplit("agent:main:telegram:group:7", "topic", "5")),
        ("a:thread:1:thread:2", ThreadSplit("a:thread:1", "thread", "2")),
        ("a:dm:1:topic:2:thread:3", ThreadSplit("a:dm:1:topic:2", "thread", "3")),
        ("a:dm:1:thread:2:topic:3", ThreadSplit("a:dm:1:thread:2", "topic", "3")),
        ("a:THREAD:$Ev:Hs", ThreadSplit("a", "thread", "$Ev:Hs")),
        ("agent:main:notes:topic:rust", ThreadSplit("agent:main:notes:topic:rust")),
        ("agent:main:notes:topic:rust:group:x", ThreadSplit("agent:main:notes:topic:rust:group:x")),
        ("agent:main:slack:channel:c:thread:", ThreadSplit("agent:main:slack:channel:c:thread:")),
        ("agent:main:slack:channel:c:thread", ThreadSplit("agent:main:slack:channel:c:thread")),
        ("thread:5", ThreadSplit("thread:5")),
        ("agent:thread:x:y", ThreadSplit("agent:thread:x:y")),
        ("agent:main:a:b:c:dm:d:topic:5", ThreadSplit("agent:main:a:b:c:dm:d:topic:5")),
        ("agent:main:a:b:dm:c:topic:5", ThreadSplit("agent:main:a:b:dm:c", "topic", "5")),
        ("agent:main:node-x:dm:topic:5", ThreadSplit("agent:main:node-x:dm:topic:5")),
        ("agent:main:hook:dm:topic:5", ThreadSplit("agent:main:hook:dm:topic:5")),
        ("agent:main:thread:5", ThreadSplit("agent:main:thread:5")),
        ("agent:group:notes:topic:x", ThreadSplit("agent:group:notes:topic:x")),
        ("agent:main:main:thread:5", ThreadSplit("agent:main:main", "thread", "5")),
        ("agent:main:threads:5", ThreadSplit("agent:main:threads:5")),
        ("", ThreadSplit("")),
    ],
)
def test_split_thread_cuts_at_the_last_marker(text: str, split: ThreadSplit) -> None:
    assert split_thread(text) == split


@pytest.mark.spec("SEND-7")
@pytest.mark.parametrize(
    ("text", "chat_type", "channel"),
    [
        ("agent:main:main", "direct", None),
        ("agent:main:dm:5", "direct", None),
        ("agent:main:telegram:direct:5", "direct", "telegram"),
        ("agent:main:Discord:GROUP:5", "group", "discord"),
        ("agent:main:discord:group:5:topic:1", "group", "discord"),
        ("agent:main:slack:room:5", "channel", "slack"),
        ("agent:main:group:5", "group", None),
        ("agent:main:slack:slash:5", None, "slack"),
        ("agent:main:cron:x", None, None),
        ("agent:main:proj1", None, None),
        ("global", None, None),
        ("telegram:group:5", "group", "telegram"),
        ("group:5", "group", None),
        ("main", "direct", None),
        ("agent:main", None, None),
        ("", None, None),
        ("a\0b:group:c", None, None),
        ("telegram:group:" + "x" * 10_000, None, None),
    ],
)
def test_chat_type_and_channel_of_a_text(text: str, chat_type: ChatType | None, channel: str | None) -> None:
    assert chat_type_of_key(text) == chat_type
    assert channel_of_key(text) == channel


@pytest.mark.spec("SEND-7")
def test_chat_type_and_channel_of_a_parsed_key() -> None:
    work = KeySettings(main_key="work")
    assert chat_type_of_key(parse_key("agent:main:work", work)) == "direct"
    room = parse_key("agent:main:slack:channel:c", SETTINGS)
    assert (chat_type_of_key(room), channel_of_key(room)) == ("channel", "slack")


@pytest.mark.spec("LIST-7")
@pytest.mark.parametrize(
    ("text", "chat_type", "kind"),
    [
        ("agent:main:main", None, "main"),
        ("agent:ops:MAIN", "group", "main"),
        ("agent:main:cron:x", "group", "cron"),
        ("agent:main:cron:x:run:y", None, "cron"),
        ("agent:main:hook:x", "group", "hook"),
        ("agent:main:node-x", "group", "node"),
        ("agent:main:node:x", None, "node"),
        ("agent:main:discord:group:5", None, "group"),
        ("agent:main:discord:channel:5", "direct", "group"),
        ("agent:main:proj1", "group", "group"),
        ("agent:main:proj1", "channel", "group"),
        ("agent:main:proj1", "direct", "other"),
        ("agent:main:telegram:dm:5", None, "other"),
        ("agent:main:subagent:x", None, "other"),
        ("agent:main:main:thread:5", None, "other"),
        ("global", None, "other"),
        ("unknown", None, "other"),
    ],
)
def test_kind_of_a_row(text: str, chat_type: ChatType | None, kind: SessionKind) -> None:
    assert session_kind(parse_key(text, SETTINGS), chat_type, SETTINGS) == kind


@pytest.mark.spec("LIST-7", "LIST-8", "KEY-15", "KEY-16")
def test_reserved_keys_are_hidden_and_global_is_the_main_row_of_global_scope() -> None:
    reserved = {word: parse_key(word, SETTINGS) for word in ("global", "unknown")}
    assert not is_listed(reserved["global"])
    assert not is_listed(reserved["unknown"])
    assert is_listed(reserved["global"], GLOBAL)
    assert not is_listed(reserved["unknown"], GLOBAL)
    assert session_kind(reserved["global"], None, GLOBAL) == "main"
    for text in ("agent:main:main", "agent:main:proj1", "agent:main:cron:x"):
        assert is_listed(parse_key(text, SETTINGS))
        assert is_listed(parse_key(text, GLOBAL), GLOBAL)
    assert session_kind(parse_key("agent:ops:main", GLOBAL), None, GLOBAL) == "main"
    work = KeySettings(main_key="work")
    assert session_kind(SessionKey(KeyShape.main, "ops", "work"), None, work) == "main"


@pytest.mark.spec("KEY-26")
@pytest.mark.parametrize(
    "text", [UUID, UUID.upper(), f" {UUID} ", "proj1", "a:b", "mainly", "cronjob", "noded"]
)
def test_what_is_taken_for_a_session_id(text: str) -> None:
    assert looks_like_session_id(text) is True


@pytest.mark.spec("KEY-26")
@pytest.mark.parametrize(
    "text",
    [
        "main",
        "GLOBAL",
        "unknown",
        " current ",
        "agent:main:x",
        "cron:x",
        "Hook:x",
        "node-x",
        "node:x",
        "node-x:y",
        "subagent:x",
        "telegram:group:x",
        "slack:channel:x",
        "slack:room:x",
        "telegram:dm:x",
        "telegram:direct:x",
        "openclaw-tui",
        "ｍａｉｎ",
        "",
        ":",
        "a\0",
        "x" * 513,
    ],
)
def test_what_is_taken_for_a_key(text: str) -> None:
    assert looks_like_session_id(text) is False


@pytest.mark.spec("KEY-26", "KEY-23")
def test_key_or_id_at_the_edges() -> None:
    assert looks_like_session_id("x" * 512)
    assert looks_like_session_id("telegram:group")
    assert looks_like_session_id("work")
    assert not looks_like_session_id("work", KeySettings(main_key="work"))
    assert looks_like_session_id(UUID[:-1])
    assert not looks_like_session_id(f"hook:{UUID}")
    assert not looks_like_session_id(f"agent:main:{UUID}")
