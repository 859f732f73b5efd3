"""`openclaw explain`: why a message lands where it does, why a session resets, is closed, or is hidden.

The gateway that runs answers, from its own configuration and rows; where none runs,
the same questions are answered here while the store is held (OWN-4).
"""

from __future__ import annotations

import os
import time
from typing import Any

import click

from openclaw.cli.asking import ask_or_own
from openclaw.cli.client import GatewayClient
from openclaw.cli.options import gateway_options, json_option, timeout_option
from openclaw.cli.place import Flags
from openclaw.cli.render import note, print_json, say
from openclaw.domain.terminaltext import one_line
from openclaw.errors import InvalidRequest
from openclaw.protocol.scopes import READ

Json = dict[str, Any]
_KINDS = ("direct", "dm", "group", "channel", "room")


@click.group(short_help="Say why a message lands where it does, and more.")
def explain() -> None:
    """Say why: which rule routes a message, resets a session, denies a reply, hides a session.

    \b
    Examples:
      openclaw explain route --channel telegram --peer direct:42
      openclaw explain reset main
      openclaw explain send agent:main:telegram:group:-100
      openclaw explain visibility --from main --to agent:bob:main
    """


@explain.command(short_help="Which agent and session a message would reach.")
@click.option("--channel", required=True, metavar="NAME", help="Where the message comes from: telegram, …")
@click.option("--peer", required=True, metavar="KIND:ID", help="The chat: direct:42, group:-100, channel:C1.")
@click.option("--account", "account_id", metavar="ID", help="Which of our accounts received it.")
@click.option("--thread", "thread_id", metavar="ID", help="The thread or topic in it.")
@click.option("--thread-kind", type=click.Choice(["thread", "topic"]), help="How the platform calls it.")
@click.option("--parent", "parent_peer_id", metavar="ID", help="The room that a thread hangs below.")
@click.option("--guild", "guild_id", metavar="ID", help="The guild (Discord).")
@click.option("--team", "team_id", metavar="ID", help="The team (Slack, Teams).")
@click.option("--role", "roles", multiple=True, metavar="ID", help="A role of the sender; may be repeated.")
@click.option("--sender", "sender_id", metavar="ID", help="Who wrote it, in a group.")
@click.option("--mentioned", is_flag=True, help="The agent was called by name.")
@click.option("--agent", "agent_id", metavar="ID", help="This agent, whatever the bindings say.")
@gateway_options
@timeout_option
@json_option
def route(channel: str, peer: str, flags: Flags, timeout_s: float, as_json: bool, **given: Any) -> None:
    """Which agent and session a message would reach, and by which binding and dmScope.

    \b
    Examples:
      openclaw explain route --channel telegram --peer direct:42
      openclaw explain route --channel discord --peer channel:77 --guild 9 --role mods --mentioned
    """
    kind, _, peer_id = peer.partition(":")
    if kind not in _KINDS or not peer_id:
        raise InvalidRequest(f"--peer is KIND:ID, such as direct:42 or group:-100, not {peer[:80]!r}")
    params: Json = {"kind": "route", "channel": channel, "peerKind": kind, "peerId": peer_id}
    names = {
        "account_id": "accountId", "thread_id": "threadId", "thread_kind": "threadKind",
        "parent_peer_id": "parentPeerId", "guild_id": "guildId", "team_id": "teamId",
        "sender_id": "senderId", "agent_id": "agentId", "roles": "roles", "mentioned": "mentioned",
    }  # fmt: skip
    params |= {names[name]: value for name, value in given.items() if value}
    _tell(params, flags, timeout_s, as_json)


@explain.command()
@click.argument("key")
@click.option("--agent", "agent_id", metavar="ID", help="The agent of a short key.")
@gateway_options
@timeout_option
@json_option
def reset(key: str, agent_id: str | None, flags: Flags, timeout_s: float, as_json: bool) -> None:
    """When and why a session will start anew by itself.

    \b
    Examples:
      openclaw explain reset main
      openclaw explain reset agent:main:telegram:group:-100 --json
    """
    _tell(_about("reset", key, agent_id), flags, timeout_s, as_json)


@explain.command(short_help="Whether a session may be sent to, and why.")
@click.argument("key")
@click.option("--agent", "agent_id", metavar="ID", help="The agent of a short key.")
@click.option("--channel", metavar="NAME", help="As if the request came from this channel.")
@gateway_options
@timeout_option
@json_option
def send(
    key: str, agent_id: str | None, channel: str | None, flags: Flags, timeout_s: float, as_json: bool
) -> None:
    """Whether a session may be sent to, and which rule of session.sendPolicy says so.

    \b
    Examples:
      openclaw explain send main
      openclaw explain send agent:main:discord:group:1 --channel discord
    """
    params = _about("send", key, agent_id) | ({"channel": channel} if channel else {})
    _tell(params, flags, timeout_s, as_json)


@explain.command(short_help="Whether one session can see another, and why.")
@click.option("--from", "from_key", required=True, metavar="KEY", help="The session that looks.")
@click.option("--to", "to_key", required=True, metavar="KEY", help="The session that it wants to see.")
@click.option("--agent", "agent_id", metavar="ID", help="The agent of short keys.")
@gateway_options
@timeout_option
@json_option
def visibility(
    from_key: str, to_key: str, agent_id: str | None, flags: Flags, timeout_s: float, as_json: bool
) -> None:
    """Whether one session can see another, and which step refuses it.

    \b
    Examples:
      openclaw explain visibility --from main --to agent:bob:main
    """
    params: Json = {"kind": "visibility", "fromKey": from_key, "toKey": to_key}
    _tell(params | ({"agentId": agent_id} if agent_id else {}), flags, timeout_s, as_json)


def _about(kind: str, key: str, agent_id: str | None) -> Json:
    return {"kind": kind, "key": key} | ({"agentId": agent_id} if agent_id else {})


def _tell(params: Json, flags: Flags, timeout_s: float, as_json: bool) -> None:
    def ask(client: GatewayClient) -> Json:
        answer: Json = client.call("explain", params, timeout_s)
        return answer

    told = ask_or_own(flags, ask, lambda: _own(params), scopes=[READ])
    if as_json:
        print_json(told)
    else:
        _print(told)


def _own(params: Json) -> Json:
    import asyncio

    from openclaw.config.load import config_path, load_or_raise

    env = dict(os.environ)
    loaded = load_or_raise(config_path(env), env)
    import msgspec

    from openclaw.app.explaining import Explainer
    from openclaw.app.offline import offline_store
    from openclaw.protocol.methods import decode_params
    from openclaw.protocol.params_insight import ExplainParams

    asked = decode_params("explain", msgspec.Raw(msgspec.json.encode(params)))
    assert isinstance(asked, ExplainParams)

    async def work() -> Json:
        async with offline_store(loaded.config, env, doing="explaining") as database:
            explainer = Explainer(database, lambda: loaded, env, lambda: time.time_ns() // 1_000_000)
            told: Json = msgspec.to_builtins(await explainer.explain(asked))
        return told

    answer = asyncio.run(work())
    note("No gateway runs; this is what the config and the store say.")
    return answer


def _print(told: Json) -> None:
    """The outcome first, then the way to it; `>` marks the steps on which it rests."""
    say(one_line(told["answer"]))
    say()
    width = max((len(one_line(step["question"])) for step in told["steps"]), default=0)
    for step in told["steps"]:
        mark = ">" if step.get("decided") else " "
        setting = f"  [{one_line(step['setting'])}]" if step.get("setting") else ""
        line = f"{mark} {one_line(step['question']).ljust(width)}  {one_line(step['outcome'])}{setting}"
        say(line, hanging=width + 4)
    if told.get("fix"):
        say()
        say(f"To change it: {one_line(told['fix'])}")
