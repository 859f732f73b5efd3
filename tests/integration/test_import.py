"""Importing the founding layout: everything arrives, byte for byte, once, and the originals stay."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Any

import msgspec
import pytest

from openclaw.domain.searchtext import query_terms
from openclaw.store.records import EntryDraft, SessionSeed
from openclaw.store.store import Store
from openclaw.store.transcript import entry_id_of, salt_of
from tests.integration.importing import Place
from tests.unit.store.legacy.making import (
    STARTED_MS,
    assistant,
    conversation,
    generated,
    header,
    lines,
    record,
    user,
    write_store,
)

NOW_MS = STARTED_MS * 2


def entry(session_id: str, **more: Any) -> dict[str, Any]:
    return {"sessionId": session_id, "updatedAt": STARTED_MS + 5000, **more}


@pytest.fixture
def place(tmp_path: Path) -> Place:
    return Place(tmp_path / "state")


@pytest.mark.spec("DB-2", "DB-3", "DB-4", "TRX-2")
async def test_everything_arrives_once_and_the_originals_stay(place: Place) -> None:
    generated(place.folder, 60, 600)
    before = place.files()
    seen = (await place.doctor("inspect")).stores[0]
    assert (seen.sessions, seen.transcripts, seen.already, seen.imported) == (60, 60, 0, 0)
    tried = await place.doctor("dry-run")
    assert not (place.state / "openclaw.sqlite").exists() and tried.ok
    done = await place.doctor("import")
    first, second = tried.stores[0], done.stores[0]
    assert (second.imported, second.records, second.skipped) == (60, 600, 18)
    assert (first.imported, first.records, first.skipped, first.problems) == (60, 600, 18, second.problems)
    assert ":2: not JSON" in second.problems[0] and second.problem_count == 18
    state = await place.state_hash()
    again = (await place.doctor("import")).stores[0]
    assert (again.imported, again.already, again.records) == (0, 60, 600)
    assert await place.state_hash() == state and place.files() == before
    checked = await place.doctor("validate")
    assert checked.ok and checked.stores[0].already == 60
    for name, (content, _) in before.items():
        if name.endswith(".jsonl"):
            assert await place.exported(name.removesuffix(".jsonl")) == content
    assert await place.rows("SELECT count(*) FROM entries") == [(600,)]


@pytest.mark.spec("DB-7", "KEY-12", "ENT-4")
async def test_a_session_keeps_what_it_was_and_gets_what_it_lacked(place: Place) -> None:
    text = conversation("s1", 4)
    write_store(place.folder, {
        "group:-100": entry("s1", channel="telegram", chatType="group", label="mine", lastTo=-100,
                            lastChannel="telegram", inputTokens=5, thinkingLevel="high"),
        "agent:main:main": entry("s2", sessionStartedAt=STARTED_MS + 1, lastInteractionAt=STARTED_MS + 2),
        "agent:main:future": entry("s3", updatedAt=NOW_MS),
    }, {"s1.jsonl": text, "orphan.jsonl": conversation("orphan", 2)})  # fmt: skip
    await place.doctor("import")

    async def look(store: Store) -> None:
        row = await store.session("agent:main:telegram:group:-100")
        assert (
            row is not None and row.entry.session_id == "s1" and (row.last_seq, row.message_count) == (4, 4)
        )
        one = row.entry
        assert one.session_started_at == one.last_interaction_at == one.created_at == STARTED_MS
        assert (one.label, one.input_tokens, one.thinking_level) == ("mine", 5, "high")
        assert one.updated_at == STARTED_MS + 5000 and row.read_seq == 4 and row.first_text and row.last_text
        assert one.delivery_context is not None and one.delivery_context.to == "-100"
        two = await store.session("agent:main:main")
        assert two is not None and two.kind == "main" and two.entry.chat_type == "direct"
        assert (two.entry.session_started_at, two.entry.last_interaction_at) == (
            STARTED_MS + 1,
            STARTED_MS + 2,
        )
        ahead = await store.session("agent:main:future")
        assert ahead is not None and ahead.entry.updated_at < NOW_MS
        lost = await store.session("agent:main:imported:orphan")
        assert lost is not None and lost.entry.archived_at is not None and lost.message_count == 2
        page = await store.history("agent:main:telegram:group:-100", 10)
        assert page is not None and [item.seq for item in page.entries] == [1, 2, 3, 4]
        assert page.entries[0].created_at == STARTED_MS + 1000

    await place.store_do(look)


@pytest.mark.spec("SRCH-3")
async def test_what_was_imported_is_found(place: Place) -> None:
    text = lines(header("s1"), user(1, "where is the Xylophone"), assistant(2, "in the attic", "00000001"))
    write_store(place.folder, {"main": entry("s1")}, {"s1.jsonl": text})
    await place.doctor("import")
    hits = await place.store_do(lambda store: store.search(query_terms("xylophone")))
    assert [(hit.session_key, hit.seq, hit.role) for hit in hits] == [("agent:main:main", 1, "user")]


@pytest.mark.spec("TRX-4", "DB-4")
async def test_a_session_goes_on_after_its_import_with_ids_of_its_own(place: Place) -> None:
    taken = entry_id_of(salt_of("s1"), 4)  # the id that the next but one entry would get
    rows = [header("s1"), user(1, "a"), {**assistant(2, "b", "00000001"), "id": taken}]
    text = lines(*rows)[:-1]
    write_store(place.folder, {"main": entry("s1")}, {"s1.jsonl": text})
    await place.doctor("import")
    drafts = tuple(
        EntryDraft("message", b'{"role":"user","content":"new","timestamp":1}', "user") for _ in "12"
    )
    await place.store_do(lambda store: store.append("agent:main:main", drafts, now_ms=NOW_MS))
    exported = await place.exported("s1")
    assert exported.startswith(text + b"\n") and exported.count(b"\n") == 5
    ids = [row[0] for row in await place.rows("SELECT entry_id FROM entries ORDER BY entry_no")]
    assert len(set(ids)) == 4 and ids[1] == taken and ids[3] not in ("", taken)
    assert all(len(one) == 8 for one in ids) and f'"parentId":"{taken}"'.encode() in exported
    assert (await place.doctor("validate")).ok
    again = (await place.doctor("import")).stores[0]
    assert again.already == 1 and again.problems == []


@pytest.mark.spec("DB-3")
async def test_a_file_that_grew_is_continued_unless_the_session_went_on(place: Place) -> None:
    text = conversation("s1", 3)
    path = write_store(place.folder, {"main": entry("s1"), "other": entry("s2")}, {
        "s1.jsonl": text + b'{"type":"message","id":"cut', "s2.jsonl": conversation("s2", 3),
    }).parent / "s1.jsonl"  # fmt: skip
    await place.doctor("import")
    longer = text + lines(user(9, "late", "00000003"))
    path.write_bytes(longer)
    assert not (await place.doctor("validate")).ok
    assert (await place.doctor("import")).stores[0].imported == 1
    assert await place.exported("s1") == longer and (await place.doctor("validate")).ok
    row = await place.store_do(lambda store: store.session("agent:main:main"))
    assert (row.last_seq, row.message_count, row.last_text) == (4, 4, "late")
    draft = EntryDraft("message", b'{"role":"user","content":"ours","timestamp":1}', "user", text="ours")
    await place.store_do(lambda store: store.append("agent:main:main", (draft,), now_ms=NOW_MS))
    path.write_bytes(longer + lines(user(10, "theirs", "00000009")))
    (place.folder / "s2.jsonl").write_bytes(conversation("s2", 3, seed=1))
    outcome = (await place.doctor("import")).stores[0]
    assert outcome.imported == 0 and len(outcome.problems) == 2 and "the store keeps" in outcome.problems[0]
    assert b"ours" in await place.exported("s1") and b"theirs" not in await place.exported("s1")


@pytest.mark.spec("DB-3", "LIFE-21")
async def test_what_is_in_the_store_wins(place: Place) -> None:
    async def prepare(store: Store) -> None:
        for key, label in (("agent:main:main", None), ("agent:main:x", "taken")):
            edit = partial(msgspec.structs.replace, label=label)
            await store.edit_session(SessionSeed(key, "main"), edit, session_id=f"live-{key}", now_ms=1)

    await place.store_do(prepare)
    write_store(place.folder, {"main": entry("s1"), "y": entry("s2", label="taken"), "z": entry("s3")}, {
        "s1.jsonl": conversation("s1", 2),
    })  # fmt: skip
    outcome = (await place.doctor("import")).stores[0]
    assert len(outcome.problems) == 2 and any("lies behind" in one for one in outcome.problems)
    row = await place.store_do(lambda store: store.session("agent:main:main"))
    assert row.entry.session_id == "live-agent:main:main" and row.last_seq == 0
    assert await place.exported("s1") == conversation("s1", 2)
    await place.store_do(lambda store: store.delete_session("agent:main:z", now_ms=NOW_MS))
    state = await place.state_hash()
    (place.folder / "sessions.json").write_text('{"z":{"sessionId":"s3","updatedAt":1}}')
    await place.doctor("import")
    assert await place.store_do(lambda store: store.session("agent:main:z")) is None
    assert state != await place.state_hash()  # only the index row: what is imported now


@pytest.mark.spec("TRX-13", "DB-7")
async def test_unreadable_files_are_told_and_can_be_settled(place: Place) -> None:
    write_store(place.folder, "{broken", {"s1.jsonl": conversation("s1", 2)})
    refused = await place.doctor("import")
    assert not refused.ok and "cannot be read" in refused.stores[0].problems[0]
    (place.folder / "sessions.json").rename(place.folder / "sessions.json.away")
    assert (await place.doctor("import")).ok
    assert await place.exported("s1") == conversation("s1", 2)


async def test_large_lines_and_odd_records_come_back_too(place: Place) -> None:
    big = "x" * 200_000
    text = lines(
        header("s1"), user(1, big), record(2, "00000001", "telemetry", blob=big), '{"type": "message"}',
        user(3, big.upper(), "00000001"), "\ud800".encode("utf-8", "surrogatepass").decode("latin-1"),
    )  # fmt: skip
    write_store(place.folder, {"main": entry("s1")}, {"s1.jsonl": text})
    assert (await place.doctor("import")).ok
    assert await place.exported("s1") == text and (await place.doctor("validate")).ok
