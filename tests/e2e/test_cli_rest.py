"""explain, agents, usage, outbox, events, logs, audit, doctor: the real commands beside a real gateway."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest

from tests.e2e.test_cli import CliHome

PATIENCE_S = 60.0
CONFIG = """{
  // two agents, one of them for a chat
  agents: { list: [{ id: "main", default: true }, { id: "bob" }] },
  bindings: [{ agentId: "bob", match: { channel: "telegram", peer: { kind: "dm", id: "42" } } }],
  channels: { telegram: { enabled: false, allowFrom: ["42"] } },
  session: { sendPolicy: { rules: [{ action: "deny", match: { keyPrefix: "quiet" } }] } },
}
"""


@pytest.fixture(scope="module")
def house(tmp_path_factory: pytest.TempPathFactory) -> Iterator[CliHome]:
    house = CliHome(tmp_path_factory.mktemp("rest"))
    house.state.mkdir(mode=0o700)
    house.config.write_text(CONFIG)
    house.config.chmod(0o600)
    try:
        house.start()
        assert house.run("agent", "-m", "hello", "--session-key", "main").code == 0
        yield house
        assert house.interrupt() in (0, 130)
        assert "Traceback" not in house.err.read_text()
    finally:
        house.clean_up()


@pytest.mark.spec("ROUTE-1", "LIFE-5", "SEND-6")
def test_a_running_gateway_explains_itself(house: CliHome) -> None:
    route = house.run("explain", "route", "--channel", "telegram", "--peer", "dm:42")
    assert (route.code, route.err) == (0, "")
    assert route.out.startswith("The message goes to agent bob, session agent:bob:main")
    assert "> bindings[0] for bob  matches by the chat itself  [bindings[0]]" in route.out
    reset = house.run("explain", "reset", "main", "--json").json()
    assert reset["facts"]["exists"] is True and reset["facts"]["nextResetReason"] == "daily"
    assert "denied: session.sendPolicy.rules[0]" in house.run("explain", "send", "quiet:1").out
    seen = house.run("explain", "visibility", "--from", "main", "--to", "main", "--json").json()
    assert seen["facts"]["reason"] == "own"
    bad = house.run("explain", "reset", "x\ny")
    assert bad.code == 1 and bad.err.startswith("openclaw: ") and "Traceback" not in bad.err


def test_agents_and_usage_of_a_running_gateway(house: CliHome) -> None:
    listed = house.run("agents", "list", "--json").json()
    main, bob = sorted(listed["agents"], key=lambda row: row["id"] != "main")
    assert (main["isDefault"], main["model"], main["sessions"] >= 1) == (True, "offline/offline", True)
    assert bob["bindings"][0]["index"] == 0 and main["bindings"] == []
    by_day = house.run("usage", "--days", "3", "--json").json()
    assert len(by_day["rows"]) == 3 and by_day["totals"]["totalTokens"] > 0
    for by, name in (("agent", "main"), ("model", "offline/offline"), ("session", "agent:main:main")):
        rows = house.run("usage", "--by", by, "--json").json()["rows"]
        assert name in [row["name"] for row in rows], by


@pytest.mark.spec("CLI-7")
def test_a_system_event_reaches_the_session_that_is_named(house: CliHome) -> None:
    later = house.run("system", "event", "--text", "the kettle boils", "--session-key", "agent:bob:main")
    assert (later.code, later.err, later.out) == (0, "", "The agent is told with its next turn.\n")
    assert house.run("agent", "-m", "hi", "--session-key", "agent:bob:main").code == 0
    export = house.run("sessions", "export", "agent:bob:main").out
    assert "the kettle boils" in export
    unknown = house.run("system", "event", "--text", "x", "--session-key", "agent:nobody:main")
    assert unknown.code == 1 and "nobody" in unknown.err


@pytest.mark.spec("CLI-14")
def test_the_audit_and_the_doctor_beside_a_running_gateway(house: CliHome) -> None:
    audit = house.run("security", "audit", "--deep", "--json")
    assert audit.code == 0 and audit.json()["ok"] is True
    token = house.run("config", "get", "gateway.auth.token", "--reveal").out.strip()
    assert len(token) >= 43 and token not in audit.out
    assert "// two agents" in house.config.read_text(), "the first start kept the comments"
    doctor = house.run("doctor")
    assert doctor.code == 0 and "a gateway runs (process" in doctor.out and "All is well." in doctor.out
    refused = house.run("doctor", "--session-sqlite", "compact")
    assert refused.code == 1 and "owns" in refused.err
    assert house.run("outbox", "list").out == "No deliveries.\n"


def test_a_second_start_greets_the_first(house: CliHome) -> None:
    again = house.run()
    assert (again.code, again.err) == (0, "")
    assert f"is already running at {house.url}." in again.out and "openclaw chat" in again.out


@pytest.mark.spec("OWN-4")
def test_following_the_log_survives_a_restart(tmp_path: Path) -> None:
    """Lines from the files while nothing runs, and from the gateway while it does; Ctrl-C leaves with 130."""
    home = CliHome(tmp_path)
    folder = home.state / "logs"
    folder.mkdir(parents=True, mode=0o700)
    home.state.chmod(0o700)
    record = {
        "time": "2026-11-16T04:00:00.000Z",
        "level": "info",
        "name": "openclaw",
        "message": "from a file",
    }
    current = folder / "gateway.log"
    current.write_bytes(msgspec.json.encode(record) + b"\n")
    current.chmod(0o600)
    shown = tmp_path / "shown"
    env = home.env | {"OPENCLAW_GATEWAY_PORT": str(home.port), "PYTHONUNBUFFERED": "1"}
    with shown.open("wb") as out:
        follower = subprocess.Popen(
            [sys.executable, "-m", "openclaw", "logs", "-f"], env=env, stdout=out, stderr=subprocess.STDOUT
        )
    try:
        wait_for(shown, "from a file")
        home.start()
        with current.open("ab") as file:
            file.write(msgspec.json.encode(record | {"message": "while it runs"}) + b"\n")
        wait_for(shown, "while it runs")
        assert home.interrupt() in (0, 130)
        with current.open("ab") as file:
            file.write(msgspec.json.encode(record | {"message": "after it stopped"}) + b"\n")
        wait_for(shown, "after it stopped")
        follower.send_signal(signal.SIGINT)
        assert follower.wait(PATIENCE_S) == 130
    finally:
        home.clean_up()
        if follower.poll() is None:
            os.kill(follower.pid, signal.SIGKILL)
            follower.wait()
    text = shown.read_text()
    assert text.count("from a file") == 1 and text.count("while it runs") == 1 and "Traceback" not in text


def wait_for(path: Path, words: str) -> None:
    deadline = time.monotonic() + PATIENCE_S
    while words not in (text := path.read_text()):
        assert time.monotonic() < deadline, text
        time.sleep(0.05)
