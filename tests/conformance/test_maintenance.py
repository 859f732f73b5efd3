"""Maintenance: who is due, who never is, and that the preview tells exactly what will happen."""

from __future__ import annotations

import msgspec
import pytest

from openclaw.config.schema import Config
from openclaw.config.views import Retention, retention
from openclaw.store import sessions
from openclaw.store.database import Database, Transaction
from openclaw.store.maintenance import Maintenance, MaintenancePlan
from openclaw.store.purging import Pace
from openclaw.store.records import SessionSeed
from openclaw.store.retention import cap_excess
from openclaw.store.sessions import ListQuery
from openclaw.store.sqlite import SqliteDatabase
from openclaw.store.store import Store
from tests.conformance.making import DAY, MAIN, NOON, begin, create, execute, queue, seed, select, turn

OFF = Retention("enforce", None, None, None, None, None, None)
QUICK = Pace(rest_s=0.0)
OLD = NOON - 40 * DAY


def limits(**changes: object) -> Retention:
    return msgspec.structs.replace(OFF, **changes)


def keeper(database: SqliteDatabase, **changes: object) -> Maintenance:
    return Maintenance(database, limits(**changes), pace=QUICK)


async def archived_keys(database: SqliteDatabase) -> set[str]:
    rows = await select(database, "SELECT session_key FROM sessions WHERE archived_at IS NOT NULL")
    return {key for (key,) in rows}


async def keys(database: Database) -> set[str]:
    return {key for (key,) in await select(database, "SELECT session_key FROM sessions")}


def effect(plan: MaintenancePlan) -> tuple[int, int, dict[str, int]]:
    return plan.archive, plan.delete, plan.reasons


async def check_counters(database: SqliteDatabase) -> None:
    kept = await select(
        database,
        "SELECT agent_id, kind, archived, sessions FROM counters WHERE sessions > 0 ORDER BY 1, 2, 3",
    )
    counted = await select(
        database,
        "SELECT agent_id, kind, archived_at IS NOT NULL AS a, count(*) FROM sessions "
        "GROUP BY agent_id, kind, a ORDER BY 1, 2, 3",
    )
    assert [tuple(map(str, row)) for row in kept] == [
        (str(agent), str(kind), str(int(archived)), str(number)) for agent, kind, archived, number in counted
    ]


@pytest.mark.spec("MAINT-1", "MAINT-8")
async def test_an_old_conversation_is_archived_and_keeps_every_word(
    store: Store, database: SqliteDatabase
) -> None:
    await turn(store, "run-1", "remember the milk", to=seed("old"), at=OLD)
    await turn(store, "run-2", to=seed("new"), at=NOON)
    report = await keeper(database, prune_after_ms=30 * DAY).run(now_ms=NOON)
    assert (report.archived, report.deleted, report.purged.entries) == (1, 0, 0)
    assert await archived_keys(database) == {"agent:main:old"}
    page = await store.list_sessions(ListQuery())
    assert [row.session_key for row in page.rows] == ["agent:main:new"] and page.total == 1
    history = await store.history("agent:main:old", 10)
    assert history is not None and len(history.entries) == 2
    assert history.session.entry.updated_at == OLD, "being archived is not activity"
    await check_counters(database)
    again = await keeper(database, prune_after_ms=30 * DAY).run(now_ms=NOON)
    assert (again.archived, again.plan.archive) == (0, 0)


@pytest.mark.spec("MAINT-1", "MAINT-3", "MAINT-6", "MAINT-7")
@pytest.mark.parametrize(
    ("made", "reason"),
    [
        (SessionSeed("agent:main:cron:j:run:1", "main", "cron-run"), "cron"),
        (SessionSeed("agent:main:hook:x", "main", "hook"), "age"),
        (SessionSeed("agent:main:subagent:x", "main", spawned_by="agent:main:main"), "age"),
        (SessionSeed("agent:main:beat", "main", "heartbeat"), "age"),
    ],
)
async def test_what_a_machine_made_is_deleted(
    store: Store, database: SqliteDatabase, made: SessionSeed, reason: str
) -> None:
    await turn(store, "run-1", "machine words", to=made, at=OLD)
    maintenance = keeper(database, prune_after_ms=30 * DAY, cron_session_ms=DAY)
    report = await maintenance.run(now_ms=NOON)
    assert (report.archived, report.deleted, report.plan.reasons) == (0, 1, {reason: 1})
    assert await keys(database) == set()
    (removal,) = await maintenance.removals_of(made.session_key)
    assert (removal.state, removal.reason, removal.at) == ("deleted", reason, NOON)
    assert removal.undo_until == NOON + DAY
    await check_counters(database)


@pytest.mark.spec("MAINT-6")
async def test_cron_runs_have_a_time_of_their_own(store: Store, database: SqliteDatabase) -> None:
    run = SessionSeed("agent:main:cron:j:run:1", "main", "cron-run")
    job = SessionSeed("agent:main:cron:j", "main", "cron")
    await turn(store, "run-1", to=run, at=NOON - DAY - 1)
    await turn(store, "run-2", to=job, at=NOON - 3 * DAY)
    assert effect(await keeper(database, prune_after_ms=30 * DAY).plan(now_ms=NOON)) == (0, 0, {})
    assert effect(await keeper(database, cron_session_ms=DAY).plan(now_ms=NOON)) == (0, 1, {"cron": 1})
    assert effect(await keeper(database, cron_session_ms=DAY).plan(now_ms=NOON - 1)) == (0, 0, {})
    assert effect(await keeper(database, prune_after_ms=DAY).plan(now_ms=NOON)) == (1, 1, {"age": 2})


@pytest.mark.spec("MAINT-3")
async def test_what_is_in_use_is_never_due(store: Store, database: SqliteDatabase) -> None:
    await begin(store, "run-1", to=seed("running", kind="hook"), at=OLD)
    await queue(store, "run-2", to=seed("waiting", kind="hook"), at=OLD)
    await create(store, seed("pinned", kind="hook"), at=OLD, pinned_at=1)
    await create(store, seed("said-running"), at=OLD, status="running")
    await create(store, MAIN, at=OLD)
    await create(store, seed("telegram:group:1", kind="group", session_type="group"), at=OLD)
    await create(store, seed("discord:channel:1", chat_type="channel"), at=OLD)
    await create(store, seed("telegram:direct:1:thread:2", session_type="thread"), at=OLD)
    await create(store, seed("in-use", kind="hook"), at=OLD)
    await create(store, seed("child", kind="subagent"), at=OLD)
    await create(store, seed("yielded", kind="subagent"), at=OLD)
    await execute(
        database,
        "INSERT INTO spawns VALUES ('c', 'p', 'agent:main:child', 'r', 't', 'active', $1, 1, NULL)",
        b"{}",
    )
    await execute(database, "INSERT INTO waits VALUES ('agent:main:yielded', 'c', 1, NULL)")
    everybody = await keys(database)
    maintenance = keeper(database, prune_after_ms=DAY, cron_session_ms=1, max_entries=1)
    report = await maintenance.run(now_ms=NOON, in_use="agent:main:in-use")
    assert effect(report.plan) == (0, 0, {})
    assert (report.archived, report.deleted) == (0, 0)
    assert await keys(database) == everybody and await archived_keys(database) == set()
    # The same sessions go as soon as nothing holds them.
    await store.cancel("agent:main:waiting")
    await execute(database, "DELETE FROM waits")
    report = await maintenance.run(now_ms=NOON)
    assert everybody - await keys(database) == {
        "agent:main:waiting",
        "agent:main:yielded",
        "agent:main:in-use",
    }


@pytest.mark.spec("MAINT-2", "MAINT-4")
async def test_the_cap_takes_the_oldest_and_first_those_without_a_time(
    store: Store, database: SqliteDatabase
) -> None:
    for day in range(6):
        await create(store, seed(f"s{day}"), at=NOON - day * DAY)
    await create(store, seed("timeless"), at=NOON)
    await execute(database, "UPDATE sessions SET updated_at = 0 WHERE session_key = 'agent:main:timeless'")
    aged = keeper(database, prune_after_ms=1)
    assert "agent:main:timeless" not in {item.session_key for item in (await aged.plan(now_ms=NOON)).examples}
    capped = keeper(database, max_entries=4)
    plan = await capped.plan(now_ms=NOON)
    due = {"agent:main:timeless", "agent:main:s5", "agent:main:s4"}
    assert {item.session_key for item in plan.examples} == due and plan.reasons == {"cap": 3}
    report = await capped.run(now_ms=NOON)
    assert report.archived == 3 and await archived_keys(database) == due
    assert effect(await capped.plan(now_ms=NOON)) == (0, 0, {})


@pytest.mark.spec("MAINT-2")
async def test_age_comes_before_the_cap(store: Store, database: SqliteDatabase) -> None:
    for day in (1, 2, 40, 50):
        await create(store, seed(f"s{day}"), at=NOON - day * DAY)
    await create(store, seed("timeless"))
    await execute(database, "UPDATE sessions SET updated_at = 0 WHERE session_key = 'agent:main:timeless'")
    await create(store, seed("other", "second"), at=NOON)
    report = await keeper(database, prune_after_ms=30 * DAY, max_entries=3).run(now_ms=NOON)
    assert report.plan.reasons == {"age": 2}, "three are left after the old ones: the cap is kept"
    assert await archived_keys(database) == {"agent:main:s40", "agent:main:s50"}
    report = await keeper(database, prune_after_ms=30 * DAY, max_entries=2).run(now_ms=NOON)
    assert report.plan.reasons == {"cap": 1}
    assert "agent:main:timeless" in await archived_keys(database)


@pytest.mark.spec("MAINT-2")
@pytest.mark.parametrize(
    ("count", "cap", "excess"),
    [
        (49, 49, 0),
        (50, 49, 1),
        (75, 50, 0),
        (76, 50, 26),
        (550, 500, 0),
        (551, 500, 51),
        (9, 0, 0),
        (9, None, 0),
    ],
)
def test_above_49_a_cap_has_slack(count: int, cap: int | None, excess: int) -> None:
    assert cap_excess(count, cap) == excess


@pytest.mark.spec("MAINT-5")
async def test_warn_mode_reports_and_changes_nothing(store: Store, database: SqliteDatabase) -> None:
    await turn(store, "run-1", to=seed("old"), at=OLD)
    await turn(store, "run-2", to=seed("hook:1", kind="hook"), at=OLD)
    await store.delete_session("agent:main:old", now_ms=OLD)
    await turn(store, "run-3", to=seed("old"), at=OLD)
    before = await select(database, "SELECT * FROM sessions ORDER BY 1")
    warning = keeper(database, mode="warn", prune_after_ms=DAY, reset_archive_ms=DAY)
    report = await warning.run(now_ms=NOON)
    assert effect(report.plan) == (1, 1, {"age": 2}) and report.plan.purge == 1
    assert (report.archived, report.deleted, report.purged.windows) == (0, 0, 0)
    assert await select(database, "SELECT * FROM sessions ORDER BY 1") == before
    assert await select(database, "SELECT count(*) FROM removals") == [(0,)]
    assert await select(database, "SELECT count(*) FROM entries") == [(6,)]


@pytest.mark.spec("MAINT-1")
async def test_nothing_set_means_nothing_is_due(store: Store, database: SqliteDatabase) -> None:
    for number, kind in enumerate(("other", "hook", "cron-run")):
        await turn(store, f"run-{number}", to=seed(f"s{number}", kind=kind), at=1)
    zeros = limits(prune_after_ms=0, max_entries=0, cron_session_ms=0, reset_archive_ms=0)
    for off in (OFF, zeros):
        report = await Maintenance(database, off, pace=QUICK).run(now_ms=NOON)
        assert effect(report.plan) == (0, 0, {})
        assert (report.archived, report.deleted, report.plan.purge) == (0, 0, 0)


@pytest.mark.spec("MAINT-1", "MAINT-6")
async def test_the_defaults_of_the_config_are_the_limits(store: Store, database: SqliteDatabase) -> None:
    await turn(store, "run-1", to=seed("month"), at=NOON - 30 * DAY - 1)
    await turn(store, "run-2", to=seed("fresh"), at=NOON - 30 * DAY)
    await turn(store, "run-3", to=seed("cron:a:run:b", kind="cron-run"), at=NOON - DAY - 1)
    report = await Maintenance(database, retention(Config()), pace=QUICK).run(now_ms=NOON)
    assert (report.archived, report.deleted) == (1, 1)
    assert await archived_keys(database) == {"agent:main:month"}


@pytest.mark.spec("MAINT-1")
async def test_many_pages_and_many_agents(database: SqliteDatabase) -> None:
    def fill(tx: Transaction) -> None:
        for agent, kind in (("one", "other"), ("two", "hook")):
            for number in range(450):
                made = seed(f"s{number}", agent, kind=kind)
                sessions.create(tx, made, f"{agent}-{number}", OLD + number % 7)

    await database.write(fill)
    maintenance = Maintenance(database, limits(prune_after_ms=DAY), pace=Pace(0.0005, 0.0))
    plan = await maintenance.plan(now_ms=NOON)
    assert (plan.archive, plan.delete, len(plan.examples)) == (450, 450, 20)
    slices, legs = 0, plan.legs
    while legs:
        done = await maintenance.run_slice(legs, now_ms=NOON)
        assert done.archived + done.deleted <= 200
        slices, legs = slices + 1, done.legs
    assert slices > 5
    assert len(await archived_keys(database)) == 450 == len(await keys(database))
    assert await select(database, "SELECT state, count(*) FROM removals GROUP BY state ORDER BY state") == [
        ("archived", 450), ("deleted", 450),
    ]  # fmt: skip
    await check_counters(database)
