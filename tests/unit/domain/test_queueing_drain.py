"""From waiting inputs to turns: order, merging, the quiet window, bounded texts (QUE-2, QUE-3, QUE-5)."""

from __future__ import annotations

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from openclaw.domain.entry import QueueMode
from openclaw.domain.queueing import (
    DROPPED_LINE_CHARS,
    LONGEST_COLLECT_MS,
    MERGED_MAX_CHARS,
    Batch,
    Drain,
    QueuedInput,
    QueueSettings,
    WaitUntil,
    dropped_prompt,
    merged_prompt,
    plan_drain,
    plan_steer,
)

COLLECT = QueueSettings(mode="collect", debounce_ms=500)


def waiting(admission: int, text: str = "", at_ms: int = 1000) -> QueuedInput:
    return QueuedInput(admission=admission, text=text or f"text {admission}", accepted_ms=at_ms)


def admissions(plan: Drain | WaitUntil) -> list[list[int]]:
    assert isinstance(plan, Drain)
    return [[one.admission for one in batch.inputs] for batch in plan.batches]


@pytest.mark.spec("QUE-2")
@pytest.mark.parametrize("mode", ["steer", "followup", "queue", "steer-backlog"])
def test_one_turn_per_message_in_admission_order(mode: QueueMode) -> None:
    plan = plan_drain(QueueSettings(mode=mode, debounce_ms=500), [waiting(3), waiting(1), waiting(2)], 1000)
    assert plan == Drain(tuple(Batch((waiting(number),), f"text {number}") for number in (1, 2, 3)))


@pytest.mark.spec("QUE-2")
@pytest.mark.parametrize("mode", ["steer", "followup", "collect", "interrupt"])
def test_nothing_waiting_is_nothing_to_run(mode: QueueMode) -> None:
    assert plan_drain(QueueSettings(mode=mode), [], 1000) == Drain(())


@pytest.mark.spec("QUE-2")
def test_collect_waits_for_the_quiet_window() -> None:
    queued = [waiting(1, at_ms=1000), waiting(2, at_ms=1300)]
    assert plan_drain(COLLECT, queued, 1300) == WaitUntil(1800)
    assert plan_drain(COLLECT, queued, 1799) == WaitUntil(1800)
    assert admissions(plan_drain(COLLECT, queued, 1800)) == [[1, 2]]
    without_window = QueueSettings(mode="collect", debounce_ms=0)
    assert admissions(plan_drain(without_window, queued, 1300)) == [[1, 2]]


@pytest.mark.spec("QUE-2")
def test_a_steady_stream_cannot_postpone_a_collected_turn_for_ever() -> None:
    queued = [waiting(1, at_ms=0), waiting(2, at_ms=LONGEST_COLLECT_MS - 100)]
    assert LONGEST_COLLECT_MS == 30_000
    assert plan_drain(COLLECT, queued, 29_999) == WaitUntil(30_000)
    assert admissions(plan_drain(COLLECT, queued, 30_000)) == [[1, 2]]
    # A longer window that was asked for is honoured.
    long_window = QueueSettings(mode="collect", debounce_ms=60_000)
    assert plan_drain(long_window, [waiting(1, at_ms=0)], 59_999) == WaitUntil(60_000)
    assert plan_drain(long_window, [waiting(1, at_ms=0), waiting(2, at_ms=1)], 59_999) == WaitUntil(60_000)


@pytest.mark.spec("QUE-2")
def test_a_clock_that_jumped_back_does_not_stall_the_queue() -> None:
    future = waiting(1, at_ms=1001)
    assert admissions(plan_drain(COLLECT, [future], 1000)) == [[1]]
    assert plan_drain(COLLECT, [future, waiting(2, at_ms=1000)], 1000) == WaitUntil(1500)


@pytest.mark.spec("QUE-2")
@pytest.mark.parametrize("part", ["channel", "to", "account", "thread"])
def test_different_targets_drain_separately(part: str) -> None:
    targets = ("a", "b", "a", None)
    queued = [
        msgspec.structs.replace(waiting(number), **{part: target}) for number, target in enumerate(targets, 1)
    ]
    assert admissions(plan_drain(COLLECT, queued, 9999)) == [[1, 3], [2], [4]]
    assert admissions(plan_drain(COLLECT, queued[::-1], 9999)) == [[1, 3], [2], [4]]


@pytest.mark.spec("QUE-2")
def test_inputs_of_different_trust_never_share_a_turn() -> None:
    stranger = waiting(1)
    assert (stranger.channel, stranger.to, stranger.account, stranger.thread) == (None, None, None, None)
    owner = QueuedInput(admission=2, text="o", accepted_ms=0, from_owner=True)
    session = QueuedInput(admission=3, text="s", accepted_ms=0, provenance="inter_session")
    system = QueuedInput(admission=4, text="i", accepted_ms=0, provenance="internal_system")
    other_session = QueuedInput(admission=5, text="t", accepted_ms=0, provenance="inter_session")
    queued = [stranger, owner, session, system, other_session, waiting(6)]
    assert admissions(plan_drain(COLLECT, queued, 9999)) == [[1, 6], [2], [3], [4], [5]]


@pytest.mark.spec("QUE-2")
def test_interrupt_runs_the_newest_together_with_what_waited() -> None:
    interrupt = QueueSettings(mode="interrupt", debounce_ms=500)
    assert admissions(plan_drain(interrupt, [waiting(1)], 1000)) == [[1]]
    assert admissions(plan_drain(interrupt, [waiting(2), waiting(1)], 1000)) == [[1, 2]]


@pytest.mark.spec("QUE-2")
def test_a_merged_turn_is_split_before_it_grows_too_large() -> None:
    half = "x" * (MERGED_MAX_CHARS // 2)
    exact = [waiting(1, half), waiting(2, half), waiting(3, "y")]
    assert admissions(plan_drain(COLLECT, exact, 9999)) == [[1, 2], [3]]
    huge = [waiting(1, "z" * (3 * MERGED_MAX_CHARS)), waiting(2, "a"), waiting(3, "b")]
    plan = plan_drain(COLLECT, huge, 9999)
    assert admissions(plan) == [[1], [2, 3]]
    assert isinstance(plan, Drain)
    assert plan.batches[0].prompt == "z" * (3 * MERGED_MAX_CHARS)
    empty = [
        QueuedInput(admission=1, text="", accepted_ms=0),
        QueuedInput(admission=2, text="", accepted_ms=0),
    ]
    assert admissions(plan_drain(COLLECT, empty, 9999)) == [[1, 2]]


@pytest.mark.spec("QUE-2")
def test_the_merged_prompt() -> None:
    assert merged_prompt([waiting(1, "  as it was \n")]) == "  as it was \n"
    assert merged_prompt([waiting(1, "first"), waiting(2, "second\nline")]) == (
        "2 messages arrived while you were busy, oldest first.\n\n"
        "Message 1:\nfirst\n\n"
        "Message 2:\nsecond\nline"
    )


@pytest.mark.spec("QUE-2")
@settings(max_examples=200, deadline=None)
@given(
    st.sampled_from(["steer", "followup", "collect", "interrupt", "queue", "steer-backlog"]),
    st.lists(
        st.builds(
            QueuedInput,
            admission=st.integers(0, 10_000),
            text=st.text(max_size=5),
            accepted_ms=st.integers(0, 2000),
            channel=st.sampled_from([None, "telegram", "discord"]),
            thread=st.sampled_from([None, "7"]),
            from_owner=st.booleans(),
            provenance=st.sampled_from(["external_user", "inter_session"]),
        ),
        max_size=12,
        unique_by=lambda one: one.admission,
    ),
    st.integers(0, 40_000),
)
def test_no_input_is_lost_repeated_or_reordered_within_its_turn(
    mode: QueueMode, queued: list[QueuedInput], now_ms: int
) -> None:
    plan = plan_drain(QueueSettings(mode=mode), queued, now_ms)
    if isinstance(plan, WaitUntil):
        assert mode == "collect"
        assert now_ms < plan.at_ms <= now_ms + 500
        for _ in range(len(queued)):
            if isinstance(plan, WaitUntil):
                plan = plan_drain(QueueSettings(mode=mode), queued, plan.at_ms)
    batches = admissions(plan)
    assert sorted(number for batch in batches for number in batch) == sorted(one.admission for one in queued)
    assert all(batch == sorted(batch) for batch in batches)
    assert [batch[0] for batch in batches] == sorted(batch[0] for batch in batches)
    assert isinstance(plan, Drain)
    for batch in plan.batches:
        assert len({(one.channel, one.thread, one.from_owner) for one in batch.inputs}) == 1
        assert len(batch.inputs) == 1 or mode in ("collect", "interrupt")
        assert all(one.text in batch.prompt for one in batch.inputs)


@pytest.mark.spec("QUE-2", "QUE-5")
def test_what_is_steered_at_a_boundary() -> None:
    queued = [waiting(3), waiting(1), waiting(2)]
    assert plan_steer(QueueSettings(mode="steer"), queued) == (waiting(1), waiting(2), waiting(3))
    assert plan_steer(QueueSettings(mode="steer-backlog"), queued) == (waiting(1), waiting(2), waiting(3))
    assert plan_steer(QueueSettings(mode="queue"), queued) == (waiting(1),)
    assert plan_steer(QueueSettings(mode="queue"), []) == ()


# -- dropped messages --------------------------------------------------------------------------------------


@pytest.mark.spec("QUE-3")
def test_dropped_messages_become_short_lines() -> None:
    assert dropped_prompt(["one", " two \n words ", " \n "]) == (
        "Messages dropped because the queue was full (3), oldest first:\n- one\n- two words\n- (no text)"
    )
    twenty = [f"m{number}" for number in range(20)]
    assert dropped_prompt(twenty).count("\n") == 20
    assert "more" not in dropped_prompt(twenty)
    many = dropped_prompt([f"m{number}" for number in range(23)])
    assert many.startswith("Messages dropped because the queue was full (23), oldest first:\n- m0\n")
    assert many.endswith("\n- m19\n- and 3 more")


@pytest.mark.spec("QUE-3")
def test_dropped_lines_are_cut() -> None:
    assert DROPPED_LINE_CHARS == 160
    fits = dropped_prompt(["x" * 160]).splitlines()[1]
    assert fits == "- " + "x" * 160
    long = dropped_prompt(["x" * 161]).splitlines()[1]
    assert long == "- " + "x" * 159 + "…"
    huge = dropped_prompt(["word " * 1_000_000]).splitlines()[1]
    assert len(huge) <= 162
    assert huge.endswith("word…")
    # Mostly blanks: little is left of the part that was read, yet more was written.
    spaced = dropped_prompt(["a" + " " * 320 + "b"]).splitlines()[1]
    assert spaced == "- a…"
    assert dropped_prompt(["a" + " " * 318 + "b"]).splitlines()[1] == "- a b"


@pytest.mark.spec("QUE-3")
@settings(max_examples=100, deadline=None)
@given(st.lists(st.text(max_size=400), max_size=40))
def test_the_dropped_prompt_is_bounded(texts: list[str]) -> None:
    prompt = dropped_prompt(texts)
    assert len(prompt) <= 100 + 21 * (DROPPED_LINE_CHARS + 3)
    assert prompt.count("\n- ") == min(len(texts), 20) + (len(texts) > 20)
