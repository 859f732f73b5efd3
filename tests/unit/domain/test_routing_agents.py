"""Which agent a message belongs to (ROUTE-1)."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from openclaw.domain.keys import KeySettings
from openclaw.domain.routing import (
    AgentChoice,
    AgentRef,
    Binding,
    BindingMatch,
    Envelope,
    PeerMatch,
    RouteTier,
    choose_agent,
    default_agent_id,
)

KEYS = KeySettings()
AGENTS = [AgentRef("first"), AgentRef("Chosen", default=True), AgentRef("late", default=True)]

MESSAGE = Envelope(
    channel="discord",
    account_id="biz",
    peer_kind="channel",
    peer_id="T9",
    parent_peer_id="C1",
    guild_id="G1",
    team_id="W1",
    roles=("r1", "r2"),
    sender_id="u1",
)

# One binding per tier, the least specific first, so that file order never decides.
BY_TIER: dict[RouteTier, BindingMatch] = {
    "channel": BindingMatch(channel="discord", account_id="*"),
    "account": BindingMatch(channel="discord", account_id="biz"),
    "team": BindingMatch(channel="discord", team_id="W1"),
    "guild": BindingMatch(channel="discord", guild_id="G1"),
    "guild_roles": BindingMatch(channel="discord", guild_id="G1", roles=("r0", "r2")),
    "parent_peer": BindingMatch(channel="discord", peer=PeerMatch("channel", "C1")),
    "peer": BindingMatch(channel="discord", peer=PeerMatch("channel", "T9")),
}
ALL = [Binding(agent_id=tier.replace("_", "-"), match=match) for tier, match in BY_TIER.items()]


def choose(*matches: BindingMatch, envelope: Envelope = MESSAGE, keys: KeySettings = KEYS) -> AgentChoice:
    bindings = [Binding(agent_id=f"a{index}", match=match) for index, match in enumerate(matches)]
    return choose_agent(envelope, bindings, AGENTS, keys)


def match(**fields: Any) -> BindingMatch:
    return BindingMatch(channel="discord", **fields)


@pytest.mark.spec("ROUTE-1")
def test_the_most_specific_tier_wins_whatever_the_order() -> None:
    remaining = list(ALL)
    order = ["peer", "parent_peer", "guild_roles", "guild", "team", "account", "channel"]
    for tier in order:
        choice = choose_agent(MESSAGE, remaining, AGENTS, KEYS)
        assert choice.tier == tier
        assert choice.agent_id == tier.replace("_", "-")
        assert choice.binding_index is not None
        assert remaining.pop(choice.binding_index).match == BY_TIER[choice.tier]
    assert choose_agent(MESSAGE, remaining, AGENTS, KEYS) == AgentChoice("chosen", "default", None)


@pytest.mark.spec("ROUTE-1")
@settings(max_examples=100, deadline=None)
@given(order=st.permutations(range(len(ALL))))
def test_the_order_of_different_tiers_does_not_matter(order: list[int]) -> None:
    choice = choose_agent(MESSAGE, [ALL[i] for i in order], AGENTS, KEYS)
    assert (choice.agent_id, choice.tier) == ("peer", "peer")


@pytest.mark.spec("ROUTE-1")
def test_inside_a_tier_the_first_binding_wins() -> None:
    same = match(guild_id="G1")
    assert choose(match(team_id="W1"), same, same) == AgentChoice("a1", "guild", 1)


@pytest.mark.spec("ROUTE-1")
@pytest.mark.parametrize(
    "binding",
    [
        BindingMatch(channel="slack"),
        match(account_id="private"),
        match(account_id=""),
        match(guild_id="G2"),
        match(team_id="W2"),
        match(roles=("r9",)),
        match(guild_id="G1", roles=("r9",)),
        match(peer=PeerMatch("channel", "C2")),
        match(peer=PeerMatch("group", "T9")),
        match(peer=PeerMatch("forum", "T9")),
        match(peer=PeerMatch("channel", "")),
        match(peer=PeerMatch("channel", "T9"), account_id="private"),
        match(peer=PeerMatch("channel", "T9"), guild_id="G2"),
        match(peer=PeerMatch("channel", "T9"), roles=("r9",)),
        match(guild_id="G1", team_id="W2"),
        match(guild_id="G2", account_id="biz"),
    ],
)
def test_every_given_field_must_match(binding: BindingMatch) -> None:
    assert choose(binding).tier == "default"


@pytest.mark.spec("ROUTE-1")
@pytest.mark.parametrize(
    ("binding", "tier"),
    [
        (BindingMatch(channel=" Discord "), "channel"),
        (match(account_id=" * "), "channel"),
        (match(account_id="BIZ"), "account"),
        (match(account_id="biz", team_id="W1"), "team"),
        (match(account_id="biz", team_id="W1", guild_id="G1"), "guild"),
        (match(roles=("r1",)), "channel"),
        (match(roles=("r1",), team_id="W1"), "team"),
        (match(peer=PeerMatch("room", "t9"), guild_id="G1", roles=("r1",)), "peer"),
        (match(peer=PeerMatch("channel", "c1"), guild_id="G1"), "parent_peer"),
    ],
)
def test_the_tier_is_that_of_the_most_specific_field(binding: BindingMatch, tier: RouteTier) -> None:
    assert choose(binding) == AgentChoice("a0", tier, 0)


@pytest.mark.spec("ROUTE-1", "KEY-20")
def test_peers_are_compared_by_the_rule_of_their_channel() -> None:
    direct = Envelope(channel="matrix", peer_kind="direct", peer_id="@Bo:hs")
    exact = BindingMatch(channel="matrix", peer=PeerMatch("dm", "@Bo:hs"))
    other = BindingMatch(channel="matrix", peer=PeerMatch("direct", "@bo:hs"))
    assert choose(other, exact, envelope=direct) == AgentChoice("a1", "peer", 1)
    folding = KeySettings(case_sensitive_channels=frozenset())
    assert choose(other, exact, envelope=direct, keys=folding) == AgentChoice("a0", "peer", 0)


@pytest.mark.spec("ROUTE-1")
def test_a_message_without_parent_guild_or_account_matches_no_such_binding() -> None:
    plain = Envelope(channel="discord", peer_kind="channel", peer_id="T9")
    assert choose(match(peer=PeerMatch("channel", "")), envelope=plain).tier == "default"
    assert (
        choose(match(guild_id="G1"), match(team_id="W1"), match(roles=("r1",)), envelope=plain).tier
        == "default"
    )
    assert choose(match(account_id="default"), envelope=plain).tier == "account"


@pytest.mark.spec("ROUTE-1")
def test_the_default_agent() -> None:
    assert default_agent_id(AGENTS) == "chosen"
    assert default_agent_id([AgentRef("First"), AgentRef("second")]) == "first"
    assert default_agent_id([]) == "main"
    assert choose_agent(MESSAGE, [], [], KEYS) == AgentChoice("main", "default")
    renamed = choose_agent(MESSAGE, [Binding(agent_id="My Agent", match=match())], [], KEYS)
    assert renamed.agent_id == "my-agent"
