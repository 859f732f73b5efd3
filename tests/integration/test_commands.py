"""Commands beside real turns: a running gateway, its engine to abort with, its wire to look through."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec.structs import replace

from openclaw.app import Gateway
from openclaw.domain.commandcallers import operator_caller
from openclaw.domain.entry import SessionEntry
from openclaw.engine.commands.handling import Commands
from openclaw.engine.commands.ports import CommandPowers, CommandRules, CommandServices, Handled
from openclaw.protocol.scopes import ALL_SCOPES
from openclaw.store.commands import CommandStore
from openclaw.store.inbox import NewInput
from openclaw.store.records import SessionSeed, UserInput
from tests.fakes.openai_server import FakeReply
from tests.fakes.wire_client import WireClient
from tests.integration.conftest import House

KEY = "agent:main:proj1"
OWNER = operator_caller(ALL_SCOPES)


def commands_of(gateway: Gateway, told: list[Any]) -> Commands:
    services = gateway.services
    powers = CommandPowers(
        abort_run=services.turns.abort,
        check_model=services.check_model,
        models=lambda: (),
        tools=lambda _session, _agent: (),
    )
    return Commands(
        CommandServices(
            store=services.store,
            commands=CommandStore(services.store._database),
            powers=powers,
            settings=services.settings,
            rules=CommandRules,
            clock=services.clock,
            ids=services.ids,
            emit=told.append,
            spawn=services.spawn,
            version=services.version,
            started_ms=services.started_ms,
        )
    )


def command(gateway: Gateway, run_id: str, text: str, key: str = KEY) -> NewInput:
    body = UserInput(text, gateway.services.clock.now_ms())
    return NewInput(run_id, SessionSeed(key, "main"), "cli", "operator", body)


async def send(client: WireClient, key: str, text: str, run_id: str) -> None:
    await client.call("chat.send", {"sessionKey": key, "message": text, "idempotencyKey": run_id})


@pytest.mark.spec("CMD-5", "CMD-6", "QUE-7")
async def test_stop_ends_a_real_turn_its_queue_and_its_sub_agents(
    house: House, gateway: Gateway, client: WireClient
) -> None:
    slow = FakeReply(texts=("slow ",) * 2000, delay_s=0.05)
    house.model.script(slow, slow, FakeReply(texts=("after",)))
    store, child = gateway.services.store, "agent:main:subagent:5a"

    def spawned(entry: SessionEntry) -> SessionEntry:
        return replace(entry, spawned_by=KEY)

    await store.edit_session(SessionSeed(child, "main", "other"), spawned, session_id="w-child", now_ms=1)
    await send(client, KEY, "talk", "run-1")
    await send(client, child, "work", "run-2")
    await house.model.wait_for_requests(2, 60)
    await client.call(
        "chat.send",
        {"sessionKey": KEY, "message": "next", "idempotencyKey": "run-3", "queueMode": "followup"},
    )
    told: list[Any] = []
    commands = commands_of(gateway, told)
    outcome = await commands.read(command(gateway, "stop-1", "/stop"), OWNER)
    assert isinstance(outcome, Handled)
    assert outcome.text == "Stopped the run and 1 sub-agent run. 1 waiting message will not run."
    assert gateway.services.workers.active_run(KEY) is None
    assert gateway.services.workers.active_run(child) is None
    unfinished = await store.unfinished()
    assert (unfinished.runs, unfinished.waiting) == ((), ())
    for run_id in ("run-1", "run-2"):
        run = await store.run(run_id)
        assert run is not None and (run.outcome, run.stop_reason) == ("aborted", "stop")
    row = await store.session(KEY)
    assert row is not None and row.entry.aborted_last_run
    final = await client.say(KEY, "and now", "run-4")
    assert final["message"]["content"] == [{"type": "text", "text": "after"}]


@pytest.mark.spec("QUE-9")
async def test_a_command_during_a_turn_is_answered_at_once_and_the_model_never_hears_of_it(
    house: House, gateway: Gateway, client: WireClient
) -> None:
    house.model.script(FakeReply(texts=("one ",) * 40, delay_s=0.02), FakeReply(texts=("two",)))
    await send(client, KEY, "talk", "run-1")
    await house.model.wait_for_requests(1, 60)
    told: list[Any] = []
    outcome = await commands_of(gateway, told).read(command(gateway, "cmd-1", "/think high"), OWNER)
    assert isinstance(outcome, Handled)
    assert outcome.text is not None and outcome.text.startswith("Thinking set to high")
    assert gateway.services.workers.active_run(KEY) is not None
    await client.ended("run-1")
    await client.say(KEY, "more", "run-2")
    sent = str(house.model.requests)
    assert "talk" in sent and "more" in sent
    assert "/think" not in sent and "Thinking set" not in sent
    row = await gateway.services.store.session(KEY)
    assert row is not None and row.entry.thinking_level == "high"


@pytest.mark.spec("CMD-11", "RPC-17")
async def test_the_wire_knows_an_answered_command_as_finished(gateway: Gateway, client: WireClient) -> None:
    outcome = await commands_of(gateway, []).read(command(gateway, "cmd-1", "/help"), OWNER)
    assert isinstance(outcome, Handled)
    waited = await client.call("agent.wait", {"runId": "cmd-1", "timeoutMs": 60_000})
    assert waited["status"] == "ok"
