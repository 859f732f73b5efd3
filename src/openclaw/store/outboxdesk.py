"""What a person does with deliveries: look at them, have one sent again, give one up.

The worker that sends is not here. Nothing that was sent, or is being sent, can be
taken back; what is `unknown` is sent again only because a person says so (PITFALLS C4).
"""

from __future__ import annotations

from typing import Any

import msgspec
from msgspec import Struct

from openclaw.domain.deliverystatus import DeliveryPart
from openclaw.errors import InvalidRequest
from openclaw.store import outbox
from openclaw.store.database import Database, Row, Transaction
from openclaw.store.outbox import SQL, Delivery

# So long may a delivery that a person sends again wait for its channel.
RETRY_LIFE_MS = 15 * 60 * 1000
MOST_LISTED = 500
_LAST = 2**62
_SHOWN_CHARS = 120


class DeliveryRow(Delivery, frozen=True, rename="camel"):
    """One delivery with its fate."""

    updated_at: int
    error: str | None


class DeliveryQuery(Struct, frozen=True):
    """Which deliveries. An empty word asks for all; `before` continues a list."""

    state: str = ""
    channel: str = ""
    session_key: str = ""
    before: int = _LAST
    limit: int = 50

    def continued(self, before: int) -> DeliveryQuery:
        return msgspec.structs.replace(self, before=before)


class DeliveryPage(Struct, frozen=True):
    """Newest first. `states` counts the whole outbox; `before` continues the list, None ends it."""

    deliveries: tuple[DeliveryRow, ...]
    states: dict[str, int]
    before: int | None


class OutboxDesk:
    def __init__(self, database: Database) -> None:
        self._database = database

    async def page(self, query: DeliveryQuery) -> DeliveryPage:
        limit = min(max(query.limit, 1), MOST_LISTED)

        def read(tx: Transaction) -> DeliveryPage:
            asked = (query.state, query.channel, query.session_key, query.before, limit + 1)
            rows = [DeliveryRow(*row) for row in tx.rows(SQL["list"], asked)]
            more = len(rows) > limit
            shown = tuple(rows[:limit])
            return DeliveryPage(shown, outbox.states(tx), shown[-1].delivery_no if more else None)

        return await self._database.read(read)

    async def get(self, delivery_no: int) -> DeliveryRow:
        """Raises InvalidRequest when there is none with this number."""
        row = await self._database.read(lambda tx: tx.row(SQL["get"], (delivery_no,)))
        return _require(row, delivery_no)

    async def reply_of(self, run_id: str) -> tuple[DeliveryPart, ...]:
        """What became of the reply of a run; empty when none was to leave."""

        def read(tx: Transaction) -> tuple[DeliveryPart, ...]:
            return tuple(DeliveryPart(*row) for row in tx.rows(SQL["reply_of"], (f"{run_id}:reply",)))

        return await self._database.read(read)

    async def retry(self, delivery_no: int, *, now_ms: int) -> DeliveryRow:
        """Let a failed or unknown delivery be sent again. Raises InvalidRequest for any other."""

        def unit(tx: Transaction) -> DeliveryRow:
            before = _require(tx.row(SQL["get"], (delivery_no,)), delivery_no)
            if not outbox.retry(tx, delivery_no, now_ms, now_ms + RETRY_LIFE_MS):
                raise InvalidRequest(
                    f"delivery {delivery_no} is {before.state}; only failed and unknown ones are sent again"
                )
            return _require(tx.row(SQL["get"], (delivery_no,)), delivery_no)

        return await self._database.write(unit)

    async def drop(self, delivery_no: int) -> DeliveryRow:
        """Give up a delivery that was not sent; returns what it was. Raises InvalidRequest for any other."""

        def unit(tx: Transaction) -> DeliveryRow:
            before = _require(tx.row(SQL["get"], (delivery_no,)), delivery_no)
            if tx.row(SQL["drop"], (delivery_no,)) is None:
                raise InvalidRequest(f"delivery {delivery_no} is {before.state} and cannot be taken back")
            return before

        return await self._database.write(unit)


def _require(row: Row | None, delivery_no: int) -> DeliveryRow:
    if row is None:
        raise InvalidRequest(f"no delivery {delivery_no}; `openclaw outbox list` shows them")
    return DeliveryRow(*row)


def delivery_view(row: DeliveryRow, *, whole: bool = False) -> dict[str, Any]:
    """A delivery as people and programs are shown it: its words, in a list only the first of them."""
    view: dict[str, Any] = msgspec.to_builtins(row)
    del view["body"]
    text = _text_of(row.body)
    view["text"] = text if whole or len(text) <= _SHOWN_CHARS else text[: _SHOWN_CHARS - 1] + "…"
    return view


def _text_of(body: bytes) -> str:
    """The words of a delivery; a body of another shape is shown as it is."""
    try:
        decoded = msgspec.json.decode(body)
    except (msgspec.DecodeError, UnicodeDecodeError):
        return body.decode("utf-8", "replace")
    text = decoded.get("text") if isinstance(decoded, dict) else None
    return text if isinstance(text, str) else body.decode("utf-8", "replace")
