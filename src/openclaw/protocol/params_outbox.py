"""The parameters of the outbox methods. Shapes only; all of them need the owner's scope."""

from __future__ import annotations

from typing import Annotated, Literal

from msgspec import Meta

from openclaw.protocol.connect import ClosedObject
from openclaw.protocol.params import IdText, Positive, SessionKeyText


class OutboxListParams(ClosedObject, frozen=True, kw_only=True):
    """Newest first; the `before` of one answer asks for the next page."""

    state: Literal["prepared", "sending", "sent", "unknown", "failed"] | None = None
    channel: IdText | None = None
    session_key: SessionKeyText | None = None
    before: Positive | None = None
    limit: Annotated[int, Meta(ge=1, le=500)] = 50


class OutboxItemParams(ClosedObject, frozen=True, kw_only=True):
    delivery_no: Positive
