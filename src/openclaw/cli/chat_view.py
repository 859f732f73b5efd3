"""What a running conversation shows, as its events come: each word once, whatever was missed.

Pure state. Committed messages are the authority; streamed text is only their
beginning, shown early. Both events and a history may tell the same message: its
place in the transcript decides whether it was shown (RPC-14).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Final, Literal

from msgspec import Struct

from openclaw.cli.conversation import (
    Piece,
    attachments_of,
    tool_calls_of,
    tool_failure,
)
from openclaw.domain.terminaltext import printable
from openclaw.protocol.messages import marks_of, text_of

Json = dict[str, Any]
End = Literal["ok", "error", "aborted"]
# Texts of finished turns are remembered so long; older ones are certainly in the transcript.
REMEMBERED: Final = 64


class Ended(Struct, frozen=True):
    """How a turn ended."""

    how: End
    reason: str = ""


class ChatView:
    """The state of one conversation on one screen."""

    def __init__(self, session_key: str) -> None:
        self.session_key = session_key
        self.session_id: str | None = None
        self.ended: dict[str, Ended] = {}
        # Turns whose words were typed here: they stand on the screen already.
        self.own_runs: set[str] = set()
        # How far each transcript was shown: a reset begins another one, and its undo returns to the first.
        self._seen: dict[str | None, int] = {}
        self._partial = ""
        # Streamed text counts from the call of the model until its message is committed; what comes
        # later repeats it.
        self._step_is_open = False
        # The last committed words of a turn, and final words that came before their message.
        self._told: dict[str, str] = {}
        self._finals: dict[str, str] = {}

    # -- what was said before, and what was missed ---------------------------------------------

    def begin(self, history: Json) -> None:
        """Take what is in a history as seen."""
        self._turn_to(history.get("sessionId"))
        for message in history.get("messages") or []:
            self._seen[self.session_id] = max(self._last_seq, _seq(message))

    def catch_up(self, history: Json) -> list[Piece]:
        """What a history has and the screen has not; also how far the turn of the moment is."""
        self._turn_to(history.get("sessionId"))
        messages = history.get("messages") or []
        pieces: list[Piece] = []
        if self._last_seq and messages and _seq(messages[0]) > self._last_seq + 1 and history.get("hasMore"):
            pieces.append(Piece("… more was said in between: openclaw sessions history", "mark"))
        for message in messages:
            pieces += self._message(message, _seq(message))
        running = history.get("inFlightRun")
        text = str(running.get("text") or "") if isinstance(running, dict) else ""
        told = self._told.get(str(running.get("runId"))) if isinstance(running, dict) else None
        # Between two steps of a turn the text of the first, which is committed, is still told as running;
        # what stands on the screen and is not committed belongs to a step that goes on.
        repeats = bool(text and told and told.startswith(text)) and not self._partial
        self._step_is_open = isinstance(running, dict) and not repeats
        return [*pieces, *(self._stream(text) if self._step_is_open else self._close_partial())]

    # -- events --------------------------------------------------------------------------------

    def event(self, name: str, payload: Mapping[str, Any]) -> list[Piece]:
        """What an event adds to the screen; events of other sessions add nothing."""
        if payload.get("sessionKey") != self.session_key:
            return []
        if name == "session.message":
            self._turn_to(payload.get("sessionId"))
            message = payload.get("message")
            return self._message(message, _seq(message)) if isinstance(message, dict) else []
        if name == "agent":
            return self._agent(payload)
        return self._chat(payload) if name == "chat" else []

    def _agent(self, payload: Mapping[str, Any]) -> list[Piece]:
        data = payload.get("data") or {}
        if payload.get("stream") == "lifecycle" and data.get("phase") in ("start", "model"):
            self._step_is_open = True
            return self._close_partial()
        if payload.get("stream") == "assistant" and self._step_is_open:
            return self._stream(str(data.get("text") or ""))
        return []

    def _chat(self, payload: Mapping[str, Any]) -> list[Piece]:
        state, run_id = payload.get("state"), str(payload.get("runId") or "")
        if state == "final":
            pieces = self._final(run_id, text_of(payload.get("message")))
            self.ended[run_id] = Ended("ok")
        elif state == "aborted":
            pieces = [*self._close_partial(), Piece("(stopped)", "dim")]
            self.ended[run_id] = Ended("aborted")
        elif state == "error":
            reason = printable(str(payload.get("errorMessage") or "no reason given"))
            pieces = [*self._close_partial(), Piece(f"The turn failed: {reason}", "error")]
            self.ended[run_id] = Ended("error", reason)
        else:
            return []
        self._step_is_open = False
        return pieces

    def end_quietly(self, run_id: str, ended: Ended) -> list[Piece]:
        """A turn that ended while the connection was away."""
        if run_id in self.ended:
            return []
        self.ended[run_id] = ended
        return [Piece(f"The turn failed: {ended.reason}", "error")] if ended.how == "error" else []

    # -- pieces --------------------------------------------------------------------------------

    def _message(self, message: Mapping[str, Any], seq: int) -> list[Piece]:
        if seq <= self._last_seq:
            return []
        self._seen[self.session_id] = seq
        role = message.get("role")
        if role == "assistant":
            return self._assistant(message)
        if role == "toolResult":
            failure = tool_failure(message)
            return [] if failure is None else [*self._close_partial(), failure]
        if role == "user":
            run_id = str(marks_of(message).get("idempotencyKey") or "").removesuffix(":user")
            if run_id in self.own_runs:
                return []
            said = printable(text_of(message))
            return [*self._close_partial(), Piece(f"> {said}", "person"), *attachments_of(message)]
        text = printable(text_of(message))
        return [*self._close_partial(), Piece(f"— {text} —", "mark")] if text else []

    def _assistant(self, message: Mapping[str, Any]) -> list[Piece]:
        text, run_id = text_of(message), str(marks_of(message).get("runId") or "")
        self._step_is_open = False
        told_already = bool(text) and self._finals.pop(run_id, None) == text
        pieces = [] if told_already else self._rest_of(text, text_of(message, between=""))
        _remember(self._told, run_id, text)
        return [*pieces, *attachments_of(message), *tool_calls_of(message)]

    def _final(self, run_id: str, text: str) -> list[Piece]:
        """The last word on a turn; its message was usually shown, a command's answer comes later."""
        told = self._told.get(run_id, "")
        if not text or text == told:
            return self._close_partial()
        if told and told in text:
            # What stands around the reply, a notice or what it used, is not part of the transcript.
            before, _, after = text.partition(told)
            marks = [printable(part.strip()) for part in (before, after) if part.strip()]
            return [*self._close_partial(), *(Piece(mark, "mark") for mark in marks)]
        _remember(self._finals, run_id, text)
        return self._rest_of(text, text)

    def _stream(self, text: str) -> list[Piece]:
        if not text.startswith(self._partial):
            return [*self._close_partial(), *self._stream(text)] if self._partial else []
        new = text[len(self._partial) :]
        self._partial = text
        return [Piece(printable(new), "plain", open=True)] if new else []

    def _rest_of(self, text: str, streamed: str) -> list[Piece]:
        """Complete what was streamed of a text, or show all of it; the line is ended."""
        if self._partial and streamed.startswith(self._partial):
            rest = streamed[len(self._partial) :]
            self._partial = ""
            return [Piece(printable(rest), "plain")]
        shown = [Piece(printable(text), "plain")] if text else []
        return [*self._close_partial(), *shown]

    def _close_partial(self) -> list[Piece]:
        if not self._partial:
            return []
        self._partial = ""
        return [Piece("", "plain")]

    @property
    def _last_seq(self) -> int:
        return self._seen.get(self.session_id, 0)

    def _turn_to(self, session_id: object) -> None:
        if isinstance(session_id, str):
            self.session_id = session_id


def _remember(texts: dict[str, str], run_id: str, text: str) -> None:
    texts.pop(run_id, None)
    texts[run_id] = text
    while len(texts) > REMEMBERED:
        del texts[next(iter(texts))]


def _seq(message: Mapping[str, Any]) -> int:
    seq = marks_of(message).get("seq")
    return seq if isinstance(seq, int) else 0


def run_ids_of(history: Json) -> set[str]:
    """Turns that a history says are running or waiting."""
    running = history.get("inFlightRun")
    pending: Iterable[Json] = (history.get("pendingInputs") or {}).get("items") or []
    found = {str(item.get("runId")) for item in pending}
    return found | ({str(running.get("runId"))} if isinstance(running, dict) else set())
