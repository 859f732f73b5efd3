"""session_status: a short card about the calling session (SPEC §16.5)."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

from openclaw.domain.transcript import TextBlock
from openclaw.engine.ports import ToolContext, ToolOutcome, ToolSpec
from openclaw.errors import SessionNotFound
from openclaw.store.records import SessionRow
from openclaw.store.store import Store


class SessionStatusTool:
    def __init__(self, store: Store, version: str) -> None:
        self._store = store
        self._version = version

    @property
    def spec(self) -> ToolSpec:
        return _SPEC

    async def call(self, arguments: dict[str, Any], context: ToolContext) -> ToolOutcome:
        row = await self._store.session(context.session_key)
        if row is None:
            raise SessionNotFound(f"session not found: {context.session_key}")
        details = {"ok": True, "sessionKey": row.session_key, "changedModel": False}
        return ToolOutcome((TextBlock(self._card(row, context.now_ms)),), details=details)

    def _card(self, row: SessionRow, now_ms: int) -> str:
        entry = row.entry
        used, window = entry.total_tokens, entry.context_tokens
        share = f"{used}/{window} ({100 * used // window} %)" if used is not None and window else "unknown"
        model = f"{entry.model_provider}/{entry.model}" if entry.model else "not called yet"
        started = entry.session_started_at
        lines = (
            f"OpenClaw {self._version}",
            f"Time: {datetime.fromtimestamp(now_ms / 1000, UTC):%Y-%m-%d %H:%M} UTC",
            f"Session: {row.session_key} ({row.message_count} messages)",
            f"Started: {datetime.fromtimestamp(started / 1000, UTC):%Y-%m-%d %H:%M} UTC" if started else "",
            f"Model: {model}",
            f"Tokens of the last turn: in {_count(entry.input_tokens)}, out {_count(entry.output_tokens)}",
            f"Context: {share}; compactions: {entry.compaction_count}",
            f"Thinking: {entry.thinking_level or 'default'}, verbose: {entry.verbose_level or 'default'}",
        )
        return "\n".join(line for line in lines if line)


def _count(value: int | None) -> str:
    return "unknown" if value is None else str(value)


_SPEC = ToolSpec(
    "session_status",
    "Show a short card about this session: time, model, tokens and context in use.",
    {"type": "object", "properties": {}, "additionalProperties": False},
)
