"""session_status: a card about this or another session, and the model that it uses (SPEC §16.5)."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from typing import Annotated, Any

import msgspec
from msgspec import Meta, Struct
from msgspec.structs import replace

from openclaw.domain.doortext import clean_text
from openclaw.domain.entry import SessionEntry
from openclaw.domain.modelhint import ModelHint, match_model_hint
from openclaw.domain.resets import choose_model
from openclaw.domain.transcript import TextBlock
from openclaw.engine.commands.status import UNKNOWN, count, duration
from openclaw.engine.events import EventSink, SessionChanged
from openclaw.engine.ports import ModelTarget, ToolContext, ToolOutcome, ToolSpec
from openclaw.engine.settings import AgentSettings, EngineSettings
from openclaw.engine.tools.sessions.parameters import Parameters, read_parameters, tool_spec
from openclaw.engine.tools.sessions.reach import Reach, Reached, Refused
from openclaw.store.recall import Met, Recall
from openclaw.store.records import SessionRow, SessionSeed
from openclaw.store.store import Store

# How far back the latest usage is looked for.
_USAGE_MESSAGES = 20
_USAGE_READ_BYTES = 1 << 20
_decode = msgspec.json.Decoder().decode


class StatusParameters(Parameters, frozen=True):
    session_key: Annotated[
        str,
        Meta(
            description="Which session: `current` (the default) for this one, or a key or sessionId from "
            "sessions_list."
        ),
    ] = "current"
    model: Annotated[
        str | None,
        Meta(
            description="Use this model in the session from its next turn on, by name, alias or "
            "provider/model; `default` goes back to the agent's own. Leave it out to change nothing."
        ),
    ] = None


class Powers(Struct, frozen=True):
    """What the card needs beside the store. `check_model` gives `provider/model` or raises InvalidRequest."""

    settings: Callable[[], EngineSettings]
    check_model: Callable[[str], str]
    emit: EventSink
    version: str


class SessionStatusTool:
    def __init__(self, store: Store, recall: Recall, reach: Reach, powers: Powers) -> None:
        self._store = store
        self._recall = recall
        self._reach = reach
        self._powers = powers

    @property
    def spec(self) -> ToolSpec:
        return _SPEC

    async def call(self, arguments: dict[str, Any], context: ToolContext) -> ToolOutcome:
        asked = read_parameters(arguments, StatusParameters)
        reached = await self._reach.resolve(asked.session_key, context)
        if isinstance(reached, Refused):
            return reached.outcome()
        row, changed = reached.row, False
        if asked.model is not None:
            row, changed = await self._set_model(row, clean_text(asked.model), context)
        card = await self._card(row, reached, context)
        target = self._agent(row).choose_models(row.entry, None)[0]
        details = {
            "ok": True,
            "sessionKey": reached.key,
            "changedModel": changed,
            "model": target.model,
            "modelProvider": target.provider,
        }
        if row.entry.model_override:
            details["modelOverride"] = f"{row.entry.provider_override}/{row.entry.model_override}"
        return ToolOutcome((TextBlock(card),), details=details)

    def _agent(self, row: SessionRow) -> AgentSettings:
        return self._powers.settings().agent(row.agent_id)

    # -- the model -----------------------------------------------------------------------------

    async def _set_model(self, row: SessionRow, name: str, context: ToolContext) -> tuple[SessionRow, bool]:
        """The session with its new choice (STAT-3). A running turn keeps its model, as with `/model`."""
        hint = None if name.strip().lower() == "default" else self._find_model(name, row)
        seed = SessionSeed(row.session_key, row.agent_id, row.kind, row.session_type)
        edited, _ = await self._store.edit_session(
            seed,
            lambda entry: _with_model(entry, hint),
            # A session that was deleted or reset meanwhile is not changed: the id no longer fits.
            session_id=f"{row.entry.session_id}-gone",
            now_ms=context.now_ms,
            expected_session_id=row.entry.session_id,
        )
        changed = _choice(edited.entry) != _choice(row.entry)
        if changed:
            self._powers.emit(SessionChanged(edited, "patch"))
        return edited, changed

    def _find_model(self, name: str, row: SessionRow) -> ModelHint:
        default = self._agent(row).default_model
        candidates = self._powers.settings().model_candidates
        hint = match_model_hint(name, candidates, (default.provider, default.model))
        if hint is not None and not hint.remainder:
            return hint
        provider, _, model = self._powers.check_model(name).partition("/")
        return ModelHint(provider, model, "")

    # -- the card ------------------------------------------------------------------------------

    async def _card(self, row: SessionRow, reached: Reached, context: ToolContext) -> str:
        entry = await self._backfilled(row)
        agent = self._agent(row)
        target = agent.choose_models(row.entry, None)[0]
        (children,) = await self._recall.children([row.session_key])
        sight = self._reach.sight(context)
        seen = [child for child in children if sight.sees(child.facts)]
        waiting = await self._store.queued(row.session_key)
        now = datetime.fromtimestamp(context.now_ms / 1000, agent.zone)
        lines = (
            f"OpenClaw {self._powers.version}",
            f"Time: {now:%Y-%m-%d %H:%M} {agent.zone.key}",
            f"Session: {reached.key}, {_age(row, context.now_ms)}",
            f"Agent: {agent.name}; {_activity(entry, context.now_ms)}",
            f"Model: {_model_text(entry, target, agent)}",
            f"Tokens of the last turn: {count(entry.input_tokens)} in, {count(entry.output_tokens)} out",
            f"Cache: {count(entry.cache_read)} read, {count(entry.cache_write)} written",
            f"Cost of this session: {_cost(entry)}",
            f"Context: {_context_text(entry, target)}; compactions: {entry.compaction_count}",
            f"Thinking: {entry.thinking_level or agent.thinking_default or 'default'}, "
            f"verbose: {entry.verbose_level or 'default'}; {_runtime(agent, row)}",
            f"Sub-agents: {_children_text(seen)}",
            f"Queue: {len(waiting)} waiting",
        )
        return "\n".join(lines)

    async def _backfilled(self, row: SessionRow) -> SessionEntry:
        """The entry with missing counters from the latest usage in the transcript (STAT-2)."""
        entry = row.entry
        if entry.input_tokens and entry.output_tokens and entry.total_tokens:
            return entry
        recalled = await self._recall.newest(row.window_no, _USAGE_MESSAGES, max_bytes=_USAGE_READ_BYTES)
        for stored in reversed(recalled.entries):
            usage = _decode(stored.body).get("usage") if stored.role == "assistant" else None
            if isinstance(usage, dict) and any(_tokens(usage, name) for name in ("input", "output")):
                return _fill(entry, usage)
        return entry


def _fill(entry: SessionEntry, usage: dict[str, Any]) -> SessionEntry:
    """Live values that are not zero win."""
    used = {name: _tokens(usage, name) for name in ("input", "output", "cacheRead", "cacheWrite")}
    is_known = bool(entry.total_tokens)
    return replace(
        entry,
        input_tokens=entry.input_tokens or used["input"],
        output_tokens=entry.output_tokens or used["output"],
        cache_read=entry.cache_read or used["cacheRead"],
        cache_write=entry.cache_write or used["cacheWrite"],
        # What the model was given last: the same sum that the end of a run writes.
        total_tokens=entry.total_tokens or used["input"] + used["cacheRead"] + used["cacheWrite"],
        total_tokens_fresh=entry.total_tokens_fresh if is_known else True,
    )


def _tokens(usage: dict[str, Any], name: str) -> int:
    value = usage.get(name)
    return value if isinstance(value, int) and value > 0 else 0


def _with_model(entry: SessionEntry, hint: ModelHint | None) -> SessionEntry:
    if hint is not None:
        chosen = choose_model(entry, hint)
    else:
        chosen = replace(
            entry,
            provider_override=None,
            model_override=None,
            model_override_source=None,
            auth_profile_override=None,
        )
    return replace(chosen, live_model_switch_pending=True) if entry.status == "running" else chosen


def _choice(entry: SessionEntry) -> tuple[str | None, str | None]:
    return entry.provider_override, entry.model_override


def _age(row: SessionRow, now_ms: int) -> str:
    started = row.entry.session_started_at
    since = "" if started is None else f"started {duration(now_ms - started)} ago, "
    return f"{since}{row.message_count} messages"


def _activity(entry: SessionEntry, now_ms: int) -> str:
    if entry.status == "running" and entry.started_at is not None:
        return f"working for {duration(now_ms - entry.started_at)}"
    return "last run was stopped" if entry.aborted_last_run else "idle"


def _model_text(entry: SessionEntry, target: ModelTarget, agent: AgentSettings) -> str:
    name = f"{target.provider}/{target.model}"
    if not entry.model_override:
        return f"{name} (the default)"
    default = agent.default_model
    return f"{name} (chosen for this session; the default is {default.provider}/{default.model})"


def _runtime(agent: AgentSettings, row: SessionRow) -> str:
    return "sandboxed" if agent.is_sandboxed(row.session_key) else "direct"


def _cost(entry: SessionEntry) -> str:
    return UNKNOWN if entry.estimated_cost_usd is None else f"${entry.estimated_cost_usd:.4f}"


def _context_text(entry: SessionEntry, target: ModelTarget) -> str:
    limit = entry.context_tokens or target.context_window
    if not entry.total_tokens or entry.total_tokens_fresh is False:
        return f"{UNKNOWN} of {limit:,}"
    return f"{entry.total_tokens:,}/{limit:,} ({100 * entry.total_tokens // limit} %)"


def _children_text(children: list[Met]) -> str:
    if not children:
        return "none"
    active = sum(1 for child in children if child.row.entry.status == "running")
    names = ", ".join(child.row.entry.label or child.row.session_key for child in children[:5])
    return f"{active} active of {len(children)}: {names}"


_SPEC = tool_spec(
    "session_status",
    "Show a card about a session: time, model, tokens, context in use, cost, sub-agents. With model it "
    "first sets which model the session uses.",
    StatusParameters,
    parallel=False,
)
