"""Who may talk to an agent in a direct chat (CMD-13)."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from openclaw.domain.admission import (
    CODE_LENGTH,
    CODE_LETTERS,
    Admit,
    AskToPair,
    DirectRules,
    Refuse,
    Standing,
    admit_direct,
    is_listed,
    pairing_code,
    pairing_reply,
    sender_of,
)
from openclaw.domain.keys import KeySettings
from openclaw.domain.routing import Envelope

KEYS = KeySettings()
PAIRED = Standing(admitted=True)
STRANGER = Standing()


def said(sender: str | None = "42", channel: str = "telegram", **more: Any) -> Envelope:
    return Envelope(channel=channel, peer_kind="direct", peer_id="42", sender_id=sender, **more)


def decide(policy: Any, *, listed: tuple[str, ...] = (), standing: Standing = STRANGER) -> object:
    return admit_direct(said(), DirectRules(policy=policy, allow_from=listed), standing, KEYS)


@pytest.mark.spec("CMD-13")
@pytest.mark.parametrize(
    ("policy", "stranger", "paired", "listed"),
    [
        ("pairing", AskToPair(), Admit("paired"), Admit("listed")),
        ("allowlist", Refuse("not_listed"), Admit("paired"), Admit("listed")),
        ("open", Admit("open"), Admit("paired"), Admit("listed")),
        ("disabled", Refuse("disabled"), Refuse("disabled"), Refuse("disabled")),
    ],
)
def test_each_policy_for_each_standing(policy: str, stranger: object, paired: object, listed: object) -> None:
    assert decide(policy) == stranger
    assert decide(policy, standing=PAIRED) == paired
    assert decide(policy, listed=("42",)) == listed
    assert decide(policy, listed=("7", "telegram:42"), standing=PAIRED) == listed


def test_pairing_is_the_rule_where_nothing_is_said() -> None:
    assert DirectRules().policy == "pairing"
    assert admit_direct(said(), DirectRules(), Standing(), KEYS) == AskToPair()


@pytest.mark.spec("CMD-13")
def test_a_star_opens_the_door_and_makes_nobody_known() -> None:
    taken = decide("allowlist", listed=("*",))
    assert taken == Admit("open") and isinstance(taken, Admit) and not taken.known
    assert Admit("listed").known and Admit("paired").known
    assert not is_listed("42", ("*", " * "), "telegram", KEYS)


@pytest.mark.spec("CMD-13")
def test_an_id_of_another_platform_lets_nobody_in() -> None:
    assert not is_listed("42", ("discord:42",), "telegram", KEYS)
    assert is_listed("42", ("Telegram:42",), "telegram", KEYS)
    assert not is_listed("telegram:42", ("42",), "telegram", KEYS)
    assert not is_listed("@Ann:hs", ("@ann:hs",), "matrix", KEYS), "ids there are byte-exact"
    assert is_listed("ANN", ("ann",), "irc", KEYS)


def test_who_wrote_is_the_peer_of_a_direct_chat_or_nobody() -> None:
    assert sender_of(said(sender=None)) == "42"
    assert sender_of(said(sender="7")) == "7"
    in_group = Envelope(channel="telegram", peer_kind="group", peer_id="42")
    assert sender_of(in_group) == ""
    nobody = Envelope(channel="telegram", peer_kind="direct", peer_id="")
    assert admit_direct(nobody, DirectRules(policy="open"), Standing(), KEYS) == Refuse("no_sender")


@settings(max_examples=200, deadline=None)
@given(st.uuids(version=4), st.uuids(version=4))
def test_codes_are_readable_and_follow_from_their_seed(one: Any, other: Any) -> None:
    code = pairing_code(str(one))
    assert len(code) == CODE_LENGTH and set(code) <= set(CODE_LETTERS)
    assert code == pairing_code(one.hex)
    assert (code == pairing_code(str(other))) == (str(one)[:24] == str(other)[:24]) or one != other
    assert not set("IO01") & set(CODE_LETTERS) and len(set(CODE_LETTERS)) == 32


def test_the_reply_to_a_stranger_names_the_command_and_nothing_else() -> None:
    text = pairing_reply("ABCD2345", "telegram")
    assert "openclaw pairing approve telegram ABCD2345" in text
    assert "main" not in text and "agent" not in text.lower()
