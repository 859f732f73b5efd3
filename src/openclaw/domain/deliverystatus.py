"""What became of a reply that should also leave through a channel (CLI-6).

Pure: from what was asked and the state of the delivery to one word and its reason.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, Literal

from msgspec import Struct

DeliveryWord = Literal["sent", "suppressed", "queued", "partial_failed", "failed"]

_WAITING: Final = ("prepared", "sending")
_NOT_ASKED: Final = "delivery was not asked for"
_NO_ROUTE: Final = "the session has no channel to send to; name one with a reply channel and target"
_NOTHING_TO_SEND: Final = "there was nothing to send, or the send policy does not let it out"


class DeliveryPart(Struct, frozen=True):
    """One delivery of a reply: its state in the outbox, how often it was tried, what went wrong."""

    state: str
    attempts: int
    error: str | None = None


class DeliveryStatus(Struct, frozen=True, rename="camel", omit_defaults=True):
    requested: bool
    attempted: bool
    status: DeliveryWord
    reason: str | None = None


def judge_delivery(*, requested: bool, has_route: bool, parts: Sequence[DeliveryPart]) -> DeliveryStatus:
    """The word for all parts of a reply. What is `unknown` was not confirmed, so it counts as failed.

    "queued" is a delivery that is on disk and will be tried: nobody has to send it again.
    """
    if not requested:
        return DeliveryStatus(False, False, "suppressed", _NOT_ASKED)
    if not parts:
        return DeliveryStatus(True, False, "suppressed", _NOTHING_TO_SEND if has_route else _NO_ROUTE)
    attempted = any(part.attempts > 0 for part in parts)
    if any(part.state in _WAITING for part in parts):
        return DeliveryStatus(True, attempted, "queued")
    lost = [part for part in parts if part.state != "sent"]
    if not lost:
        return DeliveryStatus(True, attempted, "sent")
    reason = next((part.error for part in lost if part.error), "it was not confirmed")
    return DeliveryStatus(True, attempted, "failed" if len(lost) == len(parts) else "partial_failed", reason)
