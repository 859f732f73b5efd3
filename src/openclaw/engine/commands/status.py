"""/status and /context: what a session is doing, and what its model is given (CMD-1 to CMD-4)."""

from __future__ import annotations

from msgspec import json, structs

from openclaw.domain.promptreport import (
    EXPLANATION,
    PartSize,
    PromptReport,
    detail_text,
    json_text,
    list_text,
    report_from_stored,
)
from openclaw.engine.commands.ports import CommandServices, Reply, Request
from openclaw.engine.commands.toggles import queue_in_force
from openclaw.engine.prompt import system_prompt

UNKNOWN = "not known"


async def show_status(request: Request, services: CommandServices) -> Reply:
    """The card of this session. What cannot be known says so; nothing is guessed (PITFALLS F1)."""
    entry, target = request.entry, request.target
    children = await services.commands.descendants(request.session_key)
    active = sum(1 for _row, run in children if run is not None)
    waiting = await services.store.queued(request.session_key)
    queue = queue_in_force(request)
    kind = "API key" if target.api_key else "no key"
    lines = [
        f"OpenClaw {services.version}, up {duration(request.now_ms - services.started_ms)}",
        f"Agent: {request.agent.name}, reachable; {_activity(request)}",
        f"Model: {target.provider}/{target.model} ({kind})",
        f"Tokens of the last turn: {count(entry.input_tokens)} in, {count(entry.output_tokens)} out",
        f"Cost of this session: {_cost(request)}",
        f"Context: {_context(request)}; compactions: {entry.compaction_count}",
        f"Session: {request.session_key}, {_age(request)}",
        f"Sub-agents: {active} active of {len(children)}" if children else "Sub-agents: none",
        _levels(request),
    ]
    if request.in_group:
        lines.append(f"Answers in this group: {entry.group_activation or 'as configured'}")
    lines.append(f"Queue: {queue.mode}, {len(waiting)} waiting")
    told = services.powers.channel_lines(request.now_ms) if services.powers.channel_lines else ()
    lines += told
    if not any(line.startswith("WhatsApp") for line in told):
        lines.append("WhatsApp: not connected to this gateway")
    return Reply("\n".join(lines))


def _activity(request: Request) -> str:
    entry = request.entry
    if entry.status == "running" and entry.started_at is not None:
        return f"working for {duration(request.now_ms - entry.started_at)}"
    return "last run was stopped" if entry.aborted_last_run else "idle"


def _cost(request: Request) -> str:
    cost = request.entry.estimated_cost_usd
    if request.target.price.input is None and not cost:
        return f"{UNKNOWN}, no price is configured"
    return "$0.0000" if cost is None else f"${cost:.4f}"


def _context(request: Request) -> str:
    entry = request.entry
    limit = entry.context_tokens or request.target.context_window
    if entry.total_tokens is None or entry.total_tokens_fresh is False:
        return f"{UNKNOWN} of {limit:,}"
    return f"{entry.total_tokens:,}/{limit:,} ({100 * entry.total_tokens // limit} %)"


def _age(request: Request) -> str:
    started = request.entry.session_started_at
    if request.session is None or started is None:
        return "not started yet"
    return f"started {duration(request.now_ms - started)} ago, {request.session.message_count} messages"


def _levels(request: Request) -> str:
    entry = request.entry
    think = entry.thinking_level or request.agent.thinking_default or "default"
    runtime = "sandboxed" if request.agent.is_sandboxed(request.session_key) else "direct"
    return (
        f"Runtime: {runtime}; think {think}, verbose {entry.verbose_level or 'default'}, "
        f"reasoning {entry.reasoning_level or 'default'}, elevated {entry.elevated_level or 'default'}"
    )


def count(value: int | None) -> str:
    return UNKNOWN if value is None else f"{value:,}"


def duration(milliseconds: int) -> str:
    """A length of time in its two largest units: `45 s`, `3 min 20 s`, `2 h 5 min`, `4 d 1 h`."""
    seconds = max(0, milliseconds) // 1000
    days, hours, minutes = seconds // 86_400, seconds // 3600 % 24, seconds // 60 % 60
    if days:
        return f"{days} d {hours} h"
    if hours:
        return f"{hours} h {minutes} min"
    return f"{minutes} min {seconds % 60} s" if minutes else f"{seconds} s"


# -- /context ----------------------------------------------------------------------------------


async def show_context(request: Request, services: CommandServices) -> Reply:
    """`/context [list|detail|json]`; alone it explains itself."""
    views = {"list": list_text, "detail": detail_text, "json": json_text}
    view = views.get(request.word)
    if view is None:
        return Reply(EXPLANATION)
    return Reply(view(await _report(request, services)))


async def _report(request: Request, services: CommandServices) -> PromptReport:
    """What the last run measured, else what the prompt would be now."""
    measured = report_from_stored(request.entry.system_prompt_report)
    if measured is None and services.powers.prompt_report is not None:
        measured = await services.powers.prompt_report(request.session, request.agent)
    if measured is None:
        tools = services.powers.tools(request.session, request.agent)
        measured = PromptReport(
            system_chars=len(system_prompt(request.agent)),
            tools=tuple(PartSize(tool.name, len(json.encode(tool))) for tool in tools),
            source="estimate",
        )
    entry = request.entry
    known = entry.total_tokens if entry.total_tokens_fresh is not False else None
    return structs.replace(
        measured,
        session_tokens=known,
        context_tokens=entry.context_tokens or request.target.context_window,
    )
