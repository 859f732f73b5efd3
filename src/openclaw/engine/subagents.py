"""Children seen through: when a sub-agent's run ends, what it means for the session that asked for it.

Everything here happens in the commit that ends the child's run: either the child
gets its announce turn, or it is settled and its completion stands in the requester's
inbox (ANN-8). So a result can be neither lost nor delivered twice, and waking the
requester is a query.
"""

from __future__ import annotations

from collections.abc import Callable

import msgspec

from openclaw.domain.announce import (
    ChildStats,
    Completion,
    OutcomeWord,
    completion_block,
    is_silent_announcement,
    outcome_word,
    read_announcement,
    status_only,
)
from openclaw.domain.doortext import cut
from openclaw.domain.entry import DeliveryContext, SessionEntry
from openclaw.domain.redaction import mask_machine_text
from openclaw.domain.sanitise import sanitise_assistant_text
from openclaw.domain.silence import visible_reply
from openclaw.domain.transcript import (
    AssistantMessage,
    Provenance,
    ToolResultMessage,
    decode_message,
    encode,
    text_of,
)
from openclaw.engine.errands import SYSTEM, seed_of
from openclaw.engine.started import StartedRun
from openclaw.engine.texts import text_of_file
from openclaw.store import attachments, bindings, inbox, outbox, runs, sessions, spawns, transcript
from openclaw.store.database import Transaction
from openclaw.store.inbox import NewInput
from openclaw.store.records import DeliveryDraft, RunRow, SessionRow, UserInput
from openclaw.store.runs import RunEnd
from openclaw.store.spawns import SpawnBody, SpawnRow

MOST_ANCESTORS = 8
LOOKED_BACK = 12  # entries, for the words of a run that ended without any
MAX_OUTPUT_CHARS = 8000
DELIVERY_TTL_MS = 15 * 60 * 1000
_PROMPT = text_of_file("announce.txt")

Wake = Callable[[str], None]


def at_end_of_child(
    tx: Transaction, start: StartedRun, end: RunEnd, reply: str, now_ms: int, woken: list[str]
) -> None:
    """Part of the commit that ends a run of a sub-agent; `woken` gets the sessions that have work now."""
    child_key = start.run.session_key
    spawn = spawns.by_child(tx, child_key)
    if spawn is None or spawn.state != "active":
        return
    first = start.inputs[0].body if start.inputs else None
    if first is not None and first.purpose == "announce":
        said = reply if end.outcome == "ok" else ""
        settle(tx, spawn, said, now_ms, woken)
        return
    if inbox.count_queued(tx, child_key) or spawns.count_active(tx, child_key):
        return  # it goes on: with what waits, or with what its own children will send (ANN-10)
    status = outcome_word(end.outcome)
    result = visible_reply(reply) or (last_output(tx, start.run) if status == "success" else "")
    body = msgspec.structs.replace(spawn.body, status=status, error=end.error, result=result)
    if end.outcome == "aborted" and end.stop_reason == "stop":
        # Somebody stopped the whole tree and was told so: nobody in it begins to speak again (CMD-5).
        settle(tx, msgspec.structs.replace(spawn, body=body), "", now_ms, woken, tell=False)
    elif status == "success":
        spawns.note(tx, child_key, body)
        inbox.enqueue(tx, _announce_input(start.session, spawn, body, now_ms), now_ms)
    else:
        settle(tx, msgspec.structs.replace(spawn, body=body), "", now_ms, woken)


def last_output(tx: Transaction, run: RunRow) -> str:
    """What a run that ended without words had to show: earlier words, else its last tool result (ANN-4)."""
    output = ""
    for entry in reversed(transcript.tail(tx, run.window_no, LOOKED_BACK)):
        if entry.run_id != run.run_id or entry.type != "message":
            continue
        message = decode_message(entry.body)
        if isinstance(message, AssistantMessage):
            said = visible_reply(sanitise_assistant_text(text_of(message)))
            if said.strip():
                return said
        elif isinstance(message, ToolResultMessage) and message.tool_name != "sessions_yield":
            output = output or sanitise_assistant_text(cut(text_of(message), MAX_OUTPUT_CHARS))
    return output


def close(tx: Transaction, child_key: str, now_ms: int, woken: list[str], *, tell: bool) -> bool:
    """Settle a helper that was stopped, if nothing of it goes on; whether it was settled here.

    `tell`: the requester hears of it. What the helper had finished before is owed in any case.
    """
    spawn = spawns.by_child(tx, child_key)
    if spawn is None or spawn.state != "active":
        return False
    if runs.active_of(tx, child_key) or inbox.count_queued(tx, child_key):
        return False
    killed: OutcomeWord = "killed"
    body = msgspec.structs.replace(spawn.body, status=spawn.body.status or killed)
    done_before = spawn.body.status is not None
    settle(tx, msgspec.structs.replace(spawn, body=body), "", now_ms, woken, tell=tell or done_before)
    return True


def _announce_input(child: SessionRow, spawn: SpawnRow, body: SpawnBody, now_ms: int) -> NewInput:
    """The extra turn in which a child says what its requester should know."""
    prompt = _PROMPT.format(status=body.status, task=body.task[:2000])
    said = UserInput(
        prompt, now_ms, provenance=SYSTEM, timeout_ms=body.announce_timeout_ms, queue_mode="followup",
        hidden_prompt=True, purpose="announce",
    )  # fmt: skip
    return NewInput(f"{spawn.child_run_id}:announce", seed_of(child), "system", "system", said)


def settle(
    tx: Transaction,
    spawn: SpawnRow,
    announcement: str,
    now_ms: int,
    woken: list[str],
    *,
    tell: bool = True,
) -> None:
    """Close a child and hand its completion over, once (ANN-8); without `tell` nobody hears of it."""
    done = _completion(tx, spawn, announcement, now_ms)
    requester = _living_requester(tx, spawn)
    text: str | None = mask_machine_text(completion_block(done)).text
    if is_silent_announcement(announcement):
        waits = requester is not None and spawns.waits_for(tx, requester.session_key, spawn.child_run_id)
        text = status_only(done) if waits else None
    if not tell:
        text = None
    completion = None
    if requester is not None and text is not None:
        completion = _completion_input(requester, spawn, text, now_ms)
    if not spawns.settle(tx, spawn.child_key, spawn.body, completion, now_ms):
        return
    route = spawn.body.route
    if requester is None and text is not None and route is not None and route.channel and route.to:
        _deliver(tx, spawn, route, text, now_ms)
    if completion is not None:
        woken.append(completion.seed.session_key)
    if spawn.body.unbind_when_done:
        bindings.unbind_session(tx, spawn.child_key)
    if spawn.body.cleanup == "delete":
        archive(tx, spawn.child_key, now_ms)
    elif not spawn.body.retain_files:
        attachments.drop(tx, spawn.child_key)


def _completion(tx: Transaction, spawn: SpawnRow, announcement: str, now_ms: int) -> Completion:
    body = spawn.body
    said = read_announcement("" if is_silent_announcement(announcement) else announcement)
    status = body.status or "unknown"
    # A run that failed never hands captured text on as if it were a success (ANN-4).
    result = (said.result or read_announcement(body.result).result) if status == "success" else ""
    tokens_in, tokens_out, cost_usd = spawns.usage_of(tx, spawn.child_key)
    row = sessions.find(tx, spawn.child_key)
    stats = ChildStats(
        now_ms - spawn.created_at, tokens_in, tokens_out, cost_usd, spawn.child_key,
        row.entry.session_id if row else None, f"openclaw sessions export {spawn.child_key}",
    )  # fmt: skip
    return Completion(status, result, said.notes, body.error, body.task, body.label, stats)


def _living_requester(tx: Transaction, spawn: SpawnRow) -> SessionRow | None:
    """The session that asked; when it is gone, the one that had asked it."""
    parent_key = spawn.parent_key
    for _ in range(MOST_ANCESTORS):
        row = sessions.find(tx, parent_key)
        if row is not None:
            return row
        above = spawns.by_child(tx, parent_key)
        if above is None:
            return None
        parent_key = above.parent_key
    return None


def _completion_input(requester: SessionRow, spawn: SpawnRow, text: str, now_ms: int) -> NewInput:
    """The block as an input of the requester: data of another session, not a person's words (ANN-9)."""
    source = Provenance(
        kind="inter_session", source_session_key=spawn.child_key, source_tool="sessions_spawn"
    )
    route = _filled(spawn.body.route, requester.entry.delivery_context)
    body = UserInput(
        text, now_ms, route=route, provenance=source, deliver=route is not None, hidden_prompt=True,
        purpose="completion",
    )  # fmt: skip
    return NewInput(f"{spawn.child_run_id}:completion", seed_of(requester), "announce", "system", body)


def _filled(route: DeliveryContext | None, last: DeliveryContext | None) -> DeliveryContext | None:
    """A route that names only a channel goes where the requester was last spoken to there (ANN-7)."""
    if route is None or route.to is not None or last is None or last.channel != route.channel:
        return route
    return msgspec.structs.replace(
        last, account_id=route.account_id or last.account_id, thread_id=route.thread_id or last.thread_id
    )


def _deliver(tx: Transaction, spawn: SpawnRow, route: DeliveryContext, text: str, now_ms: int) -> None:
    """Nobody is left who could put it into words: the block itself goes where the request came from."""
    draft = DeliveryDraft(
        f"{spawn.child_run_id}:completion", route, encode({"text": text}), now_ms + DELIVERY_TTL_MS
    )
    outbox.prepare(tx, draft, spawn.parent_key, spawn.child_run_id, now_ms)


def archive(tx: Transaction, child_key: str, now_ms: int) -> None:
    """Take a finished child out of the lists; its transcript stays (ANN-11), its files go (SPAWN-17)."""
    attachments.drop(tx, child_key)
    bindings.unbind_session(tx, child_key)
    tx.run(spawns.SQL["archived"], (child_key,))
    row = sessions.find(tx, child_key)
    if row is not None and row.entry.archived_at is None:
        sessions.modify(tx, row, lambda entry: _archived(entry, now_ms), now_ms)


def _archived(entry: SessionEntry, now_ms: int) -> SessionEntry:
    return msgspec.structs.replace(entry, archived_at=now_ms)
