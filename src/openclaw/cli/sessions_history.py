"""`openclaw sessions history`: read a conversation back, and on as it goes."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable
from typing import Any

import click

from openclaw.cli.chat_link import ChatLink
from openclaw.cli.chat_view import ChatView
from openclaw.cli.client import GatewayClient
from openclaw.cli.conversation import Piece, pieces_of
from openclaw.cli.failures import GatewayFailure
from openclaw.cli.naming import Name, find_row
from openclaw.cli.options import gateway_options, json_option, positive_number, timeout_option
from openclaw.cli.place import Flags, find_place
from openclaw.cli.render import note, print_json, say
from openclaw.cli.screen import Screen
from openclaw.protocol.messages import marks_of
from openclaw.protocol.scopes import READ

Json = dict[str, Any]

PAGE = 200
DEFAULT_LIMIT = "50"


@click.command(short_help="Show what was said in a session, oldest first.")
@click.argument("key", metavar="KEY")
@click.option("--agent", "agent_id", metavar="ID", help="Of this agent, when the key names none.")
@click.option(
    "--limit", default=DEFAULT_LIMIT, show_default=True, metavar="N|all", help="At most the last N messages."
)
@click.option("--before", metavar="NUMBER", help="Only messages before #NUMBER.")
@click.option("--follow", is_flag=True, help="Stay, and show what is said from now on, until Ctrl-C.")
@gateway_options
@timeout_option
@json_option
def history(
    key: str,
    agent_id: str | None,
    limit: str,
    before: str | None,
    follow: bool,
    flags: Flags,
    timeout_s: float,
    as_json: bool,
) -> None:
    """Show what was said in a session, oldest first; tool calls are one line each.

    With --json and --follow each message is one line of JSON.

    \b
    Examples:
      openclaw sessions history main
      openclaw sessions history main --limit 20 --before 120
      openclaw sessions history main --follow
      openclaw sessions history main --limit all --json | jq -r '.messages[].role'
    """
    wanted = None if limit == "all" else positive_number(limit, "--limit", 'messages (or "all")')
    end = None if before is None else positive_number(before, "--before", "a message, as #NUMBER shows it")
    place = find_place(flags, os.environ)
    with GatewayClient(place, [READ], connect_timeout_s=timeout_s) as client:
        session_key = str(find_row(client, Name(key, agent_id), timeout_s)["key"])
        page = fetch_messages(client, session_key, wanted, end, timeout_s)
    _print(page, as_json=as_json, one_by_one=follow)
    if follow:
        follower = _Follower(page, as_json=as_json)
        link = follower.link = ChatLink(place, [READ], session_key, follower)
        link.open()
        try:
            follower.wait()
        finally:
            link.close()


def fetch_messages(
    client: GatewayClient, session_key: str, limit: int | None, before: int | None, timeout_s: float
) -> Json:
    """The last `limit` messages before number `before`, oldest first, page by page."""
    gathered: dict[int, Json] = {}
    offset, first = 0, None
    while True:
        params = {"sessionKey": session_key, "limit": PAGE, "offset": offset}
        page: Json = client.call("chat.history", params, timeout_s)
        first = first or page
        for message in page["messages"]:
            seq = _seq(message)
            if before is None or seq < before:
                gathered[seq] = message
        offset = page.get("nextOffset") or offset + PAGE
        if not page.get("hasMore") or (limit is not None and len(gathered) >= limit):
            break
    numbers = sorted(gathered)
    kept = numbers if limit is None else numbers[-limit:]
    return {
        "sessionKey": page["sessionKey"],
        "sessionId": first.get("sessionId"),
        "messages": [gathered[number] for number in kept],
        "hasMore": bool(page.get("hasMore")) or len(kept) < len(numbers),
        "totalMessages": first.get("totalMessages"),
    }


def _print(page: Json, *, as_json: bool, one_by_one: bool) -> None:
    messages = page["messages"]
    if as_json and one_by_one:
        for message in messages:
            print_json(message, pretty=False)
        return
    if as_json:
        print_json(page)
        return
    screen = Screen()
    for number, message in enumerate(messages):
        pieces = pieces_of(message)
        if number and pieces and message.get("role") in ("user", "assistant") and pieces[0].style != "dim":
            say()
        screen.show(pieces)
    if not messages:
        say("Nothing was said here yet.")
    elif page["hasMore"]:
        oldest = marks_of(messages[0]).get("seq")
        note(f"There is more: add --before {oldest}, or --limit all.")


class _Follower:
    """Prints what is said from now on, each message once."""

    link: ChatLink

    def __init__(self, page: Json, *, as_json: bool) -> None:
        self._view = ChatView(str(page["sessionKey"]))
        self._page = page
        self._as_json = as_json
        self._screen = Screen()
        self._printed = {_id_of(message) for message in page["messages"]}
        self._end = max((_seq(message) for message in page["messages"]), default=0)
        self._over = threading.Event()

    def wait(self) -> None:
        """Until Ctrl-C, or until the connection does not come back."""
        self._over.wait()
        if self.link.broken is not None:
            raise self.link.broken

    def on_connected(self, history: Json, ask: Callable[[str, Json], Any], *, again: bool) -> None:
        if self._as_json:
            for message in history.get("messages") or []:
                # What is older than the first page was not asked for.
                if (
                    not again
                    and history.get("sessionId") == self._page["sessionId"]
                    and _seq(message) <= self._end
                ):
                    self._printed.add(_id_of(message))
                self._print_once(message)
            return
        if not again:
            self._view.begin(self._page)
        self._screen.show(self._view.catch_up(history))

    def on_event(self, name: str, payload: Json) -> None:
        if not self._as_json:
            self._screen.show(self._view.event(name, payload))
        elif name == "session.message" and payload.get("sessionKey") == self._view.session_key:
            self._print_once(payload.get("message") or {})

    def on_lost(self, failure: GatewayFailure) -> None:
        if self.link.broken is not None:
            self._over.set()
        elif not self._as_json:
            self._screen.show([Piece("(the connection is lost; trying again …)", "dim")])

    def _print_once(self, message: Json) -> None:
        if _id_of(message) not in self._printed:
            self._printed.add(_id_of(message))
            print_json(message, pretty=False)


def _seq(message: Json) -> int:
    return int(marks_of(message).get("seq") or 0)


def _id_of(message: Json) -> tuple[object, object]:
    marks = marks_of(message)
    return marks.get("id"), marks.get("seq")
