"""Counters about this gateway in the text form that Prometheus reads.

Fed by engine events: between two scrapes nothing is done but counting. What can be asked
for (runs, clients, memory) is asked at the scrape. Its registry is its own, so that two
gateways in one process do not mix. No label holds a session, a person or a text.
"""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec
from msgspec import Struct

from openclaw.domain.transcript import Usage
from openclaw.engine import events
from openclaw.errors import OpenClawError

if TYPE_CHECKING:
    from prometheus_client.core import Metric

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"
LAG_EVERY_S = 1.0
_LAG_BUCKETS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 5.0)
_TURN_BUCKETS = (0.1, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 120.0, 300.0, 600.0)


class _Body(Struct):
    """The only part of a stored message that is counted."""

    usage: Usage | None = None


_read_usage = msgspec.json.Decoder(_Body).decode


class _Tally:
    """A counter by one label. The event loop only adds; Prometheus is told at a scrape.

    The counters of the client library lock, look up and check at every step: they cost more than
    everything else that is done about an event that nobody listens to.
    """

    def __init__(self, name: str, about: str, label: str | None = None) -> None:
        self._name, self._about, self._label = name, about, label
        self._counts: dict[str, float] = {} if label else {"": 0}

    def add(self, amount: float = 1, kind: str = "") -> None:
        self._counts[kind] = self._counts.get(kind, 0) + amount

    def collect(self) -> Iterator[Metric]:
        from prometheus_client.core import CounterMetricFamily

        labels = [self._label] if self._label else []
        family = CounterMetricFamily(self._name, self._about, labels=labels)
        for kind, count in self._counts.items():
            family.add_metric([kind] if self._label else [], count)
        yield family


class Metrics:
    """The registry of one gateway. `observe` is part of the event sink."""

    def __init__(self) -> None:
        # Loaded here: a program that only talks to a gateway has no use for it.
        from prometheus_client import CollectorRegistry, Gauge, Histogram

        self.registry = registry = CollectorRegistry()
        self._turns = self._tally("openclaw_turns", "Turns that ended, by outcome.", "outcome")
        self._seconds = Histogram(
            "openclaw_turn_seconds", "How long turns took.", buckets=_TURN_BUCKETS, registry=registry
        )
        self._inputs = self._tally("openclaw_inputs", "Inputs that were accepted.")
        self._cancelled = self._tally(
            "openclaw_inputs_cancelled", "Inputs that left the queue without a turn."
        )
        self._calls = self._tally("openclaw_model_calls", "Model calls that began.", "provider")
        self._tools = self._tally("openclaw_tool_calls", "Tool calls that ended.", "result")
        self._tokens = self._tally("openclaw_tokens", "Tokens of answers in sessions.", "kind")
        self._cost = self._tally("openclaw_cost_usd", "US dollars that these tokens cost.")
        self._commits = self._tally("openclaw_messages_stored", "Messages that were committed.")
        self._lag = Histogram(
            "openclaw_event_loop_lag_seconds", "How late the event loop woke a timer.",
            buckets=_LAG_BUCKETS, registry=registry,
        )  # fmt: skip
        # By the kind of event: most kinds count nothing, and every delta of a reply is an event.
        self._counting: dict[type, Callable[[Any], None]] = {
            events.InputTaken: lambda _event: self._inputs.add(),
            events.InputCancelled: lambda _event: self._cancelled.add(),
            events.ModelCalled: lambda event: self._calls.add(kind=event.provider),
            events.ToolFinished: lambda event: self._tools.add(
                kind="error" if event.result.is_error else "ok"
            ),
            events.MessageStored: self._message_stored,
            events.RunEnded: self._run_ended,
        }
        self._make_gauge: Callable[..., Any] = Gauge
        self._read: list[tuple[Any, Callable[[], Awaitable[float]]]] = []
        self.ask("openclaw_resident_memory_bytes", "Memory of the process.", resident_bytes)

    def _tally(self, name: str, about: str, label: str | None = None) -> _Tally:
        tally = _Tally(name, about, label)
        self.registry.register(tally)
        return tally

    def ask(self, name: str, about: str, value: Callable[[], float]) -> None:
        """A figure that is asked for at every scrape; it must be cheap and never wait."""
        self._make_gauge(name, about, registry=self.registry).set_function(value)

    def count(self, name: str, about: str, read: Callable[[], Awaitable[float]]) -> None:
        """A figure that has to be read; `scrape` reads it, `render` shows what was read last."""
        self._read.append((self._make_gauge(name, about, registry=self.registry), read))

    def observe(self, event: events.EngineEvent) -> None:
        count = self._counting.get(type(event))
        if count is not None:
            count(event)

    def _message_stored(self, event: events.MessageStored) -> None:
        self._commits.add()
        if event.entry.role == "assistant":
            self._use(_usage_of(event.entry.body))

    def _run_ended(self, event: events.RunEnded) -> None:
        self._turns.add(kind=event.outcome)
        self._seconds.observe(max(0, event.ended_at - event.started_at) / 1000)
        if event.scope.hidden and event.message is not None:
            self._use(event.message.usage)

    def _use(self, usage: Usage | None) -> None:
        if usage is None:
            return
        kinds = {
            "input": usage.input,
            "output": usage.output,
            "cache_read": usage.cache_read,
            "cache_write": usage.cache_write,
        }
        for kind, count in kinds.items():
            if count > 0:
                self._tokens.add(count, kind)
        if usage.cost.total > 0:
            self._cost.add(usage.cost.total)

    async def watch_lag(self) -> None:
        """Look how late the event loop is, once a second."""
        while True:
            due = time.monotonic() + LAG_EVERY_S
            await asyncio.sleep(LAG_EVERY_S)
            self._lag.observe(max(0.0, time.monotonic() - due))

    async def scrape(self) -> bytes:
        """Everything, with what has to be read from the store read now."""
        for gauge, read in self._read:
            try:
                gauge.set(await read())
            except OpenClawError:
                gauge.set(float("nan"))  # not known, which is not zero
        return self.render()

    def render(self) -> bytes:
        """Everything, as `CONTENT_TYPE`. Takes a few milliseconds; nothing is read from the store."""
        from prometheus_client import generate_latest

        return generate_latest(self.registry)


def _usage_of(body: bytes) -> Usage | None:
    try:
        return _read_usage(body).usage
    except msgspec.DecodeError:
        return None


def resident_bytes() -> float:
    """Memory that the process occupies; 0 where the system does not tell."""
    try:
        with Path("/proc/self/statm").open("rb") as file:
            pages = int(file.read().split()[1])
    except (OSError, ValueError, IndexError):
        return 0.0
    return float(pages * os.sysconf("SC_PAGE_SIZE"))
