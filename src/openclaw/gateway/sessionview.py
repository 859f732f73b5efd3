"""Session rows and messages as clients see them, from what the store gave.

One place decides what a row shows, so that lists, `describe` and change events
never differ.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from typing import Any, TypeVar

import msgspec

from openclaw.domain.display import (
    DISPLAY_MAX_BYTES,
    DISPLAY_MAX_CHARS,
    OVERSIZED,
    project_message,
    visible_rows,
)
from openclaw.domain.keys import KeyShape, main_session_key, parse_key
from openclaw.domain.silence import visible_reply
from openclaw.domain.titles import derive_title, preview
from openclaw.engine.commands.record import message_of
from openclaw.engine.settings import EngineSettings
from openclaw.protocol.rows import RowKind, client_message, levels_of, session_row
from openclaw.store.records import SessionRow, StoredEntry

Json = dict[str, Any]
Shown = TypeVar("Shown")
OFF_LOOP_BYTES = 64 * 1024
_KINDS: dict[str, RowKind] = {"group": "group", "global": "global", "unknown": "unknown"}
_BACKGROUND = {"cron", "cron-run", "hook", "node"}
_decode = msgspec.json.Decoder().decode


def row_for_client(
    row: SessionRow,
    settings: EngineSettings,
    *,
    now_ms: int,
    active_run_ids: Sequence[str] = (),
    titles: bool = False,
    last_message: bool = False,
    children: Sequence[str] = (),
) -> Json:
    """A session as the wire shows it. Titles and previews come from columns, never from a transcript."""
    entry = row.entry
    agent = settings.agent(row.agent_id)
    target = agent.choose_models(entry, None)[0]
    return session_row(
        row.session_key,
        row.agent_id,
        entry,
        kind=_KINDS.get(row.kind, "direct"),
        is_main=is_main(row, settings),
        snapshot_at=now_ms,
        model_provider=target.provider,
        model=target.model,
        context_tokens=target.context_window,
        active_run_ids=active_run_ids,
        is_background=row.kind in _BACKGROUND,
        unread=row.last_seq > row.read_seq,
        derived_title=title_of(row, settings) if titles else None,
        last_message_preview=preview(visible_reply(row.last_text or "")) or None if last_message else None,
        child_sessions=children,
        thinking_levels=levels_of(target.reasoning),
        thinking_default=agent.thinking_default or "off",
    )


def ancestors_of(row: SessionRow) -> list[Json] | None:
    """The sessions that a helper came from, as far as its own row knows them, the nearest first."""
    entry = row.entry
    above = dict.fromkeys(key for key in (entry.spawned_by, entry.spawn_root) if key)
    above.pop(row.session_key, None)
    return [{"key": key} for key in above] or None


def is_main(row: SessionRow, settings: EngineSettings) -> bool:
    key = parse_key(row.session_key, settings.keys)
    return key.shape is KeyShape.main or key == main_session_key(row.agent_id, settings.keys)


def title_of(row: SessionRow, settings: EngineSettings) -> str:
    entry = row.entry
    return derive_title(
        display_name=entry.display_name or entry.label,
        subject=entry.subject,
        first_user_text=row.first_text,
        session_id=entry.session_id,
        updated_at_ms=entry.updated_at,
        zone=settings.resets.zone,
    )


async def off_the_loop(entries: Sequence[StoredEntry], work: Callable[[], Shown]) -> Shown:
    """Make something of many or large entries on a thread: everybody else would wait for it."""
    heavy = sum(len(entry.body) for entry in entries) > OFF_LOOP_BYTES
    return await asyncio.to_thread(work) if heavy else work()


def messages_for_client(entries: Sequence[StoredEntry]) -> list[Json]:
    """The messages that people see of these entries, in their order."""
    shown = (message_for_client(entry) for entry in entries)
    return visible_rows([message for message in shown if message is not None])


def message_for_client(
    entry: StoredEntry, *, max_chars: int = DISPLAY_MAX_CHARS, max_bytes: int = DISPLAY_MAX_BYTES
) -> Json | None:
    """A stored message in its display form; None when it is not for people's eyes (RPC-11)."""
    said = message_of(entry) if entry.type == "custom" else _decode(entry.body)
    shown = None if said is None else project_message(said, max_chars=max_chars, max_bytes=max_bytes)
    if shown is None:
        return None
    is_user = entry.role == "user"
    projected = shown.get("__openclaw")
    told = client_message(
        shown,
        entry_id=entry.entry_id,
        seq=entry.seq,
        run_id=None if is_user else entry.run_id,
        idempotency_key=f"{entry.run_id}:user" if is_user and entry.run_id else None,
        record_timestamp_ms=entry.created_at,
    )
    if isinstance(projected, dict) and projected.get("reason") == OVERSIZED:
        told["__openclaw"] |= {"truncated": True, "reason": OVERSIZED}
    return told
