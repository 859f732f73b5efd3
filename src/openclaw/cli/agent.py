"""`openclaw agent`: say something to an agent and print its reply (CLI-6).

The running gateway does the turn; where none runs, one is started in this process for
as long as the turn takes, and that is said on stderr.
"""

from __future__ import annotations

import signal
import sys
import threading
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Final

import click
from msgspec import Struct

from openclaw.cli.client import Deadline, GatewayClient, is_accepted
from openclaw.cli.failures import GatewayClosed, GatewayFailure, GatewayTimeout
from openclaw.cli.options import gateway_options, json_option
from openclaw.cli.place import Flags
from openclaw.cli.render import note, print_json, print_text
from openclaw.domain.terminaltext import one_line, printable
from openclaw.errors import InvalidRequest
from openclaw.protocol.scopes import ADMIN, WRITE

Json = dict[str, Any]

# The gateway ends the turn at its deadline; this much later its word must have arrived.
GRACE_S: Final = 30.0
ABORT_TIMEOUT_S: Final = 20.0  # longer than a gateway takes to stop a run at the most
CALL_S: Final = 10.0
MAIN: Final = "main"
VERBOSE_LEVELS: Final = ("on", "off", "full")


class Address(Struct, frozen=True):
    """Whom the message is for; without anything, the main session of the default agent."""

    session_key: str | None
    session_id: str | None
    agent_id: str | None
    to: str | None
    channel: str | None = None

    def params(self) -> Json:
        """For the wire. Raises InvalidRequest when it names two sessions, or a place without a person."""
        if sum(way is not None for way in (self.session_key, self.session_id, self.to)) > 1:
            raise InvalidRequest("--session-key, --session-id and --to exclude one another; give one of them")
        if self.channel is not None and self.to is None:
            raise InvalidRequest("--channel says where --to is; give --to TARGET with it")
        named = {
            "sessionKey": self.session_key,
            "sessionId": self.session_id,
            "agentId": self.agent_id,
            "to": self.to,
            "channel": self.channel,
        }
        return {name: value for name, value in named.items() if value is not None}


class Reply(Struct, frozen=True):
    """Where the reply goes beside the screen."""

    deliver: bool
    channel: str | None
    to: str | None
    account_id: str | None

    def params(self) -> Json:
        if not self.deliver:
            if self.channel or self.to or self.account_id:
                raise InvalidRequest("--reply-channel, --reply-to and --reply-account need --deliver")
            return {}
        route = {"replyChannel": self.channel, "replyTo": self.to, "replyAccountId": self.account_id}
        return {"deliver": True} | {name: value for name, value in route.items() if value is not None}


@click.command(short_help="Say something to an agent and print its reply.")
@click.option("-m", "--message", required=True, metavar="TEXT", help="What to say.")
@click.option("--session-key", metavar="KEY", help="The session to say it in.")
@click.option("--session-id", metavar="ID", help="The session, by its present id.")
@click.option("--agent", "agent_id", metavar="ID", help="This agent's main session.")
@click.option("--to", metavar="TARGET", help="The person or group whose session it is.")
@click.option("--channel", metavar="NAME", help="With --to: the channel on which they write.")
@click.option("--thinking", metavar="LEVEL", help="How hard to think, for this turn.")
@click.option(
    "--verbose",
    type=click.Choice(VERBOSE_LEVELS),
    help="How much the session tells of its tools, from this turn on.",
)
@click.option("--model", metavar="MODEL", help="Which model to use, for this turn.")
@click.option("--deliver", is_flag=True, help="Send the reply to its channel, too.")
@click.option("--reply-channel", metavar="NAME", help="With --deliver: the channel to send it on.")
@click.option("--reply-to", metavar="TARGET", help="With --deliver: whom to send it to.")
@click.option("--reply-account", metavar="ID", help="With --deliver: the account to send it from.")
@click.option(
    "--timeout",
    "timeout_s",
    type=click.IntRange(min=0),
    default=600,
    show_default=True,
    metavar="SECONDS",
    help="How long the turn may take; 0 is as long as the gateway allows.",
)
@click.option("--local", is_flag=True, help="Do not look for a gateway; run the turn in this process.")
@gateway_options
@json_option
@click.pass_context
def agent(
    ctx: click.Context,
    message: str,
    session_key: str | None,
    session_id: str | None,
    agent_id: str | None,
    to: str | None,
    channel: str | None,
    thinking: str | None,
    verbose: str | None,
    model: str | None,
    deliver: bool,
    reply_channel: str | None,
    reply_to: str | None,
    reply_account: str | None,
    timeout_s: int,
    local: bool,
    flags: Flags,
    as_json: bool,
) -> None:
    """Send a message to an agent, wait for its turn to end and print the reply.

    Without an address it goes to the main session of the default agent. Ctrl-C stops the turn. Where no
    gateway runs, the turn runs in this process.

    \b
    Examples:
      openclaw agent -m "hello"
      openclaw agent --agent work -m "What is open?" --timeout 60
      openclaw agent --session-key agent:main:notes -m "Summarise" --json
      openclaw agent -m "Report" --deliver --reply-channel telegram --reply-to 4711
    """
    address = Address(session_key, session_id, agent_id, to, channel)
    given = {"thinking": thinking, "model": model, "timeout": timeout_s or None}
    params: Json = {
        "message": message,
        "idempotencyKey": str(uuid.uuid4()),
        **address.params(),
        **{name: value for name, value in given.items() if value is not None},
        **Reply(deliver, reply_channel, reply_to, reply_account).params(),
    }
    from openclaw.cli.embedded import reach_gateway

    wait_s = timeout_s + GRACE_S if timeout_s else None
    inside: list[str] = []
    with reach_gateway(flags, [ADMIN, WRITE], local=local, on_embedded=inside.append) as client:
        for reason in inside:
            note(f"{reason}; the turn runs in this process.")
        if verbose is not None:
            _set_verbose(client, address, verbose)
        finished = _Turn(client, params, quiet=as_json).run(wait_s)
    finished |= {"local": True} if inside else {}
    if as_json:
        print_json(finished)
    else:
        _print_reply(finished)
    if finished.get("status") != "ok":
        ctx.exit(1)


def _set_verbose(client: GatewayClient, address: Address, level: str) -> None:
    """A level belongs to the session, so that its next turns keep it."""
    if address.session_id is not None:
        found = client.call("sessions.resolve", {"sessionId": address.session_id}, CALL_S)
        key = str(found["key"])
    else:
        key = address.session_key or MAIN
    params: Json = {"key": key, "verboseLevel": level}
    params |= {"agentId": address.agent_id} if address.agent_id is not None else {}
    client.call("sessions.patch", params, CALL_S)


@contextmanager
def _interrupt_held() -> Iterator[None]:
    """Let Ctrl-C take effect at the end of the block instead of inside it."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    pressed: list[int] = []
    before = signal.signal(signal.SIGINT, lambda number, _frame: pressed.append(number))
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)
    if pressed:
        raise KeyboardInterrupt


class _Turn:
    """One request that is answered twice, and can be stopped in between."""

    def __init__(self, client: GatewayClient, params: Json, *, quiet: bool) -> None:
        self._client = client
        self._params = params
        self._quiet = quiet
        self._request_id: str | None = None
        self._accepted: Json = {}

    def run(self, timeout_s: float | None) -> Json:
        try:
            finished = self._wait(Deadline(timeout_s))
        except KeyboardInterrupt:
            self._stop()
            raise
        except (GatewayClosed, GatewayTimeout) as failure:
            if self._accepted:
                raise type(failure)(f"{failure.message}; {self._how_to_go_on()}") from None
            raise
        return finished if isinstance(finished, dict) else {}

    def _wait(self, deadline: Deadline) -> Any:
        with _interrupt_held():  # what was sent must be known, or it could not be stopped
            self._request_id = self._client.post("agent", self._params)
        payload = self._client.answer(self._request_id, "agent", deadline)
        if not is_accepted(payload):
            return payload
        self._on_accepted(payload)
        return self._client.answer(self._request_id, "agent", deadline)

    def _on_accepted(self, accepted: Json) -> None:
        self._accepted = accepted
        if not self._quiet and sys.stderr.isatty():
            note(f"{one_line(str(accepted.get('sessionKey')))}: accepted, waiting for the reply …")

    def _stop(self) -> None:
        """Ctrl-C means the turn, not only this process."""
        try:
            if self._request_id is not None and not self._accepted:
                # The turn may run already while the word of it is still on its way.
                self._accepted = self._client.answer(self._request_id, "agent", Deadline(ABORT_TIMEOUT_S))
            key = self._accepted.get("sessionKey")
            if key is None:
                note("Interrupted before the message was sent.")
                return
            request = {"sessionKey": key, "runId": self._params["idempotencyKey"]}
            stopped = self._client.call("chat.abort", request, ABORT_TIMEOUT_S)
        except GatewayFailure as failure:
            note(f"The turn could not be stopped: {printable(failure.message)}")
        else:
            note("Stopped the turn." if stopped.get("aborted") else "The turn had ended already.")

    def _how_to_go_on(self) -> str:
        run_id = self._accepted.get("runId")
        wait = f"""openclaw gateway call agent.wait --params '{{"runId":"{run_id}"}}'"""
        return f"the message was accepted and its turn goes on; ask for it with: {wait}"


def _print_reply(finished: Json) -> None:
    result = finished.get("result") or {}
    texts = [str(payload["text"]) for payload in result.get("payloads") or [] if payload.get("text")]
    for text in texts:
        print_text(printable(text))
    _tell_delivery(result.get("deliveryStatus") or {})
    if finished.get("status") == "ok":
        if not texts and finished.get("summary") == "yielded":
            note(
                "The turn waits for its helpers; their results come into the session and are answered there."
            )
        elif not texts:
            note("The turn ended without a reply.")
        return
    word = "ran out of time" if finished.get("status") == "timeout" else "failed"
    note(f"openclaw: the turn {word}: {printable(str(finished.get('summary') or 'no reason given'))}")


def _tell_delivery(delivery: Json) -> None:
    """What became of --deliver, where it is not simply sent."""
    status = delivery.get("status")
    if not delivery.get("requested") or status == "sent":
        return
    words = {
        "queued": "The reply waits in the outbox to be sent: openclaw outbox list",
        "suppressed": "The reply was not sent to a channel",
        "failed": "The reply could not be sent",
        "partial_failed": "Parts of the reply could not be sent",
    }
    reason = delivery.get("reason") or delivery.get("error")
    told = words.get(str(status), f"Delivery: {one_line(str(status))}")
    note(f"{told}: {one_line(str(reason))}" if reason else told)
