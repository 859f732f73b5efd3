"""From a session key to the row it would create: its shape is read once, here (AMB-38)."""

from __future__ import annotations

from openclaw.domain.keys import (
    KeySettings,
    KeyShape,
    SessionKey,
    channel_of_key,
    chat_type_of_key,
    format_key,
    session_kind,
)
from openclaw.domain.lifecycle import session_type
from openclaw.store.records import SessionSeed

_SPECIAL = {KeyShape.cron_run: "cron-run", KeyShape.global_: "global", KeyShape.unknown: "unknown"}


def seed_for_key(
    key: SessionKey, agent_id: str, settings: KeySettings, channel: str | None = None
) -> SessionSeed:
    """`channel` counts where the key names none."""
    text, chat_type = format_key(key), chat_type_of_key(key)
    return SessionSeed(
        text,
        agent_id,
        _SPECIAL.get(key.shape) or session_kind(key, chat_type, settings),
        session_type(key_text=text),
        chat_type or "direct",
        channel_of_key(key) or channel,
    )
