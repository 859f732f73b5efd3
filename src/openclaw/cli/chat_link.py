"""A connection to one conversation that comes back by itself.

One thread reads and tells `Listener` what comes; any other thread may ask. After a
loss it tries again with growing pauses, follows the session again and hands over its
history, so that the listener can show what was missed. Requests whose answer was lost
are sent again: use it only for what may be repeated.
"""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable
from contextlib import suppress
from typing import Any, Final, Protocol

from openclaw.cli.client import Deadline, GatewayClient
from openclaw.cli.failures import GatewayClosed, GatewayFailure, GatewayTimeout, NotLetIn, RequestRefused
from openclaw.cli.place import Place
from openclaw.cli.refusals import call_refused, read_refusal

Json = dict[str, Any]

PAUSES_S: Final = (0.2, 0.5, 1.0, 2.0, 4.0, 8.0)
GIVE_UP_S: Final = 120.0
ANSWER_S: Final = 30.0
CONNECT_S: Final = 10.0


def leave_signals_to_main_thread() -> None:
    """Ctrl-C wakes the thread that gets it, and it is the main thread that waits for a person.

    Threads that are started by this one do the same.
    """
    if hasattr(signal, "pthread_sigmask"):
        signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})


class Listener(Protocol):
    """Hears from the reading thread, one call at a time."""

    def on_connected(self, history: Json, ask: Callable[[str, Json], Any], *, again: bool) -> None: ...

    def on_event(self, name: str, payload: Json) -> None: ...

    def on_lost(self, failure: GatewayFailure) -> None: ...


class ChatLink:
    """Follows one session of the gateway at `place` until it is closed."""

    def __init__(
        self,
        place: Place,
        scopes: list[str],
        session_key: str,
        listener: Listener,
        *,
        history_limit: int = 200,
    ) -> None:
        self.place = place
        self.session_key = session_key
        self._scopes = scopes
        self._listener = listener
        self._history_limit = history_limit
        self._changed = threading.Condition()
        self._client: GatewayClient | None = None
        self._answers: dict[str, Json] = {}
        self._broken: GatewayFailure | None = None
        self._closing = threading.Event()
        self._thread = threading.Thread(target=self._run, name="chat-link", daemon=True)

    def open(self) -> None:
        """Start reading, and return once it is connected. Raises why it is not."""
        self._thread.start()
        with self._changed:
            self._changed.wait_for(lambda: self._client is not None or self._broken is not None)
            if self._broken is not None:
                raise self._broken

    def close(self) -> None:
        self._closing.set()
        with self._changed:
            client, self._client = self._client, None
            self._changed.notify_all()
        if client is not None:
            client.close()
        if self._thread.is_alive():
            self._thread.join(5)

    @property
    def broken(self) -> GatewayFailure | None:
        """Why the connection will not come back."""
        return self._broken

    def ask(self, method: str, params: Json, timeout_s: float = ANSWER_S) -> Any:
        """The answer to a request that may be repeated: a lost connection is waited for.

        Raises RequestRefused, GatewayTimeout, or why the connection does not come back.
        """
        deadline = Deadline(timeout_s)
        while True:
            client = self._present_client(method, deadline)
            try:
                request_id = client.post(method, params)
            except GatewayClosed:
                self._wait_for_change(client, deadline)
                continue
            answer = self._await_answer(client, request_id, method, deadline)
            if answer is None:
                continue
            if answer.get("ok") is not True:
                raise call_refused(read_refusal(answer.get("error")))
            return answer.get("payload")

    # -- asking --------------------------------------------------------------------------------

    def _present_client(self, method: str, deadline: Deadline) -> GatewayClient:
        with self._changed:
            self._changed.wait_for(
                lambda: self._client is not None or self._broken is not None or self._closing.is_set(),
                deadline.left_s(),
            )
            if self._client is not None:
                return self._client
            raise self._broken or self._too_late(method, deadline)

    def _wait_for_change(self, client: GatewayClient, deadline: Deadline) -> None:
        with self._changed:
            self._changed.wait_for(lambda: self._client is not client, deadline.left_s())

    def _await_answer(
        self, client: GatewayClient, request_id: str, method: str, deadline: Deadline
    ) -> Json | None:
        """None when the connection was lost before the answer came."""
        with self._changed:
            came = self._changed.wait_for(
                lambda: request_id in self._answers or self._client is not client, deadline.left_s()
            )
            if not came:
                raise self._too_late(method, deadline)
            return self._answers.pop(request_id, None)

    def _too_late(self, method: str, deadline: Deadline) -> GatewayTimeout:
        return GatewayTimeout(
            f"waited {deadline.timeout_s:g} s for the answer to {method} from {self.place.shown_url}; "
            "try again"
        )

    # -- reading -------------------------------------------------------------------------------

    def _connect(self, *, again: bool) -> GatewayClient:
        early: list[Json] = []
        client = GatewayClient(self.place, self._scopes, connect_timeout_s=CONNECT_S, on_event=early.append)
        client.__enter__()
        try:
            # First follow, then look: what is said in between is in the history, or comes as an event.
            client.call("sessions.messages.subscribe", {"key": self.session_key}, ANSWER_S)
            asked = {"sessionKey": self.session_key, "limit": self._history_limit}
            history = client.call("chat.history", asked, ANSWER_S)
            self._listener.on_connected(
                history, lambda method, params: client.call(method, params, ANSWER_S), again=again
            )
        except BaseException:
            client.close()
            raise
        for frame in early:
            self._listener.on_event(str(frame.get("event")), frame.get("payload") or {})
        return client

    def _run(self) -> None:
        """Whatever ends this thread, whoever waits for it hears of it."""
        leave_signals_to_main_thread()
        try:
            client = self._connect(again=False)
            with self._changed:
                self._client = client
                self._changed.notify_all()
            self._read()
        except GatewayFailure as failure:
            self._give_up(failure)
        except OSError as error:
            # The listener prints, and its output is gone.
            self._give_up(GatewayClosed(f"the output was closed: {error.strerror or error}"))
        except Exception as error:
            self._give_up(GatewayClosed(f"the gateway said something that was not understood: {error!r}"))

    def _read(self) -> None:
        while not self._closing.is_set():
            client = self._client
            if client is None:
                break
            try:
                while True:
                    self._take(client.next_frame(Deadline(None)))
            except GatewayFailure as failure:
                client.close()
                if self._closing.is_set():
                    break
                self._listener.on_lost(failure)
                with self._changed:
                    self._client = None
                    self._changed.notify_all()
                self._come_back(failure)

    def _give_up(self, failure: GatewayFailure) -> None:
        with self._changed:
            self._client, self._broken = None, failure
            self._changed.notify_all()
        with suppress(OSError):
            self._listener.on_lost(failure)

    def _take(self, frame: Json) -> None:
        if frame.get("type") == "event":
            self._listener.on_event(str(frame.get("event")), frame.get("payload") or {})
        elif frame.get("type") == "res":
            with self._changed:
                self._answers[str(frame.get("id"))] = frame
                self._changed.notify_all()

    def _come_back(self, failure: GatewayFailure) -> None:
        deadline, attempt = Deadline(GIVE_UP_S), 0
        while not self._closing.wait(PAUSES_S[min(attempt, len(PAUSES_S) - 1)]):
            attempt += 1
            try:
                client = self._connect(again=True)
            except (NotLetIn, RequestRefused) as refused:
                # It is there and says no: waiting does not change its mind, unless it is only starting.
                failure = refused
                if not refused.may_retry:
                    break
            except GatewayFailure as still_away:
                failure = still_away
            else:
                with self._changed:
                    self._client = client
                    self._changed.notify_all()
                return
            if deadline.left_s() == 0.0:
                break
        if not self._closing.is_set():
            self._give_up(failure)
