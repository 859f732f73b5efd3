"""`openclaw agent`: say something to an agent and print its reply (CLI-6)."""

from __future__ import annotations

import os
import sys
import uuid
from typing import Any, Final

import click

from openclaw.cli.client import Deadline, GatewayClient, is_accepted
from openclaw.cli.failures import GatewayClosed, GatewayFailure, GatewayTimeout
from openclaw.cli.options import gateway_options, json_option
from openclaw.cli.place import Flags, find_place
from openclaw.cli.render import note, print_json, say
from openclaw.cli.text import one_line, printable
from openclaw.errors import InvalidRequest
from openclaw.protocol.scopes import ADMIN, WRITE

Json = dict[str, Any]

# The gateway ends the turn at its deadline; this much later its word must have arrived.
GRACE_S: Final = 30.0
ABORT_TIMEOUT_S: Final = 5.0


@click.command(short_help="Say something to an agent and print its reply.")
@click.option("-m", "--message", required=True, metavar="TEXT", help="What to say.")
@click.option("--session-key", metavar="KEY", help="The session to say it in.")
@click.option("--session-id", metavar="ID", help="The session, by its present id.")
@click.option("--agent", "agent_id", metavar="ID", help="This agent's main session.")
@click.option("--to", metavar="TARGET", help="The person or group whose session it is.")
@click.option("--thinking", metavar="LEVEL", help="How hard to think, for this turn.")
@click.option("--model", metavar="MODEL", help="Which model to use, for this turn.")
@click.option(
    "--timeout",
    "timeout_s",
    type=click.IntRange(min=0),
    default=600,
    show_default=True,
    metavar="SECONDS",
    help="How long the turn may take; 0 is as long as the gateway allows.",
)
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
    thinking: str | None,
    model: str | None,
    timeout_s: int,
    flags: Flags,
    as_json: bool,
) -> None:
    """Send a message to an agent, wait for its turn to end and print the reply.

    Without an address it goes to the main session of the default agent. Ctrl-C stops the turn.

    \b
    Examples:
      openclaw agent -m "hello"
      openclaw agent --agent work -m "What is open?" --timeout 60
      openclaw agent --session-key agent:main:notes -m "Summarise" --json
    """
    if sum(way is not None for way in (session_key, session_id, to)) > 1:
        raise InvalidRequest("--session-key, --session-id and --to exclude one another; give one of them")
    asked: Json = {
        "message": message,
        "idempotencyKey": str(uuid.uuid4()),
        "sessionKey": session_key,
        "sessionId": session_id,
        "agentId": agent_id,
        "to": to,
        "thinking": thinking,
        "model": model,
        "timeout": timeout_s or None,
    }
    params = {name: value for name, value in asked.items() if value is not None}
    with GatewayClient(find_place(flags, os.environ), [ADMIN, WRITE]) as client:
        finished = _Turn(client, params, quiet=as_json).run(timeout_s + GRACE_S if timeout_s else None)
    if as_json:
        print_json(finished)
    else:
        _print_reply(finished)
    if finished.get("status") != "ok":
        ctx.exit(1)


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
        say(printable(text))
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
