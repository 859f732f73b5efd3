"""`openclaw logs`: what the gateway wrote down; the running one is asked, its files are read without it.

Both give the same lines with the same cursor, so that following goes on when the
gateway is restarted and when its files are rotated.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from datetime import datetime
from time import sleep
from typing import Any, Final

import click
import msgspec

from openclaw.cli.client import GatewayClient
from openclaw.cli.failures import GatewayClosed, GatewayTimeout, GatewayUnreachable
from openclaw.cli.options import gateway_options, json_option, timeout_option
from openclaw.cli.place import URL_NAME, Flags, Place, find_place
from openclaw.cli.render import note, print_text
from openclaw.domain.terminaltext import one_line, printable
from openclaw.errors import InvalidRequest
from openclaw.protocol.scopes import ADMIN

Json = dict[str, Any]
LEVELS: Final = ("debug", "info", "warning", "error")
_RANKS: Final = {name: rank for rank, name in enumerate(LEVELS)} | {"warn": 2, "critical": 3, "trace": 0}
POLL_S = 0.5
PAGE_LINES = 1000


@click.command()
@click.option("-f", "--follow", is_flag=True, help="Go on with new lines until Ctrl-C.")
@click.option(
    "--limit",
    type=click.IntRange(1, 5000),
    default=200,
    show_default=True,
    metavar="N",
    help="So many lines.",
)
@click.option("--level", type=click.Choice(LEVELS), help="Only lines of this level and above.")
@click.option("--events", is_flag=True, help="Starts, stops, crashes and recoveries instead of lines.")
@gateway_options
@timeout_option
@json_option
def logs(
    follow: bool,
    limit: int,
    level: str | None,
    events: bool,
    flags: Flags,
    timeout_s: float,
    as_json: bool,
) -> None:
    """Show the newest lines of the gateway's log. Secrets are masked in it.

    \b
    Examples:
      openclaw logs
      openclaw logs -f --level warning
      openclaw logs --limit 1000 --json | jq .message
      openclaw logs --events
    """
    if events:
        if follow or level is not None:
            raise InvalidRequest("--events goes with --limit and --json only")
        from openclaw.cli.logs_events import show_events

        show_events(flags, timeout_s, limit, as_json)
        return
    tail = Tail(flags, timeout_s)
    show = _shower(level, as_json)
    try:
        page = tail.read(limit, None)
        _show_page(page, show)
        if not page["lines"] and not as_json:
            note("Nothing is logged yet.")
        while follow:
            page = tail.read(PAGE_LINES, page["cursor"])
            if page.get("reset"):
                note("Lines were lost: the files that held them are gone.")
            _show_page(page, show)
            if not page.get("truncated"):
                sleep(POLL_S)
    except KeyboardInterrupt:
        raise click.Abort from None
    finally:
        tail.close()


class Tail:
    """Pages of the log from whoever can give them.

    The gateway is looked for anew at each connection: its first start writes the token that lets us in.
    """

    def __init__(self, flags: Flags, timeout_s: float) -> None:
        self._flags = flags
        self._timeout_s = timeout_s
        self._client: GatewayClient | None = None

    def read(self, limit: int, cursor: int | None) -> Json:
        """The newest lines, or those after a cursor. A gateway that was named is never passed over."""
        try:
            return self._ask({"limit": limit} | ({} if cursor is None else {"cursor": cursor}))
        except (GatewayUnreachable, GatewayClosed, GatewayTimeout):
            self.close()
            if _is_named(self._flags) or self._place().remote:
                raise
            return _read_files(limit, cursor)

    def _ask(self, params: Json) -> Json:
        if self._client is None:
            client = GatewayClient(self._place(), [ADMIN], connect_timeout_s=self._timeout_s)
            self._client = client.__enter__()
        answer: Json = self._client.call("logs.tail", params, self._timeout_s)
        return answer

    def _place(self) -> Place:
        return find_place(self._flags, os.environ, tolerate_invalid=True)

    def close(self) -> None:
        if self._client is not None:
            self._client.close()
            self._client = None


def _is_named(flags: Flags) -> bool:
    return flags.url is not None or bool(os.environ.get(URL_NAME, "").strip())


def _read_files(limit: int, cursor: int | None) -> Json:
    from openclaw.config.load import state_dir
    from openclaw.gateway.logtail import read_page

    folder = state_dir(os.environ) / "logs"
    if cursor is None and not folder.is_dir():
        raise InvalidRequest(f"no gateway runs, and {folder} has no log; a gateway writes one when it runs")
    page: Json = msgspec.to_builtins(read_page(folder, limit=limit, cursor=cursor))
    return page


def _show_page(page: Json, show: Callable[[str], None]) -> None:
    for line in page["lines"]:
        show(line)


def _shower(level: str | None, as_json: bool) -> Callable[[str], None]:
    least = _RANKS[level] if level is not None else 0

    def show(line: str) -> None:
        record = _parsed(line)
        if record is not None and _RANKS.get(str(record.get("level")).lower(), len(LEVELS)) < least:
            return
        if as_json:
            click.echo(line if record is not None else msgspec.json.encode({"message": line}).decode())
        else:
            print_text(printable(line) if record is None else line_for_people(record))

    return show


def _parsed(line: str) -> Json | None:
    try:
        record = msgspec.json.decode(line)
    except msgspec.DecodeError:
        return None
    return record if isinstance(record, dict) else None


def line_for_people(record: Json) -> str:
    """One record: the time on this machine's clock, the level, who says it, and what."""
    text = str(record.get("time") or "")
    try:
        at = datetime.fromisoformat(text.replace("Z", "+00:00")).astimezone().strftime("%Y-%m-%d %H:%M:%S")
    except ValueError:
        at = text
    level = one_line(str(record.get("level") or "-"))
    name = one_line(str(record.get("name") or ""))
    return f"{one_line(at)} {level:7} {name}: {printable(str(record.get('message') or ''))}"
