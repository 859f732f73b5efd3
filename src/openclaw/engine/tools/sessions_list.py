"""sessions_list: the sessions that the calling session may see, newest first (SPEC §13)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, get_args

import msgspec

from openclaw.domain.groups import SessionKind, row_channel
from openclaw.domain.keys import KeySettings, display_key, parse_key
from openclaw.domain.transcript import TextBlock
from openclaw.domain.visibility import (
    SessionCaller,
    TargetFacts,
    VisibilityPolicy,
    Visible,
    decide_visibility,
)
from openclaw.engine.ports import ToolContext, ToolOutcome, ToolSpec
from openclaw.store.records import SessionRow
from openclaw.store.sessions import ListQuery
from openclaw.store.store import Store

DEFAULT_LIMIT = 100
MOST_ROWS = 200
PAGE = 500
MOST_PAGES = 20


class SessionsListParams(msgspec.Struct, frozen=True, forbid_unknown_fields=True, rename="camel"):
    kinds: tuple[str, ...] = ()
    limit: int = DEFAULT_LIMIT
    active_minutes: int | None = None
    label: str | None = None
    agent_id: str | None = None
    search: str | None = None


class SessionsListTool:
    def __init__(
        self,
        store: Store,
        keys: Callable[[], KeySettings],
        visibility: Callable[[str], VisibilityPolicy],
    ) -> None:
        self._store = store
        self._keys = keys
        self._visibility = visibility

    @property
    def spec(self) -> ToolSpec:
        return _SPEC

    async def call(self, arguments: dict[str, Any], context: ToolContext) -> ToolOutcome:
        try:
            asked = msgspec.convert(arguments, SessionsListParams)
        except msgspec.ValidationError as error:
            return _result({"status": "error", "error": f"invalid arguments: {error}"}, is_error=True)
        rows = await self._visible_rows(asked, context)
        shown = [self._show(row, context) for row in rows]
        return _result({"count": len(shown), "sessions": shown})

    async def _visible_rows(self, asked: SessionsListParams, context: ToolContext) -> list[SessionRow]:
        """Filtering comes before the limit, so that nothing unseen shapes the answer (VIS-6)."""
        policy = self._visibility(context.agent_id)
        caller = SessionCaller(session_key=context.session_key, agent_id=context.agent_id)
        limit = min(max(asked.limit, 1), MOST_ROWS)
        since = context.now_ms - asked.active_minutes * 60_000 if asked.active_minutes else None
        wanted = set(asked.kinds) & _KINDS
        found: list[SessionRow] = []
        for page in range(MOST_PAGES):
            listed = await self._store.list_sessions(
                ListQuery(
                    agent_id=asked.agent_id, active_since_ms=since, label=asked.label, search=asked.search,
                    limit=PAGE, offset=page * PAGE,
                )
            )  # fmt: skip
            for row in listed.rows:
                visible = decide_visibility(policy, caller, _facts(row))
                if isinstance(visible, Visible) and (not wanted or row.kind in wanted):
                    found.append(row)
            if len(found) >= limit or len(listed.rows) < PAGE:
                break
        return found[:limit]

    def _show(self, row: SessionRow, context: ToolContext) -> dict[str, Any]:
        entry, keys = row.entry, self._keys()
        route = entry.delivery_context
        shown = {
            "key": display_key(parse_key(row.session_key, keys), agent_id=context.agent_id, settings=keys),
            "agentId": row.agent_id,
            "kind": _kind(row),
            "channel": row_channel(_kind(row), entry.channel, route.channel if route else None),
            "label": entry.label,
            "displayName": entry.display_name,
            "updatedAt": entry.updated_at,
            "sessionId": entry.session_id,
            "model": entry.model,
            "contextTokens": entry.context_tokens,
            "totalTokens": entry.total_tokens,
            "thinkingLevel": entry.thinking_level,
            "verboseLevel": entry.verbose_level,
            "systemSent": entry.system_sent,
            "abortedLastRun": entry.aborted_last_run,
            "sendPolicy": entry.send_policy,
        }
        return {name: value for name, value in shown.items() if value is not None}


_KINDS = {"main", "group", "cron", "hook", "node", "other"}


def _kind(row: SessionRow) -> SessionKind:
    """The kind as tools spell it; a run of a cron job is of the job's kind (LIST-7)."""
    known: dict[str, SessionKind] = {"cron-run": "cron", "global": "main"}
    if row.kind in known:
        return known[row.kind]
    kinds: tuple[SessionKind, ...] = get_args(SessionKind)
    return next((kind for kind in kinds if kind == row.kind), "other")


def _facts(row: SessionRow) -> TargetFacts:
    return TargetFacts(
        session_key=row.session_key,
        agent_id=row.agent_id,
        spawned_by=row.entry.spawned_by,
        parent_session_key=row.entry.parent_session_key,
        archived=row.entry.archived_at is not None,
    )


def _result(value: dict[str, Any], *, is_error: bool = False) -> ToolOutcome:
    return ToolOutcome((TextBlock(msgspec.json.encode(value).decode()),), is_error, value)


_SPEC = ToolSpec(
    "sessions_list",
    "List the sessions you may see, newest first, with key, kind, channel, model and token counts. "
    "Use search to find one by name.",
    {
        "type": "object",
        "properties": {
            "kinds": {"type": "array", "items": {"type": "string", "enum": sorted(_KINDS)}},
            "limit": {"type": "integer", "minimum": 1, "maximum": MOST_ROWS},
            "activeMinutes": {"type": "integer", "minimum": 1},
            "label": {"type": "string"},
            "agentId": {"type": "string"},
            "search": {"type": "string"},
        },
        "additionalProperties": False,
    },
)
