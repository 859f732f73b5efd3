"""`openclaw sessions erase`: one session or one person, down to the bytes, with a receipt."""

from __future__ import annotations

import asyncio
import os
import sys
import time
from typing import Any

import click

from openclaw.cli.asking import ask_or_own, long_timeout_option, waiting
from openclaw.cli.client import GatewayClient
from openclaw.cli.options import gateway_options, json_option
from openclaw.cli.place import Flags
from openclaw.cli.render import Column, print_json, print_table, say
from openclaw.config.load import config_path, load_or_raise
from openclaw.domain.terminaltext import printable
from openclaw.errors import InvalidRequest

Json = dict[str, Any]
# What the receipt counts, in words.
COUNTS = {
    "sessions": "sessions",
    "sharedSessions": "sessions that others share",
    "windows": "transcripts",
    "entries": "entries",
    "tombstones": "messages replaced by [erased]",
    "summaries": "summaries emptied",
    "indexed": "entries taken out of the search index",
    "blobs": "large bodies",
    "inputs": "inputs",
    "runs": "runs",
    "deliveries": "deliveries",
    "conversations": "places",
    "usageAnonymised": "calls without a name now",
    "removals": "audit rows",
    "spawns": "helpers",
    "archives": "archive files",
}


@click.command()
@click.argument("key", required=False)
@click.option("--agent", "agent_id", metavar="ID", help="Of this agent, when the key names none.")
@click.option("--person", metavar="CHANNEL:PEER", help="Everything that this person said, wherever it is.")
@click.option("--account", "account_id", metavar="ID", help="With --person: only on this account.")
@click.option("--yes", is_flag=True, help="Do not ask.")
@gateway_options
@long_timeout_option
@json_option
def erase(
    key: str | None,
    agent_id: str | None,
    person: str | None,
    account_id: str | None,
    yes: bool,
    flags: Flags,
    timeout_s: float,
    as_json: bool,
) -> None:
    """Erase a session, or everything that one person said. This cannot be undone.

    What runs in the session is stopped first. A session that others share keeps its place: only the
    person's words become [erased]. The receipt says what went and what an erase cannot reach.

    \b
    Examples:
      openclaw sessions erase agent:main:telegram:direct:4711
      openclaw sessions erase --person telegram:4711 --yes
      openclaw sessions erase main --agent work --yes --json
    """
    if (key is None) == (person is None):
        raise InvalidRequest("name a session by its KEY, or a person with --person; exactly one of them")
    if account_id is not None and person is None:
        raise InvalidRequest("--account narrows a person; give --person CHANNEL:PEER with it")
    who = None if person is None else _read_person(person, account_id)
    _confirm(yes, f"the person {person}" if key is None else f"the session {key}")
    params: Json = {"confirm": True} | ({"key": key} if key is not None else {"person": who})
    params |= {"agentId": agent_id} if agent_id is not None else {}

    def ask(client: GatewayClient) -> Json:
        receipt: Json = client.call("sessions.erase", params, timeout_s)["receipt"]
        return receipt

    with waiting("Erasing"):
        receipt = ask_or_own(flags, ask, lambda: _own(key, agent_id, who))
    if as_json:
        print_json({"ok": True, "receipt": receipt})
    else:
        _print(receipt)


def _read_person(text: str, account_id: str | None) -> Json:
    channel, colon, peer_id = text.partition(":")
    if not (colon and channel.strip() and peer_id.strip()):
        raise InvalidRequest(f"--person takes CHANNEL:PEER, such as telegram:4711, not {text[:80]!r}")
    who = {"channel": channel.strip().lower(), "peerId": peer_id.strip()}
    return who | ({"accountId": account_id} if account_id is not None else {})


def _confirm(yes: bool, what: str) -> None:
    if yes:
        return
    if not sys.stdin.isatty():
        raise InvalidRequest("erasing cannot be undone; add --yes to go ahead")
    click.confirm(f"Erase {printable(what)}? This cannot be undone", abort=True, err=True)


def _own(key: str | None, agent_id: str | None, who: Json | None) -> Json:
    env = dict(os.environ)
    loaded = load_or_raise(config_path(env), env)
    import msgspec

    from openclaw.app.offline import meant_key, offline_upkeep
    from openclaw.store.tombstones import known_as

    session_key = None if key is None else meant_key(loaded, key, agent_id)

    async def work() -> Json:
        now_ms = time.time_ns() // 1_000_000
        async with offline_upkeep(loaded, env, doing="an erase") as upkeep:
            if session_key is not None:
                receipt = await upkeep.erase_session(session_key, now_ms=now_ms)
            else:
                assert who is not None
                person = known_as(who["channel"], who["peerId"], who.get("accountId"))
                receipt = await upkeep.erase_person(person, now_ms=now_ms)
        told: Json = msgspec.to_builtins(receipt)
        return told

    return asyncio.run(work())


def _print(receipt: Json) -> None:
    rows = [[words, str(receipt[name])] for name, words in COUNTS.items() if receipt.get(name)]
    if rows:
        print_table((Column("Erased"), Column("Count", right=True)), rows)
    else:
        say("Nothing of this person is in the store.")
    say()
    how = "rewritten" if receipt["fileRewritten"] else "overwritten in its place"
    if receipt["logEmptied"]:
        say(f"The file was {how}, and its log emptied.")
    say(f"Receipt {receipt['subject']}. Not reached by an erase:")
    for what in receipt["notTouched"]:
        say(f"  - {what}")
