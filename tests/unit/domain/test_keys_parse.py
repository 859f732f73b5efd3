"""Reading and writing session keys: every shape, every refusal (SPEC §3.1)."""

from __future__ import annotations

import pytest

from openclaw.domain.keys import (
    MAX_KEY_CHARS,
    KeySettings,
    KeyShape,
    SessionKey,
    format_key,
    parse_key,
    verify_key,
)
from openclaw.errors import InvalidSessionKey

SETTINGS = KeySettings()
UUID = "9029f91c-0240-4609-96d0-c7e71d8bc6d0"


def canonical(text: str, settings: KeySettings = SETTINGS) -> str:
    return format_key(parse_key(text, settings))


def refusal(text: str, settings: KeySettings = SETTINGS) -> str:
    with pytest.raises(InvalidSessionKey) as caught:
        parse_key(text, settings)
    assert caught.value.code == "INVALID_REQUEST"
    return caught.value.message


SHAPES = [
    ("agent:main:main", SessionKey(KeyShape.main, "main", "main")),
    ("agent:ops:dm:42", SessionKey(KeyShape.direct, "ops", peer_id="42")),
    ("agent:main:telegram:dm:42", SessionKey(KeyShape.direct, "main", channel="telegram", peer_id="42")),
    (
        "agent:main:telegram:biz:dm:42",
        SessionKey(KeyShape.direct, "main", channel="telegram", account_id="biz", peer_id="42"),
    ),
    ("agent:main:discord:group:7", SessionKey(KeyShape.group, "main", channel="discord", peer_id="7")),
    ("agent:main:slack:channel:c1", SessionKey(KeyShape.channel, "main", channel="slack", peer_id="c1")),
    (
        "agent:main:telegram:biz:group:7",
        SessionKey(KeyShape.group, "main", channel="telegram", account_id="biz", peer_id="7"),
    ),
    ("agent:main:group:7", SessionKey(KeyShape.group, "main", peer_id="7")),
    (
        "agent:main:telegram:group:-100:topic:5",
        SessionKey(
            KeyShape.group, "main", channel="telegram", peer_id="-100", thread_kind="topic", thread_id="5"
        ),
    ),
    (
        "agent:main:slack:channel:c1:thread:17.9",
        SessionKey(
            KeyShape.channel, "main", channel="slack", peer_id="c1", thread_kind="thread", thread_id="17.9"
        ),
    ),
    (
        "agent:main:main:thread:9",
        SessionKey(KeyShape.main, "main", "main", thread_kind="thread", thread_id="9"),
    ),
    (f"agent:main:subagent:{UUID}", SessionKey(KeyShape.subagent, "main", UUID)),
    (
        f"agent:main:subagent:{UUID}:subagent:{UUID}",
        SessionKey(KeyShape.subagent, "main", f"{UUID}:subagent:{UUID}"),
    ),
    ("agent:main:cron:job1", SessionKey(KeyShape.cron, "main", "job1")),
    (f"agent:main:cron:job1:run:{UUID}", SessionKey(KeyShape.cron_run, "main", "job1", UUID)),
    ("agent:main:hook:gmail:4", SessionKey(KeyShape.hook, "main", "gmail:4")),
    ("agent:main:node-pi", SessionKey(KeyShape.node, "main", "pi")),
    ("agent:main:slack:slash:u1", SessionKey(KeyShape.slash, "main", channel="slack", peer_id="u1")),
    ("global", SessionKey(KeyShape.global_)),
    ("unknown", SessionKey(KeyShape.unknown)),
    ("agent:main:proj1", SessionKey(KeyShape.other, "main", "proj1")),
    (f"agent:main:dashboard:{UUID}", SessionKey(KeyShape.other, "main", f"dashboard:{UUID}")),
]


@pytest.mark.spec("KEY-9", "KEY-10", "KEY-11", "KEY-14", "KEY-15")
@pytest.mark.parametrize(("text", "key"), SHAPES, ids=[text for text, _ in SHAPES])
def test_every_shape_is_read_and_written(text: str, key: SessionKey) -> None:
    """Cron, hook and node keys stand below an agent like all others (AMB-17)."""
    assert parse_key(text, SETTINGS) == key
    assert format_key(key) == text
    assert verify_key(key, SETTINGS) is key


@pytest.mark.spec("KEY-14")
@pytest.mark.parametrize(
    ("spelling", "text"),
    [
        ("agent:main:direct:42", "agent:main:dm:42"),
        ("agent:main:telegram:direct:42", "agent:main:telegram:dm:42"),
        ("agent:main:telegram:biz:direct:42", "agent:main:telegram:biz:dm:42"),
        ("agent:main:slack:room:C1", "agent:main:slack:channel:c1"),
        ("agent:main:node:PI", "agent:main:node-pi"),
        ("agent:main:node- pi", "agent:main:node-pi"),
        ("agent:main:node-:pi", "agent:main:node-pi"),
        ("agent:main:node:dm:topic:5", "agent:main:node-dm:topic:5"),
    ],
)
def test_other_spellings_give_the_same_key(spelling: str, text: str) -> None:
    """`direct` is `dm` (AMB-8), `room` is `channel` (AMB-21), `node:` is `node-`."""
    assert canonical(spelling) == text
    assert parse_key(spelling, SETTINGS) == parse_key(text, SETTINGS)


@pytest.mark.spec("KEY-20")
def test_case_is_folded_except_on_case_sensitive_channels() -> None:
    assert canonical("Agent:MAIN:Discord:Group:AbC") == "agent:main:discord:group:abc"
    assert canonical("AGENT:Main:SLACK:Channel:C1:THREAD:AbC") == "agent:main:slack:channel:c1:thread:abc"
    matrix = "AGENT:Main:Matrix:Channel:!RoOm:Hs.Org:Thread:$EvT"
    assert canonical(matrix) == "agent:main:matrix:channel:!RoOm:Hs.Org:thread:$EvT"
    assert canonical("agent:main:Signal:GROUP:aB+/c=") == "agent:main:signal:group:aB+/c="
    assert canonical("agent:main:PROJ1") == "agent:main:proj1"


@pytest.mark.spec("KEY-20")
def test_the_case_sensitive_channels_are_a_setting() -> None:
    settings = KeySettings(case_sensitive_channels=frozenset({" Line "}))
    assert settings.case_sensitive_channels == frozenset({"line"})
    assert canonical("agent:main:line:group:AbC", settings) == "agent:main:line:group:AbC"
    assert canonical("agent:main:matrix:group:AbC", settings) == "agent:main:matrix:group:abc"


@pytest.mark.spec("KEY-20")
def test_ids_of_platforms_are_opaque() -> None:
    for peer in ("../../etc/passwd", "a+b/c==", "a::b", "user@host/res", "x y", "ﬁ：", "a\u200bb"):
        key = parse_key(f"agent:main:discord:group:{peer}", SETTINGS)
        assert (key.shape, key.peer_id) == (KeyShape.group, peer)


@pytest.mark.spec("KEY-20", "KEY-22")
@pytest.mark.parametrize(
    ("text", "shape"),
    [
        ("ＡＧＥＮＴ:ｍａｉｎ:ＨＯＯＫ:x", KeyShape.hook),
        ("agent:main:ｃｒｏｎ:x", KeyShape.cron),
        ("agent:main:ſubagent:x", KeyShape.subagent),
        ("agent:main:discord:ｇｒｏｕｐ:x", KeyShape.group),
        ("agent:main:ｄiscord:dm:x", KeyShape.direct),
        ("agent:main:ｎｏｄｅ-x", KeyShape.node),
        ("agent:main:ｍａｉｎ", KeyShape.main),
        ("ｇｌｏｂａｌ", KeyShape.global_),
    ],
)
def test_look_alike_words_are_the_words(text: str, shape: KeyShape) -> None:
    key = parse_key(text, SETTINGS)
    assert key.shape is shape
    assert format_key(key).isascii()


@pytest.mark.spec("KEY-22")
def test_empty_segments_are_ignored_in_the_structure() -> None:
    assert canonical("agent::main:::proj1") == "agent:main:proj1"
    assert canonical(":agent:main:a::b:") == "agent:main:a:b"
    assert canonical(" agent : main : discord :: group : 7 ") == "agent:main:discord:group:7"


@pytest.mark.spec("KEY-22")
@pytest.mark.parametrize(
    "text", ["agent", "agent:", "agent:main", "agent:main:", "AGENT::main:", "agent: : :"]
)
def test_a_key_of_fewer_parts_is_malformed(text: str) -> None:
    assert "agent:<agentId>:<name>" in refusal(text)


@pytest.mark.spec("KEY-22")
@pytest.mark.parametrize("text", ["main", "telegram:group:5", "cron:x", "global:x", "current"])
def test_a_key_without_agent_is_not_complete(text: str) -> None:
    assert "is incomplete. Write `agent:<agentId>:<name>`" in refusal(text)


@pytest.mark.spec("KEY-21", "KEY-22")
@pytest.mark.parametrize("agent_id", ["ma/in", "-x", "_x", "a b", "ä", "a" * 65, ".."])
def test_an_agent_id_in_a_key_is_never_rewritten(agent_id: str) -> None:
    assert "names no valid agent" in refusal(f"agent:{agent_id}:main")


@pytest.mark.spec("KEY-22")
def test_a_second_agent_prefix_is_refused() -> None:
    assert "names an agent twice" in refusal("agent:main:agent:main:main")
    assert "names an agent twice" in refusal("agent:main:agent")


@pytest.mark.spec("KEY-15", "KEY-18")
def test_reserved_words_are_not_free_names() -> None:
    assert parse_key("agent:main:global", SETTINGS) == parse_key("global", SETTINGS)
    assert parse_key("agent:main:UNKNOWN", SETTINGS) == SessionKey(KeyShape.unknown)
    assert "has none" in refusal("agent:main:global:thread:5")
    assert "`current`" in refusal("agent:main:current")
    assert canonical("agent:main:current:x") == "agent:main:current:x"


@pytest.mark.spec("KEY-20", "KEY-22")
@pytest.mark.parametrize("char", ["\0", "\n", "\x1f", "\x7f", "\x85", "\u2028", "\u2029", "\ud800", "\udfff"])
def test_control_characters_and_lone_surrogates_are_refused(char: str) -> None:
    for text in (f"agent:main:a{char}b", f"agent:main:matrix:dm:a{char}b", f"{char}agent:main:main"):
        message = refusal(text)
        assert "control character" in message
        assert message.isprintable()
        message.encode()


@pytest.mark.spec("KEY-20")
def test_names_with_invisible_or_look_alike_characters_are_refused() -> None:
    assert "invisible" in refusal("agent:main:ho\u200bok:x")
    assert "invisible" in refusal("agent:main:cron:\u202ex")
    for colon in ("：", "﹕", "︓", "⩴"):
        assert "look-alike of `:`" in refusal(f"agent:main:cron{colon}x")
    assert "look-alike of `:`" in refusal("agent:main:hook:a：b")


@pytest.mark.spec("KEY-22")
@pytest.mark.parametrize("text", ["", "   ", ":", ": :", "\u3000"])
def test_empty_text_is_refused(text: str) -> None:
    assert "is empty" in refusal(text)


@pytest.mark.spec("KEY-22")
def test_the_length_limit_holds_for_the_request_and_for_the_full_form() -> None:
    fits = "agent:main:" + "x" * (MAX_KEY_CHARS - len("agent:main:"))
    assert len(canonical(fits)) == MAX_KEY_CHARS == 512
    assert "longer than 512" in refusal(fits + "x")
    assert "longer than 512" in refusal("agent:main:" + "x" * 10_000)
    grows = "agent:main:" + "\ufdfa" * 60
    assert "when written in full" in refusal(grows)


@pytest.mark.spec("KEY-14")
def test_machine_words_alone_are_free_names_and_a_node_needs_an_id() -> None:
    for word in ("cron", "hook", "subagent", "node", "dm", "group", "slash:x", "thread:x", "slack:group"):
        assert parse_key(f"agent:main:{word}", SETTINGS) == SessionKey(KeyShape.other, "main", word)
    assert "node-<nodeId>" in refusal("agent:main:node-")


@pytest.mark.spec("KEY-14")
def test_a_cron_run_is_split_at_the_last_run() -> None:
    key = parse_key("agent:main:cron:nightly:run:a:run:b", SETTINGS)
    assert (key.name, key.run_id) == ("nightly:run:a", "b")
    assert parse_key("agent:main:cron:nightly:run", SETTINGS).name == "nightly:run"
    assert parse_key("agent:main:cron:a:b:c:d", SETTINGS) == SessionKey(KeyShape.cron, "main", "a:b:c:d")
    assert parse_key("agent:main:cron:run:x", SETTINGS) == SessionKey(KeyShape.cron, "main", "run:x")


@pytest.mark.spec("KEY-9", "KEY-24")
def test_chat_words_are_read_in_their_places_only() -> None:
    assert canonical("agent:main:a:b:c:group:d") == "agent:main:a:b:c:group:d"
    assert parse_key("agent:main:a:b:c:group:d", SETTINGS).shape is KeyShape.other
    assert parse_key("agent:main:a b:group:d", SETTINGS).shape is KeyShape.other
    assert parse_key("agent:main:slack:a b:group:d", SETTINGS).shape is KeyShape.other
    assert parse_key("agent:main:slack:a:slash:d", SETTINGS).shape is KeyShape.other
    peer = parse_key("agent:main:slack:group:dm:d", SETTINGS)
    assert (peer.shape, peer.peer_id) == (KeyShape.group, "dm:d")
    topic = parse_key("agent:main:notes:topic:rust", SETTINGS)
    assert (topic.shape, topic.thread_kind) == (KeyShape.other, None)


@pytest.mark.spec("KEY-10", "KEY-11")
@pytest.mark.parametrize(
    "key",
    [
        SessionKey(KeyShape.group, "main", channel="telegram", peer_id="1:topic:2"),
        SessionKey(KeyShape.channel, "main", channel="slack", peer_id="c1:thread:2"),
        SessionKey(KeyShape.group, "main", channel="slack", peer_id="x", thread_kind="thread", thread_id=""),
        SessionKey(KeyShape.group, "main", channel="cron", peer_id="x"),
        SessionKey(KeyShape.group, "main", channel="telegram", peer_id=""),
        SessionKey(KeyShape.group, "main", channel="telegram", peer_id="ABC"),
        SessionKey(KeyShape.direct, "main", channel="slack", account_id="group", peer_id="1"),
        SessionKey(KeyShape.other, "main", "main"),
        SessionKey(KeyShape.cron, "main", "a:run:b"),
    ],
)
def test_a_key_that_reads_as_another_one_is_refused(key: SessionKey) -> None:
    with pytest.raises(InvalidSessionKey, match="is ambiguous"):
        verify_key(key, SETTINGS)
