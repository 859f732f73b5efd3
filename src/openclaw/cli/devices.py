"""`openclaw devices`: who is paired, who waits, and the owner's word about both."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Sequence
from typing import Any

import click

from openclaw.cli.client import GatewayClient
from openclaw.cli.options import gateway_options, json_option, timeout_option
from openclaw.cli.place import Flags, find_place
from openclaw.cli.render import Column, print_json, print_table, say
from openclaw.domain.terminaltext import age, one_line
from openclaw.errors import InvalidRequest
from openclaw.protocol.scopes import ADMIN

Json = dict[str, Any]
SHOWN_ID = 12  # of a device id; enough to know it by, and to name it by

PENDING = (
    Column("Request", fold=True),
    Column("Device"),
    Column("Asks for", fold=True),
    Column("Client", fold=True),
    Column("From"),
    Column("Age", right=True),
)
PAIRED = (
    Column("Device"),
    Column("Name", fold=True),
    Column("Client", fold=True),
    Column("Allowed", fold=True),
    Column("Approved"),
    Column("Last seen", right=True),
    Column("Now"),
)


@click.group(short_help="The devices that may connect: approve, reject, revoke.")
def devices() -> None:
    """List the devices that may connect, and approve, reject or revoke them.

    A client on the gateway's own machine that shows the secret is paired by itself; one from another
    machine waits here until it is approved.

    \b
    Examples:
      openclaw devices list
      openclaw devices approve --latest
      openclaw devices revoke 4b5c5232fc6e
    """


@devices.command("list", short_help="List waiting requests and paired devices.")
@gateway_options
@timeout_option
@json_option
def list_devices(flags: Flags, timeout_s: float, as_json: bool) -> None:
    """List requests that wait for approval, and the devices that are paired.

    \b
    Examples:
      openclaw devices list
      openclaw devices list --json | jq '.pending[].requestId'
    """
    listed = _with_gateway(flags, timeout_s, lambda client: _fetch(client, timeout_s))
    if as_json:
        print_json(listed)
    else:
        _print(listed)


@devices.command()
@click.argument("request_id", required=False)
@click.option("--latest", is_flag=True, help="The request that came last.")
@gateway_options
@timeout_option
@json_option
def approve(request_id: str | None, latest: bool, flags: Flags, timeout_s: float, as_json: bool) -> None:
    """Approve a device that waits: it may come back and connect.

    The beginning of an id is enough where it is the only one.

    \b
    Examples:
      openclaw devices approve 6f1c2e0a
      openclaw devices approve --latest
    """
    if (request_id is None) != latest:
        raise InvalidRequest("name a request, or use --latest; `openclaw devices list` shows what waits")

    def act(client: GatewayClient) -> Json:
        pending = _fetch(client, timeout_s)["pending"]
        chosen = (
            _latest(pending) if request_id is None else _choose(pending, "requestId", request_id, "request")
        )
        return _call(client, "device.pair.approve", {"requestId": chosen["requestId"]}, timeout_s)

    answer = _with_gateway(flags, timeout_s, act)
    if as_json:
        print_json(answer)
    else:
        device = answer["device"]
        say(f"Approved {_short(device['deviceId'])} ({_client(device)}) for: {_rights(device)}")


@devices.command()
@click.argument("request_id")
@gateway_options
@timeout_option
@json_option
def reject(request_id: str, flags: Flags, timeout_s: float, as_json: bool) -> None:
    """Reject a device that waits. It may ask again.

    \b
    Examples:
      openclaw devices reject 6f1c2e0a
    """

    def act(client: GatewayClient) -> Json:
        chosen = _choose(_fetch(client, timeout_s)["pending"], "requestId", request_id, "request")
        return _call(client, "device.pair.reject", {"requestId": chosen["requestId"]}, timeout_s)

    answer = _with_gateway(flags, timeout_s, act)
    if as_json:
        print_json(answer)
    else:
        say(f"Rejected the request of {_short(answer['deviceId'])}")


@devices.command(short_help="Take the access of a device away, at once.")
@click.argument("device_id")
@click.option("--tokens", "tokens_only", is_flag=True, help="Only end its tokens; it stays paired.")
@click.option(
    "--role", type=click.Choice(["operator", "node"]), help="With --tokens: of this role. Default: operator."
)
@gateway_options
@timeout_option
@json_option
def revoke(
    device_id: str, tokens_only: bool, role: str | None, flags: Flags, timeout_s: float, as_json: bool
) -> None:
    """Take a device's access away: its connections close at once, its tokens end.

    A device that knows the gateway's secret may come back: on this machine by itself, from another
    one only when it is approved again. To shut it out for good, change the secret, too.

    \b
    Examples:
      openclaw devices revoke 4b5c5232fc6e
      openclaw devices revoke 4b5c5232fc6e --tokens --role node
    """
    if role is not None and not tokens_only:
        raise InvalidRequest("--role narrows --tokens; without it the whole device is revoked")

    def act(client: GatewayClient) -> Json:
        chosen = _choose(_fetch(client, timeout_s)["paired"], "deviceId", device_id, "device")
        params = {"deviceId": chosen["deviceId"]}
        if tokens_only:
            return _call(client, "device.token.revoke", params | {"role": role or "operator"}, timeout_s)
        return _call(client, "device.pair.remove", params, timeout_s)

    answer = _with_gateway(flags, timeout_s, act)
    if as_json:
        print_json(answer)
    else:
        what = "the tokens of " if tokens_only else ""
        say(f"Revoked {what}{_short(answer['deviceId'])}")


# -- asking ----------------------------------------------------------------------------------------


def _with_gateway(flags: Flags, timeout_s: float, act: Callable[[GatewayClient], Json]) -> Json:
    # An approver gives away only what it holds itself, so the owner comes with all of it.
    with GatewayClient(find_place(flags, os.environ), [ADMIN], connect_timeout_s=timeout_s) as client:
        return act(client)


def _fetch(client: GatewayClient, timeout_s: float) -> Json:
    return _call(client, "device.pair.list", {}, timeout_s)


def _call(client: GatewayClient, method: str, params: Json, timeout_s: float) -> Json:
    answer: Json = client.call(method, params, timeout_s)
    return answer


def _latest(pending: Sequence[Json]) -> Json:
    if not pending:
        raise InvalidRequest("no device waits for approval; let it connect once, then try again")
    return max(pending, key=lambda request: int(request["ts"]))


def _choose(rows: Sequence[Json], field: str, prefix: str, noun: str) -> Json:
    """The only row whose id is, or begins with, what was typed."""
    typed = prefix.strip().lower()
    found = [row for row in rows if str(row[field]).lower() == typed] or [
        row for row in rows if typed and str(row[field]).lower().startswith(typed)
    ]
    if len(found) == 1:
        return found[0]
    many = f"{len(found)} {noun}s begin with" if found else f"no {noun} begins with"
    raise InvalidRequest(f"{many} {prefix[:80]!r}; `openclaw devices list` shows them")


# -- showing ---------------------------------------------------------------------------------------


def _print(listed: Json) -> None:
    now_ms = time.time_ns() // 1_000_000
    pending, paired = listed["pending"], listed["paired"]
    if pending:
        say("Waiting for approval (openclaw devices approve REQUEST)")
        print_table(PENDING, [_pending_cells(row, now_ms) for row in pending])
        say()
    if paired:
        say("Paired")
        print_table(PAIRED, [_paired_cells(row, now_ms) for row in paired])
    elif not pending:
        say("No devices yet. A client that signs in with a device shows up here.")


def _pending_cells(row: Json, now_ms: int) -> list[str]:
    reason = "" if row["reason"] == "not-paired" else f" ({row['reason']})"
    return [
        row["requestId"], _short(row["deviceId"]), _rights(row) + reason, _client(row), row["remoteIp"],
        age(now_ms - row["ts"]),
    ]  # fmt: skip


def _paired_cells(row: Json, now_ms: int) -> list[str]:
    return [
        _short(row["deviceId"]),
        row.get("displayName") or "-",
        _client(row),
        _rights(row),
        "by the owner" if row["approvedVia"] == "owner" else "by itself",
        age(now_ms - row["lastSeenAtMs"]),
        "connected" if row["connected"] else "-",
    ]


def _short(device_id: str) -> str:
    return one_line(device_id)[:SHOWN_ID]


def _client(row: Json) -> str:
    return one_line(f"{row['clientId']} on {row['platform']}")


def _rights(row: Json) -> str:
    scopes = [str(scope).removeprefix("operator.") for scope in row["scopes"]]
    roles = [str(role) for role in row["roles"] if role != "operator"]
    return one_line(", ".join([*roles, *scopes])) or "nothing"
