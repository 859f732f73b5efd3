"""Lines of a transcript under every input: reading never breaks, and reads back what it wrote."""

from __future__ import annotations

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from openclaw.domain.jsonl import (
    UnreadableLine,
    iso_of,
    ms_of,
    read_line,
    record_line,
)
from openclaw.domain.transcript import decode_message, decode_record
from tests.unit.store.legacy.making import dump, user

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=20),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=8), inner, max_size=4),
    max_leaves=12,
)
NAMES = st.sampled_from(
    ["type", "id", "parentId", "timestamp", "message", "summary", "content", "customType", "data", "role"]
)
WORDS = st.sampled_from(
    ["message", "custom", "reset", "session", "compaction", "user", "assistant", "toolResult"]
)


@pytest.mark.spec("TRX-13")
@settings(max_examples=300, deadline=None)
@given(st.dictionaries(NAMES, JSON | WORDS, max_size=6) | JSON, st.binary(max_size=6), st.booleans())
def test_any_line_is_read_or_refused_and_what_is_read_can_be_used(
    value: object, dirt: bytes, ascii_: bool
) -> None:
    text = json.dumps(value, ensure_ascii=ascii_).encode("utf-8", "surrogatepass")
    raw = text[: len(text) // 2] + dirt + text[len(text) // 2 :]
    for line in (text, raw, dirt):
        try:
            found = read_line(line, "f:1")
        except UnreadableLine:
            continue
        decode_record(record_line(found.type, found.entry_id, found.parent_id, found.created_at, found.body))
        if found.type == "message":
            decode_message(found.body)
        for part in (found.text, found.words, found.entry_id):
            (part or "").encode("utf-8")
            assert "\0" not in (part or "")


@pytest.mark.spec("DB-4", "TRX-2")
@settings(max_examples=200, deadline=None)
@given(st.text(st.characters(exclude_categories=["Cs", "Cc"]), max_size=200))
def test_a_clean_message_is_written_exactly_as_it_was_read(text: str) -> None:
    line = dump(user(1, text)).encode() + b"\n"
    found = read_line(line, "f:1")
    assert found.text == text
    assert record_line(found.type, found.entry_id, found.parent_id, found.created_at, found.body) == line


@settings(max_examples=200, deadline=None)
@given(st.integers(0, 253_402_300_799_999))
def test_times_survive_the_way_there_and_back(at_ms: int) -> None:
    assert ms_of(iso_of(at_ms)) == at_ms
