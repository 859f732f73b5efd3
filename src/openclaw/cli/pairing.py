"""`openclaw pairing`: people on channels who ask to be let in, and the owner's word about them."""

from __future__ import annotations

import time
from typing import Any

import click

from openclaw.cli.asking import ask_gateway
from openclaw.cli.options import gateway_options, json_option, timeout_option
from openclaw.cli.place import Flags
from openclaw.cli.render import Column, print_json, print_table, say
from openclaw.domain.terminaltext import age, one_line

Json = dict[str, Any]
PENDING = (
    Column("Channel"),
    Column("Code"),
    Column("Name", fold=True),
    Column("Sender", fold=True),
    Column("Asked", right=True),
)
ADMITTED = (
    Column("Channel"),
    Column("Sender", fold=True),
    Column("Name", fold=True),
    Column("Rank"),
    Column("Since", right=True),
)


@click.group(short_help="Let people on channels talk to your agents, or not.")
def pairing() -> None:
    """Let people on channels talk to your agents, or show them out.

    Somebody whom a channel does not know gets a code (dmPolicy "pairing", the default). You approve the
    code here, and from then on they are answered.

    \b
    Examples:
      openclaw pairing list
      openclaw pairing approve telegram 7K3XQ2MB
      openclaw pairing approve telegram 7K3XQ2MB --owner
    """


@pairing.command("list")
@click.argument("channel", required=False)
@gateway_options
@timeout_option
@json_option
def list_people(channel: str | None, flags: Flags, timeout_s: float, as_json: bool) -> None:
    """List who waits with a code and who was let in.

    \b
    Examples:
      openclaw pairing list
      openclaw pairing list telegram --json
    """
    params = {"channel": channel} if channel else {}
    listed: Json = ask_gateway(flags, "pairing.list", params, timeout_s)
    if as_json:
        print_json(listed)
        return
    now_ms = time.time_ns() // 1_000_000
    if listed["pending"]:
        say("Waiting (openclaw pairing approve CHANNEL CODE)")
        print_table(PENDING, [_waiting(row, now_ms) for row in listed["pending"]])
    if listed["admitted"]:
        say("Let in")
        print_table(ADMITTED, [_let_in(row, now_ms) for row in listed["admitted"]])
    if not listed["pending"] and not listed["admitted"]:
        say("Nobody asked yet. A stranger who writes to a channel gets a code and shows up here.")


@pairing.command()
@click.argument("channel")
@click.argument("code")
@click.option("--owner", is_flag=True, help="As an owner: every chat command, and tools that act outside.")
@gateway_options
@timeout_option
@json_option
def approve(channel: str, code: str, owner: bool, flags: Flags, timeout_s: float, as_json: bool) -> None:
    """Let in whoever was given this code.

    \b
    Examples:
      openclaw pairing approve telegram 7K3XQ2MB
      openclaw pairing approve telegram 7K3XQ2MB --owner
    """
    params = {"channel": channel, "code": code, "owner": owner}
    answer: Json = ask_gateway(flags, "pairing.approve", params, timeout_s)
    if as_json:
        print_json(answer)
        return
    name = one_line(answer.get("name") or answer["senderId"])
    rank = " as an owner" if answer["owner"] else ""
    say(f"{name} ({one_line(answer['senderId'])}) may now talk on {answer['channel']}{rank}.")


@pairing.command()
@click.argument("channel")
@click.argument("sender")
@gateway_options
@timeout_option
@json_option
def remove(channel: str, sender: str, flags: Flags, timeout_s: float, as_json: bool) -> None:
    """Show somebody out again, or drop their request.

    Whom `allowFrom` in the config names stays in.

    \b
    Examples:
      openclaw pairing remove telegram 123456789
    """
    answer: Json = ask_gateway(flags, "pairing.remove", {"channel": channel, "senderId": sender}, timeout_s)
    if as_json:
        print_json(answer)
        return
    say("Removed." if answer["removed"] else "Nobody of this id was let in or asked on this channel.")


def _waiting(row: Json, now_ms: int) -> list[str]:
    return [
        one_line(row["channel"]),
        str(row["code"]),
        one_line(row.get("name") or "-"),
        one_line(row["senderId"]),
        age(now_ms - row["askedAt"]),
    ]


def _let_in(row: Json, now_ms: int) -> list[str]:
    return [
        one_line(row["channel"]),
        one_line(row["senderId"]),
        one_line(row.get("name") or "-"),
        "owner" if row["owner"] else "guest",
        age(now_ms - (row["approvedAt"] or row["askedAt"])),
    ]
