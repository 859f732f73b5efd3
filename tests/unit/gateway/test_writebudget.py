"""Three changes a minute per method and client, in a bounded memory."""

from __future__ import annotations

from typing import Any

import pytest

from openclaw.errors import Unavailable
from openclaw.gateway import writebudget
from openclaw.gateway.writebudget import WriteBudget
from tests.fakes.clock import MovableClock


class Peer:
    """As much of a client as the budget looks at."""

    def __init__(self, ip: str | None = "10.0.0.1", device_id: str | None = None) -> None:
        self.peer_ip = ip
        self.connection = self
        self.device_id = device_id


class StillClock(MovableClock):
    """Stands still between moves."""

    def monotonic(self) -> float:
        return self._quiet_s


def spend(budget: WriteBudget, method: str = "config.set", peer: Peer | None = None) -> None:
    client: Any = peer or Peer()
    budget.spend(method, client)


def test_the_fourth_within_a_minute_is_refused_until_the_first_is_old() -> None:
    clock = StillClock()
    budget = WriteBudget(clock)
    spend(budget)
    clock.move(20)
    spend(budget)
    spend(budget)
    clock.move(39.5)
    with pytest.raises(Unavailable, match=r"rate limit exceeded for config\.set; retry after 1s") as refused:
        spend(budget)
    assert refused.value.fields == {
        "retry_after_ms": 501, "method": "config.set", "limit": "3 per 60s",
    }  # fmt: skip
    clock.move(0.5)
    spend(budget)  # exactly a minute later the first no longer counts
    with pytest.raises(Unavailable):
        spend(budget)


def test_methods_devices_and_addresses_are_counted_apart() -> None:
    budget = WriteBudget(StillClock())
    peers = [Peer(), Peer("10.0.0.2"), Peer(None), Peer(device_id="d1"), Peer(device_id="d2")]
    for peer in peers:
        for _ in range(3):
            spend(budget, peer=peer)
            spend(budget, "config.patch", peer)
        with pytest.raises(Unavailable):
            spend(budget, peer=peer)


def test_only_so_many_clients_are_remembered(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(writebudget, "MAX_TRACKED", 2)
    budget = WriteBudget(StillClock())
    for number in range(50):
        spend(budget, peer=Peer(f"10.0.0.{number}"))
    assert len(budget._times) == 2
    spend(budget, peer=Peer("10.0.0.49"))
    spend(budget, peer=Peer("10.0.0.49"))
    with pytest.raises(Unavailable):
        spend(budget, peer=Peer("10.0.0.49"))
