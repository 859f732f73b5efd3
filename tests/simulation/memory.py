"""What the outside world knows: what was sent, what was answered, what was told. It survives every crash.

A broken promise is kept and raised where it is seen, as `Violation`. Nothing here reads the engine's memory.
"""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from random import Random
from typing import Any, Literal

from msgspec import Struct

from openclaw.engine.turns import Incoming
from openclaw.store.inbox import ExternalId
from tests.simulation.database import Faults, Image

START_MS = 1_772_445_600_000  # 2 March 2026, 10:00 UTC


class Violation(AssertionError):
    """A promise of the engine was broken."""


class Sent(Struct):
    """A message that an actor sent. `unknown`: the connection or the gateway went."""

    run_id: str
    session_key: str
    text: str
    mode: str | None
    group: tuple[Any, ...]
    external: ExternalId | None
    reset: bool = False
    attempts: int = 0
    taken: int = 0
    status: Literal["pending", "accepted", "refused", "unknown"] = "pending"


class Memory:
    """Everything that must not be forgotten in one story."""

    def __init__(self, seed: int) -> None:
        self.seed = seed
        self.rng = Random(f"actors {seed}")
        self.image = Image()
        self.faults = Faults()
        self.steps: Counter[str] = Counter()
        self.log: list[str] = []
        self.sent: dict[str, Sent] = {}
        self.incoming: dict[str, Incoming] = {}
        self.ended_s: dict[str, float] = {}  # run -> when its end was told
        self.externals: dict[ExternalId, str] = {}
        self.jump_ms = 0
        self.time: Callable[[], float] = lambda: 0.0  # of the process that lives
        self.processes = 0
        # What was told in events, over all processes.
        self.cancelled_told: Counter[str] = Counter()
        self.cancelled_seen: set[str] = set()
        self.ended_told: dict[str, list[tuple[int, str]]] = {}
        self.unsettled: Counter[str] = Counter()
        # Sessions in which a cancellation may go untold: a reset from outside, a process that went.
        self.quietly_cancelled: set[str] = set()
        self.tool_calls: Counter[str] = Counter()
        self.delivered: Counter[int] = Counter()
        self.calls: dict[int, float] = {}  # number of a model call -> what it cost
        self.violations: list[str] = []
        self.prefix_pairs = 0
        self.prefix_kept = 0
        self.prefix_lost: list[str] = []

    @property
    def total_steps(self) -> int:
        return sum(self.steps.values())

    def step(self, kind: str, detail: str = "") -> None:
        self.steps[kind] += 1
        self.log.append(f"{self.time():.3f} {kind} {detail}")

    def is_command(self, run_id: str) -> bool:
        return run_id.startswith("command ")

    def is_own(self, run_id: str) -> bool:
        """Whether the gateway itself made this input, or a person's command that is no message."""
        if self.is_command(run_id) or ":" in run_id:
            return True
        return bool(self.image.one("SELECT count(*) FROM spawns WHERE child_run_id = ?", run_id))

    def broken(self, text: str) -> None:
        """A promise is broken. Kept as well as raised: whoever called may catch exceptions."""
        self.violations.append(text)
        raise Violation(text)

    def note(self, text: str) -> None:
        self.log.append(f"{self.time():.3f}   {text}")

    def now_ms(self, loop_s: float) -> int:
        return START_MS + self.jump_ms + round(loop_s * 1000)


class _Listener(logging.Handler):
    def __init__(self, memory: Memory) -> None:
        super().__init__()
        self._memory = memory

    def emit(self, record: logging.LogRecord) -> None:
        self._memory.log.append(f"{self._memory.time():.3f}   log: {record.getMessage()}")
        if record.exc_info and not isinstance(record.exc_info[1], Violation):
            self._memory.violations.append(f"logged: {record.getMessage()} {record.exc_info[1]!r}")


@contextmanager
def failures_kept(memory: Memory) -> Iterator[None]:
    """What the gateway logs goes into the story; an exception that it did not expect breaks a promise."""
    log, listener = logging.getLogger("openclaw"), _Listener(memory)
    propagates, level = log.propagate, log.level
    log.addHandler(listener)
    log.propagate = False
    # Whatever another test in this process left: a story depends on its seed alone.
    log.setLevel(logging.INFO)
    try:
        yield
    finally:
        log.removeHandler(listener)
        log.propagate = propagates
        log.setLevel(level)
