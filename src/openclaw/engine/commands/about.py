"""Commands that only tell: help, who you are, tools, agents, configuration, what is not offered (CMD-11)."""

from __future__ import annotations

import msgspec

from openclaw.domain.commandtable import commands_text, help_text, usage_of
from openclaw.engine.commands.binding import bound_lines
from openclaw.engine.commands.ports import CommandServices, Reply, Request, not_built

_LONGEST_CONFIG = 6000


async def show_help(request: Request, services: CommandServices) -> Reply:
    return Reply(help_text())


async def show_commands(request: Request, services: CommandServices) -> Reply:
    return Reply(commands_text(owner=request.caller.owner))


async def show_sender(request: Request, services: CommandServices) -> Reply:
    """Who the gateway takes the writer for."""
    caller = request.caller
    channel = caller.channel or request.new.seed.channel or "this gateway"
    role = "an owner" if caller.owner else "allowed to use commands"
    return Reply(
        f"You are {caller.sender or request.new.principal} on {channel}, {role}.\n"
        f"Session: {request.session_key}"
    )


async def show_tools(request: Request, services: CommandServices) -> Reply:
    """The tools that the next turn of this session may use (CMD-9)."""
    if request.word not in ("", "compact", "verbose"):
        return Reply(usage_of("tools"))
    tools = services.powers.tools(request.session, request.agent)
    if not tools:
        return Reply("This session has no tools.")
    if request.word == "verbose":
        lines = [f"{tool.name} - {tool.description}" for tool in tools]
        return Reply("\n".join((f"Tools ({len(tools)}):", *lines)))
    return Reply(f"Tools ({len(tools)}): {', '.join(tool.name for tool in tools)}")


async def show_agents(request: Request, services: CommandServices) -> Reply:
    settings = request.settings
    lines = []
    for agent_id, agent in sorted(settings.agents.items()):
        notes = [note for note, holds in _agent_notes(request, agent_id) if holds]
        name = f" ({agent.name})" if agent.name != agent_id else ""
        shown = f" - {', '.join(notes)}" if notes else ""
        lines.append(f"{agent_id}{name}: {agent.default_model.provider}/{agent.default_model.model}{shown}")
    return Reply("\n".join(("Agents:", *lines, *await bound_lines(request, services))))


def _agent_notes(request: Request, agent_id: str) -> tuple[tuple[str, bool], ...]:
    return (
        ("this session", agent_id == request.new.seed.agent_id),
        ("default", agent_id == request.settings.default_agent),
    )


async def show_config(request: Request, services: CommandServices) -> Reply:
    """`/config show [path]`, for owners, where `commands.config` allows it. It only ever reads."""
    if not request.rules.config:
        return Reply("/config is switched off. Set commands.config to true to use it.")
    if request.word not in ("", "show", "get"):
        return Reply("/config only shows: /config show [path]. Change the file itself; it is read at once.")
    if services.powers.show_config is None:
        return not_built("/config")
    path = request.after_word
    shown = services.powers.show_config(path)
    if shown is None:
        return Reply(f"The configuration has nothing at {path[:80]!r}.")
    if len(shown) > _LONGEST_CONFIG:
        shown = f"{shown[:_LONGEST_CONFIG]}\n… cut here; /config show and a path shows less at a time."
    return Reply(shown)


async def show_debug(request: Request, services: CommandServices) -> Reply:
    """`/debug`: the entry as it is stored, for owners, where `commands.debug` allows it."""
    if not request.rules.debug:
        return Reply("/debug is switched off. Set commands.debug to true to use it.")
    stored = msgspec.json.format(msgspec.json.encode(request.entry), indent=2).decode()
    return Reply(f"{request.session_key}\n{stored[:_LONGEST_CONFIG]}")


async def refuse_restart(request: Request, services: CommandServices) -> Reply:
    return Reply(
        "The gateway is not restarted from a chat. Changes of the configuration are taken at once; to "
        "restart, stop `openclaw gateway` where it runs and start it again. Nothing accepted is lost."
    )


async def explain_steer(request: Request, services: CommandServices) -> Reply:
    """`/steer` without a message; with one it goes on as a turn."""
    return Reply(f"What shall it be told? {usage_of('steer')}")
