"""The state machine: arbitrary operations on a store and on the model, which must always agree.

One class for every database; what differs is how it is opened. Answers are compared at every step, the whole
picture of the database and the rules that hold whatever was done at every few. Not a test itself: the tests
say how long it runs and on what, and that it finds bugs.
"""

from __future__ import annotations

import asyncio
import importlib.util
import itertools
import os
import tempfile
from collections import Counter
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path
from typing import Any, ClassVar, TypeVar

from hypothesis import HealthCheck, Phase, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)

from openclaw.domain.searchtext import query_terms
from openclaw.store.database import Database
from openclaw.store.sessions import ListQuery
from openclaw.store.sqlite import SqliteDatabase
from openclaw.store.store import Store
from tests.conformance import operations as ops
from tests.conformance.making import unique_name
from tests.conformance.model import Model
from tests.conformance.model import outcome_of as expected_of
from tests.conformance.operations import KEYS, WEIGHTS, WORDS, Chooser, Operation, about
from tests.conformance.performing import outcome_of, ready
from tests.conformance.picture import compare

STEPS_PER_EXAMPLE = 50
LOOK_EVERY = 5
VACUUM_EVERY = 25
SHARED_MEMORY = "/dev/shm"
# A machine that stands still for half a minute is no finding: no unit is ended for being slow.
PATIENT: dict[str, Any] = {"unit_budget_s": 600.0}
KINDS = [kind for kind, weight in WEIGHTS.items() for _ in range(weight)]
_Result = TypeVar("_Result")


class Backend:
    """How a database is opened for one example. `lasting`: it can be closed and opened again.
    `ordered`: units that are handed over together are carried out in that order. `empty` is called before an
    example and returns where its database is, when that is not a file in the place of the example."""

    def __init__(
        self,
        opened: Callable[[str], Awaitable[Database]],
        *,
        lasting: bool,
        ordered: bool,
        empty: Callable[[], str] | None = None,
    ) -> None:
        self.open = opened
        self.lasting = lasting
        self.ordered = ordered
        self.empty = empty


async def _open_file(place: str) -> Database:
    return await SqliteDatabase.open(Path(place) / "state" / "openclaw.sqlite", readers=1, **PATIENT)


async def _open_memory(name: str) -> Database:
    return await SqliteDatabase.open_memory(name, readers=1, **PATIENT)


async def _open_postgres(url: str) -> Database:
    return await PostgresDatabase.open(url, readers=1, **PATIENT)


# One entry per database of the `database` fixture; another driver is another entry.
BACKENDS = {
    "sqlite-memory": Backend(_open_memory, lasting=False, ordered=True, empty=unique_name),
    "sqlite-file": Backend(_open_file, lasting=True, ordered=True),
}
# In CI a missing package is a failure, not a smaller suite.
if os.environ.get("CI") or importlib.util.find_spec("psycopg"):
    from openclaw.store.postgres import PostgresDatabase
    from tests.fakes.postgres_server import shared_server

    _wiped = itertools.count(1)

    def _empty_postgres() -> str:
        url = shared_server().wiped()
        if next(_wiped) % VACUUM_EVERY == 0:
            # The server does not do it by itself here, and rows of a thousand examples ago take time to skip.
            shared_server().execute("VACUUM", url)
        return url

    # One thread writes, so the order of the callers is the order of their units here too.
    BACKENDS["postgres"] = Backend(_open_postgres, lasting=True, ordered=True, empty=_empty_postgres)


class StoreMachine(RuleBasedStateMachine):
    backend: ClassVar[Backend]
    histogram: ClassVar[Counter[str]]

    def __init__(self) -> None:
        super().__init__()
        # Not about the disk: a file system in memory, where there is one, makes ten times the steps.
        self.place = tempfile.TemporaryDirectory(dir=SHARED_MEMORY if Path(SHARED_MEMORY).is_dir() else None)
        self.runner = asyncio.Runner()
        self.model = Model()
        self.chooser = Chooser(self.model, lambda _count: 0)
        self.steps = 0
        self.where = self.place.name if self.backend.empty is None else self.backend.empty()
        self._open()

    def _open(self) -> None:
        self.database = self.wait(self.backend.open(self.where))
        self.store = Store(self.database)
        self.opened_at = self.steps

    def wait(self, work: Awaitable[_Result]) -> _Result:
        async def whole() -> _Result:
            return await work

        return self.runner.run(whole())

    def _chosen(self, kind: str, data: st.DataObject) -> Operation | None:
        self.chooser.pick = lambda count: data.draw(st.integers(0, count - 1)) if count > 1 else 0
        return self.chooser.make(kind)

    def _count(self, name: str) -> None:
        self.steps += 1
        self.histogram[name] += 1

    def act(self, kind: str, data: st.DataObject) -> None:
        """One operation alone."""
        op = self._chosen(kind, data)
        if op is None:
            return
        self._count(type(op).__name__)
        answered = self.wait(self._perform(op))
        expected = expected_of(self.model, op)
        assert answered == expected, f"{op}\nanswered {answered}\nexpected {expected}"

    async def _perform(self, op: Operation) -> tuple[Any, ...]:
        return await outcome_of(await ready(self.store, self.database, op))

    @precondition(lambda self: self.backend.ordered)
    @rule(kinds=st.lists(st.sampled_from(KINDS), min_size=2, max_size=4), data=st.data())
    def act_together(self, kinds: list[str], data: st.DataObject) -> None:
        """Several operations on different sessions at the same moment: one commit, as a rule."""
        chosen: list[Operation] = []
        for kind in kinds:
            op = self._chosen(kind, data)
            key = None if op is None else about(op, self.model)
            if op is not None and key is not None and key not in [about(o, self.model) for o in chosen]:
                chosen.append(op)
        for op in chosen:
            self._count(f"{type(op).__name__} together")
        self._agree_on(chosen)

    @precondition(lambda self: self.backend.ordered)
    @rule(key=st.sampled_from(KEYS), words=st.lists(st.sampled_from(WORDS), min_size=2, max_size=5))
    def append_together(self, key: str, words: list[str]) -> None:
        """Several appends to one session at the same moment: each gets a place of its own."""
        chosen = [ops.Append(key, (ops.Note(word),), self.chooser.now) for word in words]
        for _ in chosen:
            self._count("Append to one session")
        self._agree_on(chosen)

    def _agree_on(self, chosen: Sequence[Operation]) -> None:
        async def together() -> list[tuple[Any, ...]]:
            calls = [await ready(self.store, self.database, op) for op in chosen]
            return await asyncio.gather(*(outcome_of(call) for call in calls))

        answered = self.wait(together())
        expected = [expected_of(self.model, op) for op in chosen]
        assert answered == expected, f"{chosen}\nanswered {answered}\nexpected {expected}"

    @rule(key=st.sampled_from(KEYS), words=st.lists(st.sampled_from(WORDS), min_size=1, max_size=2))
    def look(self, key: str, words: list[str]) -> None:
        """Read as a client does: a list, a page of history, a search."""
        self._count("look")
        self.wait(self._look(key, " ".join(words)))

    async def _look(self, key: str, text: str) -> None:
        agent_id = ops.seed_of(key).agent_id
        page = await self.store.list_sessions(ListQuery(agent_id=agent_id))
        listed = self.model.newest_first(agent_id, archived=False)
        assert ([row.session_key for row in page.rows], page.total) == (listed, len(listed))
        history, session = await self.store.history(key, 5, people_only=False), self.model.sessions.get(key)
        assert (history is None) == (session is None)
        if history is not None and session is not None:
            said = [item.seq for item in self.model.entries[session.entry.session_id][-5:]]
            waits = [item.run_id for item in self.model.queued(key)]
            run = self.model.active_run(key)
            assert [entry.seq for entry in history.entries] == said
            assert [item.run_id for item in history.pending] == waits
            assert (history.active_run and history.active_run.run_id) == (run and run.run_id)
        hits = await self.store.search(query_terms(text), limit=1000)
        assert [(hit.session_id, hit.seq) for hit in hits] == self.model.find(text)

    @precondition(lambda self: self.backend.lasting and self.steps >= self.opened_at + LOOK_EVERY)
    @rule()
    def reopen(self) -> None:
        """Stop and start: nothing may change. Not again before there is something new to lose."""
        self._count("reopen")
        self.wait(self.database.close())
        self._open()

    @invariant()
    def agree(self) -> None:
        if self.steps % LOOK_EVERY == 0:
            assert self.wait(compare(self.database, [self.model])) == []

    def teardown(self) -> None:
        try:
            assert self.wait(compare(self.database, [self.model])) == []
        finally:
            self.wait(self.database.close())
            self.runner.close()
            self.place.cleanup()


def _rule_of(kind: str) -> Any:
    def act(self: StoreMachine, data: st.DataObject) -> None:
        self.act(kind, data)

    act.__name__ = kind
    return rule(data=st.data())(act)


def _rules(often: Sequence[str]) -> dict[str, Any]:
    """A rule per kind, and more of them for what happens often: rules are chosen with equal chances."""
    copies = {kind: 1 + weight // 6 + 8 * (kind in often) for kind, weight in WEIGHTS.items()}
    return {f"{kind}_{copy}": _rule_of(kind) for kind, count in copies.items() for copy in range(count)}


def run_machine(name: str, examples: int, *, shrink: bool = True, often: Sequence[str] = ()) -> Counter[str]:
    """Run the machine on one database; the kinds of steps that were made. Raises what it finds.

    `often` are kinds of steps that shall be made more often than usual, to look closely at one matter.
    """
    histogram: Counter[str] = Counter()
    made = {"backend": BACKENDS[name], "histogram": histogram, **_rules(often)}
    machine = type("Machine", (StoreMachine,), made)
    phases = (Phase.generate, Phase.shrink) if shrink else (Phase.generate,)
    effort = settings(
        max_examples=examples, stateful_step_count=STEPS_PER_EXAMPLE, deadline=None, database=None,
        phases=phases, suppress_health_check=list(HealthCheck), report_multiple_bugs=False,
    )  # fmt: skip
    try:
        run_state_machine_as_test(machine, settings=effort)
    except BaseException as error:
        error.add_note(f"after {sum(histogram.values())} steps")
        raise
    return histogram


def table(histogram: Counter[str]) -> str:
    lines = [f"{count:9,}  {name}" for name, count in histogram.most_common()]
    return "\n".join([*lines, f"{sum(histogram.values()):9,}  steps"])
