"""What became of a reply that should also leave through a channel."""

from __future__ import annotations

import msgspec
import pytest

from openclaw.domain.deliverystatus import DeliveryPart, DeliveryStatus, judge_delivery

SENT = DeliveryPart("sent", 1)
FAILED = DeliveryPart("failed", 3, "the channel said no")
UNKNOWN = DeliveryPart("unknown", 1)
PREPARED = DeliveryPart("prepared", 0)
SENDING = DeliveryPart("sending", 1)


def judged(*parts: DeliveryPart, requested: bool = True, has_route: bool = True) -> DeliveryStatus:
    return judge_delivery(requested=requested, has_route=has_route, parts=parts)


@pytest.mark.spec("CLI-6")
@pytest.mark.parametrize(
    ("parts", "status", "attempted", "reason"),
    [
        ((SENT,), "sent", True, None),
        ((SENT, SENT), "sent", True, None),
        ((FAILED,), "failed", True, "the channel said no"),
        ((UNKNOWN,), "failed", True, "it was not confirmed"),
        ((UNKNOWN, FAILED), "failed", True, "the channel said no"),
        ((SENT, FAILED), "partial_failed", True, "the channel said no"),
        ((SENT, UNKNOWN), "partial_failed", True, "it was not confirmed"),
        ((PREPARED,), "queued", False, None),
        ((SENDING,), "queued", True, None),
        ((SENT, PREPARED), "queued", True, None),
        ((FAILED, PREPARED), "queued", True, None),
        ((DeliveryPart("failed", 0, "expired before it could be sent"),), "failed", False, "expired"),
    ],
)
def test_the_states_of_the_parts_make_one_word(
    parts: tuple[DeliveryPart, ...], status: str, attempted: bool, reason: str | None
) -> None:
    found = judged(*parts)
    assert (found.requested, found.attempted, found.status) == (True, attempted, status)
    assert found.reason is None if reason is None else (found.reason or "").startswith(reason)


@pytest.mark.spec("CLI-6")
def test_what_was_not_sent_says_why() -> None:
    unasked = judged(SENT, requested=False)
    assert (unasked.requested, unasked.attempted, unasked.status) == (False, False, "suppressed")
    assert unasked.reason == "delivery was not asked for"
    nowhere, silent = judged(has_route=False), judged(has_route=True)
    assert (nowhere.requested, nowhere.attempted, nowhere.status) == (True, False, "suppressed")
    assert "no channel to send to" in str(nowhere.reason)
    assert (silent.status, silent.attempted) == ("suppressed", False)
    assert "send policy" in str(silent.reason)
    assert msgspec.to_builtins(judged(SENT)) == {"requested": True, "attempted": True, "status": "sent"}
