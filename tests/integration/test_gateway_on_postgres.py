"""A whole gateway on PostgreSQL: a turn over the wire, a restart, and everything still there."""

from __future__ import annotations

import sys

import pytest

from openclaw.errors import StoreLocked, Unavailable
from openclaw.store import postgres_schema
from tests.fakes.openai_server import FakeReply
from tests.fakes.postgres_server import shared_server
from tests.integration.conftest import House, client_of

KEY = "agent:main:proj1"
SECOND = FakeReply(texts=("Still", " here"))


@pytest.fixture
def house_on_postgres(house: House) -> House:
    house.config["store"] = {"url": shared_server().wiped()}
    return house


@pytest.mark.spec("DB-15", "DB-16", "RPC-12")
async def test_a_turn_and_its_history_survive_a_restart(house_on_postgres: House) -> None:
    house = house_on_postgres
    house.model.script(FakeReply(texts=("Hello", " you")), SECOND)
    async with house.gateway() as gateway, client_of(gateway) as client:
        sent = {"sessionKey": "proj1", "message": "hi there", "idempotencyKey": "run-1"}
        assert (await client.call("chat.send", sent))["status"] == "started"
        final = await client.ended("run-1")
        assert final["message"]["content"] == [{"type": "text", "text": "Hello you"}]
    assert not (house.home / "state" / "openclaw.sqlite").exists()
    async with house.gateway() as gateway, client_of(gateway) as client:
        page = await client.call("chat.history", {"sessionKey": "proj1"})
        assert [message["role"] for message in page["messages"]] == ["user", "assistant"]
        # The input is known: nothing runs twice.
        again = await client.call("chat.send", sent)
        assert again["runId"] == "run-1" and again["status"] != "started"
        await client.call("chat.send", {**sent, "message": "more", "idempotencyKey": "run-2"})
        await client.ended("run-2")
        page = await client.call("chat.history", {"sessionKey": "proj1"})
        assert len(page["messages"]) == 4
        listed = await client.call("sessions.list", {})
        assert [row["key"] for row in listed["sessions"]] == [KEY]
    # The model saw the first turn again after the restart.
    assert len(house.model.requests) == 2
    assert "Hello you" in str(house.model.requests[1])


@pytest.mark.spec("OWN-6")
async def test_a_second_gateway_on_the_same_database_refuses_to_start(
    house_on_postgres: House, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(postgres_schema, "LOCK_PATIENCE_S", 0.2)
    async with house_on_postgres.gateway():
        with pytest.raises(StoreLocked, match="another gateway"):
            async with house_on_postgres.gateway():
                raise AssertionError("two gateways own one database")


async def test_a_missing_driver_is_named(house_on_postgres: House, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "openclaw.store.postgres", None)
    with pytest.raises(Unavailable, match=r"openclaw\[postgres\]"):
        async with house_on_postgres.gateway():
            raise AssertionError("started on nothing")
