"""Settings that a session keeps: levels, usage line, queue, sending, activation (CMD-8, CMD-10, CMD-11)."""

from __future__ import annotations

from typing import Any

from msgspec import structs

from openclaw.domain.commandtable import usage_of
from openclaw.domain.directives import DEFAULT_WORD, LEVELS, read_level
from openclaw.domain.entry import SessionEntry
from openclaw.domain.policy import SendChange, decide_send, parse_send_command, send_facts
from openclaw.domain.queueing import (
    QueueClear,
    QueueInvalid,
    QueueSet,
    QueueSettings,
    parse_queue_directive,
    resolve_queue,
    stored_overrides,
)
from openclaw.engine.commands.ports import CommandServices, Reply, Request
from openclaw.store.commands import Edit

_ATTRIBUTES = {
    "think": "thinking_level",
    "verbose": "verbose_level",
    "reasoning": "reasoning_level",
    "elevated": "elevated_level",
}
_TITLES = {
    "think": "Thinking",
    "verbose": "Verbose output",
    "reasoning": "Shown reasoning",
    "elevated": "Elevated tools",
}
_SEND_FIELDS: dict[SendChange, Any] = {"allow": "allow", "deny": "deny", "inherit": None}


def setting(**changes: Any) -> Edit:
    """An edit that sets these fields of the entry."""
    return lambda entry: structs.replace(entry, **changes)


async def set_level(request: Request, services: CommandServices) -> Reply:
    """One of the four levels: shown, set for the session, or given back to the default."""
    name = request.asked.name
    title, choices = _TITLES[name], ", ".join((*LEVELS[name], DEFAULT_WORD))
    if not request.args:
        current = getattr(request.entry, _ATTRIBUTES[name]) or DEFAULT_WORD
        return Reply(f"{title}: {current}. You can choose {choices}.")
    level = read_level(name, request.args)
    if level is None:
        return Reply(f"{title} knows no level {request.args[:40]!r}. You can choose {choices}.")
    if level == DEFAULT_WORD:
        return Reply(f"{title}: back to the default.", setting(**{_ATTRIBUTES[name]: None}))
    text = f"{title} set to {level} for this session."
    if name == "think" and level != "off":
        target = request.target
        if not target.reasoning:
            text += f" {target.model} does not think in steps; the level holds for models that do."
    return Reply(text, setting(**{_ATTRIBUTES[name]: level}))


async def set_usage(request: Request, services: CommandServices) -> Reply:
    """`/usage off|tokens|full` sets the line below replies; `cost` tells what the session used (CMD-11)."""
    word = request.args.lower()
    if word == "cost":
        return await _cost(request, services)
    if not word:
        current = request.entry.response_usage or "off"
        return Reply(f"Usage below replies: {current}. {usage_of('usage')}")
    word = "tokens" if word == "on" else word
    if word not in ("off", "tokens", "full"):
        return Reply(usage_of("usage"))
    return Reply(f"Usage below replies: {word}.", setting(response_usage=word))


async def _cost(request: Request, services: CommandServices) -> Reply:
    used = await services.commands.usage(request.session_key)
    if used.calls == 0:
        return Reply("This session has not called a model yet.")
    lines = [f"This session so far: {used.calls} model calls, {used.input:,} tokens in, {used.output:,} out."]
    if used.cost_usd is None:
        lines.append("Cost: not known, because no price is configured for the model.")
    else:
        more = f" ({used.unpriced} calls had no price)" if used.unpriced else ""
        lines.append(f"Cost: about ${used.cost_usd:.4f}{more}.")
    return Reply("\n".join(lines))


async def set_queue(request: Request, services: CommandServices) -> Reply:
    """`/queue`: what holds, a new choice, or the default again (QUE-4)."""
    directive = parse_queue_directive(f"/queue {request.args}")
    if isinstance(directive, QueueInvalid):
        return Reply(directive.message)
    if isinstance(directive, QueueClear):
        cleared = setting(queue_mode=None, queue_debounce_ms=None, queue_cap=None, queue_drop=None)
        return Reply(f"Queue: back to the default ({_queue_text(request, cleared)}).", cleared)
    if isinstance(directive, QueueSet):
        asked = structs.asdict(directive.overrides)
        given = {f"queue_{name}": value for name, value in asked.items() if value is not None}
        edit = setting(**given)
        return Reply(f"Queue for this session: {_queue_text(request, edit)}.", edit)
    return Reply(f"Queue: {_queue_text(request, lambda entry: entry)}.")


def queue_in_force(request: Request, entry: SessionEntry | None = None) -> QueueSettings:
    """What holds for a plain message that arrives now."""
    shown = entry or request.entry
    channel = shown.channel or request.new.seed.channel
    return resolve_queue(request.settings.queue, channel=channel, stored=stored_overrides(shown))


def _queue_text(request: Request, edit: Edit) -> str:
    queue = queue_in_force(request, edit(request.entry))
    return f"{queue.mode}, debounce {queue.debounce_ms} ms, cap {queue.cap}, drop {queue.drop}"


async def set_send(request: Request, services: CommandServices) -> Reply:
    """`/send on|off|inherit`: the session's own answer to the send policy (SEND-4, CMD-8)."""
    change = parse_send_command(f"/send {request.args}")
    if change is None or change == "usage":
        now = decide_send(request.settings.send_policy, send_facts(request.entry, request.session_key))
        words = "on|allow, off|deny, inherit|default|reset"
        return Reply(f"Usage: /send <{words}>. Sending is {_said(now.action)} now.")
    edit = setting(send_policy=_SEND_FIELDS[change])
    facts = send_facts(edit(request.entry), request.session_key)
    state = _said(decide_send(request.settings.send_policy, facts).action)
    if change == "inherit":
        return Reply(f"Sending follows the configuration again: {state}.", edit)
    return Reply(f"Sending is {state} for this session.", edit)


def _said(action: str) -> str:
    return "on" if action == "allow" else "off"


async def set_activation(request: Request, services: CommandServices) -> Reply:
    """`/activation mention|always`, in groups only (CMD-11)."""
    if not request.in_group:
        return Reply("This is not a group; the agent answers every message here.")
    word = request.args.lower()
    if word not in ("mention", "always"):
        current = request.entry.group_activation or DEFAULT_WORD
        return Reply(f"Activation: {current}. {usage_of('activation')}")
    when = "every message" if word == "always" else "messages that mention it"
    edit = setting(group_activation=word, group_activation_needs_system_intro=True)
    return Reply(f"The agent answers {when} in this group.", edit)
