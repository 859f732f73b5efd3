"""The command line of the npm package against this gateway."""

from __future__ import annotations

import pytest

from tests.e2e.gateway_process import TOKEN
from tests.fakes.openai_server import FakeOpenAIServer
from tests.interop.clients import NpmClient

pytestmark = pytest.mark.interop
KEY = "agent:main:interop"


@pytest.mark.spec("RPC-4", "CLI-4")
def test_it_calls_methods(client: NpmClient) -> None:
    assert client.call("sessions.list", {})["sessions"] == []
    created = client.call("sessions.create", {"key": KEY, "label": "Interop"})
    assert created["ok"] and created["key"] == KEY
    (row,) = client.call("sessions.list", {})["sessions"]
    assert (row["key"], row["label"]) == (KEY, "Interop")
    refused = client.run("gateway", "call", "no.such.method", "--json")
    assert refused.returncode == 1 and "unknown method" in refused.stdout + refused.stderr


@pytest.mark.spec("RPC-15")
def test_it_runs_a_turn_and_reads_it_back(client: NpmClient, model: FakeOpenAIServer) -> None:
    answer = client.json("agent", "--session-key", KEY, "-m", "say something", "--json")
    assert answer["status"] == "ok"
    assert answer["result"]["payloads"][0]["text"] == "The walrus answers politely."
    assert "say something" in str(model.requests[0].body["messages"])
    shown = client.call("chat.history", {"sessionKey": KEY})
    assert [message["role"] for message in shown["messages"]] == ["user", "assistant"]


@pytest.mark.spec("RPC-7", "RPC-8")
def test_it_archives_and_deletes(client: NpmClient) -> None:
    client.json("agent", "--session-key", KEY, "-m", "hello", "--json")
    archived = client.run("sessions", "archive", KEY)
    assert archived.returncode == 0, archived.stdout + archived.stderr
    assert client.call("sessions.list", {})["sessions"] == []
    (row,) = client.call("sessions.list", {"archived": True})["sessions"]
    assert row["key"] == KEY and row["archived"]
    deleted = client.run("sessions", "delete", KEY, "--yes")
    assert deleted.returncode == 0, deleted.stdout + deleted.stderr
    assert client.call("sessions.list", {"archived": "all"})["sessions"] == []


@pytest.mark.spec("OWN-1", "OWN-2")
def test_it_shows_health_and_status(client: NpmClient) -> None:
    client.json("agent", "--session-key", KEY, "-m", "hello", "--json")
    health = client.json("health", "--json")
    assert health["ok"] and health["defaultAgentId"] == "main"
    status = client.json("status", "--json")
    assert status["sessions"]["count"] == 1
    probe = client.run("gateway", "probe", "--url", client.gateway.url, "--token", TOKEN)
    assert "Reachable: yes" in probe.stdout, probe.stdout + probe.stderr
