"""What must hold whenever a simulated gateway is quiet: the promises, read from the rows.

Nothing accepted is lost or consumed twice, order is kept, every run has ended and was told once, the
transcript is dense and its calls are answered, the ledger is right, and the memory of the process agrees.
"""

from __future__ import annotations

from collections import Counter
from datetime import datetime
from itertools import pairwise

import msgspec

from openclaw.domain.transcript import (
    AssistantMessage,
    ToolResultMessage,
    decode_message,
    text_of,
    tool_calls_of,
)
from openclaw.engine.contexts import ContextCache
from tests.simulation.configuring import DAY_LIMIT_USD, ZONE
from tests.simulation.memory import Memory
from tests.simulation.process import Process


def audit(process: Process) -> None:
    """Check everything; the first broken promise is raised."""
    memory = process.memory
    _check_inputs(memory)
    _check_order(memory)
    _check_runs(process)
    _check_interrupts(memory)
    _check_transcripts(memory)
    _check_calls(memory)
    _check_deliveries(memory)
    _check_ledger(memory)
    _check_lanes(process)
    memory.quietly_cancelled.clear()


def _check_inputs(memory: Memory) -> None:
    rows = {
        row[0]: row
        for row in memory.image.peek(
            "SELECT inbox.run_id, inbox.session_key, inbox.state, inbox.consumed_by, runs.state FROM inbox "
            "LEFT JOIN runs ON runs.run_id = inbox.consumed_by"
        )
    }
    said: Counter[str] = Counter(
        dict(memory.image.peek("SELECT run_id, count(*) FROM entries WHERE role = 'user' GROUP BY run_id"))
    )
    for sent in memory.sent.values():
        if sent.status == "accepted" and sent.run_id not in rows:
            memory.broken(f"{sent.run_id} was accepted and is lost")
    for run_id, key, state, consumed_by, run_state in rows.values():
        if run_id not in memory.sent and not memory.is_own(run_id):
            memory.broken(f"{run_id} was stored and never sent")
        if state == "queued":
            memory.broken(f"{run_id} of {key} waits and nobody takes it up")
        # A command that the store cut off is settled by the next start.
        if state == "consumed" and run_state != "ended" and not memory.is_command(run_id):
            memory.broken(f"{run_id} was consumed by {consumed_by}, which is {run_state}")
        if said[run_id] != (1 if state == "consumed" else 0) and not memory.is_command(run_id):
            memory.broken(f"{run_id} is {state} and stands {said[run_id]} times in the transcript")
        if state == "cancelled":
            _check_told(memory, run_id, key)
        elif memory.cancelled_told[run_id]:
            memory.broken(f"{run_id} was told to be cancelled and is {state}")


def _check_told(memory: Memory, run_id: str, session_key: str) -> None:
    """Who waits for a cancelled input hears of it, once, unless the process went away meanwhile."""
    if run_id in memory.cancelled_seen:
        return
    memory.cancelled_seen.add(run_id)
    told = memory.cancelled_told[run_id]
    if told > 1:
        memory.broken(f"{run_id} was told to be cancelled {told} times")
    if told == 0 and run_id in memory.sent and not memory.quietly_cancelled & {"*", session_key}:
        memory.broken(f"{run_id} of {session_key} was cancelled and nobody was told")


def _check_order(memory: Memory) -> None:
    """In one transcript, inputs of one kind stand in the order of their admission."""
    rows = memory.image.peek(
        "SELECT inbox.run_id, entries.window_no, entries.seq FROM inbox "
        "JOIN entries ON entries.run_id = inbox.run_id AND entries.role = 'user' ORDER BY inbox.admission"
    )
    last: dict[tuple[object, ...], tuple[int, str]] = {}
    for run_id, window_no, seq in rows:
        if run_id not in memory.sent:
            continue  # what the gateway itself makes comes in the order of its causes
        line = (window_no, *memory.sent[run_id].group)
        before = last.get(line)
        if before is not None and before[0] > seq:
            memory.broken(f"{run_id} was admitted after {before[1]} and stands before it")
        last[line] = (seq, run_id)


def _check_runs(process: Process) -> None:
    memory, image = process.memory, process.memory.image
    for run_id, owner, state, outcome, reason in image.peek(
        "SELECT run_id, owner, state, outcome, stop_reason FROM runs"
    ):
        if memory.is_command(run_id):
            continue  # its end is the answer
        told = memory.ended_told.get(run_id, [])
        if state != "ended":
            memory.broken(f"run {run_id} is {state} and nobody works on it")
        if len(told) > 1:
            memory.broken(f"the end of run {run_id} was told {len(told)} times: {told}")
        # An end that could not be written was told as an error; deleting the session ended the row instead.
        gone = reason == "deleted" and told and told[0][1] == "error"
        if told and told[0][1] != outcome and not gone:
            memory.broken(f"run {run_id} ended as {outcome} ({reason}) and {told[0][1]} was told")
        if not told and owner == f"process {process.number}" and reason != "deleted":
            memory.broken(f"run {run_id} ended as {outcome} and nobody was told")
        if memory.unsettled[run_id] > memory.steps["store failure"] + memory.steps["read failure"]:
            memory.broken(f"run {run_id} was told to have failed to end {memory.unsettled[run_id]} times")


def _check_interrupts(memory: Memory) -> None:
    """A message that interrupts stops what ran before it, never the turn that it is in itself."""
    for run_id, newest, own in memory.image.peek(
        "SELECT run_id, (SELECT max(admission) FROM inbox WHERE inbox.session_key = runs.session_key), "
        "(SELECT max(admission) FROM inbox WHERE consumed_by = runs.run_id) FROM runs "
        "WHERE stop_reason = 'interrupt'"
    ):
        if newest == own:
            memory.broken(f"run {run_id} was interrupted by its own message")


def _check_transcripts(memory: Memory) -> None:
    found = {
        row[0]: row[1:]
        for row in memory.image.peek(
            "SELECT window_no, count(*), min(seq), max(seq) FROM entries GROUP BY window_no"
        )
    }
    current: dict[int, int] = dict(memory.image.peek("SELECT window_no, last_seq FROM sessions"))
    for window_no, base_seq in memory.image.peek("SELECT window_no, base_seq FROM windows"):
        count, first, last = found.get(window_no, (0, base_seq + 1, base_seq))
        if (count, first) != (last - base_seq, base_seq + 1):
            memory.broken(f"window {window_no} has {count} entries from {first} to {last}")
        if window_no in current and current[window_no] != last:
            memory.broken(f"window {window_no} ends at {last}, its session says {current[window_no]}")


def _check_calls(memory: Memory) -> None:
    """Each call has exactly one stored result, after it and before anything that a person says."""
    # A window that was left under a run misses the end of that run, also when the reset is taken back.
    ended_early = {
        row[0]
        for row in memory.image.peek(
            "SELECT window_no FROM windows WHERE (ended_at IS NOT NULL OR window_no IN "
            "(SELECT previous_no FROM windows)) AND window_no IN "
            "(SELECT window_no FROM runs WHERE reply_seq IS NULL)"
        )
    }
    rows = memory.image.peek(
        "SELECT window_no, seq, role, body FROM entries WHERE type = 'message' AND body IS NOT NULL "
        "AND run_id <> 'injected' ORDER BY window_no, seq"
    )
    open_ids: list[str] = []
    window, said = 0, ""
    for window_no, seq, role, body in rows:
        if window_no != window:
            if open_ids and window not in ended_early:
                memory.broken(f"the calls {open_ids} of window {window} have no result")
            open_ids, window = [], window_no
        where = f"entry {seq} of window {window_no}"
        if role == "user":
            if open_ids and window_no not in ended_early:
                memory.broken(f"{where} was said before the results of {open_ids}")
            continue
        message = decode_message(body)
        if isinstance(message, ToolResultMessage):
            if message.tool_call_id in open_ids:
                open_ids.remove(message.tool_call_id)
            elif window_no not in ended_early:
                memory.broken(f"{where} is a result of no open call: {message.tool_call_id}")
        elif isinstance(message, AssistantMessage):
            if open_ids and window_no not in ended_early:
                memory.broken(f"{where} was said before the results of {open_ids}")
            replayed = message.stop_reason not in ("error", "aborted")
            if not replayed and "answer" in said and text_of(message) == said:
                memory.broken(f"{where} keeps again what was said before: {said}")
            said = text_of(message)
            open_ids = [call.id for call in tool_calls_of(message)] if replayed else []
    if open_ids and window not in ended_early:
        memory.broken(f"the calls {open_ids} of window {window} have no result")


def _check_deliveries(memory: Memory) -> None:
    for run_id, count in memory.image.peek(
        "SELECT run_id, count(*) FROM outbox GROUP BY run_id HAVING count(*) > 1"
    ):
        memory.broken(f"run {run_id} has {count} replies in the outbox")
    for delivery_no, times in memory.delivered.items():
        if times > 1:
            memory.broken(f"delivery {delivery_no} was sent {times} times")


def _check_ledger(memory: Memory) -> None:
    """Each call is counted once, at its price; nothing stays reserved; the day's limit holds."""
    counted: Counter[int] = Counter()
    spent: dict[str, float] = {}
    for call_id, state, agent_id, at_ms, number, cost_usd, fence, reason in memory.image.peek(
        "SELECT call_id, usage.state, usage.agent_id, at, input, cost_usd, fence, stop_reason FROM usage "
        "JOIN runs ON runs.run_id = usage.run_id"
    ):
        # What a run had reserved that was taken away counts with its estimate; the next start settles it.
        taken_away = fence > 1 or reason == "deleted" or memory.steps["store failure"]
        if state != "settled" and not taken_away:
            memory.broken(f"the call {call_id} is {state} though its run has ended")
        if number is not None:
            counted[number] += 1
            if abs(cost_usd - memory.calls[number]) > 1e-12:
                memory.broken(f"the call {number} cost {memory.calls[number]}, the ledger says {cost_usd}")
        if agent_id == "frugal":
            day = datetime.fromtimestamp(at_ms / 1000, ZONE).date().isoformat()
            spent[day] = spent.get(day, 0.0) + cost_usd
    if counted and max(counted.values()) > 1:
        memory.broken(f"a call was counted more than once: {counted.most_common(1)}")
    for (body,) in memory.image.peek(
        "SELECT body FROM entries WHERE role = 'assistant' AND run_id <> 'injected'"
    ):
        usage = msgspec.json.decode(body).get("usage")
        if usage is not None and counted[usage["input"]] != 1:
            memory.broken(f"the call {usage['input']} stands in a transcript and not in the ledger")
    for day, total_usd in spent.items():
        if total_usd > DAY_LIMIT_USD * 1.2:
            memory.broken(f"{total_usd} was spent on {day}, the limit is {DAY_LIMIT_USD}")


def _check_lanes(process: Process) -> None:
    for name in ("main", "subagent", "cron"):
        lane = process.lanes.lane(name)
        if lane.active or lane._line:
            process.memory.broken(f"lane {name} is quiet with {lane.active} places taken: {lane._line}")
    workers = process.workers
    if workers._busy or workers._active:
        process.memory.broken(f"workers are left: {workers._busy} {workers._active}")
    if process.turns._waiters:
        process.memory.broken(f"waiters are left: {process.turns._waiters}")


async def check_caches(process: Process) -> None:
    """What is cached of a window is what its rows say."""
    for window_no, cached in list(process.contexts._windows.items()):
        fresh = ContextCache(process.store, process.compactions)
        expected = await fresh.messages(window_no, cached.last_seq)
        rows = fresh._windows[window_no]
        seqs = [row[0] for row in process.memory.image.peek(
            "SELECT seq FROM entries WHERE window_no = ? ORDER BY seq", window_no)]  # fmt: skip
        if any(second != first + 1 for first, second in pairwise(seqs)):
            process.memory.broken(f"window {window_no} has holes")
        if rows.last_seq == cached.last_seq and tuple(cached.active()) != expected:
            process.memory.broken(f"the cache of window {window_no} differs from its rows")
