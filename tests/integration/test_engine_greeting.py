"""A bare reset is greeted, and what one session hands to another carries no secret."""

from __future__ import annotations

import pytest

from tests.fakes.openai_server import FakeReply
from tests.fakes.wire_client import WireClient
from tests.integration.conftest import House

KEY = "agent:main:main"
OK = FakeReply(texts=("fine",))


@pytest.mark.spec("LIFE-17", "LIFE-18")
async def test_the_greeting_names_the_default_model_where_another_one_answers(
    house: House, client: WireClient
) -> None:
    house.model.script(OK, OK, OK)
    await client.say(KEY, "/new", "run-1")
    assert "default model" not in str(house.model.requests[0].body["messages"][-2])
    await client.say(KEY, "/new fake/two", "run-2")
    asked = house.model.requests[1].body
    assert asked["model"] == "two"
    note = str(asked["messages"][-2]["content"])
    assert "Greet them" in note
    assert "the default model is fake/one" in note


@pytest.mark.spec("TRX-11")
async def test_an_injected_note_is_masked_before_it_is_stored(house: House, client: WireClient) -> None:
    house.model.script(OK, OK)
    await client.say(KEY, "hello", "run-1")
    secret = "ghp_" + "a1B2" * 9
    await client.call("chat.inject", {"sessionKey": KEY, "message": f"the token is {secret}"})
    await client.say(KEY, "go on", "run-2")
    assert secret not in str(house.model.requests[1].body)
    assert "the token is" in str(house.model.requests[1].body)
