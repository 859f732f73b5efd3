"""`openclaw sessions show`: everything that the gateway knows about one session."""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import Any

import click

from openclaw.cli.client import GatewayClient
from openclaw.cli.failures import RequestRefused
from openclaw.cli.listing import model_of, row_for_json
from openclaw.cli.naming import Name, find_row
from openclaw.cli.options import gateway_options, json_option, timeout_option
from openclaw.cli.place import Flags, find_place
from openclaw.cli.render import print_json, print_labels
from openclaw.domain.terminaltext import age, context_use, moment, one_line, tokens
from openclaw.protocol.scopes import READ

Json = dict[str, Any]
Lines = Iterator[tuple[str, str]]

SHOWN_WINDOWS = 10
_LEVELS = {
    "thinking": "thinkingLevel",
    "verbose": "verboseLevel",
    "reasoning": "reasoningLevel",
    "elevated": "elevatedLevel",
    "usage": "responseUsage",
    "queue": "queueMode",
    "send": "sendPolicy",
    "activation": "groupActivation",
}


@click.command(short_help="Show one session: state, model, counters, route.")
@click.argument("key", metavar="KEY")
@click.option("--agent", "agent_id", metavar="ID", help="Of this agent, when the key names none.")
@gateway_options
@timeout_option
@json_option
def show(key: str, agent_id: str | None, flags: Flags, timeout_s: float, as_json: bool) -> None:
    """Show one session: its state, model, counters, route, earlier conversations and helpers.

    A session is named by its key, its label, its session id, or an unmistakable part of one.

    \b
    Examples:
      openclaw sessions show main
      openclaw sessions show "Daily notes"
      openclaw sessions show 3f2a91c4 --json
    """
    with GatewayClient(find_place(flags, os.environ), [READ], connect_timeout_s=timeout_s) as client:
        found = find_row(client, Name(key, agent_id), timeout_s)
        asked = {"key": found["key"], "includeDerivedTitles": True, "includeLastMessage": True}
        row: Json = client.call("sessions.describe", asked, timeout_s)["session"] or found
        reset = explain_reset(client, str(row["key"]), timeout_s)
    if as_json:
        now_ms = int(row.get("snapshotAt") or 0)
        print_json({"ok": True, "session": row_for_json(row, now_ms), "reset": reset})
    else:
        print_labels([(label, one_line(value)) for label, value in lines_of(row, reset)])


def explain_reset(client: GatewayClient, session_key: str, timeout_s: float) -> Json | None:
    """When and why the session will begin anew, as the gateway explains it; None where it cannot."""
    methods = (client.hello.get("features") or {}).get("methods") or []
    if "explain" not in methods:
        return None
    try:
        answer = client.call("explain", {"kind": "reset", "key": session_key}, timeout_s)
    except RequestRefused:
        return None
    return answer if isinstance(answer, dict) else None


def lines_of(row: Json, reset: Json | None) -> Lines:
    """`label: value` lines; what is not known has no line."""
    yield from _identity(row)
    yield from _state(row)
    yield from _model(row)
    yield from _counters(row)
    yield from _route(row)
    yield from _windows(row)
    if reset is not None:
        yield from _reset(reset)
    yield from _family(row)
    if row.get("lastMessagePreview"):
        yield "last words", str(row["lastMessagePreview"])


def _identity(row: Json) -> Lines:
    yield "key", str(row["key"])
    for label, field in (("label", "label"), ("title", "derivedTitle"), ("subject", "subject")):
        if row.get(field) and not (field == "derivedTitle" and row.get("label") == row[field]):
            yield label, str(row[field])
    main = ", the agent's main session" if row.get("isMain") else ""
    yield "agent", f"{row.get('agentId')}{main}"
    yield "kind", str(row.get("classification") or row.get("kind"))


def _state(row: Json) -> Lines:
    words = [str(row.get("status") or "new")]
    if row.get("hasActiveRun"):
        words = ["running: " + ", ".join(str(run) for run in row.get("activeRunIds") or [])]
    words += [word for word in ("archived", "pinned", "unread") if row.get(word)]
    yield "state", "; ".join(words)
    now_ms = int(row.get("snapshotAt") or 0)
    for label, field in (
        ("created", "createdAt"),
        ("began", "sessionStartedAt"),
        ("last used", "lastInteractionAt"),
        ("updated", "updatedAt"),
    ):
        if row.get(field):
            yield label, f"{moment(row[field])} ({age(max(now_ms - int(row[field]), 0))} ago)"
    if row.get("runtimeMs") is not None:
        yield "last turn", f"{row['runtimeMs'] / 1000:.1f} s, {row.get('lastRunId')}"


def _model(row: Json) -> Lines:
    yield "model", f"{model_of(row)} ({why_this_model(row)})"
    levels = [f"{word} {row[field]}" for word, field in _LEVELS.items() if row.get(field)]
    if levels:
        yield "settings", ", ".join(levels)


def why_this_model(row: Json) -> str:
    """What chose the model of the next turn."""
    if not row.get("modelOverride"):
        return "the agent's default"
    chosen = "/".join(str(row[field]) for field in ("providerOverride", "modelOverride") if row.get(field))
    by = "by a fallback" if row.get("modelOverrideSource") == "auto" else "for this session"
    used = model_of(row)
    return f"chosen {by}" if used == chosen else f"{chosen} was chosen {by}, and is not to be had"


def _counters(row: Json) -> Lines:
    fresh = row.get("totalTokensFresh") is not False
    yield "context", context_use(row.get("totalTokens"), row.get("contextTokens"), fresh=fresh)
    parts = [f"{tokens(row.get('inputTokens'))} in", f"{tokens(row.get('outputTokens'))} out"]
    if row.get("cacheRead") or row.get("cacheWrite"):
        parts.append(
            f"{tokens(row.get('cacheRead'))} read from and {tokens(row.get('cacheWrite'))} to the cache"
        )
    yield "tokens", ", ".join(parts)
    if row.get("estimatedCostUsd") is not None:
        yield "cost", f"${row['estimatedCostUsd']:.4f}"
    if row.get("compactionCount"):
        yield "compactions", str(row["compactionCount"])


def _route(row: Json) -> Lines:
    route = row.get("deliveryContext") or {}
    if route.get("channel"):
        yield "replies to", _address(route)
    origin = row.get("origin") or {}
    if origin:
        names = [str(origin[name]) for name in ("provider", "surface", "label", "from") if origin.get(name)]
        yield "came from", ", ".join(dict.fromkeys(names)) or "not known"


def _address(route: Json) -> str:
    text = f"{route['channel']}:{route.get('to') or '?'}"
    text += f", account {route['accountId']}" if route.get("accountId") else ""
    return text + (f", thread {route['threadId']}" if route.get("threadId") else "")


def _windows(row: Json) -> Lines:
    yield "session id", str(row.get("sessionId"))
    earlier = [one for one in row.get("usageFamilySessionIds") or [] if one != row.get("sessionId")]
    if len(earlier) > SHOWN_WINDOWS:
        yield "earlier", f"{len(earlier)} conversations, the newest of them:"
        earlier = earlier[-SHOWN_WINDOWS:]
        first = ""
    else:
        first = "earlier"
    for number, session_id in enumerate(reversed(earlier)):
        yield (first if number == 0 else ""), str(session_id)


def _reset(reset: Json) -> Lines:
    if reset.get("answer"):
        yield "next reset", str(reset["answer"])
    if reset.get("decidedBy"):
        yield "", f"because of {reset['decidedBy']}"


def _family(row: Json) -> Lines:
    for label, field in (("helper of", "spawnedBy"), ("parent", "parentSessionKey")):
        if row.get(field) and not (field == "parentSessionKey" and row.get("spawnedBy") == row[field]):
            yield label, str(row[field])
    for number, child in enumerate(row.get("childSessions") or []):
        yield ("helpers" if number == 0 else ""), str(child)
