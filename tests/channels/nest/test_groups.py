"""How a group calls the agent, and which commands and threads are its own (LIFE-7, LIFE-14, CMD-12)."""

from __future__ import annotations

from datetime import UTC, datetime
from itertools import pairwise
from typing import Any

import pytest

from tests.channels.nest.conftest import said
from tests.channels.platform import Chat, Person
from tests.channels.suite import echo, until
from tests.fakes.clock import MovableClock
from tests.fakes.pigeon import Loft
from tests.fakes.wire_client import WireClient
from tests.integration.conftest import House, client_of

GROUP = "agent:main:pigeon:group:flock"
NOON = int(datetime(2026, 3, 10, 12, tzinfo=UTC).timestamp() * 1000)
HOUR = 3600


def name_agent(nest: House, name: str | None = None, patterns: tuple[str, ...] = ()) -> None:
    main: dict[str, Any] = nest.config["agents"]["list"][0]
    if name:
        main["identity"] = {"name": name}
    if patterns:
        main["groupChat"] = {"mentionPatterns": list(patterns)}


async def tell(loft: Loft, person: Person, text: str, *, mention: bool = False) -> None:
    await loft.says(person, loft.group(), text, mention=mention)


async def session_id(client: WireClient, key: str) -> str:
    row = (await client.call("sessions.describe", {"key": key}))["session"]
    return str(row["sessionId"])


@pytest.mark.spec("ROUTE-3", "LIFE-14")
async def test_a_platform_that_cannot_tell_is_answered_when_the_name_is_said(nest: House, loft: Loft) -> None:
    loft.tells_mentions = False
    name_agent(nest, "Wanda")
    nest.model.decide = echo
    async with nest.gateway():
        await tell(loft, loft.bob, "the weather is fine")
        await tell(loft, loft.bob, "I met wandas sister")
        await tell(loft, loft.ann, "what do you think, WANDA?")
        await until(loft.shown, "a reply")
        assert len(nest.model.requests) == 1
        asked = str(nest.model.requests[0].body["messages"])
        assert "the weather is fine" in asked and "wandas sister" in asked, "kept as context"
        assert said(loft) == ["You said: Ann: what do you think, WANDA?"]


@pytest.mark.spec("ROUTE-3")
async def test_where_mentions_are_told_the_bare_name_is_no_call_and_a_pattern_is(
    nest: House, loft: Loft
) -> None:
    name_agent(nest, "Wanda", ("@claw*", "hey bird"))
    nest.model.decide = echo
    async with nest.gateway():
        for text in ("Wanda is nice", "claw", "hey, little bird"):
            await tell(loft, loft.bob, text)
        await tell(loft, loft.ann, "Hey, BIRD! one")
        await until(lambda: len(loft.shown()) == 1, "a reply")
        await tell(loft, loft.ann, "ask @clawdine: two")
        await until(lambda: len(loft.shown()) == 2, "another")
        assert len(nest.model.requests) == 2


@pytest.mark.spec("LIFE-14")
@pytest.mark.parametrize("call", ["@wanda /new", "Wanda: /NEW", "/new@Wanda", "/new"])
async def test_a_call_before_a_reset_is_no_part_of_it(nest: House, loft: Loft, call: str) -> None:
    name_agent(nest, "Wanda")
    nest.model.decide = echo
    async with nest.gateway() as gateway, client_of(gateway) as client:
        await tell(loft, loft.ann, "first", mention=True)
        await until(lambda: len(loft.shown()) == 1, "a reply")
        before = await session_id(client, GROUP)
        await tell(loft, loft.ann, f"{call} and hello")
        await until(lambda: len(loft.shown()) == 2, "another")
        assert await session_id(client, GROUP) != before
        assert "first" not in str(nest.model.requests[-1].body["messages"])
        assert nest.model.requests[-1].body["messages"][-1]["content"].endswith("and hello")


@pytest.mark.spec("LIFE-14", "CMD-13")
async def test_who_may_not_reset_says_words_like_others(nest: House, loft: Loft) -> None:
    name_agent(nest, "Wanda")
    nest.config["commands"]["allowFrom"] = ["pigeon:101"]
    nest.model.decide = echo
    async with nest.gateway() as gateway, client_of(gateway) as client:
        await tell(loft, loft.ann, "first", mention=True)
        await until(lambda: len(loft.shown()) == 1, "a reply")
        before = await session_id(client, GROUP)
        await tell(loft, loft.bob, "/new start over", mention=True)
        await until(lambda: len(loft.shown()) == 2, "another")
        assert await session_id(client, GROUP) == before
        assert "/new start over" in str(nest.model.requests[-1].body["messages"])


@pytest.mark.spec("CMD-12")
async def test_a_command_that_names_another_bot_is_not_ours(nest: House, loft: Loft) -> None:
    name_agent(nest, "Wanda")
    nest.model.decide = echo
    async with nest.gateway():
        await tell(loft, loft.ann, "/status@otherbot")
        await tell(loft, loft.ann, "/new@otherbot please", mention=True)
        await tell(loft, loft.ann, "/STATUS@wanda:")
        await until(loft.shown, "our own answer")
        await tell(loft, loft.ann, "@wanda /whoami")
        await until(lambda: len(said(loft)) > 1 and "You are pigeon:101" in said(loft)[-1], "the second")
        assert nest.model.requests == [], "no command was taken for a message"
        assert any("Session" in text or "session" in text for text in said(loft))


@pytest.mark.spec("LIFE-7", "KEY-10")
async def test_a_thread_that_a_connector_reports_has_the_rule_of_threads(nest: House, loft: Loft) -> None:
    nest.config["session"]["resetByType"] = {
        "thread": {"mode": "idle", "idleMinutes": 30},
        "group": {"mode": "idle", "idleMinutes": 600},
        "direct": {"mode": "idle", "idleMinutes": 90},
    }
    nest.model.decide = echo
    clock = MovableClock(NOON)
    thread = loft.thread()
    assert thread is not None
    places = [loft.direct(loft.ann), loft.group(), thread]
    keys = [f"agent:main:{loft.session_key(place)}" for place in places]
    async with nest.gateway(clock=clock) as gateway, client_of(gateway) as client:
        ids = [await _talk(nest, loft, client, places, keys)]
        for hours in (0.75, 1.25):
            clock.move(hours * HOUR)
            ids.append(await _talk(nest, loft, client, places, keys))
        renewed = [[now != then for then, now in zip(*pair, strict=True)] for pair in pairwise(ids)]
        assert renewed == [[False, False, True], [False, False, True]]
        clock.move(2 * HOUR)
        again = await _talk(nest, loft, client, places, keys)
        assert [now != then for then, now in zip(ids[-1], again, strict=True)] == [True, False, True]


async def _talk(
    nest: House, loft: Loft, client: WireClient, places: list[Chat], keys: list[str]
) -> list[str]:
    """Ann says something in each place; the session ids behind them."""
    before = len(loft.shown())
    for place in places:
        await loft.says(loft.ann, place, "hello", mention=True)
    await until(lambda: len(loft.shown()) >= before + len(places), "a reply in each place")
    return [await session_id(client, key) for key in keys]
