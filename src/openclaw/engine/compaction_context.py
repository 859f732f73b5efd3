"""From the rows of an active context to the task that a compaction works on. No decisions, no writing."""

from __future__ import annotations

from collections.abc import Sequence

from msgspec import Struct

from openclaw.domain.boundaries import COMPACTION_UNDONE, active_part
from openclaw.domain.compaction import CompactionSettings, Task, Trigger, item_of
from openclaw.domain.context import active_branch, messages_of, rebuild_context, summary_message
from openclaw.domain.quarantine import leave_out, quarantined_ids
from openclaw.domain.summaries import NO_FILES, Files, files_in_details
from openclaw.domain.tokens import messages_tokens
from openclaw.domain.transcript import CompactionRecord, CustomRecord, Message, Record
from openclaw.engine.contexts import record_of
from openclaw.store.compactions import ContextRows
from openclaw.store.records import StoredEntry


class ReadContext(Struct, frozen=True):
    """A context as a compaction found it. `base_seq` is the last entry that it has seen."""

    task: Task
    base_seq: int
    files: Files = NO_FILES
    now_ms: int = 0


def records_of(entries: Sequence[StoredEntry]) -> list[Record]:
    """Entries as records, refused ones left out. One whose parent is not among them begins the branch."""
    ids = {entry.seq: entry.entry_id for entry in entries}
    records = [record_of(entry, ids.get(entry.parent_seq or 0)) for entry in entries]
    left_out = quarantined_ids(records)
    return [leave_out(record) if record.id in left_out else record for record in records]


def read_for_compaction(
    rows: ContextRows, window: int, trigger: Trigger, settings: CompactionSettings, overhead: int
) -> ReadContext:
    """The task of compacting these rows."""
    entries = rows.entries
    records = records_of(entries)
    branch = active_branch(records, records[-1].id if records else None)
    part = active_part(branch)
    seq_of = {entry.entry_id: entry.seq for entry in entries}
    items = tuple(
        item_of(seq_of[record.id], message)
        for record in branch[part.start :]
        for message in messages_of(record)
    )
    compaction = part.compaction
    task = Task(
        items,
        window,
        trigger,
        settings,
        overhead,
        None if compaction is None else summary_message(compaction),
        "" if compaction is None else compaction.summary,
    )
    noted = NO_FILES if compaction is None else files_in_details(compaction.details)
    last = entries[-1] if entries else None
    return ReadContext(task, last.seq if last else 0, noted, last.created_at if last else 0)


def read_for_undo(rows: ContextRows, compaction_id: str) -> int:
    """Tokens of the messages that the context would have without this compaction."""
    records = records_of(rows.entries)
    undone = CustomRecord(
        id="", parent_id=records[-1].id, timestamp="", custom_type=COMPACTION_UNDONE,
        data={"targetId": compaction_id},
    )  # fmt: skip
    return messages_tokens(rebuild_context([*records, undone], undone.id))


def summary_as_message(summary: str) -> Message:
    """The message that a summary will be for the model, to weigh it."""
    record = CompactionRecord(
        id="", parent_id=None, timestamp="", summary=summary, first_kept_entry_id="", tokens_before=0
    )
    return summary_message(record)
