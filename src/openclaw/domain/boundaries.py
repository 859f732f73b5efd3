"""Which part of a branch is the active context: after the last compaction or reset that still holds.

A compaction is a record with a summary and a pointer; undoing it is one more
record that names it. Nothing is ever removed from a transcript (TRX-1), so this
room only reads. What the records become for a model is `domain.context`.
"""

from __future__ import annotations

from collections.abc import Sequence

from msgspec import Struct

from openclaw.domain.transcript import CompactionRecord, CustomRecord, Record, ResetRecord

# The `customType` of the record that takes a compaction back; its data is `{"targetId": <id>}`.
COMPACTION_UNDONE = "compaction_undone"


class ActivePart(Struct, frozen=True):
    """Where the active context begins in its branch, and the compaction that stands for what came before."""

    start: int
    compaction: CompactionRecord | None = None


def undone_target(record: Record) -> str | None:
    """The id of the compaction that this record takes back, if it is such a record."""
    if not isinstance(record, CustomRecord) or record.custom_type != COMPACTION_UNDONE:
        return None
    target = record.data.get("targetId") if isinstance(record.data, dict) else None
    return target if isinstance(target, str) else None


def active_part(branch: Sequence[Record]) -> ActivePart:
    """The part of a branch, root first, that a model should see (TRX-9).

    The last compaction that was not undone gives its summary and what it kept; a
    reset hides what came before it, from later compactions too. A kept entry that
    is not on the branch means that nothing was kept.
    """
    position = {record.id: index for index, record in enumerate(branch)}
    undone = _undone_compactions(branch)
    start = hidden_before = 0
    compaction: CompactionRecord | None = None
    for index, record in enumerate(branch):
        if isinstance(record, CompactionRecord) and record.id not in undone:
            kept = position.get(record.first_kept_entry_id, index)
            start, compaction = max(min(kept, index), hidden_before), record
        elif isinstance(record, ResetRecord):
            kept = position.get(record.first_kept_entry_id or record.id, index)
            start = hidden_before = max(min(kept, index), hidden_before)
            compaction = None
    return ActivePart(start, compaction)


def _undone_compactions(branch: Sequence[Record]) -> set[str]:
    """The ids of compactions that a later record takes back."""
    named: set[str] = set()
    undone: set[str] = set()
    for record in reversed(branch):
        if isinstance(record, CompactionRecord):
            if record.id in named:
                undone.add(record.id)
        elif (target := undone_target(record)) is not None:
            named.add(target)
    return undone
