"""subagents: the helpers that this session started; see them, steer them, stop them (SPEC §16.4)."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from msgspec import Meta, Struct

from openclaw.domain.transcript import Provenance
from openclaw.engine.errands import seed_of
from openclaw.engine.ports import ToolContext, ToolOutcome, ToolSpec
from openclaw.engine.subagents import close
from openclaw.engine.tools.registry import failure
from openclaw.engine.tools.sessions.parameters import Parameters, answer, read_parameters, schema_of
from openclaw.engine.tools.sessions.powers import Powers
from openclaw.engine.turns import Incoming
from openclaw.store import inbox
from openclaw.store.database import Transaction
from openclaw.store.records import SessionRow, UserInput
from openclaw.store.spawns import SpawnRow

DEFAULT_RECENT_MINUTES = 30
STEER_EVERY_MS = 2000
MOST_DESCENDANTS = 200


class SubagentsParams(Parameters, frozen=True, kw_only=True):
    action: Annotated[Literal["list", "steer", "kill"], Meta(description="list unless given")] = "list"
    target: Annotated[
        str | None,
        Meta(description="last, a number of the list, a session key, a taskName, a label, or all to kill"),
    ] = None
    message: Annotated[
        Annotated[str, Meta(max_length=4000)] | None,
        Meta(description="for steer: what the helper shall do now"),
    ] = None
    recent_minutes: Annotated[
        int, Meta(description="how far back finished ones are listed", ge=1, le=1440)
    ] = DEFAULT_RECENT_MINUTES


class Child(Struct, frozen=True):
    """A helper with its number in the list."""

    index: int
    spawn: SpawnRow
    row: SessionRow | None


class SubagentsTool:
    def __init__(self, powers: Powers) -> None:
        self._powers = powers
        self._steered_at: dict[str, int] = {}

    @property
    def spec(self) -> ToolSpec:
        return _SPEC

    async def call(self, arguments: dict[str, Any], context: ToolContext) -> ToolOutcome:
        asked = read_parameters(arguments, SubagentsParams)
        children = await self._children(asked, context)
        if asked.action == "list":
            return await self._list(children, context)
        own = await self._powers.store.session(context.session_key)
        if own is not None and own.entry.subagent_role == "leaf":
            return failure("a helper at the lowest level has nobody to steer or stop", "forbidden")
        if asked.target is None or not asked.target.strip():
            return failure(
                f"{asked.action} needs a target: last, a number of the list, a key, a taskName or a label"
            )
        if asked.action == "kill" and asked.target.strip().lower() == "all":
            return await self._kill(
                [child for child in children if child.spawn.state == "active"], context, True
            )
        found = find_child(children, asked.target)
        if isinstance(found, str):
            return failure(found)
        if asked.action == "kill":
            return await self._kill([found], context, False)
        return await self._steer(found, asked.message, context)

    async def _children(self, asked: SubagentsParams, context: ToolContext) -> list[Child]:
        since = context.now_ms - asked.recent_minutes * 60_000
        found = await self._powers.spawns.children_with_rows(context.session_key, settled_since=since)
        ordered = sorted(found, key=lambda pair: pair[0].state != "active")
        return [Child(number, spawn, row) for number, (spawn, row) in enumerate(ordered, start=1)]

    async def _list(self, children: list[Child], context: ToolContext) -> ToolOutcome:
        shown = [await self._show(child, context) for child in children]
        active = [row for row in shown if row["status"] == "active"]
        recent = [row for row in shown if row["status"] != "active"]
        lines = [
            f"{row['index']}. {row['label'] or row['task']} — {row['status']}, {row['runtime']}"
            for row in shown
        ]
        text = "\n".join(lines) or "No helpers were started here lately."
        return answer({"status": "ok", "total": len(shown), "active": active, "recent": recent, "text": text})

    async def _show(self, child: Child, context: ToolContext) -> dict[str, Any]:
        spawn, entry = child.spawn, child.row.entry if child.row else None
        ended = spawn.settled_at
        runtime_ms = (ended or context.now_ms) - spawn.created_at
        row: dict[str, Any] = {
            "index": child.index,
            "runId": spawn.child_run_id,
            "sessionKey": spawn.child_key,
            "label": spawn.body.label,
            "taskName": spawn.body.task_name,
            "task": spawn.body.task[:200],
            "status": "active" if spawn.state == "active" else spawn.body.status or "unknown",
            "runtime": f"{runtime_ms // 1000}s",
            "runtimeMs": runtime_ms,
            "model": entry.model if entry else None,
            "totalTokens": entry.total_tokens if entry else None,
            "startedAt": spawn.created_at,
            "endedAt": ended,
            "pendingDescendants": await self._powers.spawns.count_active(spawn.child_key),
        }
        return {name: value for name, value in row.items() if value is not None or name == "label"}

    async def _steer(self, child: Child, message: str | None, context: ToolContext) -> ToolOutcome:
        """Guidance interrupts the child's run and starts it anew with it; task and announce stay (SUB-5)."""
        spawn = child.spawn
        if not message or not message.strip():
            return failure("steer needs a message: what the helper shall do now")
        if spawn.state != "active" or child.row is None:
            return failure("this helper is done; start another one with sessions_spawn", "forbidden")
        if context.now_ms - self._steered_at.get(spawn.child_key, 0) < STEER_EVERY_MS:
            return failure("this helper was steered a moment ago; wait two seconds")
        self._steered_at = {
            key: at for key, at in self._steered_at.items() if context.now_ms - at < STEER_EVERY_MS
        } | {spawn.child_key: context.now_ms}
        source = Provenance(
            kind="inter_session", source_session_key=context.session_key, source_tool="subagents"
        )
        body = UserInput(
            message, context.now_ms, provenance=source, queue_mode="interrupt", hops=context.hops + 1
        )
        run_id = f"{context.run_id}:{context.tool_call_id}:steer"
        principal = f"session:{context.session_key}"
        await self._powers.turns.accept(
            Incoming(run_id, seed_of(child.row), "inter_session", principal, body)
        )
        told = f"Steered {spawn.body.label or spawn.child_key}."
        return answer({"status": "accepted", "runId": run_id, "sessionKey": spawn.child_key, "text": told})

    async def _kill(self, children: list[Child], context: ToolContext, everything: bool) -> ToolOutcome:
        killed, cascade = 0, 0
        for child in children:
            if child.spawn.state != "active":
                continue
            cascade += await self._stop_below(child.spawn.child_key)
            await self._stop(child.spawn.child_key)
            killed += 1
        text = f"Stopped {killed} helper{'' if killed == 1 else 's'}" + (
            f" and {cascade} below." if cascade else "."
        )
        told: dict[str, Any] = {"status": "ok", "cascadeKilled": cascade, "text": text}
        if everything:
            told["killed"] = killed
        else:
            told["runId"] = children[0].spawn.child_run_id
            if not killed:
                told |= {"status": "error", "error": "this helper is done already"}
        return answer(told)

    async def _stop_below(self, parent_key: str) -> int:
        """Stop the helpers of a helper, the deepest first; how many."""
        stopped = 0
        for spawn in await self._powers.spawns.of_parent(parent_key, settled_since=2**62):
            if stopped < MOST_DESCENDANTS:
                stopped += await self._stop_below(spawn.child_key) + 1
                await self._stop(spawn.child_key)
        return stopped

    async def _stop(self, child_key: str) -> None:
        """Stop what runs and waits there, and close it: a killed helper announces nothing itself."""
        await self._powers.turns.abort(child_key, reason="kill")
        woken: list[str] = []
        now_ms = self._powers.turns.now_ms()

        def unit(tx: Transaction) -> None:
            woken.clear()
            inbox.discard(tx, child_key)
            close(tx, child_key, now_ms, woken, tell=True)

        await self._powers.spawns.write(unit)
        for key in woken:
            self._powers.workers.wake(key)


def find_child(children: list[Child], target: str) -> Child | str:
    """The helper that is meant, or why none can be told (SUB-3)."""
    wanted = target.strip()
    if not children:
        return "no helpers were started here lately"
    if wanted.lower() == "last":
        return max(children, key=lambda child: (child.spawn.created_at, child.spawn.child_run_id))
    if wanted.isascii() and wanted.isdigit():
        numbered = [child for child in children if child.index == int(wanted[:9])]
        if numbered:
            return numbered[0]
    for name in ("child_key", "task_name", "label"):
        found = [child for child in children if _named(child, name) == wanted]
        if found:
            return found[0] if len(found) == 1 else _ambiguous(wanted, found)
    begins = [child for child in children if any(name.startswith(wanted) for name in _names(child))]
    if len(begins) == 1:
        return begins[0]
    return _ambiguous(wanted, begins) if begins else f"no helper {wanted[:80]!r}; call subagents to list them"


def _named(child: Child, name: str) -> str | None:
    if name == "child_key":
        return child.spawn.child_key
    return child.spawn.body.task_name if name == "task_name" else child.spawn.body.label


def _names(child: Child) -> tuple[str, ...]:
    body = child.spawn.body
    return (child.spawn.child_key, body.task_name or "", body.label or "", child.spawn.child_run_id)


def _ambiguous(wanted: str, found: list[Child]) -> str:
    numbers = ", ".join(str(child.index) for child in found)
    return f"{wanted[:80]!r} means several helpers; use a number of the list: {numbers}"


_SPEC = ToolSpec(
    "subagents",
    "See the helpers that you started (list), give one new guidance (steer), or stop one or all (kill).",
    schema_of(SubagentsParams),
    parallel=False,
)
