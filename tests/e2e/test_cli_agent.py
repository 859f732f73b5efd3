"""`openclaw agent` in a real process: every way to address it, delivery, and a turn without a gateway."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest

from tests.e2e.test_cli import CliHome


@pytest.fixture
def home(tmp_path: Path) -> Iterator[CliHome]:
    home = CliHome(tmp_path)
    try:
        yield home
    finally:
        home.clean_up()


@pytest.mark.spec("CLI-6", "OWN-4")
def test_without_a_gateway_the_turn_runs_here_and_that_is_said(home: CliHome) -> None:
    done = home.run("agent", "-m", "hello from afar", "--session-key", "desk", "--json")
    assert done.code == 0, done.err
    assert done.err == f"No gateway runs at {home.url}; the turn runs in this process.\n"
    body = done.json()
    assert (body["status"], body["local"]) == ("ok", True)
    assert "hello from afar" in body["result"]["payloads"][0]["text"]
    assert not home.config.exists(), "a token that was made up for one process is not kept"
    plain = home.run("agent", "-m", "once more", "--session-key", "desk", "--local")
    assert plain.code == 0 and "once more" in plain.out
    assert plain.err == "Asked for with --local; the turn runs in this process.\n"
    named = home.run("agent", "-m", "x", OPENCLAW_GATEWAY_URL=home.url, OPENCLAW_GATEWAY_TOKEN="t")
    assert (named.code, named.out) == (1, "") and "no gateway at" in named.err
    home.start()
    through = home.run("agent", "-m", "third", "--session-key", "desk", "--json")
    assert through.err == "" and "local" not in through.json()
    history = home.run("sessions", "history", "desk", "--json").json()["messages"]
    said = [message["content"] for message in history if message["role"] == "user"]
    assert said == ["hello from afar", "once more", "third"]
    refused = home.run("agent", "-m", "x", "--local", "--json")
    assert refused.code == 1 and "leave --local out" in refused.json()["error"]["message"]
    assert home.interrupt(60) in (0, 130)


@pytest.mark.spec("CLI-6")
def test_every_address_and_option_reaches_the_turn(home: CliHome) -> None:
    home.state.mkdir(mode=0o700)
    agents = [{"id": "main", "default": True}, {"id": "work"}]
    home.config.write_text(msgspec.json.encode({"agents": {"list": agents}}).decode())
    home.start()
    work = home.run("agent", "--agent", "work", "-m", "for work", "--verbose", "full", "--thinking", "off")
    assert work.code == 0, work.err
    row = home.run("sessions", "show", "agent:work:main", "--json").json()["session"]
    assert (row["verboseLevel"], row["agentId"]) == ("full", "work")
    by_id = home.run("agent", "--session-id", row["sessionId"], "-m", "again", "--verbose", "off", "--json")
    assert by_id.json()["result"]["meta"]["agentMeta"]["sessionId"] == row["sessionId"]
    row = home.run("sessions", "show", "agent:work:main", "--json").json()["session"]
    assert row["verboseLevel"] == "off"
    assert home.run("agent", "-m", "hi", "--verbose", "loud").code == 2
    assert home.run("agent", "-m", "hi", "--model", "no/such").code == 1
    assert home.run("agent", "-m", "hi", "--session-id", "no-such-id").code == 1
    assert home.interrupt(60) in (0, 130)


@pytest.mark.spec("CLI-6")
def test_what_became_of_a_delivery_is_told(home: CliHome) -> None:
    home.start()
    unasked = home.run("agent", "-m", "one", "--json").json()["result"]["deliveryStatus"]
    assert (unasked["requested"], unasked["attempted"], unasked["status"]) == (False, False, "suppressed")
    nowhere = home.run("agent", "-m", "two", "--deliver", "--json")
    status = nowhere.json()["result"]["deliveryStatus"]
    assert (status["requested"], status["status"]) == (True, "suppressed")
    assert "no channel to send to" in status["reason"]
    route = ("--deliver", "--reply-channel", "telegram", "--reply-to", "4711", "--reply-account", "bot")
    queued = home.run("agent", "-m", "three", *route, "--json")
    assert (queued.code, queued.err) == (0, "")
    status = queued.json()["result"]["deliveryStatus"]
    assert status["requested"] is True and status["status"] in ("queued", "failed")
    told = home.run("agent", "-m", "four", *route)
    assert told.code == 0 and "reply" in told.err
    missing = home.run("agent", "-m", "x", "--reply-to", "4711")
    assert (missing.code, missing.out) == (1, "") and "--deliver" in missing.err
    denied = home.run("gateway", "call", "sessions.patch", "--params", '{"key":"main","sendPolicy":"deny"}')
    assert denied.code == 0
    refused = home.run("agent", "-m", "five", *route, "--json")
    assert refused.code == 1 and "blocked by session policy" in refused.json()["error"]["message"]
    assert home.interrupt(60) in (0, 130)
