"""When the gateway runs maintenance: after writes and on its timer, never at the start, and what it logs."""

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from openclaw.app.housekeeping import AT_MOST_EVERY_S, EVERY_S, SETTLE_S, Housekeeper
from openclaw.app.upkeep import archive_place, ground_of
from openclaw.config.load import LoadedConfig, load_or_raise
from openclaw.engine.events import InputTaken, RunPhase, RunScope, SessionChanged
from openclaw.errors import StoreBusy
from openclaw.store.maintenance import MaintenanceReport
from openclaw.store.purging import Pace
from openclaw.store.sqlite import SqliteDatabase
from openclaw.store.store import Store
from openclaw.store.upkeep import Upkeep
from tests.conformance.making import DAY, MAIN, NOON, present, seed, turn, unique_name
from tests.conformance.test_maintenance import archived_keys, keys

SCOPE = RunScope("r", MAIN.session_key, "main", "s")


class StepClock:
    """Time that moves when a test says so."""

    def __init__(self) -> None:
        self.now_s = 0.0
        self._sleepers: list[tuple[float, asyncio.Future[None]]] = []

    def now_ms(self) -> int:
        return NOON + int(self.now_s * 1000)

    def monotonic(self) -> float:
        return self.now_s

    async def sleep(self, seconds: float) -> None:
        waiting: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._sleepers.append((self.now_s + seconds, waiting))
        await waiting

    async def pass_by(self, seconds: float) -> None:
        """Let time pass, and everybody who was woken act."""
        self.now_s += seconds
        for _ in range(3):
            due = [waiting for at, waiting in self._sleepers if at <= self.now_s and not waiting.done()]
            for waiting in due:
                waiting.set_result(None)
            for _ in range(20):
                await asyncio.sleep(0)


class CountingUpkeep(Upkeep):
    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        self.runs = 0
        self.failure: Exception | None = None

    async def maintain(self, *, now_ms: int) -> MaintenanceReport:
        self.runs += 1
        if self.failure is not None:
            raise self.failure
        return await super().maintain(now_ms=now_ms)


class Ground:
    """A store in memory, its upkeep, and a config that a test may change."""

    def __init__(self, home: Path, database: SqliteDatabase) -> None:
        self.home = home
        self.database = database
        self.store = Store(database)
        self.clock = StepClock()
        self.env = {"HOME": str(home), "OPENCLAW_STATE_DIR": str(home)}
        self.loaded: LoadedConfig
        self.configure({})
        ground = ground_of(lambda: self.loaded, self.env, database, "memory")
        self.upkeep = CountingUpkeep(database, ground, pace=Pace(rest_s=0.0))
        self.keeper = Housekeeper(self.upkeep, self.clock)

    def configure(self, config: dict[str, Any]) -> None:
        path = self.home / "openclaw.json"
        path.write_text(json.dumps(config))
        self.loaded = load_or_raise(path, self.env)


@pytest.fixture
async def ground(tmp_path: Path) -> AsyncIterator[Ground]:
    database = await SqliteDatabase.open_memory(unique_name())
    yield Ground(tmp_path, database)
    await database.close()


async def created(ground: Ground) -> InputTaken:
    return InputTaken(SCOPE, await present(ground.store), True, None, False)


@pytest.mark.spec("MAINT-2")
async def test_it_runs_after_writes_that_add_sessions_in_batches_and_never_at_the_start(
    ground: Ground, monkeypatch: pytest.MonkeyPatch
) -> None:
    ran: list[float] = []

    async def run_once(_self: Housekeeper) -> None:
        ran.append(ground.clock.now_s)

    monkeypatch.setattr(Housekeeper, "run_once", run_once)
    await turn(ground.store, "run-1")
    task = asyncio.create_task(ground.keeper.run_forever())
    await ground.clock.pass_by(EVERY_S - 1)
    assert ran == [], "nothing was written, and the timer is not up"
    ground.keeper.observe(RunPhase(SCOPE, "preparing_context"))
    ground.keeper.observe(InputTaken(SCOPE, await present(ground.store), False, None, False))
    await ground.clock.pass_by(0.5)
    assert ran == [], "neither is a new session"
    for _ in range(50):
        ground.keeper.observe(await created(ground))
    await ground.clock.pass_by(0)
    await ground.clock.pass_by(SETTLE_S - 0.5)
    assert ran == []
    await ground.clock.pass_by(0.5)
    assert len(ran) == 1, "fifty sessions that came together are one run"
    ground.keeper.observe(SessionChanged(await present(ground.store), "create"))
    await ground.clock.pass_by(AT_MOST_EVERY_S - 1)
    assert len(ran) == 1
    await ground.clock.pass_by(1)
    await ground.clock.pass_by(SETTLE_S)
    assert len(ran) == 2
    await ground.clock.pass_by(AT_MOST_EVERY_S)
    await ground.clock.pass_by(EVERY_S)
    await ground.clock.pass_by(SETTLE_S)
    assert len(ran) == 3, "without any write, by the timer"
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task


@pytest.mark.spec("MAINT-1", "MAINT-6", "MAINT-7", "DB-5", "DB-17")
async def test_a_run_does_what_is_due_and_logs_one_line(
    ground: Ground, caplog: pytest.LogCaptureFixture
) -> None:
    await turn(ground.store, "run-1", to=seed("old"), at=NOON - 31 * DAY)
    await turn(ground.store, "run-2", to=seed("cron:j:run:1", kind="cron-run"), at=NOON - 2 * DAY)
    with caplog.at_level(logging.INFO, "openclaw.maintenance"):
        await ground.keeper.run_once()
    assert await archived_keys(ground.database) == {"agent:main:old"}
    assert await keys(ground.database) == {"agent:main:old"}
    assert len(caplog.messages) == 1
    assert "1 sessions archived, 1 deleted, 0 transcripts purged" in caplog.messages[0]
    caplog.clear()
    ground.clock.now_s = 24 * 3600
    with caplog.at_level(logging.INFO, "openclaw.maintenance"):
        await ground.keeper.run_once()
        await ground.keeper.run_once()
    assert len(caplog.messages) == 1, "nothing to tell is not told"
    assert "1 transcripts purged (1 archive files written" in caplog.messages[0]
    written = await asyncio.to_thread(lambda: [path.name for path in (ground.home / "archive").iterdir()])
    assert written == ["run-2-window.jsonl.deleted.2026-11-15T12-00-00.000Z"]


@pytest.mark.spec("MAINT-5", "MAINT-1")
async def test_in_mode_warn_it_says_what_is_due_once_and_a_reload_counts(
    ground: Ground, caplog: pytest.LogCaptureFixture
) -> None:
    ground.configure({"session": {"maintenance": {"mode": "warn"}}})
    await turn(ground.store, "run-1", to=seed("old"), at=NOON - 31 * DAY)
    with caplog.at_level(logging.INFO, "openclaw.maintenance"):
        await ground.keeper.run_once()
        await ground.keeper.run_once()
    (told,) = caplog.messages
    assert "1 sessions to archive, 0 to delete, 0 to purge" in told and "cleanup --enforce" in told
    assert await archived_keys(ground.database) == set()
    await turn(ground.store, "run-2", to=seed("older"), at=NOON - 32 * DAY)
    with caplog.at_level(logging.INFO, "openclaw.maintenance"):
        await ground.keeper.run_once()
    assert len(caplog.messages) == 2 and "2 sessions to archive" in caplog.messages[1]
    ground.configure({"session": {"maintenance": {"mode": "enforce", "pruneAfter": "1d"}}})
    await ground.keeper.run_once()
    assert await archived_keys(ground.database) == {"agent:main:old", "agent:main:older"}


@pytest.mark.parametrize(
    ("failure", "told"),
    [
        (StoreBusy("the disk sleeps"), "maintenance stopped: the disk sleeps"),
        (OSError(28, "No space left on device"), "No space left on device"),
        (RuntimeError("a bug"), "maintenance failed"),
    ],
)
async def test_a_failure_is_logged_and_the_next_run_tries_again(
    ground: Ground, caplog: pytest.LogCaptureFixture, failure: Exception, told: str
) -> None:
    ground.upkeep.failure = failure
    with caplog.at_level(logging.INFO, "openclaw.maintenance"):
        await ground.keeper.run_once()
    assert told in caplog.messages[0] and "tried again later" in caplog.messages[0]
    ground.upkeep.failure = None
    await ground.keeper.run_once()
    assert ground.upkeep.runs == 2


@pytest.mark.spec("DB-5")
@pytest.mark.parametrize(
    ("key", "store", "folder"),
    [
        ("agent:main:x", None, "state/archive"),
        ("agent:work:x", None, "state/archive"),
        ("agent:work:x", "~/s/{agentId}/sessions.json", "s/work"),
        ("agent:../../etc:x", "~/s/{agentId}/sessions.json", "s/main"),
        ("global", "~/s/{agentId}/sessions.json", "s/main"),
        ("agent:work", "~/s/{agentId}/sessions.json", "s/main"),
        ("agent:work:x", "~/one/sessions.json", "one"),
    ],
)
def test_archives_go_where_session_store_says(
    tmp_path: Path, key: str, store: str | None, folder: str
) -> None:
    env = {"HOME": str(tmp_path), "OPENCLAW_STATE_DIR": str(tmp_path / "state")}
    path = tmp_path / "openclaw.json"
    agents = {"list": [{"id": "main", "default": True}, {"id": "work", "workspace": "/w"}]}
    path.write_text(json.dumps({"agents": agents} | ({"session": {"store": store}} if store else {})))
    place = archive_place(load_or_raise(path, env).config, env, key)
    assert place.folder == tmp_path / folder
    assert (place.cwd == "/w") == (key == "agent:work:x")
