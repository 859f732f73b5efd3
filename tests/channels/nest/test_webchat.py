"""A chat that opens without naming a session sees what every channel said to its agent (ROUTE-5)."""

from __future__ import annotations

import pytest

from tests.channels.nest.conftest import said
from tests.channels.suite import echo, until
from tests.fakes.pigeon import Loft
from tests.integration.conftest import House, client_of


@pytest.mark.spec("ROUTE-5", "ROUTE-2")
async def test_the_main_session_is_offered_and_holds_what_every_channel_said(nest: House, loft: Loft) -> None:
    nest.config["session"] = {"dmScope": "main"}
    nest.model.decide = echo
    async with nest.gateway() as gateway, client_of(gateway) as client:
        offered = client.hello["snapshot"]["sessionDefaults"]
        assert offered["mainSessionKey"] == "agent:main:main" and offered["defaultAgentId"] == "main"
        await loft.says(loft.ann, loft.direct(loft.ann), "from the loft")
        await until(loft.shown, "a reply")
        for spelling in (offered["mainSessionKey"], offered["mainKey"]):
            history = await client.call("chat.history", {"sessionKey": spelling})
            assert "from the loft" in str(history["messages"]), spelling
            assert history["messages"][0]["provenance"] == {
                "kind": "external_user",
                "sourceChannel": "pigeon",
            }, "where it came from is told"
        final = await client.say(offered["mainSessionKey"], "from the page", "run-1")
        assert final["message"]["content"][0]["text"] == "You said: from the page"
        asked = str(nest.model.requests[-1].body["messages"])
        assert "from the loft" in asked and "from the page" in asked, "one context"
        assert said(loft) == ["You said: from the loft"], "what the page said is answered on the page"
        await loft.says(loft.ann, loft.direct(loft.ann), "and again")
        await until(lambda: len(loft.shown()) == 2, "another reply")
        assert "from the page" in str(nest.model.requests[-1].body["messages"])


@pytest.mark.spec("ROUTE-5")
async def test_another_agent_has_a_main_session_of_its_own(nest: House, loft: Loft) -> None:
    nest.config["session"] = {"dmScope": "main"}
    nest.model.decide = echo
    async with nest.gateway() as gateway, client_of(gateway) as client:
        await loft.says(loft.ann, loft.direct(loft.ann), "for main")
        await until(loft.shown, "a reply")
        await client.say("agent:bob:main", "for bob", "run-1")
        assert "for main" not in str(nest.model.requests[-1].body["messages"])
        history = await client.call("chat.history", {"sessionKey": "agent:bob:main"})
        assert "for bob" in str(history["messages"]) and "for main" not in str(history["messages"])
