"""The border between columns and entries: nothing is lost on the way, and nothing unknown gets through."""

from __future__ import annotations

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from openclaw.domain.entry import DeliveryContext, SessionEntry
from openclaw.store.records import SESSION_COLUMNS, SessionRow, session_from_columns, session_to_columns
from tests.conformance.entries import ENTRIES, FIELDS, entry_with, example_of
from tests.conformance.making import NOON

NUMBERS = st.integers(0, 2**62)


def row_with(entry: SessionEntry, **columns: object) -> SessionRow:
    made = SessionRow(3, "agent:a:k", "a", "group", "thread", 4, 5, 6, 7, 8, 9, "first", "last", entry)
    return msgspec.structs.replace(made, **columns)


@pytest.mark.spec("ENT-4", "ENT-5")
@settings(max_examples=300, deadline=None)
@given(entry=ENTRIES, number=NUMBERS, text=st.none() | st.text(max_size=5))
def test_a_row_comes_back_from_its_columns(entry: SessionEntry, number: int, text: str | None) -> None:
    row = row_with(entry, version=number, last_seq=number, first_text=text, last_text=text)
    columns = session_to_columns(row)
    assert len(columns) == len(SESSION_COLUMNS) - 1
    assert session_from_columns((row.session_no, *columns)) == row


def test_every_number_has_its_own_column() -> None:
    columns = dict(zip(SESSION_COLUMNS, (3, *session_to_columns(row_with(entry_with()))), strict=True))
    assert {name: columns[name] for name in SESSION_COLUMNS[:14]} == {
        "session_no": 3, "session_key": "agent:a:k", "agent_id": "a", "kind": "group",
        "session_type": "thread", "window_no": 4, "session_id": "id-1", "id_salt": 5, "version": 6,
        "last_seq": 7, "message_count": 8, "read_seq": 9, "first_text": "first", "last_text": "last",
    }  # fmt: skip


@pytest.mark.spec("DB-13")
@pytest.mark.parametrize("name", sorted(FIELDS))
def test_a_field_is_kept_in_one_place(name: str) -> None:
    """Either in the column of its name (the route in four), or in `more`; never in both."""
    empty = session_to_columns(row_with(entry_with()))
    filled = session_to_columns(row_with(entry_with(**{name: example_of(name)})))
    changed = {
        column for column, old, new in zip(SESSION_COLUMNS[1:], empty, filled, strict=True) if old != new
    }
    if name == "delivery_context":
        assert changed == {"route_to"}
    else:
        assert changed == ({name} if name in SESSION_COLUMNS else {"more"})


def test_a_route_without_anything_is_no_route() -> None:
    columns = session_to_columns(row_with(entry_with(delivery_context=DeliveryContext())))
    assert session_from_columns((3, *columns)).entry.delivery_context is None
    partly = entry_with(delivery_context=DeliveryContext(thread_id="7"))
    assert session_from_columns((3, *session_to_columns(row_with(partly)))).entry == partly


@pytest.mark.parametrize("flag", [None, False, True])
def test_three_states_of_freshness(flag: bool | None) -> None:
    entry = entry_with(total_tokens_fresh=flag, updated_at=NOON)
    read = session_from_columns((3, *session_to_columns(row_with(entry)))).entry
    assert read.total_tokens_fresh is flag
