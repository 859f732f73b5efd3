"""Which function carries out which command, and how: the one list of handlers."""

from __future__ import annotations

from collections.abc import Mapping

from openclaw.domain.directives import Asked
from openclaw.engine.commands import about, binding, care, choosing, status, stopping, subagents, toggles
from openclaw.engine.commands.ports import Handler

HANDLERS: Mapping[str, Handler] = {
    "help": about.show_help,
    "commands": about.show_commands,
    "status": status.show_status,
    "whoami": about.show_sender,
    "context": status.show_context,
    "tools": about.show_tools,
    "usage": toggles.set_usage,
    "stop": stopping.stop,
    "reset": care.reset_soft,
    "compact": care.compact,
    "undo": care.undo,
    "btw": care.ask_aside,
    "export-session": care.export_session,
    "think": toggles.set_level,
    "verbose": toggles.set_level,
    "reasoning": toggles.set_level,
    "elevated": toggles.set_level,
    "model": choosing.set_model,
    "queue": toggles.set_queue,
    "send": toggles.set_send,
    "activation": toggles.set_activation,
    "subagents": subagents.subagents,
    "kill": subagents.kill,
    "steer": about.explain_steer,
    "agents": about.show_agents,
    "session": binding.set_terms,
    "focus": binding.focus,
    "unfocus": binding.unfocus,
    "config": about.show_config,
    "debug": about.show_debug,
    "restart": about.refuse_restart,
}
# Answered after they were taken, because they act outside the one commit.
TAKEN_FIRST = frozenset(("stop", "kill", "compact", "btw", "export-session"))
# The person need not wait for these to be told that the command was received.
BACKGROUND = frozenset(("compact", "btw"))
# History shows nothing of a side question (CMD-16).
UNSHOWN = frozenset(("btw",))


def is_taken_first(asked: Asked) -> bool:
    """Whether a command is taken before it is carried out; some actions of a command may need it."""
    if asked.name == "undo":
        return asked.args.lower() in ("compact", "compaction")
    if asked.name == "subagents":
        return asked.args[:5].lower().strip() in ("kill", "stop", "send", "steer", "spawn")
    return asked.name in TAKEN_FIRST
