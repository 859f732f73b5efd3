"""Direct sessions that are left behind when all direct messages share `main` again."""

from __future__ import annotations

from collections import Counter

import pytest
from msgspec.structs import replace

from openclaw.domain.keys import KeySettings
from openclaw.store import dmscope
from openclaw.store.database import Database
from openclaw.store.dmscope import DirectSessions
from openclaw.store.sessions import ListQuery
from openclaw.store.store import Store
from tests.conformance.making import seed, turn

NOW_MS = 1_800_000_000_000
DIRECT = ("telegram:direct:4711", "telegram:bot:direct:4711", "direct:ada", "slack:dm:u1")
KEPT = ("main", "notes", "telegram:group:42", "discord:channel:direct-talk")


async def listed(store: Store) -> set[str]:
    page = await store.list_sessions(ListQuery(archived=False, limit=1000))
    return {row.session_key for row in page.rows}


async def fill(store: Store) -> None:
    for name in (*DIRECT, *KEPT):
        await turn(store, f"run-{name}", name, to=seed(name), at=NOW_MS - 1000)
    await turn(store, "run-bob", "x", to=seed("signal:direct:9", "bob"), at=NOW_MS - 1000)


@pytest.mark.spec("CLI-8")
async def test_direct_sessions_are_archived_and_nothing_else(store: Store, database: Database) -> None:
    await fill(store)
    before = await listed(store)
    work = DirectSessions(database, KeySettings())
    planned = await work.retire(now_ms=NOW_MS, dry_run=True)
    assert planned == Counter(main=4, bob=1) and await listed(store) == before
    assert await work.retire(now_ms=NOW_MS, agent_id="bob") == Counter(bob=1)
    in_use = f"agent:main:{DIRECT[0]}"
    assert await work.retire(now_ms=NOW_MS, in_use=in_use) == Counter(main=3)
    assert await listed(store) == {f"agent:main:{name}" for name in KEPT} | {in_use}
    row = await store.session("agent:main:direct:ada")
    assert row is not None and row.entry.archived_at == NOW_MS and row.entry.updated_at == NOW_MS - 1000
    page = await store.history("agent:main:direct:ada", 10)
    assert page is not None and len(page.entries) == 2, "every word stays"
    assert (await store.list_sessions(ListQuery(archived=True, limit=10))).total == 4
    assert await work.retire(now_ms=NOW_MS + 1, in_use=in_use) == Counter()


@pytest.mark.spec("CLI-8", "MAINT-3")
async def test_what_is_pinned_or_running_stays(store: Store, database: Database) -> None:
    await fill(store)
    for name, edit in (
        (DIRECT[0], lambda entry: replace(entry, pinned_at=5)),
        (DIRECT[1], lambda entry: replace(entry, status="running")),
    ):
        await store.edit_session(seed(name), edit, session_id="unused", now_ms=NOW_MS)
    assert await DirectSessions(database, KeySettings()).retire(now_ms=NOW_MS) == Counter(main=2, bob=1)
    assert {f"agent:main:{name}" for name in DIRECT[:2]} <= await listed(store)


@pytest.mark.spec("CLI-8")
async def test_pages_do_not_miss_any(
    store: Store, database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    await fill(store)
    monkeypatch.setattr(dmscope, "PAGE", 2)
    work = DirectSessions(database, KeySettings())
    assert await work.retire(now_ms=NOW_MS, dry_run=True) == Counter(main=4, bob=1)
    assert await work.retire(now_ms=NOW_MS) == Counter(main=4, bob=1)
