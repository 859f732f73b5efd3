"""Import units on every database: parts, what is set aside, and reading it all back."""

from __future__ import annotations

from pathlib import Path

import pytest

from openclaw.domain.keys import DEFAULT_KEY_SETTINGS
from openclaw.domain.searchtext import query_terms
from openclaw.store.database import Database
from openclaw.store.export import Export
from openclaw.store.legacy import importing
from openclaw.store.legacy.importing import LegacyImport, Outcome
from openclaw.store.legacy.planning import LegacyStore, make_plan
from openclaw.store.legacy.writing import number_of
from openclaw.store.records import EntryDraft
from openclaw.store.sessions import ListQuery
from openclaw.store.store import Store
from openclaw.store.transcript import entry_id_of, salt_of
from tests.unit.store.legacy.making import STARTED_MS, conversation, header, lines, user, write_store

NOW_MS = STARTED_MS + 10**9


async def run(database: Database, path: Path, mode: str = "run") -> Outcome:
    plan = make_plan(LegacyStore("main", path), DEFAULT_KEY_SETTINGS)
    outcome: Outcome = await getattr(LegacyImport(database, lambda: NOW_MS), mode)(plan)
    return outcome


@pytest.mark.spec("DB-3", "DB-4", "DB-7")
async def test_a_folder_arrives_in_parts_and_comes_back(
    database: Database, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(importing, "PART_RECORDS", 7)
    odd = lines("junk", header("s2"), user(1, "a\x7fb"), '{ "type":"reset" }') + b"tail"
    texts = {"s1.jsonl": conversation("s1", 50), "s2.jsonl": odd, "s4.jsonl": b""}
    index = {
        "main": {"sessionId": "s1", "updatedAt": 5, "label": "x"},
        "two": {"sessionId": "s2", "updatedAt": 6, "label": "x"},
        "three": {"sessionId": "s3", "updatedAt": 7},
    }
    path = write_store(tmp_path / "old", index, texts)
    looked = await run(database, path, "preview")
    assert (looked.imported, looked.records, looked.already) == (4, 52, 0)
    done = await run(database, path)
    assert (done.imported, done.records, done.skipped, done.failed) == (4, 52, 1, 0)
    assert any("label 'x' is taken" in one for one in done.problems)
    assert (await run(database, path, "validate")).failed == 0
    assert (await run(database, path)).already == 4 == (await run(database, path, "preview")).already
    export = Export(database)
    for name, content in texts.items():
        window = await export.window_by_id(name.removesuffix(".jsonl"))
        assert window is not None
        assert b"".join([piece async for piece in export.lines(window, cwd="/")]) == content
    store = Store(database)
    hits = await store.search(query_terms("fox"), limit=100)
    assert hits and {hit.session_key for hit in hits} == {"agent:main:main"}
    page = await store.list_sessions(ListQuery(archived=None))
    assert page.total == 4 and {row.entry.session_id for row in page.rows} == {"s1", "s2", "s3", "s4"}
    (path.parent / "s1.jsonl").write_bytes(texts["s1.jsonl"] + b"\n")
    changed = await run(database, path, "validate")
    assert changed.failed == 1 and "changed since its import" in changed.problems[0]


@pytest.mark.spec("TRX-4")
async def test_ids_that_came_with_the_file_are_never_given_again(database: Database, tmp_path: Path) -> None:
    salt = salt_of("s1")
    taken = [entry_id_of(salt, seq) for seq in range(4, 10)]
    rows = [{**user(number, "x"), "id": one} for number, one in enumerate(taken, 1)]
    path = write_store(tmp_path / "old", {"main": {"sessionId": "s1", "updatedAt": 5}}, {
        "s1.jsonl": lines(header("s1"), *rows),
    })  # fmt: skip
    assert (await run(database, path)).imported == 1
    draft = EntryDraft("message", b'{"role":"user","content":"n","timestamp":1}', "user")
    made = await Store(database).append("agent:main:main", (draft,) * 20, now_ms=NOW_MS)
    ids = [*taken, *(one.entry_id for one in made)]
    assert len(set(ids)) == 26 and all(len(one) == 8 for one in ids)
    assert made[5].entry_id == entry_id_of(salt, 12)


def test_the_number_of_an_id_is_the_inverse_of_the_id_of_a_number() -> None:
    for session_id in ("a", "b", "s1"):
        salt = salt_of(session_id)
        for seq in (1, 2, 77, 1 << 24, (1 << 32) - 1):
            assert number_of(salt, entry_id_of(salt, seq)) == seq
    for other in ("", "0000000", "0000000G", "ABCDEF00", "123456789"):
        assert number_of(5, other) is None


async def test_a_file_that_changed_between_two_runs_is_told_and_not_mixed(
    database: Database, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(importing, "PART_RECORDS", 5)
    index = {"main": {"sessionId": "s1", "updatedAt": 5}}
    path = write_store(tmp_path / "old", index, {"s1.jsonl": conversation("s1", 20)})

    class Stopped(Exception):
        pass

    parts = 0

    def stop(count: int) -> None:
        nonlocal parts
        parts += count == 0
        if parts == 2:
            raise Stopped

    plan = make_plan(LegacyStore("main", path), DEFAULT_KEY_SETTINGS)
    with pytest.raises(Stopped):
        await LegacyImport(database, lambda: NOW_MS, stop).run(plan)
    assert await Store(database).session("agent:main:main") is None
    assert "not imported to its end" in (await run(database, path, "validate")).problems[0]
    original = (path.parent / "s1.jsonl").read_bytes()
    (path.parent / "s1.jsonl").write_bytes(conversation("s1", 20, seed=2))
    refused = await run(database, path)
    assert refused.failed == 1 and "between two runs" in refused.problems[0]
    (path.parent / "s1.jsonl").write_bytes(original)
    assert (await run(database, path)).imported == 1
    assert (await run(database, path, "validate")).failed == 0
