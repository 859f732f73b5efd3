"""`openclaw sessions rename | archive | unarchive | delete | restore`: change sessions, each with its undo.

The gateway does the work; these commands only name the session, ask and tell (OWN-4).
"""

from __future__ import annotations

import os
import shlex
import sys
from collections.abc import Sequence
from typing import Any

import click

from openclaw.cli.client import GatewayClient
from openclaw.cli.failures import RequestRefused
from openclaw.cli.naming import Name, find_row
from openclaw.cli.options import gateway_options, json_option, timeout_option
from openclaw.cli.place import Flags, find_place
from openclaw.cli.render import note, print_json, say
from openclaw.domain.terminaltext import counted, one_line
from openclaw.errors import InvalidRequest
from openclaw.protocol.scopes import ADMIN, WRITE

Json = dict[str, Any]

_key = click.argument("key", metavar="KEY")
_keys = click.argument("keys", nargs=-1, required=True, metavar="KEY...")
_agent = click.option("--agent", "agent_id", metavar="ID", help="Of this agent, when the key names none.")


@click.command(short_help="Give a session a label to name it by.")
@_key
@click.argument("label", required=False)
@click.option("--clear", is_flag=True, help="Take the label away.")
@_agent
@gateway_options
@timeout_option
@json_option
def rename(
    key: str,
    label: str | None,
    clear: bool,
    agent_id: str | None,
    flags: Flags,
    timeout_s: float,
    as_json: bool,
) -> None:
    """Give a session a label, by which it can be named from then on.

    \b
    Examples:
      openclaw sessions rename main "Daily notes"
      openclaw sessions rename "Daily notes" --clear
    """
    if (label is None) != clear:
        raise InvalidRequest("give the session a LABEL, or take it away with --clear")
    if label is not None and not label.strip():
        raise InvalidRequest("a label cannot be empty; take it away with --clear")
    with _client(flags, WRITE, timeout_s) as client:
        row = find_row(client, Name(key, agent_id), timeout_s)
        done = client.call("sessions.patch", {"key": row["key"], "label": label}, timeout_s)
    if as_json:
        print_json({"ok": True, "key": done["key"], "label": done["entry"].get("label")})
    elif label is None:
        say(f"{one_line(done['key'])} has no label now.")
    else:
        say(f"{one_line(done['key'])} is called {one_line(str(done['entry'].get('label')))!r} now.")


@click.command(short_help="Put sessions away; nothing of them is lost.")
@_keys
@_agent
@gateway_options
@timeout_option
@json_option
def archive(
    keys: tuple[str, ...], agent_id: str | None, flags: Flags, timeout_s: float, as_json: bool
) -> None:
    """Put sessions away: lists no longer show them, and nothing of them is lost.

    \b
    Examples:
      openclaw sessions archive agent:main:old-project
      openclaw sessions archive one two three --json
    """
    _put_away(keys, agent_id, flags, timeout_s, as_json, away=True)


@click.command()
@_keys
@_agent
@gateway_options
@timeout_option
@json_option
def unarchive(
    keys: tuple[str, ...], agent_id: str | None, flags: Flags, timeout_s: float, as_json: bool
) -> None:
    """Take sessions back into the list.

    \b
    Example:
      openclaw sessions unarchive agent:main:old-project
    """
    _put_away(keys, agent_id, flags, timeout_s, as_json, away=False)


def _put_away(
    keys: Sequence[str], agent_id: str | None, flags: Flags, timeout_s: float, as_json: bool, *, away: bool
) -> None:
    done: list[Json] = []
    with _client(flags, WRITE, timeout_s) as client:
        rows = _find_all(client, keys, agent_id, timeout_s)
        for row in rows:
            # The id guards against a reset in between: what is put away is what was looked at.
            params = {"key": row["key"], "archived": away, "expectedSessionId": row["sessionId"]}
            entry = client.call("sessions.patch", params, timeout_s)["entry"]
            if (entry.get("archivedAt") is not None) is not away:
                raise RequestRefused(f"the gateway did not confirm the change of {row['key']}; look again")
            done.append({"key": row["key"], "archived": away})
    if as_json:
        print_json({"ok": True, "sessions": done})
        return
    for item in done:
        say(f"{one_line(item['key'])} {'archived' if away else 'is back in the list'}")
    if away:
        note(f"Take {_it(done)} back with: openclaw sessions unarchive {_typed(done)}")


@click.command()
@_keys
@_agent
@click.option("--yes", is_flag=True, help="Do not ask.")
@gateway_options
@timeout_option
@json_option
def delete(
    keys: tuple[str, ...],
    agent_id: str | None,
    yes: bool,
    flags: Flags,
    timeout_s: float,
    as_json: bool,
) -> None:
    """Delete sessions. What runs in them is stopped first, helpers included.

    A deleted session can be restored for a while; `sessions erase` is for what must be gone at once.

    \b
    Examples:
      openclaw sessions delete agent:main:scratch
      openclaw sessions delete one two --yes --json
    """
    done: list[Json] = []
    with _client(flags, ADMIN, timeout_s) as client:
        rows = _find_all(client, keys, agent_id, timeout_s)
        _confirm(yes, rows)
        for row in rows:
            params = {"key": row["key"], "expectedSessionId": row["sessionId"]}
            answer = client.call("sessions.delete", params, timeout_s)
            told = {"key": row["key"], "deleted": bool(answer.get("deleted"))}
            done.append(told | {"archived": answer.get("archived") or []})
    if as_json:
        print_json({"ok": all(item["deleted"] for item in done), "sessions": done})
        return
    for item in done:
        say(f"{one_line(item['key'])} {'deleted' if item['deleted'] else 'was gone already'}")
    gone = [item for item in done if item["deleted"]]
    for item in gone:
        note(f"Undo with: openclaw sessions restore {shlex.quote(item['key'])}")


def _confirm(yes: bool, rows: Sequence[Json]) -> None:
    if yes:
        return
    if not sys.stdin.isatty():
        raise InvalidRequest("deleting asks first, and nobody is there to answer; add --yes to go ahead")
    for row in rows:
        label = f"  ({one_line(str(row['label']))})" if row.get("label") else ""
        note(f"  {one_line(str(row['key']))}{label}")
    click.confirm(f"Delete {counted(len(rows), 'session')}?", abort=True, err=True)


@click.command()
@_key
@_agent
@gateway_options
@timeout_option
@json_option
def restore(key: str, agent_id: str | None, flags: Flags, timeout_s: float, as_json: bool) -> None:
    """Take back the last reset of a session, or its deletion.

    The key points at its earlier conversation again. What was said since the reset is kept, and can be
    read by its session id.

    \b
    Examples:
      openclaw sessions restore main
      openclaw sessions restore agent:main:scratch
    """
    params = {"key": key} | ({"agentId": agent_id} if agent_id else {})
    with _client(flags, ADMIN, timeout_s) as client:
        done: Json = client.call("sessions.restore", params, timeout_s)
    if as_json:
        print_json(done)
        return
    entry = done.get("entry") or {}
    session_id = entry.get("sessionId") or done.get("sessionId")
    at = f" ({one_line(str(session_id))})" if session_id else ""
    how = "is there again" if done.get("restored") == "delete" else "is back at its earlier conversation"
    say(f"{one_line(str(done.get('key') or key))} {how}{at}.")


# -- shared ----------------------------------------------------------------------------------------


def _client(flags: Flags, scope: str, timeout_s: float) -> GatewayClient:
    return GatewayClient(find_place(flags, os.environ), [scope], connect_timeout_s=timeout_s)


def _find_all(
    client: GatewayClient, keys: Sequence[str], agent_id: str | None, timeout_s: float
) -> list[Json]:
    """Every session is found before the first is touched; one that is named twice counts once."""
    rows = (find_row(client, Name(key, agent_id), timeout_s) for key in keys)
    return list({str(row["key"]): row for row in rows}.values())


def _it(done: Sequence[Json]) -> str:
    return "it" if len(done) == 1 else "them"


def _typed(done: Sequence[Json]) -> str:
    return " ".join(shlex.quote(str(item["key"])) for item in done)
