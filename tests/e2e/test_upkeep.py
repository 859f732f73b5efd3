"""Looking after the store through the real command line, with a gateway that runs and without one."""

from __future__ import annotations

import asyncio
import subprocess
import sys
import time
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path

import msgspec
import pytest

from openclaw.domain.transcript import AssistantMessage, TextBlock, UserMessage
from openclaw.engine.drafts import draft_message
from openclaw.store.sqlite import SqliteDatabase
from openclaw.store.store import Store
from tests.conformance.making import DAY, seed, turn
from tests.e2e.test_cli import COMMAND_S, CliHome

PATIENCE_S = 90.0


@pytest.fixture
def home(tmp_path: Path) -> Iterator[CliHome]:
    house = CliHome(tmp_path)
    try:
        yield house
        if house.gateway is not None:
            assert house.interrupt(60) in (0, 130)
            assert "Traceback" not in house.err.read_text()
    finally:
        house.clean_up()


def fill(home: CliHome, work: Callable[[Store, int], Awaitable[object]]) -> None:
    """Write into the store of a home in which no gateway runs."""

    async def write() -> None:
        database = await SqliteDatabase.open(home.state / "openclaw.sqlite")
        await work(Store(database), time.time_ns() // 1_000_000)
        await database.close()

    asyncio.run(write())


async def old_sessions(store: Store, now_ms: int) -> None:
    await turn(store, "run-old", "old words", to=seed("old"), at=now_ms - 40 * DAY)
    await turn(store, "run-hook", "machine words", to=seed("hook:1", kind="hook"), at=now_ms - 40 * DAY)
    await turn(store, "run-gone", "deleted words", to=seed("gone"), at=now_ms - 70 * DAY)
    await store.delete_session("agent:main:gone", now_ms=now_ms - 60 * DAY)


def wait_for_log(home: CliHome, text: str) -> str:
    deadline = time.monotonic() + PATIENCE_S
    while text not in (log := home.err.read_text()):
        assert time.monotonic() < deadline, log
        time.sleep(0.05)
    return log


def export(home: CliHome, *arguments: str) -> bytes:
    """The bytes of an export, which need not be text."""
    done = subprocess.run(
        [sys.executable, "-m", "openclaw", "sessions", "export", *arguments],
        env=home.env | {"OPENCLAW_GATEWAY_PORT": str(home.port)},
        capture_output=True, stdin=subprocess.DEVNULL, timeout=COMMAND_S, check=False,
    )  # fmt: skip
    assert (done.returncode, done.stderr) == (0, b"")
    return done.stdout


@pytest.mark.spec("MAINT-1", "MAINT-2", "DB-17")
def test_a_gateway_tidies_up_after_a_write_and_not_at_the_start(home: CliHome) -> None:
    fill(home, old_sessions)
    home.start()
    assert home.run("sessions", "--json").json()["totalCount"] == 2, "starting and reading tidy nothing up"
    assert home.run("agent", "-m", "hello", "--session-key", "new").code == 0
    log = wait_for_log(home, "openclaw.maintenance: maintenance:")
    assert "1 sessions archived, 1 deleted, 1 transcripts purged (1 archive files written" in log
    left = home.run("sessions", "--json").json()
    assert [row["key"] for row in left["sessions"]] == ["agent:main:new"]
    (archive,) = (home.state / "archive").iterdir()
    assert archive.name.startswith("run-gone-window.jsonl.deleted.") and ":" not in archive.name
    lines = [msgspec.json.decode(line) for line in archive.read_bytes().splitlines()]
    assert [line["message"]["content"] for line in lines[1:]] == ["deleted words", "re: deleted words"]


@pytest.mark.spec("MAINT-5", "OWN-4", "CLI-8")
def test_cleanup_with_and_without_a_gateway(home: CliHome) -> None:
    home.state.mkdir(mode=0o700)
    home.config.write_text('{ session: { maintenance: { mode: "warn" } } }')
    fill(home, old_sessions)
    offline = home.run("sessions", "cleanup", "--dry-run", "--json").json()
    assert (offline["mode"], offline["dryRun"], offline["applied"]) == ("warn", True, False)
    assert (offline["archived"], offline["deleted"], offline["purged"]) == (1, 1, 1)
    (store,) = offline["stores"]
    assert (store["agentId"], store["beforeCount"], store["afterCount"]) == ("main", 2, 0)
    assert (store["storePath"], store["pruned"]) == (str(home.state / "openclaw.sqlite"), 2)
    home.start()
    assert home.run("sessions", "cleanup", "--dry-run", "--json").json() == offline
    told = home.run("sessions", "cleanup")
    assert told.code == 0 and "1 session to archive, 1 to delete, 1 transcript to purge" in told.out
    assert "agent:main:old" in told.out and "--enforce" in told.err
    done = home.run("sessions", "cleanup", "--enforce", "--active-key", "old")
    assert (done.code, done.err) == (0, "")
    assert "0 sessions archived, 1 deleted, 1 transcript purged" in done.out
    assert "1 archive files written" in done.out
    assert home.interrupt(60) in (0, 130)
    done = home.run("sessions", "cleanup", "--enforce", "--json")
    assert done.json()["archived"] == 1 and done.json()["stores"][0]["afterCount"] == 0
    for wrong in (("--dry-run", "--enforce"), ("--agent", "main", "--all-agents")):
        refused = home.run("sessions", "cleanup", *wrong)
        assert refused.code == 1 and "exclude one another" in refused.err


@pytest.mark.spec("OWN-4")
def test_erase_with_and_without_a_gateway(home: CliHome) -> None:
    home.start()
    for key in ("secret", "second"):
        assert home.run("agent", "-m", f"my walrus {key}", "--session-key", key).code == 0
    asked = home.run("sessions", "erase", "secret")
    assert (asked.code, asked.out) == (1, "") and "add --yes" in asked.err
    done = home.run("sessions", "erase", "secret", "--yes")
    assert (done.code, done.err) == (0, "")
    assert done.out.splitlines()[0].split() == ["Erased", "Count"]
    assert "its log emptied" in done.out and "backups that were made before" in done.out
    assert "walrus" not in done.out and "secret" not in done.out, "a receipt names nobody"
    again = home.run("sessions", "erase", "secret", "--yes", "--json")
    assert (again.code, again.json()["error"]["code"]) == (1, "INVALID_REQUEST")
    nobody = home.run("sessions", "erase", "--person", "telegram:4711", "--yes", "--json").json()
    assert nobody["ok"] and nobody["receipt"]["sessions"] == 0
    assert home.interrupt(60) in (0, 130)
    offline = home.run("sessions", "erase", "second", "--yes", "--json").json()["receipt"]
    assert (offline["sessions"], offline["windows"], offline["fileRewritten"]) == (1, 1, True)
    data = b"".join(path.read_bytes() for path in home.state.glob("openclaw.sqlite*"))
    assert b"walrus" not in data
    for wrong in ((), ("main", "--person", "telegram:1"), ("--person", "nobody"), ("main", "--account", "a")):
        refused = home.run("sessions", "erase", *wrong, "--yes")
        assert refused.code == 1 and "--person" in refused.err, wrong


@pytest.mark.spec("DB-20", "DB-17")
def test_a_backup_of_a_running_gateway_brings_everything_back(home: CliHome) -> None:
    home.start()
    assert home.run("agent", "-m", "remember me", "--session-key", "kept").code == 0
    folder = home.home / "backups" / "monday"
    made = home.run("backup", "create", "--output", str(folder), "--json")
    assert (made.code, made.err) == (0, "") and made.json()["lastAdmission"] == 1
    told = home.run("backup", "verify", str(folder))
    assert told.code == 0 and "1 session, " in told.out and made.json()["sha256"] in told.out
    assert home.run("agent", "-m", "too late", "--session-key", "late").code == 0
    refused = home.run("backup", "restore", str(folder), "--force")
    assert refused.code == 1 and "a gateway is running (process " in refused.err
    assert home.interrupt(60) in (0, 130)
    restored = home.run("backup", "restore", str(folder), "--force", "--json").json()
    assert restored["kept"].startswith(str(home.state / "openclaw.sqlite.bak."))
    home.start()
    assert [row["key"] for row in home.run("sessions", "--json").json()["sessions"]] == ["agent:main:kept"]
    history = home.run("gateway", "call", "chat.history", "--params", '{"sessionKey":"kept"}').json()
    assert "remember me" in str(history["messages"][0]["content"])
    copy = folder / "openclaw.sqlite"
    copy.write_bytes(copy.read_bytes()[:-1] + b"!")
    damaged = home.run("backup", "verify", str(folder))
    assert damaged.code == 1 and "damaged" in damaged.err


@pytest.mark.spec("CLI-11", "DB-4", "OWN-4")
def test_an_export_is_the_same_with_and_without_a_gateway(home: CliHome) -> None:
    async def talk(store: Store, now_ms: int) -> None:
        await turn(store, "run-1", to=seed("talk"), at=now_ms)
        await store.reset_session("agent:main:talk", "new", session_id="long-one", now_ms=now_ms)
        for start in range(0, 4_000, 500):
            drafts = tuple(
                draft_message(
                    UserMessage(f"question {number} — ünï\u2028", number)
                    if number % 2
                    else AssistantMessage((TextBlock("answer " * 80),), number),
                    "run-x",
                )
                for number in range(start, start + 500)
            )
            await store.append("agent:main:talk", drafts, now_ms=now_ms)

    fill(home, talk)
    kinds = (("talk",), ("talk", "--format", "html"), ("run-1-window",))
    offline = [export(home, *kind) for kind in kinds]
    home.start()
    assert [export(home, *kind) for kind in kinds] == offline
    assert len(offline[0].splitlines()) == 4_001 and len(offline[0]) > 2 * 512 * 1024
    target = home.home / "out.jsonl"
    told = home.run("sessions", "export", "talk", "--output", str(target), "--json").json()
    assert target.read_bytes() == offline[0] and told["bytes"] == len(offline[0])
    assert (told["key"], told["sessionId"], told["path"]) == ("agent:main:talk", "long-one", str(target))
    refused = home.run("sessions", "export", "talk", "--output", str(target))
    assert refused.code == 1 and "exists" in refused.err
    saved = home.run("sessions", "export", "talk", "--save")
    assert "sessions/long-one.jsonl" in saved.err
    assert (home.state / "agents/main/sessions/long-one.jsonl").read_bytes() == offline[0]
    missing = home.run("sessions", "export", "nothing", "--output", str(home.home / "none"), "--json")
    assert (missing.code, missing.json()["ok"]) == (1, False) and not (home.home / "none").exists()


@pytest.mark.spec("OWN-6")
def test_a_gateway_at_another_address_is_named_and_not_passed_by(home: CliHome) -> None:
    home.start()
    assert home.run("agent", "-m", "hello", "--session-key", "talk").code == 0
    elsewhere = {"OPENCLAW_GATEWAY_PORT": "9"}
    for command in (
        ("sessions", "export", "talk"),
        ("sessions", "cleanup"),
        ("sessions", "erase", "talk", "--yes"),
        ("backup", "create", "--output", str(home.home / "b")),
    ):
        refused = home.run(*command, **elsewhere)
        assert (refused.code, refused.out) == (1, ""), command
        assert "a gateway is running (process " in refused.err and "OPENCLAW_GATEWAY_PORT" in refused.err
        named = home.run(*command, "--url", "ws://127.0.0.1:9", "--token", "x")
        assert named.code == 1 and "no gateway at ws://127.0.0.1:9" in named.err
    assert home.run("sessions", "--json").json()["totalCount"] == 1
