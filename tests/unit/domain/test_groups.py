"""Words, ids and loose inbound contexts, as people and platforms spell them."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from openclaw.domain.groups import (
    CLIENT_LABELS,
    KNOWN_CHANNELS,
    GroupRef,
    SessionKind,
    channel_of_client,
    complete_legacy_group,
    fold_channel,
    fold_listed_peer,
    fold_peer,
    has_invisible_text,
    has_unsafe_text,
    is_channel_id,
    normalise_account_id,
    normalise_agent_id,
    normalise_chat_type,
    require_agent_id,
    resolve_group,
    row_channel,
    valid_agent_id,
)
from openclaw.errors import InvalidRequest, InvalidSessionKey

MANY = settings(max_examples=200, deadline=None)


# -- ids ------------------------------------------------------------------------------------------


@pytest.mark.spec("KEY-21")
@pytest.mark.parametrize(
    ("text", "agent_id"),
    [
        ("main", "main"),
        ("Ops_2-x", "ops_2-x"),
        ("  Ops ", "ops"),
        ("My  Agent!!", "my-agent"),
        ("--a--b--", "a--b"),
        ("é/ü", "main"),
        ("Ａｂ", "ab"),
        ("a.b:c", "a-b-c"),
        ("_a_", "a_"),
        ("-", "main"),
        ("", "main"),
        (None, "main"),
        ("a" * 64, "a" * 64),
        ("a" * 65, "a" * 64),
        ("\ud800x\0y", "x-y"),
    ],
)
def test_any_text_becomes_an_agent_id(text: str | None, agent_id: str) -> None:
    assert normalise_agent_id(text) == agent_id
    assert normalise_account_id(text) == ("default" if agent_id == "main" and text != "main" else agent_id)


@pytest.mark.spec("KEY-21")
@MANY
@given(text=st.text(max_size=80))
def test_a_normalised_id_is_valid_and_stays(text: str) -> None:
    for normalise in (normalise_agent_id, normalise_account_id):
        once = normalise(text)
        assert valid_agent_id(once)
        assert normalise(once) == once


@pytest.mark.spec("KEY-21")
def test_the_grammar_of_ids() -> None:
    for text in ("a", "0", "A-b_C", "a" * 64):
        assert valid_agent_id(text)
    for text in ("", "-a", "_a", "a b", "a" * 65, "ä", "a\n", "a:b", "a/b", "\u212a"):
        assert not valid_agent_id(text)


@pytest.mark.spec("KEY-21")
def test_a_chosen_agent_id_is_refused_and_not_rewritten() -> None:
    assert require_agent_id(" Ops ") == "ops"
    for text in ("My Agent", "", "-x", "a" * 65, "\ud800"):
        with pytest.raises(InvalidRequest, match="is not valid") as caught:
            require_agent_id(text)
        assert "agents_list" in caught.value.message
        caught.value.message.encode()


@pytest.mark.spec("KEY-20")
def test_channel_ids() -> None:
    assert fold_channel(" Telegram ") == "telegram"
    assert fold_channel("ＭＳteams") == "msteams"
    assert fold_channel("my.plugin_2-x") == "my.plugin_2-x"
    assert is_channel_id("a" * 64)
    for text in ("", "a b", "-x", "a:b", "ä", "a" * 65):
        assert not is_channel_id(text)
        with pytest.raises(InvalidSessionKey, match="not a channel id"):
            fold_channel(text)
    assert all(is_channel_id(channel) for channel in KNOWN_CHANNELS)
    assert {"whatsapp", "telegram", "discord", "signal", "imessage", "webchat", "slack"} <= KNOWN_CHANNELS


@pytest.mark.spec("KEY-20")
def test_peers_are_folded_by_the_rule_of_their_channel() -> None:
    assert fold_peer(" AbC ", "telegram") == "abc"
    assert fold_peer(" AbC ", None) == "abc"
    assert fold_peer("AbC\n", None) == "abc\n"
    assert fold_peer(" AbC ", "matrix") == " AbC "
    assert fold_peer("AbC", "signal") == "AbC"
    assert fold_peer("AbC", "signal", frozenset()) == "abc"
    assert fold_listed_peer(" Telegram:AbC", "telegram") == "abc"
    assert fold_listed_peer("discord:AbC", "telegram") is None
    assert fold_listed_peer("plugin:AbC", "telegram") == "plugin:abc"
    assert fold_listed_peer("discord", "telegram") == "discord"
    assert fold_listed_peer(" Matrix: @Bo:hs ", "matrix") == "@Bo:hs"
    assert fold_listed_peer("telegram", "telegram") == "telegram"


@pytest.mark.spec("SEND-7")
def test_chat_types_in_every_spelling() -> None:
    """`dm` is `direct` (AMB-8) and `room` is `channel` (AMB-21); what is unknown is unset."""
    spellings = ["dm", "Direct", " group ", "ＣＨＡＮＮＥＬ", "ROOM", "forum", "", None]
    types = ["direct", "direct", "group", "channel", "channel", None, None, None]
    assert [normalise_chat_type(spelling) for spelling in spellings] == types


@pytest.mark.spec("KEY-20")
def test_unsafe_and_invisible_text() -> None:
    for char in ("\0", "\t", "\n", "\x7f", "\x9f", "\u2028", "\u2029", "\ud800"):
        assert has_unsafe_text(f"a{char}")
        assert not has_invisible_text(f"a{char}")
    for char in ("\u200b", "\u202e", "\ufeff", "\u00ad"):
        assert has_invisible_text(f"a{char}")
        assert not has_unsafe_text(f"a{char}")
    for text in ("", "plain", "ünï", "สวัสดี", "a\u00a0b", "\ue000"):
        assert not has_unsafe_text(text)
        assert not has_invisible_text(text)


# -- rows and clients -----------------------------------------------------------------------------


@pytest.mark.spec("LIST-6")
@pytest.mark.parametrize(
    ("kind", "entry_channel", "last_channel", "shown"),
    [
        ("group", "discord", "telegram", "discord"),
        ("group", None, "telegram", "telegram"),
        ("group", None, None, "unknown"),
        ("main", "discord", "telegram", "telegram"),
        ("other", "webchat", None, "webchat"),
        ("other", None, None, "unknown"),
        ("main", None, "", "unknown"),
        ("cron", "discord", "telegram", "internal"),
        ("hook", "discord", "telegram", "internal"),
        ("node", "discord", "telegram", "internal"),
    ],
)
def test_channel_of_a_row(
    kind: SessionKind, entry_channel: str | None, last_channel: str | None, shown: str
) -> None:
    assert row_channel(kind, entry_channel, last_channel) == shown


@pytest.mark.spec("LIST-6")
def test_channel_of_a_client() -> None:
    """Web clients are `webchat`, everything else that speaks RPC is `internal` (AMB-37)."""
    assert [
        channel_of_client(mode) for mode in ("webchat", "UI", "cli", "backend", "node", "worker", None)
    ] == [
        "webchat",
        "webchat",
        "internal",
        "internal",
        "internal",
        "internal",
        "internal",
    ]
    assert channel_of_client(None, "openclaw-control-ui") == "webchat"
    assert channel_of_client(None, "webchat-ui") == "webchat"
    assert channel_of_client("", "cli") == "internal"
    assert channel_of_client("cli", "webchat") == "internal"
    assert "openclaw-control-ui" in CLIENT_LABELS


# -- groups ---------------------------------------------------------------------------------------


GROUPS = [
    ("telegram:group:-100", None, None, "telegram:group:-100"),
    ("Telegram:GROUP:-100:topic:5", "discord", None, "telegram:group:-100:topic:5"),
    ("discord:channel:C9", None, None, "discord:channel:c9"),
    ("slack:room:C9", None, None, "slack:channel:c9"),
    ("telegram:-100", None, "group", "telegram:group:-100"),
    ("slack:C9", None, "channel", "slack:channel:c9"),
    ("slack:C9", None, "room", "slack:channel:c9"),
    ("-100", "telegram", "group", "telegram:group:-100"),
    ("x:y", "telegram", "group", "telegram:group:x:y"),
    ("120@g.us", None, None, "whatsapp:group:120@g.us"),
    ("120@G.US", "imessage", None, "imessage:group:120@g.us"),
    ("whatsapp:120@g.us", None, None, "whatsapp:group:120@g.us"),
    ("myplugin:group:5", "myplugin", None, "myplugin:group:5"),
    ("myplugin:5", "MyPlugin", "group", "myplugin:group:5"),
    ("other:group:5", "telegram", None, "telegram:group:5"),
    ("a:b:channel:c", "irc", None, "irc:channel:a:b:channel:c"),
    ("a:b:group:c", "irc", None, "irc:group:a:b:group:c"),
    ("telegram:group", None, "group", "telegram:group:group"),
    ("signal:group:AbC+/=", None, None, "signal:group:AbC+/="),
    (" ::telegram::group:5 ", None, None, "telegram:group:5"),
    ("group:5", "telegram", None, "telegram:group:5"),
    ("channel:C5", "slack", "channel", "slack:channel:c5"),
    ("room:C5", "slack", None, "slack:channel:c5"),
]


@pytest.mark.spec("KEY-13", "KEY-12")
@pytest.mark.parametrize(("from_", "provider", "chat_type", "key"), GROUPS, ids=[row[0] for row in GROUPS])
def test_which_group_a_context_speaks_of(
    from_: str, provider: str | None, chat_type: str | None, key: str
) -> None:
    group = resolve_group(from_=from_, provider=provider, chat_type=chat_type)
    assert group is not None
    assert group.key == key
    assert key == f"{group.channel}:{group.kind}:{fold_peer(group.group_id, group.channel)}"


@pytest.mark.spec("KEY-13")
@pytest.mark.parametrize(
    ("from_", "provider", "chat_type"),
    [
        ("telegram:5", "telegram", None),
        ("telegram:5", "telegram", "direct"),
        ("telegram:group", None, None),
        ("5", None, "group"),
        ("x:group:5", None, None),
        ("group:5", " ", None),
        ("telegram", None, "group"),
        ("telegram: ", None, "group"),
        ("", "telegram", "group"),
        (None, "telegram", "group"),
        ("120@g.us.evil", "whatsapp", None),
    ],
)
def test_what_is_no_group(from_: str | None, provider: str | None, chat_type: str | None) -> None:
    assert resolve_group(from_=from_, provider=provider, chat_type=chat_type) is None


@pytest.mark.spec("KEY-13", "KEY-20")
def test_group_ids_are_kept_byte_exact_beside_the_key() -> None:
    assert resolve_group(from_="discord:group:AbC") == GroupRef(
        "discord", "group", "AbC", "discord:group:abc"
    )
    exact = resolve_group(from_="line:group:AbC", case_sensitive_channels=frozenset({"line"}))
    assert exact == GroupRef("line", "group", "AbC", "line:group:AbC")
    own = resolve_group(from_="irc:#c", chat_type="group", known_channels=frozenset())
    assert own is None
    with pytest.raises(InvalidSessionKey):
        resolve_group(from_="x", provider="a b", chat_type="group")


@pytest.mark.spec("KEY-12")
@pytest.mark.parametrize(
    ("text", "provider", "completed"),
    [
        ("group:5", "Telegram", "telegram:group:5"),
        ("Room:C", "slack", "slack:Room:C"),
        ("group:5", None, None),
        ("group:5", "", None),
        ("group", None, "group"),
        ("group: :", None, "group: :"),
        ("dm:5", None, "dm:5"),
        ("telegram:group:5", None, "telegram:group:5"),
    ],
)
def test_a_legacy_group_is_completed(text: str, provider: str | None, completed: str | None) -> None:
    assert complete_legacy_group(text, provider) == completed


@pytest.mark.spec("KEY-13")
@MANY
@given(
    from_=st.lists(st.sampled_from(["telegram", "group", "channel", "x", "", " ", "@g.us"]), max_size=5).map(
        ":".join
    ),
    provider=st.sampled_from([None, "", "telegram", "plugin"]),
    chat_type=st.sampled_from([None, "group", "channel", "direct"]),
)
def test_a_resolved_group_is_always_whole(from_: str, provider: str | None, chat_type: str | None) -> None:
    group = resolve_group(from_=from_, provider=provider, chat_type=chat_type)
    if group is not None:
        assert is_channel_id(group.channel)
        assert group.kind in ("group", "channel")
        assert group.group_id.strip()
        assert group.group_id in from_
