"""`openclaw chat`: a plain conversation in the terminal (CLI-13).

Words appear as they come, tool calls as one dim line. Everything goes through a gateway;
where none runs, one is started in this process and that is said.
"""

from __future__ import annotations

import os
import sys
import threading
import uuid
from collections.abc import Callable
from typing import Any, Final, Literal

import click

from openclaw.cli.chat_link import ChatLink
from openclaw.cli.chat_view import ChatView, Ended, run_ids_of
from openclaw.cli.client import GatewayClient
from openclaw.cli.conversation import Piece, pieces_of
from openclaw.cli.failures import GatewayFailure, RequestRefused
from openclaw.cli.naming import Name, NothingFits, find_row
from openclaw.cli.options import gateway_options
from openclaw.cli.place import Flags, Place
from openclaw.cli.render import note
from openclaw.cli.screen import Screen
from openclaw.domain.terminaltext import one_line, printable
from openclaw.protocol.scopes import ADMIN, WRITE

Json = dict[str, Any]
# "stopped": the person ended the turn; "leave": and wants to go.
Said = Literal["done", "stopped", "leave"]

SHOWN_BEFORE: Final = 6
CALL_S: Final = 10.0
ABORT_S: Final = 20.0  # longer than a gateway takes to stop a run at the most
INTERRUPTED: Final = 130
HISTORY_NAME: Final = "chat_history"
GOODBYES: Final = ("/exit", "/quit")


@click.command(short_help="Talk to an agent in the terminal.")
@click.option(
    "--session", "session", metavar="KEY", default="main", help="The session to talk in. Default: main."
)
@click.option("--agent", "agent_id", metavar="ID", help="Of this agent, when the key names none.")
@click.option("--thinking", metavar="LEVEL", help="How hard to think, for each turn.")
@click.option("-m", "--message", metavar="TEXT", help="Say this first.")
@click.option("--deliver", is_flag=True, help="Send the replies to the session's channel, too.")
@click.option(
    "--history-limit",
    type=click.IntRange(0, 1000),
    metavar="N",
    help="How many earlier messages to show first. Default: 6 on a terminal, none otherwise.",
)
@click.option("--local", is_flag=True, help="Do not look for a gateway; run one in this process.")
@gateway_options
@click.pass_context
def chat(
    ctx: click.Context,
    session: str,
    agent_id: str | None,
    thinking: str | None,
    message: str | None,
    deliver: bool,
    history_limit: int | None,
    local: bool,
    flags: Flags,
) -> None:
    """Talk to an agent, line by line.

    Several lines: end a line with a backslash, or put three double quotes before and after. Lines that
    begin with a slash are commands of the gateway, such as /status, /new and /help. Ctrl-C stops the
    running turn, once more leaves; Ctrl-D leaves. Without a terminal each input line is one message.

    \b
    Examples:
      openclaw chat
      openclaw chat --session notes --message "Where were we?"
      printf 'hello\\nand goodbye\\n' | openclaw chat --agent work
    """
    from openclaw.cli.embedded import reach_gateway

    shown_before = history_limit if history_limit is not None else SHOWN_BEFORE if _by_hand() else 0
    with reach_gateway(flags, [ADMIN, WRITE], local=local, on_embedded=_say_embedded) as client:
        key = canonical_session(client, session, agent_id)
        client.close()
        screen = Screen()
        manner = {"thinking": thinking, "deliver": deliver or None}
        talk = Conversation(client.place, key, screen, shown_before=shown_before, manner=manner)
        code = _talk(talk, screen, message)
    ctx.exit(code)


def _by_hand() -> bool:
    return sys.stdin.isatty() and sys.stdout.isatty()


def _say_embedded(reason: str) -> None:
    note(f"{reason}; the conversation runs in this process and ends with it. Nothing is lost.")


def canonical_session(client: GatewayClient, session: str, agent_id: str | None) -> str:
    """The key as the gateway spells it; events carry no other. A label or the part of a key will do, too."""
    try:
        return str(find_row(client, Name(session, agent_id), CALL_S)["key"])
    except NothingFits:
        # A session that does not exist yet begins with its first message.
        params = {"sessionKey": session, "limit": 1} | ({"agentId": agent_id} if agent_id else {})
        return str(client.call("chat.history", params, CALL_S)["sessionKey"])


def _talk(talk: Conversation, screen: Screen, message: str | None) -> int:
    talk.link.open()
    try:
        if _by_hand():
            note(f"{one_line(talk.link.session_key)} at {talk.link.place.shown_url}. /help; Ctrl-D leaves.")
        return _read_and_say(talk, screen, message)
    finally:
        talk.link.close()
        screen.end_line()


def _read_and_say(talk: Conversation, screen: Screen, message: str | None) -> int:
    from openclaw.cli.chat_input import piped_lines, read_message, terminal_lines

    if message is not None and message.strip() and talk.say(message) == "leave":
        return INTERRUPTED
    if not _by_hand():
        read_line = piped_lines()
        return _say_all(talk, lambda: read_message(read_line))
    from openclaw.config.load import state_dir

    with terminal_lines(screen, state_dir(os.environ) / HISTORY_NAME) as read_line:
        return _converse(talk, lambda: read_message(read_line))


def _say_all(talk: Conversation, read: Callable[[], str]) -> int:
    """Every message of a pipe, one after the other."""
    while True:
        try:
            text = read()
        except EOFError:
            return 1 if talk.failures else 0
        if text.strip() and talk.say(text) == "leave":
            return INTERRUPTED


def _converse(talk: Conversation, read: Callable[[], str]) -> int:
    """A person at the keyboard: a second Ctrl-C in a row leaves, as Ctrl-D does."""
    interrupted = False
    while True:
        try:
            text = read()
        except EOFError:
            note("")
            return 0
        except KeyboardInterrupt:
            note("")
            if interrupted:
                return INTERRUPTED
            note("Ctrl-C again leaves; so does Ctrl-D.")
            interrupted = True
            continue
        if text.strip() in GOODBYES:
            return 0
        said = talk.say(text) if text.strip() else "done"
        if said == "leave":
            return INTERRUPTED
        interrupted = said == "stopped"


class Conversation:
    """Says things and waits for the answers; the link's thread prints what comes."""

    def __init__(
        self, place: Place, session_key: str, screen: Screen, *, shown_before: int, manner: Json
    ) -> None:
        self.failures = 0
        self.link = ChatLink(place, [ADMIN, WRITE], session_key, self)
        self._view = ChatView(session_key)
        self._screen = screen
        self._shown_before = shown_before
        self._manner = {name: value for name, value in manner.items() if value is not None}
        self._changed = threading.Condition()
        self._awaited: str | None = None

    # -- what the link tells -------------------------------------------------------------------

    def on_connected(self, history: Json, ask: Callable[[str, Json], Any], *, again: bool) -> None:
        with self._changed:
            if again:
                self._screen.show([Piece("(connected again)", "dim")])
                self._screen.show(self._view.catch_up(history))
                self._settle_awaited(history, ask)
            else:
                self._view.begin(history)
                shown = (history.get("messages") or [])[-self._shown_before :] if self._shown_before else []
                for message in shown:
                    self._screen.show(pieces_of(message))
            self._changed.notify_all()

    def _settle_awaited(self, history: Json, ask: Callable[[str, Json], Any]) -> None:
        """The turn may have ended while nobody listened."""
        run_id = self._awaited
        if run_id is None or run_id in run_ids_of(history):
            return
        waited = ask("agent.wait", {"runId": run_id, "timeoutMs": 0})
        if waited.get("status") == "ok":
            self._screen.show(self._view.end_quietly(run_id, Ended("ok")))
        elif waited.get("status") == "error":
            reason = printable(str(waited.get("error") or "it was stopped"))
            self._screen.show(self._view.end_quietly(run_id, Ended("error", reason)))

    def on_event(self, name: str, payload: Json) -> None:
        with self._changed:
            self._screen.show(self._view.event(name, payload))
            self._changed.notify_all()

    def on_lost(self, failure: GatewayFailure) -> None:
        with self._changed:
            if self.link.broken is None:
                self._screen.show([Piece("(the connection is lost; trying again …)", "dim")])
            self._changed.notify_all()

    # -- what the person says ------------------------------------------------------------------

    def say(self, text: str) -> Said:
        """Send a message and wait until its turn has ended."""
        run_id = str(uuid.uuid4())
        said = {"sessionKey": self.link.session_key, "message": text, "idempotencyKey": run_id}
        params = said | self._manner
        with self._changed:
            self._view.own_runs.add(run_id)
            self._awaited = run_id
        try:
            if self.link.ask("chat.send", params).get("aborted") is None:
                self._wait(run_id)
        except KeyboardInterrupt:
            return self._stop(run_id)
        except RequestRefused as refusal:
            if self.link.broken is not None:
                raise
            self.failures += 1
            self._screen.show([Piece(f"Not sent: {printable(refusal.message)}", "error")])
        finally:
            self._awaited = None
        return "done"

    def _wait(self, run_id: str) -> None:
        with self._changed:
            self._changed.wait_for(lambda: run_id in self._view.ended or self.link.broken is not None)
            ended = self._view.ended.get(run_id)
        if ended is None:
            assert self.link.broken is not None
            raise self.link.broken
        if ended.how == "error":
            self.failures += 1

    def _stop(self, run_id: str) -> Said:
        """Ctrl-C means the turn first; a second one while it is being stopped means this program."""
        try:
            params = {"sessionKey": self.link.session_key, "runId": run_id}
            stopped = self.link.ask("chat.abort", params, ABORT_S).get("aborted")
            with self._changed:
                self._changed.wait_for(lambda: run_id in self._view.ended, ABORT_S if stopped else 0)
        except KeyboardInterrupt:
            return "leave"
        except GatewayFailure as failure:
            self._screen.show(
                [Piece(f"The turn could not be stopped: {printable(failure.message)}", "error")]
            )
        return "stopped" if _by_hand() else "leave"
