"""A session as a row of sessions_list (LIST-3, LIST-4, LIST-6, LIST-7).

Draws rows that were already found visible; keys of other sessions in a row are shown
only if those are visible too. Every text is short, so that a list stays one.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, get_args

import msgspec

from openclaw.domain.doortext import clean_text, cut
from openclaw.domain.groups import SessionKind, row_channel
from openclaw.domain.titles import derive_title, preview
from openclaw.engine.settings import EngineSettings
from openclaw.engine.tools.sessions.reach import Sight
from openclaw.store.recall import Met
from openclaw.store.records import SessionRow

TEXT_CHARS = 200
# Fields that stand in a row only when they are set.
_EXTRAS = (
    "status", "started_at", "ended_at", "runtime_ms", "estimated_cost_usd", "fast_mode", "reasoning_level",
    "elevated_level", "response_usage",
)  # fmt: skip
_KINDS: tuple[SessionKind, ...] = get_args(SessionKind)
_SPECIAL_KINDS: dict[str, SessionKind] = {"cron-run": "cron", "global": "main"}


def kind_of(row: SessionRow) -> SessionKind:
    """The kind as tools spell it, from the column; a run of a cron job is of the job's kind (LIST-7)."""
    kind = _SPECIAL_KINDS.get(row.kind, row.kind)
    return next((known for known in _KINDS if known == kind), "other")


class RowView:
    """`transcript_path` is where an export of the session is saved, if it has such a place (AMB-6)."""

    def __init__(
        self,
        settings: Callable[[], EngineSettings],
        transcript_path: Callable[[SessionRow], str | None],
    ) -> None:
        self._settings = settings
        self._transcript_path = transcript_path

    def draw(
        self, row: SessionRow, sight: Sight, children: Sequence[Met], *, host_paths: bool = True
    ) -> dict[str, Any]:
        """The row with what is known from columns. A sandboxed caller is not told paths of the host."""
        entry = row.entry
        kind = kind_of(row)
        route = entry.delivery_context
        target = self._settings().agent(row.agent_id).choose_models(entry, None)[0]
        last_channel = route.channel if route else None
        drawn = {
            "key": sight.show_key(row.session_key),
            "agentId": row.agent_id,
            "kind": kind,
            "channel": row_channel(kind, entry.channel, last_channel),
            "updatedAt": entry.updated_at,
            "sessionId": entry.session_id,
            "model": entry.model or target.model,
            "contextTokens": entry.context_tokens or target.context_window,
            "totalTokens": entry.total_tokens,
            "thinkingLevel": entry.thinking_level,
            "verboseLevel": entry.verbose_level,
            "systemSent": entry.system_sent,
            "abortedLastRun": entry.aborted_last_run,
            "lastChannel": last_channel,
            "lastTo": route.to if route else None,
        }
        known = {name: value for name, value in self._optional(row, sight, host_paths).items() if value}
        set_extras = {_camel(name): value for name in _EXTRAS if (value := getattr(entry, name)) is not None}
        seen = [sight.show_key(one.row.session_key) for one in children if sight.sees(one.facts)]
        related = {"childSessions": seen} if seen else {}
        return _short({**drawn, **known, **set_extras, **related})

    def _optional(self, row: SessionRow, sight: Sight, host_paths: bool) -> dict[str, Any]:
        entry = row.entry
        route, origin = entry.delivery_context, entry.origin
        lineage = (entry.spawned_by, entry.parent_session_key)
        spawned_by, parent = (None if key is None else sight.show_key(key) for key in lineage)
        return {
            "label": entry.label,
            "displayName": entry.display_name,
            "sendPolicy": entry.send_policy,
            "lastAccountId": route.account_id if route else None,
            "deliveryContext": msgspec.to_builtins(route) if route else None,
            "origin": _given(provider=origin.provider, accountId=origin.account_id) if origin else None,
            "spawnedBy": spawned_by,
            "parentSessionKey": parent,
            "transcriptPath": self._transcript_path(row) if host_paths else None,
        }

    def title(self, row: SessionRow, secrets: frozenset[str]) -> str:
        """Display name, else subject, else the first user message, else short id and date (LIST-9)."""
        entry = row.entry
        return derive_title(
            entry.display_name,
            entry.subject,
            row.first_text,
            entry.session_id,
            entry.updated_at,
            self._settings().resets.zone,
            secrets,
        )

    def preview(self, row: SessionRow, secrets: frozenset[str]) -> str:
        return preview(row.last_text or "", known_secrets=secrets)


def _given(**values: str | None) -> dict[str, str]:
    return {name: value for name, value in values.items() if value}


def _camel(name: str) -> str:
    first, *rest = name.split("_")
    return first + "".join(word.title() for word in rest)


# A key or an id is only of use whole; the store bounds them.
_WHOLE = frozenset(
    ("key", "agentId", "sessionId", "spawnedBy", "parentSessionKey", "childSessions", "transcriptPath")
)


def _short(drawn: dict[str, Any]) -> dict[str, Any]:
    return {name: value if name in _WHOLE else _shorten(value) for name, value in drawn.items()}


def _shorten(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: _shorten(item) for name, item in value.items()}
    return cut(clean_text(value), TEXT_CHARS) if isinstance(value, str) else value
