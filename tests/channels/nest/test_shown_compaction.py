"""A compaction that nobody asked for, as people on a channel hear of it (COMP-5, COMP-11)."""

from __future__ import annotations

from typing import Any

import pytest

from tests.channels.nest.conftest import said
from tests.channels.suite import until
from tests.fakes.openai_server import FakeReply
from tests.fakes.pigeon import Loft
from tests.fakes.wire_client import WireClient
from tests.integration.conftest import House, client_of
from tests.integration.test_engine_context import OVERFLOW, SUMMARY, answer

KEY = "agent:main:pigeon:dm:101"
BEGINS = "[context] The conversation is getting long"
ENDED = "[context] Older parts were summarised: "


async def fill(nest: House, client: WireClient, turns: int = 8) -> None:
    for number in range(turns):
        nest.model.script(answer(f"reply {number} " + "y" * 8000))
        await client.say(KEY, f"message {number} " + "x" * 8000, f"talk-{number}")


def settings(nest: House, **compaction: Any) -> None:
    nest.config["agents"]["defaults"]["compaction"] = compaction


@pytest.mark.spec("COMP-5")
async def test_people_are_told_when_it_begins_and_ends_if_they_want(nest: House, loft: Loft) -> None:
    settings(nest, notifyUser=True)
    async with nest.gateway() as gateway, client_of(gateway) as client:
        await fill(nest, client)
        nest.model.script(OVERFLOW, answer(SUMMARY), answer("done"))
        await loft.says(loft.ann, loft.direct(loft.ann), "the question")
        await until(lambda: len(loft.shown()) >= 3, "the notes and the reply")
        begins, ended, reply = said(loft)
        assert begins.startswith(BEGINS) and reply == "done"
        assert ended.startswith(ENDED) and "→" in ended
        history = await client.call("chat.history", {"sessionKey": KEY, "limit": 100})
        assert "[context]" not in str(history["messages"])


@pytest.mark.spec("COMP-5")
async def test_people_are_told_as_well_when_nothing_came_of_it(nest: House, loft: Loft) -> None:
    settings(nest, notifyUser=True, memoryFlush={"enabled": False})
    async with nest.gateway() as gateway, client_of(gateway) as client:
        await fill(nest, client, 2)
        nest.model.decide = lambda body: (
            answer("near the edge", tokens=25_000) if body.get("tools") else FakeReply(status=401, body={})
        )
        await loft.says(loft.ann, loft.direct(loft.ann), "the question")
        await until(lambda: len(loft.shown()) >= 3, "the reply and the notes")
        reply, begins, ended = said(loft)
        assert reply == "near the edge" and begins.startswith(BEGINS)
        assert ended.startswith("[context] Nothing was summarised")


@pytest.mark.spec("COMP-11")
@pytest.mark.parametrize("flush", [True, False], ids=["after notes", "at once"])
async def test_verbose_people_hear_that_an_automatic_compaction_finished(
    nest: House, loft: Loft, flush: bool
) -> None:
    settings(nest, memoryFlush={"enabled": flush})
    async with nest.gateway() as gateway, client_of(gateway) as client:
        await fill(nest, client, 10)
        await loft.says(loft.ann, loft.direct(loft.ann), "/verbose on")
        await until(lambda: len(loft.shown()) == 1, "the answer")
        notes = [answer("NO_REPLY", tokens=25_100)] if flush else []
        nest.model.script(answer("near the edge", tokens=25_000), *notes, answer(SUMMARY))
        await loft.says(loft.ann, loft.direct(loft.ann), "go on")
        await until(lambda: len(loft.shown()) >= 3, "the reply and the note")
        assert said(loft)[1] == "near the edge"
        assert said(loft)[2].startswith(ENDED), "nothing says that it began"


@pytest.mark.spec("COMP-5", "SEND-9")
async def test_nobody_else_hears_of_it(nest: House, loft: Loft) -> None:
    settings(nest, memoryFlush={"enabled": False})
    async with nest.gateway() as gateway, client_of(gateway) as client:
        await fill(nest, client)
        nest.model.script(OVERFLOW, answer(SUMMARY), answer("done"))
        await loft.says(loft.ann, loft.direct(loft.ann), "the question")
        await until(lambda: loft.shown(), "the reply")
        assert said(loft) == ["done"], "neither verbose nor asked for"
        row = (await client.call("sessions.describe", {"key": KEY}))["session"]
        assert row["compactionCount"] == 1
