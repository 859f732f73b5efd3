"""The `sessions` commands in real processes against a real gateway: look, change, undo, follow, import."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.e2e.terminal import CTRL_C, Terminal
from tests.e2e.test_cli import CliHome, token_of

PATIENCE_S = 60.0


@pytest.fixture(scope="module")
def house(tmp_path_factory: pytest.TempPathFactory) -> Iterator[CliHome]:
    """A gateway in an empty home, with the built-in model."""
    house = CliHome(tmp_path_factory.mktemp("sessions"))
    try:
        house.start()
        yield house
        assert house.interrupt(60) in (0, 130)
        assert "Traceback" not in house.err.read_text()
    finally:
        house.clean_up()


def talk(house: CliHome, key: str, *texts: str) -> None:
    for text in texts:
        done = house.run("agent", "-m", text, "--session-key", key)
        assert done.code == 0, done.err


@pytest.mark.spec("OWN-1", "OWN-3")
def test_show_and_history_tell_what_the_gateway_knows(house: CliHome) -> None:
    talk(house, "desk", "the first words", "the second words")
    shown = house.run("sessions", "show", "desk")
    assert (shown.code, shown.err) == (0, "")
    row = house.run("sessions", "show", "desk", "--json").json()["session"]
    described = house.run("gateway", "call", "sessions.describe", "--params", '{"key":"desk"}').json()
    for field in ("inputTokens", "outputTokens", "totalTokens", "contextTokens", "sessionId"):
        assert row[field] == described["session"][field]
    for fact in ("agent:main:desk", "offline/offline (the agent's default)", row["sessionId"], "next reset:"):
        assert fact in shown.out, fact
    assert (
        house.run("sessions", "show", row["sessionId"][:8], "--json").json()["session"]["key"] == row["key"]
    )
    history = house.run("sessions", "history", "desk")
    assert history.out.index("the first words") < history.out.index("the second words")
    last = house.run("sessions", "history", "desk", "--limit", "1", "--json").json()
    assert [message["role"] for message in last["messages"]] == ["assistant"] and last["hasMore"] is True
    seq = last["messages"][0]["__openclaw"]["seq"]
    before = house.run("sessions", "history", "desk", "--before", str(seq), "--limit", "1", "--json").json()
    assert before["messages"][0]["content"] == "the second words"


@pytest.mark.spec("OWN-2", "CLI-4")
def test_a_remote_gateway_is_asked_and_local_files_do_not_matter(house: CliHome, tmp_path: Path) -> None:
    talk(house, "remote", "over there")
    elsewhere = CliHome(tmp_path)
    flags = ("--url", house.url, "--token", token_of(house))
    listed = elsewhere.run("sessions", "show", "remote", "--json", *flags)
    assert listed.json()["session"]["key"] == "agent:main:remote"
    assert "over there" in elsewhere.run("sessions", "history", "remote", *flags).out
    assert not elsewhere.state.exists()
    wrong = elsewhere.run("sessions", "history", "remote", "--url", house.url, "--json")
    assert (wrong.code, wrong.json()["error"]["type"]) == (1, "auth")


@pytest.mark.spec("OWN-4", "RPC-7")
def test_a_session_is_renamed_and_put_away(house: CliHome) -> None:
    talk(house, "paper", "about paper")
    assert house.run("sessions", "rename", "paper", "Paper work").code == 0
    assert house.run("sessions", "show", "Paper work", "--json").json()["session"]["label"] == "Paper work"
    away = house.run("sessions", "archive", "paper w")
    assert (away.code, away.out) == (0, "agent:main:paper archived\n")
    listed = [row["key"] for row in house.run("sessions", "--json").json()["sessions"]]
    assert "agent:main:paper" not in listed
    assert "done; archived" in house.run("sessions", "show", "Paper work").out
    assert house.run("sessions", "unarchive", "agent:main:paper").code == 0
    listed = [row["key"] for row in house.run("sessions", "--json").json()["sessions"]]
    assert "agent:main:paper" in listed
    talk(house, "paper-two", "x")
    assert house.run("sessions", "rename", "paper-two", "Paper thin").code == 0
    several = house.run("sessions", "archive", "paper ")
    assert several.code == 0, "an exact key wins over labels that begin like it"
    ambiguous = house.run("sessions", "rename", "pap", "x")
    assert ambiguous.code == 1 and "(Paper thin)" in ambiguous.err and "(Paper work)" in ambiguous.err


@pytest.mark.spec("RPC-8", "OWN-4")
def test_a_deletion_and_a_reset_are_undone(house: CliHome) -> None:
    talk(house, "scratch", "keep these words")
    unasked = house.run("sessions", "delete", "scratch")
    assert unasked.code == 1 and "--yes" in unasked.err
    gone = house.run("sessions", "delete", "scratch", "--yes")
    assert (gone.code, gone.out) == (0, "agent:main:scratch deleted\n")
    assert "openclaw sessions restore agent:main:scratch" in gone.err
    assert house.run("sessions", "show", "scratch").code == 1
    back = house.run("sessions", "restore", "scratch")
    assert back.code == 0, back.err
    assert "keep these words" in house.run("sessions", "history", "scratch").out
    talk(house, "scratch", "/new")
    assert "keep these words" not in house.run("sessions", "history", "scratch").out
    assert house.run("sessions", "restore", "scratch", "--json").json()["ok"] is True
    assert "keep these words" in house.run("sessions", "history", "scratch").out
    talk(house, "main", "hello")
    main = house.run("sessions", "delete", "main", "--yes")
    assert main.code == 1 and "main" in main.err


@pytest.mark.spec("SRCH-2")
def test_words_are_found_in_every_session(house: CliHome) -> None:
    talk(house, "found-a", "the zebra crossed the road")
    talk(house, "found-b", "no animals here")
    found = house.run("sessions", "search", "zebra", "--json").json()
    assert {hit["key"] for hit in found["results"]} == {"agent:main:found-a"}
    assert found["count"] == len(found["results"]) and "zebra" in found["results"][0]["snippet"].lower()
    text = house.run("sessions", "search", "zebra", "--limit", "1")
    assert text.code == 0 and "agent:main:found-a" in text.out and text.out.endswith("1 place\n")
    assert house.run("sessions", "search", "zebra", "--agent", "main", "--json").json()["count"] > 0
    assert house.run("sessions", "search", "okapi").out == "Nobody said that.\n"


def test_helpers_stand_below_their_session(house: CliHome) -> None:
    talk(house, "boss", "spawn helper: count to three")
    deadline = time.monotonic() + PATIENCE_S
    while True:
        tree = house.run("sessions", "tree", "boss", "--json").json()
        (boss,) = tree["sessions"]
        if boss["children"] and boss["children"][0]["state"].startswith("done"):
            break
        assert time.monotonic() < deadline, tree
        time.sleep(0.1)
    (child,) = boss["children"]
    assert boss["key"] == "agent:main:boss" and child["key"].startswith("agent:main:subagent:")
    assert child["runtimeMs"] is not None and child["totalTokens"] > 0
    text = house.run("sessions", "tree").out
    assert f"└─ {child['key']}" in text and text.splitlines()[0].startswith("Session ")
    assert child["key"] in house.run("sessions", "show", "boss").out
    assert "helper of:  agent:main:boss" in house.run("sessions", "show", child["key"]).out


def test_following_shows_each_message_once_and_ctrl_c_ends_it(house: CliHome) -> None:
    talk(house, "live", "said before")
    env = house.env | {"OPENCLAW_GATEWAY_PORT": str(house.port)}
    with Terminal(env, "sessions", "history", "live", "--follow") as terminal:
        terminal.wait_for("said before")
        talk(house, "live", "said while watching")
        terminal.wait_for("You wrote: “said while watching”")
        terminal.type(CTRL_C)
        assert terminal.leave() == 130
    assert terminal.screen.count("> said while watching") == 1 and "Traceback" not in terminal.screen
    command = [
        sys.executable,
        "-m",
        "openclaw",
        "sessions",
        "history",
        "live",
        "--follow",
        "--json",
        "--limit",
        "1",
    ]
    with subprocess.Popen(command, env=env, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as follower:
        assert follower.stdout is not None
        first = json.loads(follower.stdout.readline())
        talk(house, "live", "as data")
        second, third = (json.loads(follower.stdout.readline()) for _ in range(2))
        follower.send_signal(signal.SIGINT)
        rest, err = follower.communicate(timeout=PATIENCE_S)
    assert follower.returncode == 130 and (rest, b"Traceback" in err) == (b"", False)
    assert [message["role"] for message in (first, second, third)] == ["assistant", "user", "assistant"]
    assert second["content"] == "as data"


@pytest.mark.spec("CLI-3")
def test_the_list_says_whose_stores_it_looked_at(house: CliHome) -> None:
    talk(house, "listed", "x")
    store = str(house.state / "openclaw.sqlite")
    every = house.run("sessions", "--all-agents", "--json", "--limit", "all").json()
    assert (every["allAgents"], every["path"], every["limitApplied"]) == (True, None, None)
    assert every["stores"] == [{"agentId": "main", "path": store}]
    assert every["count"] == every["totalCount"] == len(every["sessions"])
    one = house.run("sessions", "--store", store, "--json").json()
    assert one["path"] == store and one["count"] == every["count"]
    other = house.run("sessions", "--store", "/somewhere/sessions.json", "--json")
    assert other.code == 1 and store in other.json()["error"]["message"]
    verbose = house.run("sessions", "--verbose", "--search", "listed").out
    assert "Title" in verbose and "Session id" in verbose
    for wrong in (
        ("--active", "0"),
        ("--active", "1.5"),
        ("--limit", "none"),
        ("--agent", "x", "--all-agents"),
    ):
        assert house.run("sessions", *wrong).code == 1


@pytest.mark.spec("CLI-9")
def test_status_tells_what_was_used(house: CliHome) -> None:
    talk(house, "costly", "count this")
    text = house.run("status", "--usage", "--all", "--deep")
    assert (text.code, text.err) == (0, "")
    assert "$0.0000 in 30 days; " in text.out and "tokens in," in text.out and "health:  ok" in text.out
    body = house.run("status", "--usage", "--json").json()
    assert body["spent"]["days"] == 30 and body["spent"]["output"] > 0
    (used,) = [one for one in body["usage"] if one["agentId"] == "main"]
    rows = house.run("sessions", "--json").json()["sessions"]
    assert used["outputTokens"] == sum(row["outputTokens"] or 0 for row in rows)


def legacy(folder: Path) -> None:
    folder.mkdir(parents=True)
    entry = {"sessionId": "old-1", "updatedAt": 1_700_000_000_000}
    (folder / "sessions.json").write_text(json.dumps({"agent:work:main": entry}))
    records = [
        {"type": "session", "id": "old-1", "timestamp": "2023-11-14T22:13:20.000Z"},
        {"type": "message", "id": "m1", "message": {"role": "user", "content": "from long ago"}},
    ]
    (folder / "old-1.jsonl").write_text("".join(json.dumps(record) + "\n" for record in records))


@pytest.mark.spec("DB-6")
def test_sessions_of_an_earlier_layout_come_in_by_the_front_door(tmp_path: Path) -> None:
    home, old = CliHome(tmp_path / "new"), tmp_path / "old"
    home.home.mkdir()
    legacy(old / "agents" / "work" / "sessions")
    home.state.mkdir(mode=0o700)
    home.config.write_text("{ agents: { list: [{ id: 'main', default: true }, { id: 'work' }] } }")
    tried = home.run("sessions", "import", str(old), "--dry-run")
    assert tried.code == 0 and "1 to import" in tried.out and "Nothing was changed" in tried.err
    done = home.run("sessions", "import", str(old), "--yes", "--json")
    assert done.code == 0, done.out + done.err
    (store,) = done.json()["stores"]
    assert (store["agentId"], store["imported"], store["failed"]) == ("work", 1, 0)
    again = home.run("sessions", "import", str(old / "agents" / "work" / "sessions"), "--json").json()
    assert (again["stores"][0]["imported"], again["stores"][0]["already"]) == (0, 1)
    assert home.run("sessions", "import", str(old), "--validate").code == 0
    for wrong, word in (((str(old / "nowhere"),), "not a folder"), ((str(tmp_path / "new"),), "no sessions")):
        refused = home.run("sessions", "import", *wrong)
        assert (refused.code, refused.out) == (1, "") and word in refused.err
    try:
        home.start()
        busy = home.run("sessions", "import", str(old))
        assert busy.code == 1 and "a gateway is running" in busy.err
        assert "from long ago" in home.run("sessions", "history", "main", "--agent", "work").out
        assert home.interrupt(60) in (0, 130)
    finally:
        home.clean_up()
