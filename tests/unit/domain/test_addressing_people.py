"""Identity links, and the warning that several people share one session."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from openclaw.domain.addressing import (
    AddressSettings,
    Conversation,
    DmScope,
    Sender,
    SharedInboxWarning,
    linked_identity,
    session_key_for,
    shared_inbox_warning,
)
from openclaw.domain.keys import format_key

LINKS = {
    "  ": ["telegram:123"],
    "Alice": ["telegram:123", " Discord:987 ", "+4915"],
    "bob": ["telegram:123", "matrix:@Bo:hs"],
    "cy": ["@Cy:hs"],
    "nobody": [],
}


def key_of(channel: str, peer_id: str, dm_scope: DmScope) -> str:
    address = AddressSettings(dm_scope=dm_scope, identity_links=LINKS)
    conversation = Conversation(channel, "direct", peer_id, "biz")
    return format_key(session_key_for(conversation, agent_id="main", settings=address))


@pytest.mark.spec("KEY-7")
@pytest.mark.parametrize(
    ("dm_scope", "telegram", "discord"),
    [
        ("per-peer", "agent:main:dm:alice", "agent:main:dm:alice"),
        ("per-channel-peer", "agent:main:telegram:dm:alice", "agent:main:discord:dm:alice"),
        (
            "per-account-channel-peer",
            "agent:main:telegram:biz:dm:alice",
            "agent:main:discord:biz:dm:alice",
        ),
    ],
)
def test_the_canonical_name_replaces_the_peer(dm_scope: DmScope, telegram: str, discord: str) -> None:
    """Channel and account segments stay, so only `per-peer` shares across channels (AMB-14)."""
    assert key_of("telegram", "123", dm_scope) == telegram
    assert key_of("discord", "987", dm_scope) == discord
    assert key_of("discord", "123", dm_scope) != discord


@pytest.mark.spec("KEY-8")
def test_links_are_not_read_for_the_main_scope_and_for_groups() -> None:
    assert key_of("telegram", "123", "main") == "agent:main:main"
    group = Conversation("telegram", "group", "123")
    address = AddressSettings(dm_scope="per-peer", identity_links=LINKS)
    key = session_key_for(group, agent_id="main", settings=address)
    assert format_key(key) == "agent:main:telegram:group:123"


@pytest.mark.spec("KEY-8")
@pytest.mark.parametrize(
    ("channel", "peer_id", "name"),
    [
        ("telegram", "123", "alice"),
        (" TELEGRAM ", " 123 ", "alice"),
        ("discord", "987", "alice"),
        ("whatsapp", "+4915", "alice"),
        ("telegram", "124", None),
        ("slack", "123", None),
        ("irc", "telegram:123", None),
        ("matrix", "@Cy:hs", "cy"),
        ("telegram", "telegram:123", "alice"),
        ("matrix", "@Bo:hs", "bob"),
        ("matrix", "@bo:hs", None),
        ("telegram", "123\n", None),
        ("telegram", "", None),
        ("matrix", " ", None),
    ],
)
def test_how_links_are_compared(channel: str, peer_id: str, name: str | None) -> None:
    assert linked_identity(channel, peer_id, AddressSettings(identity_links=LINKS)) == name


@pytest.mark.spec("KEY-8")
def test_the_first_link_in_file_order_wins() -> None:
    first = AddressSettings(identity_links={"zoe": ["telegram:1"], "amy": ["telegram:1"]})
    second = AddressSettings(identity_links={"amy": ["telegram:1"], "zoe": ["telegram:1"]})
    assert linked_identity("telegram", "1", first) == "zoe"
    assert linked_identity("telegram", "1", second) == "amy"
    assert linked_identity("telegram", "1", AddressSettings()) is None


# -- the warning ----------------------------------------------------------------------------------


def warn(
    senders: Sequence[Sender], owners: Sequence[str] = (), *, dm_scope_is_set: bool = False
) -> SharedInboxWarning | None:
    return shared_inbox_warning(
        dm_scope_is_set=dm_scope_is_set,
        owners=owners,
        senders=senders,
        settings=AddressSettings(identity_links=LINKS),
    )


ONE = Sender("Telegram", " U1 ")
TWO = Sender("telegram", "u2")
OPERATOR = Sender("webchat", "device-1", is_operator=True)


@pytest.mark.spec("KEY-3")
def test_a_second_person_raises_the_warning() -> None:
    warning = warn([ONE, TWO])
    assert warning is not None
    assert warning.strangers == ("telegram:u1", "telegram:u2")
    assert warning.people == 2
    for part in ("2 people", "session.dmScope", '"per-channel-peer"', '"main"', "telegram:u1, telegram:u2"):
        assert part in warning.text
    assert " more" not in warning.text


@pytest.mark.spec("KEY-3")
def test_an_explicit_dm_scope_silences_it() -> None:
    assert warn([ONE, TWO], dm_scope_is_set=True) is None


@pytest.mark.spec("KEY-3")
def test_one_person_alone_raises_nothing() -> None:
    assert warn([]) is None
    assert warn([ONE]) is None
    assert warn([ONE, Sender("telegram", "U1"), ONE]) is None
    assert warn([OPERATOR, OPERATOR]) is None
    assert warn([Sender("telegram", "123"), Sender("discord", "987")]) is None


@pytest.mark.spec("KEY-3")
@pytest.mark.parametrize("owners", [["telegram:U1", "u2"], [" Telegram:u1 ", "telegram:u2", "*"]])
def test_named_owners_may_share(owners: list[str]) -> None:
    assert warn([ONE, TWO, OPERATOR], owners) is None
    stranger = warn([ONE, TWO, Sender("telegram", "u3")], owners)
    assert stranger is not None
    assert (stranger.strangers, stranger.people) == (("telegram:u3",), 3)


@pytest.mark.spec("KEY-3")
def test_a_stranger_beside_an_owner_or_an_operator_is_enough() -> None:
    for known, owners in ((ONE, ["u1"]), (OPERATOR, [])):
        for order in ([known, TWO], [TWO, known]):
            warning = warn(order, owners)
            assert warning is not None
            assert warning.strangers == ("telegram:u2",)


@pytest.mark.spec("KEY-3")
def test_owners_are_matched_exactly() -> None:
    assert warn([ONE, TWO], ["*"]) is not None
    assert warn([ONE, TWO], ["slack:u1", "slack:u2"]) is not None
    impostor = warn([ONE, Sender("irc", "telegram:u1")], ["telegram:u1"])
    assert impostor is not None
    assert impostor.strangers == ("irc:telegram:u1",)
    matrix = [Sender("matrix", "@Ann:hs"), Sender("matrix", "@ann:hs")]
    warning = warn(matrix, ["matrix:@Ann:hs"])
    assert warning is not None
    assert warning.strangers == ("matrix:@ann:hs",)


@pytest.mark.spec("KEY-3")
def test_many_strangers_are_counted_and_not_all_named() -> None:
    three = warn([Sender("irc", f"n{i}") for i in range(3)])
    four = warn([Sender("irc", f"n{i}") for i in range(4)])
    assert three is not None and four is not None
    assert "irc:n0, irc:n1, irc:n2)" in three.text
    assert "irc:n2 and 1 more)" in four.text
    assert "irc:n3" not in four.text
    assert len(four.strangers) == 4


@pytest.mark.spec("KEY-3")
def test_hostile_ids_cannot_break_the_line() -> None:
    warning = warn([ONE, Sender("irc", "a\nb\ud800" + "x" * 5000)])
    assert warning is not None
    assert warning.text.isprintable()
    assert len(warning.text) < 500
    assert warning.strangers[0].startswith("irc:a\nb")
