"""The state of one open conversation: every message once, whatever was missed or came twice.

Pure. Committed messages are the authority, known by their number in the transcript; text
that streams is only their beginning, shown early (RPC-11, RPC-14). What was typed here is
shown at once and gives way to the message that the gateway made of it.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, Literal

from msgspec import Struct
from msgspec.structs import replace

from openclaw.protocol.messages import text_of
from openclaw.tui.items import (
    Item,
    Kind,
    State,
    call_places,
    items_of,
    run_of,
    seq_of,
    with_result,
)
from openclaw.tui.text import safe_line, safe_text

Json = dict[str, Any]
# What an event asks of the screen; "look" also asks for the queue, "reload" for the whole history.
Change = Literal["nothing", "changed", "look", "reload"]
REMEMBERED: Final = 64


class Waiting(Struct, frozen=True):
    """A message that the gateway has accepted and not begun with."""

    run_id: str
    text: str


class Talk:
    """One session on the screen."""

    def __init__(self, session_key: str) -> None:
        self.session_key = session_key
        self.session_id: str | None = None
        self.cursor: str | None = None
        self.next_offset: int | None = None
        self.running: str | None = None
        self.running_since_ms = 0
        self.activity = ""
        self.queue: list[Waiting] = []
        self.row: Json = {}
        self._items: dict[str, Item] = {}
        # The item of the newest call under each call id.
        self._calls: dict[str, str] = {}
        self._last_seq = 0
        self._notes = 0
        self._stream = ""
        # Streamed text counts from the call of the model until its message is committed.
        self._step_is_open = False
        self._told: dict[str, str] = {}
        # What was typed here and is not in the transcript yet, by run.
        self._typed: dict[str, str] = {}

    @property
    def items(self) -> list[Item]:
        """Oldest first; what is being said right now comes last."""
        shown = list(self._items.values())
        if self._stream:
            shown.append(Item("stream", "agent", safe_text(self._stream), state="running"))
        return shown

    # -- whole histories -----------------------------------------------------------------------

    def load(self, history: Json) -> None:
        """Show the newest page of a history, and what was typed here and is not in it."""
        session_id = history.get("sessionId")
        # A session that did not exist yet has no id; its first message gives it one.
        same = self.session_id in (None, session_id)
        kept = {} if not same else {run: self._items.get(f"typed:{run}") for run in self._typed}
        later = [] if not same else [item for item in self._items.values() if item.kind in ("note", "error")]
        last_seq, newer = self._last_seq if same else 0, dict(self._items)
        self.session_id = session_id if isinstance(session_id, str) else None
        self._items, self._calls, self._last_seq = {}, {}, 0
        self._stream, self._step_is_open = "", False
        for message in history.get("messages") or []:
            self._message(message)
        if last_seq > self._last_seq:
            # An event was faster than the answer: what it brought stays.
            first = self._last_seq + 1
            self._items |= {key: item for key, item in newer.items() if _number(key) >= first}
            self._last_seq = last_seq
        self._items |= {item.item_id: item for item in later[-3:]}
        self._items |= {item.item_id: item for run, item in kept.items() if item and run in self._typed}
        self.next_offset = history.get("nextOffset")
        self._surroundings(history)

    def prepend(self, page: Json) -> bool:
        """Put an older page before what is shown; False when it belongs to another conversation."""
        if page.get("sessionId") != self.session_id:
            return False
        older: dict[str, Item] = {}
        calls: dict[str, str] = {}
        for message in page.get("messages") or []:
            _add(older, calls, message)
        # Where a page ends between a call and its answer, the answer stands for itself.
        older = {
            key: replace(item, state="done") if item.state == "running" else item
            for key, item in older.items()
        }
        self._items = {**older, **{key: item for key, item in self._items.items() if key not in older}}
        self.next_offset = page.get("nextOffset")
        return True

    def catch_up(self, delta: Json) -> None:
        """What came since the cursor, as events would have told it."""
        self._stream, self._step_is_open = "", False
        for payload in delta.get("messages") or []:
            message = payload.get("message")
            if isinstance(message, dict):
                self._message(message)
        self._surroundings(delta)

    def _surroundings(self, answer: Json) -> None:
        """What runs and what waits; the cursor to come back with."""
        self.cursor = answer.get("deltaCursor") or self.cursor
        self.row = answer.get("sessionInfo") or self.row
        running = answer.get("inFlightRun")
        if isinstance(running, dict):
            self._run_began(str(running.get("runId")), int(running.get("startedAt") or 0))
            text = str(running.get("text") or "")
            told = self._told.get(self.running or "", "")
            # Between two steps of a turn the committed text of the first is still told as running.
            if text and not (told and told.startswith(text)):
                self._stream, self._step_is_open = text, True
        else:
            self._run_ended()
        self.look(answer)

    def look(self, answer: Json) -> None:
        """Take over the queue as the gateway tells it, and the cursor if it leaves nothing out."""
        messages = answer.get("messages") or []
        if "sessionId" in answer and messages and seq_of(messages[-1]) <= self._last_seq:
            self.cursor = answer.get("deltaCursor") or self.cursor
        waiting = (answer.get("pendingInputs") or {}).get("items") or []
        self.queue = [Waiting(str(item.get("runId")), safe_line(_input_text(item))) for item in waiting]
        queued = {item.run_id for item in self.queue}
        if "inFlightRun" not in answer:
            self._run_ended()
        for run_id in list(self._typed):
            item = self._items.get(f"typed:{run_id}")
            if item is not None and item.state != "unsent":
                state: State = "queued" if run_id in queued else "sent" if run_id == self.running else ""
                self._items[item.item_id] = replace(item, state=state)

    # -- events --------------------------------------------------------------------------------

    def event(self, name: str, payload: Mapping[str, Any]) -> Change:
        """Take in an event; those of other sessions change nothing."""
        if payload.get("sessionKey") != self.session_key:
            return "nothing"
        if name == "session.message":
            if self.session_id is not None and payload.get("sessionId") != self.session_id:
                return "reload"
            self.session_id = str(payload.get("sessionId"))
            message = payload.get("message")
            return "changed" if isinstance(message, dict) and self._message(message) else "nothing"
        if name == "sessions.changed":
            return self._row(payload)
        if name == "agent":
            return self._agent(payload)
        return self._chat(payload) if name == "chat" else "nothing"

    def _row(self, payload: Mapping[str, Any]) -> Change:
        row = payload.get("session")
        if isinstance(row, dict):
            self.row = row
            if self.session_id is not None and row.get("sessionId") != self.session_id:
                return "reload"
        return "look"

    def _agent(self, payload: Mapping[str, Any]) -> Change:
        data, stream = payload.get("data") or {}, payload.get("stream")
        run_id, phase = str(payload.get("runId") or ""), data.get("phase")
        if stream == "lifecycle" and phase in ("start", "model"):
            self._run_began(run_id, int(data.get("startedAt") or payload.get("ts") or 0))
            self._stream, self._step_is_open, self.activity = "", True, ""
            return "look" if phase == "start" else "changed"
        if stream == "lifecycle" and phase in ("end", "error"):
            if run_id == self.running:
                self._run_ended()
            return "look"
        if stream == "assistant" and self._step_is_open:
            self._stream = str(data.get("text") or "")
            return "changed"
        if stream == "item":
            self.activity = safe_line(str(data.get("title") or ""), 60) if phase == "start" else ""
            return "changed"
        if stream in ("run_status", "compaction"):
            self.activity = safe_line(str(data.get("message") or data.get("phase") or ""), 60)
            return "changed"
        return "nothing"

    def _chat(self, payload: Mapping[str, Any]) -> Change:
        state, run_id = payload.get("state"), str(payload.get("runId") or "")
        if state not in ("final", "aborted", "error"):
            return "nothing"
        partial, self._stream, self._step_is_open = self._stream, "", False
        if run_id == self.running:
            self._run_ended()
        if state == "final":
            self._final(run_id, text_of(payload.get("message")))
        elif state == "aborted":
            said = text_of(payload.get("message")) or partial
            if said and said != self._told.get(run_id):
                self._items[f"final:{run_id}"] = Item(f"final:{run_id}", "agent", safe_text(said))
            self.note("stopped")
        else:
            self.note(
                f"The turn failed: {safe_text(str(payload.get('errorMessage') or 'no reason'))}", "error"
            )
        return "look"

    # -- messages ------------------------------------------------------------------------------

    def _message(self, message: Mapping[str, Any]) -> bool:
        seq = seq_of(message)
        if seq <= self._last_seq:
            return False
        self._last_seq = seq
        role, run_id = message.get("role"), run_of(message)
        if role == "user":
            self._forget_typed(run_id, text_of(message))
        elif role == "assistant":
            self._stream, self._step_is_open = "", False
            text = text_of(message)
            self._replace_final(run_id, safe_text(text))
            _remember(self._told, run_id, text)
        _add(self._items, self._calls, message)
        return True

    def _replace_final(self, run_id: str, text: str) -> None:
        """The words of a message may have come as the last word on the turn already."""
        final = self._items.pop(f"final:{run_id}", None)
        if final is not None and text and final.text != text and final.text.endswith(text):
            self.note(final.text.removesuffix(text).strip())

    def _final(self, run_id: str, text: str) -> None:
        """The last word on a turn; its message was usually shown, the answer to a command is none."""
        told = self._told.get(run_id, "")
        if not text or text == told:
            return
        if told and text.endswith(told):
            # What stands before the reply is a notice that is not part of the transcript.
            self.note(text.removesuffix(told).strip())
            return
        self._items[f"final:{run_id}"] = Item(f"final:{run_id}", "agent", safe_text(text))

    def note(self, text: str, kind: Kind = "note") -> None:
        """Something that only this screen says."""
        self._notes += 1
        self._items[f"note:{self._notes}"] = Item(f"note:{self._notes}", kind, safe_text(text))

    # -- what is typed here --------------------------------------------------------------------

    def say(self, run_id: str, text: str, state: State) -> None:
        """Show what was typed, or what became of it."""
        self._typed[run_id] = text
        self._items[f"typed:{run_id}"] = Item(f"typed:{run_id}", "person", safe_text(text), state=state)

    def accepted(self, run_id: str) -> None:
        """The gateway has it."""
        item = self._items.get(f"typed:{run_id}")
        if item is not None and item.state == "unsent":
            self._items[item.item_id] = replace(item, state="sent")

    def refused(self, run_id: str, reason: str) -> None:
        self._typed.pop(run_id, None)
        self._items.pop(f"typed:{run_id}", None)
        self.note(f"Not sent: {reason}", "error")

    def _forget_typed(self, run_id: str, text: str) -> None:
        """The transcript has it now; several that waited may have become one message."""
        gone = [
            run
            for run, typed in self._typed.items()
            if run == run_id or self._was_collected(run, typed, text)
        ]
        for run in gone:
            del self._typed[run]
            self._items.pop(f"typed:{run}", None)

    def _was_collected(self, run_id: str, typed: str, text: str) -> bool:
        item = self._items.get(f"typed:{run_id}")
        return item is not None and item.state == "queued" and typed.strip() in text

    # -- what runs -----------------------------------------------------------------------------

    def _run_began(self, run_id: str, since_ms: int) -> None:
        if run_id != self.running:
            self.running, self.running_since_ms = run_id, since_ms

    def _run_ended(self) -> None:
        self.running, self.activity = None, ""


def _add(items: dict[str, Item], calls: dict[str, str], message: Mapping[str, Any]) -> None:
    if message.get("role") == "toolResult":
        item = with_result(items.get(calls.pop(str(message.get("toolCallId")), "")), message)
        items[item.item_id] = item
    else:
        items |= {item.item_id: item for item in items_of(message)}
        calls |= call_places(message)


def _number(item_id: str) -> int:
    """The place in the transcript that an item id begins with, 0 for anything else."""
    digits = item_id[1:].partition(":")[0]
    return int(digits) if item_id.startswith("m") and digits.isdigit() else 0


def _input_text(item: Mapping[str, Any]) -> str:
    message = item.get("message")
    return text_of(message) if isinstance(message, dict) else str(message or "")


def _remember(texts: dict[str, str], run_id: str, text: str) -> None:
    texts.pop(run_id, None)
    texts[run_id] = text
    while len(texts) > REMEMBERED:
        del texts[next(iter(texts))]
