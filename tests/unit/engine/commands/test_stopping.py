"""/stop ends everything, verifies it, and says how much; /kill does so for sub-agents."""

from __future__ import annotations

import pytest

from openclaw.engine.commands.ports import Handled
from openclaw.engine.commands.stopping import PATIENCE_S, Stopped, stop_text
from openclaw.engine.events import InputCancelled
from openclaw.store.inbox import ExternalId
from openclaw.store.records import RunRow
from openclaw.store.runs import RunLost
from tests.conformance.making import DONE, NOON, begin, create, queue, say, seed
from tests.unit.engine.commands.house import KEY, House

CHILD, GRANDCHILD = seed("subagent:a"), seed("subagent:b")


async def family(house: House) -> None:
    """A run with a sub-agent that has one itself; all of them work, and messages wait."""
    await begin(house.store, "r1")
    await create(house.store, CHILD, spawned_by=KEY)
    await begin(house.store, "r2", to=CHILD)
    await create(house.store, GRANDCHILD, spawned_by=CHILD.session_key)
    await begin(house.store, "r3", to=GRANDCHILD)
    await queue(house.store, "w1", "later")
    await queue(house.store, "w2", to=GRANDCHILD)


@pytest.mark.spec("CMD-5", "CMD-6", "QUE-7")
@pytest.mark.parametrize("word", ["/stop", "stop!", "Esc"])
async def test_stop_ends_the_run_the_queue_and_every_sub_agent(house: House, word: str) -> None:
    await family(house)
    text = await house.ask(word, "c1")
    assert text == "Stopped the run and 2 sub-agent runs. 2 waiting messages will not run."
    for run_id in ("r1", "r2", "r3"):
        run = await house.store.run(run_id)
        assert run is not None
        assert (run.state, run.outcome, run.stop_reason) == ("ended", "aborted", "stop")
    for seeded in (KEY, CHILD.session_key, GRANDCHILD.session_key):
        assert await house.store.queued(seeded) == ()
        assert (await house.entry(seeded)).aborted_last_run is True
    unfinished = await house.store.unfinished()
    assert (unfinished.runs, unfinished.waiting) == ((), ())
    # The session's own run first, so that it starts nothing more.
    assert [run_id for _, run_id, _ in house.aborted] == ["r1", "r2", "r3"]
    cancelled = [event for event in house.events if isinstance(event, InputCancelled)]
    assert [(event.run_id, event.session_key) for event in cancelled] == [
        ("w1", KEY),
        ("w2", GRANDCHILD.session_key),
    ]


@pytest.mark.spec("CMD-5")
async def test_stop_is_acknowledged_only_when_everything_has_ended(house: House) -> None:
    await family(house)
    outcome = await house.read(say("c1", "/stop"))
    assert isinstance(outcome, Handled)
    assert outcome.text is not None
    assert (await house.store.unfinished()).runs == ()
    again = await house.read(say("c1", "/stop"))
    assert again == Handled("c1", KEY, NOON, outcome.text, duplicate=True)


@pytest.mark.spec("CMD-6")
async def test_messages_from_before_the_stop_do_not_run_and_later_ones_do(house: House) -> None:
    await begin(house.store, "r1")
    await queue(house.store, "w1", "before")
    place = ExternalId("telegram", "default", "42", "m9")
    await house.read(say("c1", "/stop", external=place))
    await queue(house.store, "w2", "after")
    assert [item.run_id for item in await house.store.queued(KEY)] == ["w2"]
    entry = await house.entry()
    assert (entry.abort_cutoff_timestamp, entry.abort_cutoff_message_sid) == (NOON, "m9")
    known = await house.store.input_state("w1")
    assert known is not None and known.state == "cancelled"


@pytest.mark.spec("CMD-5")
async def test_with_nothing_to_stop_it_says_so(house: House) -> None:
    assert await house.ask("/stop") == "Nothing was running."
    await queue(house.store, "w1")
    assert await house.ask("/stop") == "Nothing was running. 1 waiting message will not run."
    await begin(house.store, "r1")
    assert await house.ask("/stop") == "Stopped the run."
    await create(house.store, CHILD, spawned_by=KEY)
    await begin(house.store, "r2", to=CHILD)
    assert await house.ask("/stop") == "Stopped 1 sub-agent run."


@pytest.mark.spec("CMD-5")
async def test_a_run_that_does_not_listen_is_closed_and_its_owner_shut_out(house: House) -> None:
    claimed = await begin(house.store, "r1")
    house.deaf.add("r1")
    assert await house.ask("/stop") == "Stopped the run."
    assert house.clock.now_ms() >= NOON + PATIENCE_S * 1000
    run = await house.store.run("r1")
    assert run is not None and (run.state, run.outcome) == ("ended", "aborted")
    with pytest.raises(RunLost):
        await house.store.finish(claimed.run, (), DONE, now_ms=NOON)


@pytest.mark.spec("CMD-5")
async def test_a_run_that_ends_by_itself_counts_as_stopped(house: House) -> None:
    claimed = await begin(house.store, "r1")

    async def late(session_key: str, run_id: str, reason: str) -> tuple[str, ...]:
        await house.store.finish(claimed.run, (), DONE, now_ms=NOON)
        return ()

    house.give(abort_run=late)
    assert await house.ask("/stop") == "Stopped the run."


@pytest.mark.spec("CMD-5")
async def test_a_run_that_ends_just_before_it_is_closed_counts_as_stopped(
    house: House, monkeypatch: pytest.MonkeyPatch
) -> None:
    claimed = await begin(house.store, "r1")
    house.deaf.add("r1")
    take_over = house.store.take_over

    async def late(run_id: str, owner: str, *, now_ms: int) -> RunRow | None:
        await house.store.finish(claimed.run, (), DONE, now_ms=NOON)
        return await take_over(run_id, owner, now_ms=now_ms)

    monkeypatch.setattr(house.store, "take_over", late)
    assert await house.ask("/stop") == "Stopped the run."


@pytest.mark.spec("CMD-5")
async def test_what_cannot_be_stopped_is_admitted(house: House, monkeypatch: pytest.MonkeyPatch) -> None:
    await begin(house.store, "r1")
    await create(house.store, CHILD, spawned_by=KEY)
    await begin(house.store, "r2", to=CHILD)
    house.deaf.update(("r1", "r2"))

    async def lost(*_args: object, **_named: object) -> None:
        raise RunLost()

    monkeypatch.setattr(house.store, "finish", lost)
    assert await house.ask("/stop") == "Nothing was running. 2 runs did not end; send /stop again."


@pytest.mark.spec("CMD-6")
async def test_a_child_that_appears_during_the_stop_is_stopped_too(house: House) -> None:
    await begin(house.store, "r1")

    async def spawning(session_key: str, run_id: str, reason: str) -> tuple[str, ...]:
        if run_id == "r1":
            await create(house.store, CHILD, spawned_by=KEY)
            await begin(house.store, "r2", to=CHILD)
        return await house.abort_run(session_key, run_id, reason)

    house.give(abort_run=spawning)
    assert await house.ask("/stop") == "Stopped the run and 1 sub-agent run."
    assert (await house.store.unfinished()).runs == ()


@pytest.mark.spec("CMD-6")
async def test_what_starts_after_the_stop_is_left_alone(house: House) -> None:
    await create(house.store, CHILD, spawned_by=KEY)
    await begin(house.store, "r2", to=CHILD, at=NOON + 5)
    assert await house.ask("/stop") == "Nothing was running."
    run = await house.store.run("r2")
    assert run is not None and run.state == "active"


@pytest.mark.spec("CMD-5")
async def test_children_by_lineage_are_stopped_and_threads_are_not(house: House) -> None:
    thread = seed("discord:channel:1:thread:2", parent_session_key=KEY)
    await create(house.store, thread)
    await begin(house.store, "r5", to=thread)
    await begin(house.store, "r1")
    assert await house.ask("/stop") == "Stopped the run."
    run = await house.store.run("r5")
    assert run is not None and run.state == "active"


@pytest.mark.spec("CMD-5")
@pytest.mark.parametrize(
    ("stopped", "text"),
    [
        (Stopped(), "Nothing was running."),
        (Stopped(own=1, children=1), "Stopped the run and 1 sub-agent run."),
        (Stopped(children=2, waiting=1), "Stopped 2 sub-agent runs. 1 waiting message will not run."),
        (Stopped(stubborn=1), "Nothing was running. 1 run did not end; send /stop again."),
        (Stopped(own=1, stubborn=2), "Stopped the run. 2 runs did not end; send /stop again."),
    ],
)
def test_the_answer_states_how_many_were_stopped(stopped: Stopped, text: str) -> None:
    assert stop_text(stopped) == text


# -- /kill -------------------------------------------------------------------------------------


@pytest.mark.spec("CMD-11")
async def test_kill_stops_one_sub_agent_with_what_is_below_it(house: House) -> None:
    await family(house)
    sibling = seed("subagent:c")
    await create(house.store, sibling, spawned_by=KEY, label="poet")
    await begin(house.store, "r4", to=sibling)
    assert await house.ask("/kill a") == "Stopped 2 sub-agent runs. 1 waiting message will not run."
    states = [(await house.store.run(f"r{number}")) for number in (1, 2, 3, 4)]
    assert [run.state if run else None for run in states] == ["active", "ended", "ended", "active"]
    assert await house.ask("/subagents kill poet") == "Stopped 1 sub-agent run."
    assert await house.ask("/kill poet") == "Nothing was running."


@pytest.mark.spec("CMD-11")
async def test_kill_all_leaves_the_session_itself(house: House) -> None:
    await family(house)
    assert await house.ask("/kill all") == "Stopped 2 sub-agent runs. 1 waiting message will not run."
    run = await house.store.run("r1")
    assert run is not None and run.state == "active"
    assert [item.run_id for item in await house.store.queued(KEY)] == ["w1"]
    assert await house.ask("/subagents stop all") == "Nothing was running."
