"""/subagents and /kill: the sub-agents of a session, seen and steered by a person (CMD-11, SUB-1, SUB-3)."""

from __future__ import annotations

from collections.abc import Sequence

from msgspec import Struct

from openclaw.domain.commandtable import usage_of
from openclaw.domain.transcript import decode_message, text_of
from openclaw.engine.commands.ports import (
    ChildMessage,
    CommandServices,
    Reply,
    Request,
    SpawnRequest,
    not_built,
)
from openclaw.engine.commands.status import count, duration
from openclaw.engine.commands.stopping import Stopped, stop_child, stop_text
from openclaw.errors import InvalidRequest
from openclaw.store.records import RunRow, SessionRow

_MOST_LISTED = 30
_LOG_MESSAGES = 10
_LOG_CHARS = 400
_MOST_MESSAGE_CHARS = 4000  # SUB-2


class Child(Struct, frozen=True):
    """A sub-agent and its run, if it has one."""

    row: SessionRow
    run: RunRow | None

    @property
    def name(self) -> str:
        return self.row.entry.label or self.row.entry.display_name or self.row.session_key


async def subagents(request: Request, services: CommandServices) -> Reply:
    """`/subagents list|info|log|kill|send|steer|spawn`."""
    action = request.word or "list"
    if action == "list":
        return Reply(_list_text(await _children(request, services), request.now_ms))
    if action == "spawn":
        return await _spawn(request, services)
    target, _, text = request.after_word.partition(" ")
    if action in ("kill", "stop"):
        return await _kill(request, services, target)
    if action not in ("info", "log", "send", "steer"):
        return Reply(usage_of("subagents"))
    child = find_child(await _children(request, services), target)
    if action == "info":
        return Reply(_info_text(child, request.now_ms))
    if action == "log":
        return Reply(await _log_text(child, services))
    return await _tell(request, services, child, text.strip(), interrupt=action == "steer")


async def kill(request: Request, services: CommandServices) -> Reply:
    """`/kill <target|all>`."""
    return await _kill(request, services, request.args)


async def _children(request: Request, services: CommandServices) -> tuple[Child, ...]:
    """Active ones first, then the others, each the newest first."""
    rows = await services.commands.children(request.session_key)
    children = [Child(row, await services.store.active_run(row.session_key)) for row in reversed(rows)]
    return tuple(sorted(children, key=lambda child: child.run is None))


def find_child(children: Sequence[Child], target: str) -> Child:
    """The sub-agent that a person means: last, a number, a key, a name, or the beginning of one (SUB-3)."""
    if not target:
        raise InvalidRequest(f"Which sub-agent? {usage_of('kill')}")
    if not children:
        raise InvalidRequest("This session has no sub-agents.")
    if target.lower() == "last":
        return max(children, key=lambda child: child.row.session_no)
    number = target.removeprefix("#")
    if number.isascii() and number.isdigit() and len(number) <= 6:
        if 1 <= int(number) <= len(children):
            return children[int(number) - 1]
        raise InvalidRequest(f"There is no sub-agent {number}; the list has {len(children)}.")
    wanted = target.casefold()
    exact = [child for child in children if wanted in _names(child)]
    begun = [child for child in children if any(name.startswith(wanted) for name in _names(child))]
    for found in (exact, begun):
        if len(found) == 1:
            return found[0]
        if len(found) > 1:
            raise InvalidRequest(f"{target[:60]!r} fits {len(found)} sub-agents; use a number of the list.")
    raise InvalidRequest(f"No sub-agent is called {target[:60]!r}; /subagents list shows them.")


def _names(child: Child) -> tuple[str, ...]:
    key, label = child.row.session_key, child.row.entry.label
    run_id = child.run.run_id if child.run else child.row.entry.last_run_id
    names = (key, key.rpartition(":")[2], label, run_id)
    return tuple(name.casefold() for name in names if name)


async def _kill(request: Request, services: CommandServices, target: str) -> Reply:
    children = await _children(request, services)
    if target.lower() == "all":
        chosen: Sequence[Child] = children
    else:
        chosen = (find_child(children, target),)
    stopped = [await stop_child(child.row, services) for child in chosen]
    total = Stopped(
        0,
        sum(one.children for one in stopped),
        sum(one.waiting for one in stopped),
        sum(one.stubborn for one in stopped),
    )
    return Reply(stop_text(total))


async def _tell(
    request: Request, services: CommandServices, child: Child, text: str, *, interrupt: bool
) -> Reply:
    if not text:
        return Reply("What shall it be told? Write the message behind the sub-agent.")
    if len(text) > _MOST_MESSAGE_CHARS:
        return Reply(f"The message is longer than {_MOST_MESSAGE_CHARS} characters; nothing was sent.")
    if services.powers.tell_child is None:
        return not_built("Writing to a sub-agent")
    run_id = f"{request.new.run_id}:child"
    message = ChildMessage(run_id, request.session_key, child.row.session_key, text, interrupt)
    await services.powers.tell_child(message)
    done = "starts again with your message" if interrupt else "has your message"
    return Reply(f"{child.name} {done}.")


async def _spawn(request: Request, services: CommandServices) -> Reply:
    if not request.after_word:
        return Reply("What shall it do? /subagents spawn <task>")
    if services.powers.spawn_child is None:
        return Reply("Sub-agents cannot be started from a chat yet; this comes with sub-agents.")
    asked = SpawnRequest(f"{request.new.run_id}:spawn", request.session_key, request.after_word)
    return Reply(f"Started {await services.powers.spawn_child(asked)}")


# -- texts -------------------------------------------------------------------------------------


def _list_text(children: Sequence[Child], now_ms: int) -> str:
    if not children:
        return "This session has no sub-agents."
    active = sum(1 for child in children if child.run is not None)
    lines = [f"Sub-agents: {active} active of {len(children)}"]
    lines += [
        f"{number}. {child.name} - {_state(child, now_ms)}"
        for number, child in enumerate(children[:_MOST_LISTED], start=1)
    ]
    if len(children) > _MOST_LISTED:
        lines.append(f"and {len(children) - _MOST_LISTED} more")
    return "\n".join(lines)


def _state(child: Child, now_ms: int) -> str:
    if child.run is not None:
        return f"running for {duration(now_ms - child.run.started_at)}"
    return child.row.entry.status or "not started"


def _info_text(child: Child, now_ms: int) -> str:
    entry = child.row.entry
    model = f"{entry.model_provider}/{entry.model}" if entry.model else "not called yet"
    return "\n".join(
        (
            child.name,
            f"Session: {child.row.session_key}",
            f"State: {_state(child, now_ms)}",
            f"Task: {child.row.first_text or 'not known'}",
            f"Model: {model}",
            f"Tokens of the last turn: {count(entry.input_tokens)} in, {count(entry.output_tokens)} out",
        )
    )


async def _log_text(child: Child, services: CommandServices) -> str:
    """The newest messages of a sub-agent, each shortened."""
    page = await services.store.history(child.row.session_key, _LOG_MESSAGES)
    lines = []
    for entry in page.entries if page else ():
        text = text_of(decode_message(entry.body)) if entry.type == "message" else ""
        if text.strip():
            shown = " ".join(text[: _LOG_CHARS * 2].split())
            lines.append(f"{entry.role}: {shown[:_LOG_CHARS]}")
    return "\n".join((child.name, *lines)) if lines else f"{child.name} has said nothing yet."
