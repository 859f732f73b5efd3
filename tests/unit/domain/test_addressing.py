"""From conversations to session keys."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from openclaw.domain.addressing import (
    AddressSettings,
    Conversation,
    DmScope,
    cron_key,
    hook_key,
    moved_main_key,
    named_key,
    node_key,
    session_key_for,
    slash_key,
    subagent_key,
)
from openclaw.domain.entry import ChatType
from openclaw.domain.keys import KeySettings, KeyShape, ThreadKind, format_key, parse_key
from openclaw.errors import InvalidSessionKey

KEYS = KeySettings()
MANY = settings(max_examples=200, deadline=None)


def key_of(
    conversation: Conversation, dm_scope: DmScope = "main", keys: KeySettings = KEYS, agent_id: str = "ops"
) -> str:
    address = AddressSettings(keys=keys, dm_scope=dm_scope)
    return format_key(session_key_for(conversation, agent_id=agent_id, settings=address))


def direct(peer_id: str, channel: str = "telegram", account_id: str = "biz") -> Conversation:
    return Conversation(channel, "direct", peer_id, account_id)


# -- direct chats ---------------------------------------------------------------------------------


@pytest.mark.spec("KEY-1", "KEY-3", "KEY-17")
def test_direct_chats_share_the_main_session_by_default() -> None:
    assert AddressSettings().dm_scope == "main"
    for conversation in (
        direct("1"),
        direct("2", "whatsapp"),
        direct("+49", "signal", "private"),
        direct(""),
    ):
        assert key_of(conversation) == "agent:ops:main"
    assert key_of(direct("1"), keys=KeySettings(main_key="Work")) == "agent:ops:work"
    assert key_of(direct("1"), agent_id="My Agent") == "agent:my-agent:main"


@pytest.mark.spec("KEY-4", "KEY-5", "KEY-6")
@pytest.mark.parametrize(
    ("dm_scope", "key"),
    [
        ("per-peer", "agent:ops:dm:u1"),
        ("per-channel-peer", "agent:ops:telegram:dm:u1"),
        ("per-account-channel-peer", "agent:ops:telegram:biz:dm:u1"),
    ],
)
def test_isolating_scopes(dm_scope: DmScope, key: str) -> None:
    assert key_of(direct(" U1 ", " Telegram "), dm_scope) == key
    assert key_of(direct("u2"), dm_scope) != key


@pytest.mark.spec("KEY-4", "KEY-5", "KEY-6")
def test_what_each_scope_keeps_apart() -> None:
    same_person = [direct("1", "telegram", "a"), direct("1", "telegram", "b"), direct("1", "slack", "a")]
    counts = {"per-peer": 1, "per-channel-peer": 2, "per-account-channel-peer": 3}
    scopes: list[DmScope] = ["per-peer", "per-channel-peer", "per-account-channel-peer"]
    assert {scope: len({key_of(c, scope) for c in same_person}) for scope in scopes} == counts


@pytest.mark.spec("KEY-6")
@pytest.mark.parametrize(
    ("account_id", "segment"), [("", "default"), ("  ", "default"), ("My Acc", "my-acc")]
)
def test_account_segment(account_id: str, segment: str) -> None:
    key = key_of(direct("1", "telegram", account_id), "per-account-channel-peer")
    assert key == f"agent:ops:telegram:{segment}:dm:1"
    assert Conversation("telegram", "direct", "1").account_id == "default"


@pytest.mark.spec("KEY-4", "KEY-5", "KEY-6")
@pytest.mark.parametrize("dm_scope", ["per-peer", "per-channel-peer", "per-account-channel-peer"])
@pytest.mark.parametrize("peer_id", ["", "  ", "a\0", "\ud800", "x:thread:1", "x" * 600])
def test_an_isolating_scope_never_falls_back_to_main(dm_scope: DmScope, peer_id: str) -> None:
    with pytest.raises(InvalidSessionKey):
        key_of(direct(peer_id), dm_scope)


@pytest.mark.spec("KEY-6")
def test_an_account_named_like_structure_is_refused() -> None:
    for account_id in ("group", "dm", "room", "slash"):
        with pytest.raises(InvalidSessionKey):
            key_of(direct("1", "telegram", account_id), "per-account-channel-peer")


# -- groups, rooms, threads -----------------------------------------------------------------------


@pytest.mark.spec("KEY-9", "KEY-25", "KEY-1", "KEY-17")
@pytest.mark.parametrize("dm_scope", ["main", "per-peer", "per-channel-peer", "per-account-channel-peer"])
def test_groups_and_rooms_have_their_own_keys(dm_scope: DmScope) -> None:
    assert key_of(Conversation("Telegram", "group", "-1A", "biz"), dm_scope) == "agent:ops:telegram:group:-1a"
    assert key_of(Conversation("slack", "channel", "C1", "biz"), dm_scope) == "agent:ops:slack:channel:c1"


@pytest.mark.spec("KEY-25")
@pytest.mark.parametrize("kind", ["group", "channel"])
@pytest.mark.parametrize("peer_id", ["", " ", "a\n", "x:topic:1", "x" * 600])
def test_a_group_without_a_usable_id_is_refused_and_never_main(kind: ChatType, peer_id: str) -> None:
    with pytest.raises(InvalidSessionKey):
        key_of(Conversation("telegram", kind, peer_id))


@pytest.mark.spec("KEY-25")
@pytest.mark.parametrize("channel", ["", "a b", "cron", "hook", "group", "node-x", "agent", "subagent", "dm"])
def test_a_channel_that_cannot_stand_in_a_key_is_refused(channel: str) -> None:
    with pytest.raises(InvalidSessionKey):
        key_of(Conversation(channel, "group", "1"))


@pytest.mark.spec("KEY-10", "KEY-11")
@pytest.mark.parametrize(
    ("conversation", "key"),
    [
        (Conversation("telegram", "group", "-1", "a", "topic", "5"), "agent:ops:telegram:group:-1:topic:5"),
        (Conversation("slack", "channel", "C", "a", "thread", "1.5"), "agent:ops:slack:channel:c:thread:1.5"),
        (
            Conversation("matrix", "channel", "!R:h", "a", "thread", "$E:h"),
            "agent:ops:matrix:channel:!R:h:thread:$E:h",
        ),
        (Conversation("slack", "direct", "U", "a", "thread", "T1"), "agent:ops:main:thread:t1"),
        (Conversation("telegram", "direct", "7", "a", "topic", "5"), "agent:ops:main:thread:5"),
        (Conversation("slack", "channel", "C", "a", None, "1.5"), "agent:ops:slack:channel:c"),
        (Conversation("slack", "channel", "C", "a", "thread", None), "agent:ops:slack:channel:c"),
        (Conversation("slack", "channel", "C", "a", "thread", " "), "agent:ops:slack:channel:c"),
    ],
)
def test_topics_and_threads_are_sessions_below_their_chat(conversation: Conversation, key: str) -> None:
    assert key_of(conversation) == key


@pytest.mark.spec("KEY-10", "KEY-11")
def test_threads_below_isolated_direct_chats() -> None:
    topic = Conversation("telegram", "direct", "7", "a", "topic", "5")
    assert key_of(topic, "per-channel-peer") == "agent:ops:telegram:dm:7:topic:5"
    assert key_of(topic, "per-peer") == "agent:ops:dm:7:topic:5"
    hostile = Conversation("slack", "channel", "c", "a", "thread", "1:thread:2")
    with pytest.raises(InvalidSessionKey):
        key_of(hostile)


# -- global scope ---------------------------------------------------------------------------------


@pytest.mark.spec("KEY-16")
def test_under_global_scope_every_chat_is_global() -> None:
    shared = KeySettings(scope="global")
    for conversation in (
        direct("1"),
        Conversation("slack", "channel", "C"),
        Conversation("telegram", "group", "-1", "a", "topic", "5"),
    ):
        assert key_of(conversation, "per-peer", shared) == "global"
    assert format_key(cron_key("ops", "j", shared)) == "agent:ops:cron:j"


# -- byte-exact ids -------------------------------------------------------------------------------


@pytest.mark.spec("KEY-20")
def test_capitals_of_a_case_sensitive_channel_survive_in_a_key_without_channel() -> None:
    """A key that does not name the channel is read in any casing, so capitals are written as escapes."""
    lower, upper = direct("@bo:hs", "matrix"), direct("@Bo:hs", "matrix")
    assert key_of(lower, "per-peer") == "agent:ops:dm:@bo:hs"
    assert key_of(upper, "per-peer") == "agent:ops:dm:@^bo:hs"
    assert key_of(direct("a^Éb", "matrix"), "per-peer") == "agent:ops:dm:a^^^(c9)b"
    assert key_of(upper, "per-channel-peer") == "agent:ops:matrix:dm:@Bo:hs"
    assert key_of(direct("U0AB", "slack"), "per-peer") == "agent:ops:dm:u0ab"
    thread = Conversation("matrix", "direct", "@Bo:hs", "a", "thread", "$Ev")
    assert key_of(thread) == "agent:ops:main:thread:$^ev"
    exact = KeySettings(case_sensitive_channels=frozenset({"slack"}))
    assert key_of(direct("U0AB", "slack"), "per-peer", exact) == "agent:ops:dm:^u0^a^b"


PEER = st.text(st.sampled_from("aAbB^(Kk\u212aİi\u0307ςΣ:1"), min_size=1, max_size=6)


@pytest.mark.spec("KEY-4", "KEY-5", "KEY-6", "KEY-20")
@MANY
@given(
    first=PEER,
    second=PEER,
    dm_scope=st.sampled_from(["per-peer", "per-channel-peer", "per-account-channel-peer"]),
)
def test_two_people_of_a_case_sensitive_channel_never_share_a_key(
    first: str, second: str, dm_scope: DmScope
) -> None:
    try:
        keys = [key_of(direct(peer, "matrix"), dm_scope) for peer in (first, second)]
    except InvalidSessionKey:
        return
    assert (keys[0] == keys[1]) == (first == second)
    assert format_key(parse_key(keys[0], KEYS)) == keys[0]


@pytest.mark.spec("KEY-9", "KEY-10", "KEY-11", "KEY-20")
@MANY
@given(
    channel=st.sampled_from(["telegram", "matrix", "Slack"]),
    kind=st.sampled_from(["direct", "group", "channel"]),
    peer_id=st.text(min_size=1, max_size=12),
    thread_kind=st.sampled_from([None, "topic", "thread"]),
    thread_id=st.none() | st.text(max_size=12),
    dm_scope=st.sampled_from(["main", "per-peer", "per-channel-peer"]),
)
def test_every_key_that_is_built_reads_back(
    channel: str,
    kind: ChatType,
    peer_id: str,
    thread_kind: ThreadKind | None,
    thread_id: str | None,
    dm_scope: DmScope,
) -> None:
    conversation = Conversation(channel, kind, peer_id, "default", thread_kind, thread_id)
    address = AddressSettings(dm_scope=dm_scope)
    try:
        key = session_key_for(conversation, agent_id="ops", settings=address)
    except InvalidSessionKey as refused:
        refused.message.encode()
        return
    assert parse_key(format_key(key), KEYS) == key
    assert (key.shape is KeyShape.main) == (kind == "direct" and dm_scope == "main")
    assert (key.thread_id is not None) == (thread_kind is not None and bool((thread_id or "").strip()))


# -- machine-made sessions ------------------------------------------------------------------------


@pytest.mark.spec("KEY-14")
def test_machine_made_keys() -> None:
    """All of them stand below an agent (AMB-17)."""
    assert format_key(subagent_key("Ops", "9F-1", KEYS)) == "agent:ops:subagent:9f-1"
    assert format_key(cron_key("ops", "Nightly", KEYS)) == "agent:ops:cron:nightly"
    assert format_key(cron_key("ops", "Nightly", KEYS, "S1")) == "agent:ops:cron:nightly:run:s1"
    assert format_key(hook_key("ops", "H1", KEYS)) == "agent:ops:hook:h1"
    assert format_key(node_key("ops", "Pi", KEYS)) == "agent:ops:node-pi"
    assert format_key(slash_key("ops", "Slack", "U1", KEYS)) == "agent:ops:slack:slash:u1"
    assert format_key(slash_key("ops", "matrix", "@U:h", KEYS)) == "agent:ops:matrix:slash:@U:h"
    assert format_key(named_key("ops", " Dashboard :: X1 ", KEYS)) == "agent:ops:dashboard:x1"


@pytest.mark.spec("KEY-14")
def test_hook_and_node_keys_can_be_named() -> None:
    assert format_key(hook_key("ops", "H1", KEYS, "Inbox")) == "agent:ops:inbox"
    assert format_key(hook_key("ops", "H1", KEYS, "hook:Mail")) == "agent:ops:hook:mail"
    assert format_key(node_key("ops", "Pi", KEYS, "agent:main:main")) == "agent:main:main"
    assert format_key(hook_key("ops", "H1", KEYS, " ")) == "agent:ops:hook:h1"
    assert format_key(node_key("ops", "Pi", KEYS, "")) == "agent:ops:node-pi"


@pytest.mark.spec("KEY-14")
@pytest.mark.parametrize("text", ["", " ", "a:thread:b", "x" * 600, "a\0", "a\u200b", "a：b"])
def test_unusable_ids_are_refused(text: str) -> None:
    for build in (subagent_key, cron_key, hook_key, node_key, named_key):
        with pytest.raises(InvalidSessionKey):
            build("ops", text, KEYS)
    with pytest.raises(InvalidSessionKey):
        cron_key("ops", "job", KEYS, text)
    with pytest.raises(InvalidSessionKey):
        slash_key("ops", "slack", "\0", KEYS)
    with pytest.raises(InvalidSessionKey):
        cron_key("ops", "a:run:b", KEYS)
    with pytest.raises(InvalidSessionKey, match="cron run"):
        cron_key("ops", "a", KEYS, "b:run:c")
    with pytest.raises(InvalidSessionKey):
        named_key("ops", "main", KEYS)


@pytest.mark.spec("KEY-1", "KEY-23")
def test_rows_move_when_the_main_key_changes() -> None:
    """`main` stays an alias of the new key, and the old row moves to it (AMB-24)."""
    desk = KeySettings(main_key="desk")

    def moved(stored: str, previous: str = "Work") -> str | None:
        key = moved_main_key(stored, previous_main_key=previous, settings=desk)
        return None if key is None else format_key(key)

    assert moved("agent:ops:work") == "agent:ops:desk"
    assert moved("agent:ops:work:thread:5") == "agent:ops:desk:thread:5"
    assert moved("agent:ops:main") == "agent:ops:desk"
    assert moved("agent:ops:main", "main") == "agent:ops:desk"
    for stored in ("agent:ops:desk", "agent:ops:proj1", "agent:ops:cron:work", "agent:ops:work:x", "global"):
        assert moved(stored) is None
