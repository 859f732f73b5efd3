"""Where the active context begins, and compactions that were taken back (TRX-9, COMP-3)."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from openclaw.domain.boundaries import COMPACTION_UNDONE, active_part, undone_target
from openclaw.domain.context import rebuild_context
from openclaw.domain.transcript import (
    CompactionRecord,
    CustomRecord,
    MessageRecord,
    Record,
    ResetRecord,
    UserMessage,
    text_of,
)

AT = "2026-05-13T12:00:00.123Z"


class Line:
    """Records one after the other, each the parent of the next."""

    def __init__(self) -> None:
        self.records: list[Record] = []

    @property
    def last(self) -> str | None:
        return self.records[-1].id if self.records else None

    def say(self, *names: str) -> Line:
        for name in names:
            message = UserMessage(name, 1)
            self.records.append(MessageRecord(id=name, parent_id=self.last, timestamp=AT, message=message))
        return self

    def compact(self, name: str, kept: str) -> Line:
        self.records.append(
            CompactionRecord(
                id=name, parent_id=self.last, timestamp=AT, summary=f"sum {name}", first_kept_entry_id=kept,
                tokens_before=1,
            )
        )  # fmt: skip
        return self

    def custom(self, name: str, data: object, kind: str = COMPACTION_UNDONE) -> Line:
        made = CustomRecord(id=name, parent_id=self.last, timestamp=AT, custom_type=kind, data=data)
        self.records.append(made)
        return self

    def undo(self, name: str, target: str) -> Line:
        return self.custom(name, {"targetId": target})

    def reset(self, name: str, kept: str | None = None) -> Line:
        self.records.append(ResetRecord(id=name, parent_id=self.last, timestamp=AT, first_kept_entry_id=kept))
        return self

    def texts(self) -> list[str]:
        return [text_of(message).rpartition("\n")[2] for message in rebuild_context(self.records, self.last)]


@pytest.mark.spec("TRX-9", "COMP-3")
def test_a_compaction_gives_its_summary_and_what_it_kept() -> None:
    line = Line().say("a", "b", "c").compact("C", "c").say("d")
    assert line.texts() == ["sum C", "c", "d"]
    part = active_part(line.records)
    assert part.start == 2
    assert part.compaction is not None
    assert part.compaction.id == "C"


@pytest.mark.spec("COMP-3")
def test_a_compaction_that_names_itself_kept_nothing() -> None:
    assert Line().say("a", "b").compact("C", "C").say("d").texts() == ["sum C", "d"]


@pytest.mark.spec("TRX-9", "TRX-1")
def test_an_undone_compaction_counts_for_nothing() -> None:
    line = Line().say("a", "b", "c").compact("C", "c").say("d").undo("U", "C").say("e")
    assert line.texts() == ["a", "b", "c", "d", "e"]
    assert active_part(line.records).compaction is None
    assert len(line.records) == 7


@pytest.mark.spec("TRX-9")
def test_undoing_the_last_compaction_brings_the_one_before_it_back() -> None:
    line = Line().say("a", "b").compact("C", "b").say("c", "d").compact("D", "d").say("e")
    assert line.texts() == ["sum D", "d", "e"]
    line.undo("U", "D")
    assert line.texts() == ["sum C", "b", "c", "d", "e"]
    line.undo("V", "C").say("f")
    assert line.texts() == ["a", "b", "c", "d", "e", "f"]
    line.compact("E", "f")
    assert line.texts() == ["sum E", "f"]


@pytest.mark.spec("TRX-9")
def test_only_a_later_record_takes_a_compaction_back() -> None:
    line = Line().say("a").undo("U", "C").say("b").compact("C", "b")
    assert line.texts() == ["sum C", "b"]


@pytest.mark.spec("TRX-9")
def test_a_reset_hides_what_came_before_also_from_later_compactions() -> None:
    line = Line().say("a", "b").compact("C", "b").reset("R").say("c", "d").compact("D", "a")
    assert line.texts() == ["sum D", "c", "d"]
    line.undo("U", "D")
    assert line.texts() == ["c", "d"]
    kept = Line().say("a", "b").reset("R", "b").say("c")
    assert kept.texts() == ["b", "c"]


@pytest.mark.parametrize(
    ("kind", "data", "target"),
    [
        (COMPACTION_UNDONE, {"targetId": "x"}, "x"),
        (COMPACTION_UNDONE, {"targetId": 5}, None),
        (COMPACTION_UNDONE, {}, None),
        (COMPACTION_UNDONE, None, None),
        (COMPACTION_UNDONE, ["targetId"], None),
        ("other", {"targetId": "x"}, None),
    ],
)
def test_a_record_of_another_kind_takes_nothing_back(kind: str, data: object, target: str | None) -> None:
    assert undone_target(Line().custom("U", data, kind).records[0]) == target
    assert undone_target(Line().say("a").records[0]) is None


MOVES = st.lists(
    st.tuples(st.sampled_from(["say", "compact", "undo", "reset"]), st.integers(0, 30)), max_size=30
)


def build(moves: list[tuple[str, int]]) -> Line:
    line = Line()
    for number, (move, pick) in enumerate(moves):
        ids = [record.id for record in line.records] or ["none"]
        chosen = ids[pick % len(ids)]
        if move == "say":
            line.say(f"m{number}")
        elif move == "compact":
            line.compact(f"C{number}", chosen)
        elif move == "undo":
            line.undo(f"U{number}", chosen)
        else:
            line.reset(f"R{number}", chosen if pick % 2 else None)
    return line


@pytest.mark.spec("TRX-9")
@settings(max_examples=300, deadline=None)
@given(MOVES, st.integers(0, 10))
def test_undoing_a_new_compaction_gives_the_context_that_was(moves: list[tuple[str, int]], pick: int) -> None:
    line = build(moves).say("x", "y")
    before = line.texts()
    ids = [record.id for record in line.records]
    line.compact("LAST", ids[pick % len(ids)])
    assert line.texts()[0] == "sum LAST"
    line.say("later").undo("BACK", "LAST").say("last")
    assert line.texts() == [*before, "later", "last"]
