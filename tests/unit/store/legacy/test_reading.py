"""Reading a transcript file: every record, every complaint, and every byte accounted for."""

from __future__ import annotations

import hashlib
import os
from pathlib import Path

import pytest

from openclaw.domain.jsonl import record_line
from openclaw.store.legacy import reading
from openclaw.store.legacy.reading import Scanned, TranscriptScan, hash_of_file
from tests.unit.store.legacy.making import assistant, conversation, header, lines, record, user


def scan(path: Path, content: bytes) -> tuple[TranscriptScan, list[Scanned]]:
    path.write_bytes(content)
    one = TranscriptScan(path)
    return one, list(one.records())


def rebuilt(one: TranscriptScan, found: list[Scanned]) -> bytes:
    """The file, put together from what was kept."""
    ids = {item.seq: item.record.entry_id for item in found}
    parts = [one.header_bytes]
    for item in found:
        record_ = item.record
        parent = ids.get(item.parent_seq or 0)
        parts.append(
            item.source
            or record_line(record_.type, record_.entry_id, parent, record_.created_at, record_.body)
        )
    return b"".join([*parts, one.tail])


@pytest.mark.spec("TRX-2", "DB-4", "DB-2")
def test_a_usual_transcript_needs_no_bytes_beside_its_records(tmp_path: Path) -> None:
    content = conversation("s1", 40)
    one, found = scan(tmp_path / "s1.jsonl", content)
    assert len(found) == 40 == one.records_read and one.problems == [] and one.tail == b""
    assert all(item.source is None for item in found) and rebuilt(one, found) == content
    assert [item.parent_seq for item in found] == [None, *range(1, 40)]
    assert one.whole_hash == one.prefix_hash == hash_of_file(one.path) == hashlib.sha256(content).hexdigest()
    assert one.bytes_read == len(content) and one.started_at == 1_767_225_600_000


@pytest.mark.spec("TRX-13", "DB-7", "DB-16")
def test_damage_is_reported_with_its_line_and_stays_in_the_bytes(tmp_path: Path) -> None:
    content = lines(
        "", "garbage", header("s1"), "[1,2]", user(1, "a"), "  ", "{bad", header("s1"),
        user(2, "b", "00000001"), '{"type":"message","id":"00000003","message":',
    ) + b'{"type":"message","id":"cut'  # fmt: skip
    one, found = scan(tmp_path / "s1.jsonl", content)
    assert [item.record.text for item in found] == ["a", "b"] and rebuilt(one, found) == content
    assert [problem.line for problem in one.problems] == [2, 4, 7, 8, 10]
    assert one.skipped == 5 and one.header and one.is_cut_off and one.tail.endswith(b"cut")
    assert str(one.problems[0]).startswith(f"{one.path}:2: not JSON")


@pytest.mark.spec("DB-16")
def test_a_half_written_tail_is_no_damage_and_a_whole_one_without_an_end_counts(tmp_path: Path) -> None:
    content = lines(header("s1"), user(1, "a"))
    cut, found = scan(tmp_path / "a.jsonl", content + b'{"type":"mess')
    assert len(found) == 1 and cut.problems == [] and cut.skipped == 0 and cut.is_cut_off
    assert rebuilt(cut, found) == content + b'{"type":"mess' and cut.prefix_hash != cut.whole_hash
    assert cut.prefix_hash == hashlib.sha256(content).hexdigest()
    whole, found = scan(tmp_path / "b.jsonl", content[:-1])
    assert len(found) == 1 and not whole.is_cut_off and rebuilt(whole, found) == content[:-1]


@pytest.mark.spec("TRX-3")
def test_versions_one_and_two_are_upgraded(tmp_path: Path) -> None:
    first = {"type": "session", "id": "s1", "timestamp": "2026-01-01T00:00:00.000Z", "cwd": "/w"}
    plain = {"type": "message", "timestamp": "2026-01-01T00:00:05.000Z", "message": {
        "role": "user", "content": "old", "timestamp": 1}}  # fmt: skip
    kept = {"type": "compaction", "timestamp": "2026-01-01T00:00:06.000Z", "summary": "s", "tokensBefore": 1,
            "firstKeptEntryIndex": 1}  # fmt: skip
    content = lines(first, plain, "damage", kept)
    one, found = scan(tmp_path / "s1.jsonl", content)
    assert [item.record.type for item in found] == ["message", "compaction"] and one.skipped == 1
    assert found[1].parent_seq == 1 and found[0].record.entry_id.encode() in found[1].record.body
    assert rebuilt(one, found) == content and len(found[0].record.entry_id) == 8
    again, same = scan(tmp_path / "s1.jsonl", content)
    assert same == found and again.whole_hash == one.whole_hash
    second = {**first, "version": 2}
    hook = record(1, None, "message", message={"role": "hookMessage", "customType": "h", "content": "c"})
    two, found = scan(tmp_path / "s2.jsonl", lines(second, hook, user(2, "x", "00000001"), second))
    assert [item.record.type for item in found] == ["custom_message", "message"] and two.skipped == 1
    assert found[1].parent_seq == 1
    _, found = scan(tmp_path / "s3.jsonl", lines(plain, plain))
    assert len({item.record.entry_id for item in found}) == 2


@pytest.mark.spec("TRX-4")
def test_ids_stay_unique_and_parents_are_only_those_that_exist(tmp_path: Path) -> None:
    branch = user(4, "other branch", "00000001")
    content = lines(
        header("s1"), user(1, "a"), user(1, "twin", "00000001"), assistant(3, "b", "ffffffff"), branch,
        {**user(5, "x"), "id": None}, {**user(5, "y"), "id": None}, record(6, None, "telemetry", n=1),
    )  # fmt: skip
    one, found = scan(tmp_path / "s1.jsonl", content)
    assert len({item.record.entry_id for item in found}) == 7 and rebuilt(one, found) == content
    assert [item.parent_seq for item in found[:4]] == [None, 1, None, 1]
    assert [problem.line for problem in one.problems] == [3, 8] and one.skipped == 0


def test_hostile_sizes_are_bounded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reading, "MAX_LINE_BYTES", 1000)
    monkeypatch.setattr(reading, "MAX_KEPT_GAP", 3000)
    monkeypatch.setattr(reading, "MAX_PROBLEMS", 3)
    content = lines(header("s1"), "x" * 5000, user(1, "a"), *["junk " * 100] * 20, user(2, "b"))
    one, found = scan(tmp_path / "s1.jsonl", content)
    assert [item.record.text for item in found] == ["a", "b"]
    assert len(one.problems) == 3 < one.problem_count and one.lines_lost >= 3 and one.skipped == 21
    assert one.whole_hash == hash_of_file(one.path) and one.bytes_read == len(content)
    monkeypatch.setattr(reading, "MAX_OLD_FILE", 10)
    old, found = scan(tmp_path / "s2.jsonl", lines(header("s2", version=1), user(1, "a")))
    assert len(found) == 1 and old.problems == []


def test_an_empty_file_and_what_is_no_file(tmp_path: Path) -> None:
    for content in (b"", b"\n\n"):
        one, found = scan(tmp_path / "s1.jsonl", content)
        assert found == [] and one.started_at is None and rebuilt(one, found) == content
    os.mkfifo(tmp_path / "pipe.jsonl")
    with pytest.raises(OSError, match="not a file"):
        list(TranscriptScan(tmp_path / "pipe.jsonl").records())


def test_the_original_is_only_read(tmp_path: Path) -> None:
    path = tmp_path / "s1.jsonl"
    path.write_bytes(conversation("s1", 5))
    path.chmod(0o400)
    before = (path.stat().st_mtime_ns, path.read_bytes())
    list(TranscriptScan(path).records())
    assert (path.stat().st_mtime_ns, path.read_bytes()) == before
