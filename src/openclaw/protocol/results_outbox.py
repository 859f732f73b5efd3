"""The answers of the outbox methods."""

from __future__ import annotations

from openclaw.protocol.results import Answer, Json


class OutboxList(Answer, frozen=True, kw_only=True):
    """`states` counts everything in the outbox; `before` continues the list, absent at its end."""

    ts: int
    deliveries: list[Json]
    states: dict[str, int]
    before: int | None = None


class OutboxItem(Answer, frozen=True, kw_only=True):
    """One delivery, with its whole text: as it is, after a retry, or as it was before it was dropped."""

    ok: bool
    delivery: Json
