"""Queue settings, arrivals and the /queue directive (QUE-2..5)."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from openclaw.domain.entry import QueueMode, SessionEntry
from openclaw.domain.queueing import (
    QUEUE_USAGE,
    SKIPPED_TEXT,
    DropOldest,
    Interrupt,
    Queue,
    QueueClear,
    QueueConfig,
    QueueDirective,
    QueueInvalid,
    QueueOverrides,
    QueueSet,
    QueueSettings,
    QueueShow,
    Reject,
    Start,
    Steer,
    decide_arrival,
    parse_queue_directive,
    resolve_queue,
    skipped_results,
    stored_overrides,
)
from openclaw.domain.transcript import TextBlock, ToolCallBlock, ToolResultMessage

MODES: tuple[QueueMode, ...] = ("steer", "followup", "collect", "interrupt", "queue", "steer-backlog")


# -- settings --------------------------------------------------------------------------------------------


@pytest.mark.spec("QUE-2", "QUE-3")
def test_built_in_settings() -> None:
    assert resolve_queue(QueueConfig()) == QueueSettings(
        mode="steer", debounce_ms=500, cap=20, drop="summarize"
    )
    assert resolve_queue(QueueConfig()) == QueueSettings()


@pytest.mark.spec("QUE-4")
def test_mode_precedence() -> None:
    config = QueueConfig(mode="followup", by_channel={"telegram": "collect"})
    inline, stored = QueueOverrides(mode="interrupt"), QueueOverrides(mode="queue")
    assert resolve_queue(config).mode == "followup"
    assert resolve_queue(config, channel="discord").mode == "followup"
    assert resolve_queue(config, channel="telegram").mode == "collect"
    assert resolve_queue(config, channel="telegram", stored=stored).mode == "queue"
    assert resolve_queue(config, channel="telegram", stored=stored, inline=inline).mode == "interrupt"
    assert resolve_queue(QueueConfig(by_channel={"x": "collect"})).mode == "steer"


@pytest.mark.spec("QUE-4")
def test_debounce_precedence() -> None:
    config = QueueConfig(debounce_ms=100, debounce_ms_by_channel={"telegram": 200})
    stored, inline = QueueOverrides(debounce_ms=300), QueueOverrides(debounce_ms=400)
    assert resolve_queue(QueueConfig()).debounce_ms == 500
    assert resolve_queue(config).debounce_ms == 100
    assert resolve_queue(config, channel="discord").debounce_ms == 100
    assert resolve_queue(config, channel="telegram").debounce_ms == 200
    assert resolve_queue(config, channel="telegram", stored=stored).debounce_ms == 300
    assert resolve_queue(config, channel="telegram", stored=stored, inline=inline).debounce_ms == 400
    # Zero is a choice; a negative number is none.
    assert resolve_queue(config, inline=QueueOverrides(debounce_ms=0)).debounce_ms == 0
    assert resolve_queue(config, inline=QueueOverrides(debounce_ms=-1)).debounce_ms == 100


@pytest.mark.spec("QUE-3", "QUE-4")
def test_cap_and_drop_precedence() -> None:
    config = QueueConfig(cap=5, drop="old")
    assert resolve_queue(config).cap == 5
    assert resolve_queue(config).drop == "old"
    assert resolve_queue(config, stored=QueueOverrides(cap=1, drop="new")).cap == 1
    assert resolve_queue(config, stored=QueueOverrides(cap=1, drop="new")).drop == "new"
    inline = QueueOverrides(cap=7, drop="summarize")
    both = resolve_queue(config, stored=QueueOverrides(cap=1, drop="new"), inline=inline)
    assert (both.cap, both.drop) == (7, "summarize")
    assert resolve_queue(config, stored=QueueOverrides(cap=0)).cap == 5
    assert resolve_queue(QueueConfig(cap=0), stored=QueueOverrides(cap=-3)).cap == 20


@pytest.mark.spec("QUE-4")
def test_the_entry_keeps_a_choice() -> None:
    entry = SessionEntry(
        session_id="s", updated_at=1, queue_mode="collect", queue_debounce_ms=9, queue_cap=8, queue_drop="new"
    )
    assert stored_overrides(entry) == QueueOverrides(mode="collect", debounce_ms=9, cap=8, drop="new")
    assert stored_overrides(SessionEntry(session_id="s", updated_at=1)) == QueueOverrides()
    nothing = QueueOverrides()
    assert (nothing.mode, nothing.debounce_ms, nothing.cap, nothing.drop) == (None, None, None, None)


# -- arrival -----------------------------------------------------------------------------------------------


@pytest.mark.spec("QUE-2")
@pytest.mark.parametrize("mode", MODES)
def test_an_idle_session_starts_at_once(mode: QueueMode) -> None:
    rules = QueueSettings(mode=mode)
    assert decide_arrival(rules, run_active=False, queued_count=0) == Start()
    # Something already waits: a new message does not overtake it.
    assert decide_arrival(rules, run_active=False, queued_count=1) == Queue()


@pytest.mark.spec("QUE-2")
@pytest.mark.parametrize(
    ("mode", "busy", "cannot_steer"),
    [
        ("steer", Steer(one_at_a_time=False, also_queue=False), Queue()),
        ("followup", Queue(), Queue()),
        ("collect", Queue(), Queue()),
        ("interrupt", Interrupt(), Interrupt()),
        ("queue", Steer(one_at_a_time=True, also_queue=False), Queue()),
        ("steer-backlog", Steer(one_at_a_time=False, also_queue=True), Queue()),
    ],
)
def test_a_busy_session_follows_its_mode(
    mode: QueueMode, busy: Steer | Queue | Interrupt, cannot_steer: Queue | Interrupt
) -> None:
    assert Steer() == Steer(one_at_a_time=False, also_queue=False)
    rules = QueueSettings(mode=mode)
    assert decide_arrival(rules, run_active=True, queued_count=0) == busy
    assert decide_arrival(rules, run_active=True, queued_count=19) == busy
    assert decide_arrival(rules, run_active=True, queued_count=0, can_steer=False) == cannot_steer
    assert decide_arrival(rules, run_active=True, queued_count=20) == DropOldest(1, True, busy)


@pytest.mark.spec("QUE-3")
def test_a_full_queue_follows_its_drop_policy() -> None:
    def arrival(drop: str, queued_count: int) -> object:
        rules = resolve_queue(QueueConfig(mode="followup", cap=2), inline=drop_choice(drop))
        return decide_arrival(rules, run_active=True, queued_count=queued_count)

    def drop_choice(drop: str) -> QueueOverrides:
        parsed = parse_queue_directive(f"/queue drop:{drop}")
        assert isinstance(parsed, QueueSet)
        return parsed.overrides

    assert arrival("summarize", 1) == Queue()
    assert arrival("summarize", 2) == DropOldest(1, True, Queue())
    # The cap was lowered while more were waiting.
    assert arrival("summarize", 5) == DropOldest(4, True, Queue())
    assert arrival("old", 2) == DropOldest(1, False, Queue())
    assert arrival("new", 1) == Queue()
    assert arrival("new", 2) == Reject(
        "The queue of this session is full (2 waiting). Try again, or send /stop."
    )


@pytest.mark.spec("QUE-3")
@settings(max_examples=200, deadline=None)
@given(
    st.sampled_from(MODES),
    st.sampled_from(["summarize", "old", "new"]),
    st.integers(1, 5),
    st.lists(st.booleans(), max_size=30),
)
def test_the_queue_never_grows_past_its_cap(
    mode: QueueMode, drop: str, cap: int, arrivals: list[bool]
) -> None:
    parsed = parse_queue_directive(f"/queue {mode} drop:{drop} cap:{cap}")
    assert isinstance(parsed, QueueSet)
    rules = resolve_queue(QueueConfig(), inline=parsed.overrides)
    waiting = 0
    for run_active in arrivals:
        decision = decide_arrival(rules, run_active=run_active, queued_count=waiting)
        if isinstance(decision, DropOldest):
            assert 0 < decision.count <= waiting
            waiting -= decision.count
        if not isinstance(decision, Start | Reject):
            waiting += 1
        assert waiting <= cap


# -- the directive -----------------------------------------------------------------------------------------


@pytest.mark.spec("QUE-3", "CMD-10")
@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("/queue", QueueShow()),
        ("  /QUEUE  ", QueueShow()),
        ("/queue:", QueueShow()),
        ("/queue default", QueueClear()),
        ("/queue: Reset", QueueClear()),
        (
            "/queue collect debounce:2s cap:25 drop:summarize",
            QueueSet(QueueOverrides(mode="collect", debounce_ms=2000, cap=25, drop="summarize")),
        ),
        ("/Queue : INTERRUPT", QueueSet(QueueOverrides(mode="interrupt"))),
        ("/queue:followup", QueueSet(QueueOverrides(mode="followup"))),
        ("/queue\nsteer", QueueSet(QueueOverrides(mode="steer"))),
        ("/queue steer-backlog", QueueSet(QueueOverrides(mode="steer-backlog"))),
        ("/queue steer+backlog", QueueSet(QueueOverrides(mode="steer-backlog"))),
        ("/queue queue", QueueSet(QueueOverrides(mode="queue"))),
        ("/queue debounce:250", QueueSet(QueueOverrides(debounce_ms=250))),
        ("/queue debounce:250ms", QueueSet(QueueOverrides(debounce_ms=250))),
        ("/queue debounce:0", QueueSet(QueueOverrides(debounce_ms=0))),
        ("/queue debounce:3m", QueueSet(QueueOverrides(debounce_ms=180_000))),
        ("/queue debounce:1h", QueueSet(QueueOverrides(debounce_ms=3_600_000))),
        ("/queue debounce:1d", QueueSet(QueueOverrides(debounce_ms=86_400_000))),
        ("/queue cap:1 drop:NEW", QueueSet(QueueOverrides(cap=1, drop="new"))),
        ("/queue drop:old cap:0", QueueSet(QueueOverrides(drop="old"))),
        ("/queue collect cap:-5", QueueSet(QueueOverrides(mode="collect"))),
    ],
)
def test_directives(text: str, expected: QueueDirective) -> None:
    assert parse_queue_directive(text) == expected


@pytest.mark.spec("CMD-10")
@pytest.mark.parametrize("text", ["", "queue", "/queued", "/queue2 steer", "please /queue steer", "/que ue"])
def test_other_text_is_no_directive(text: str) -> None:
    assert parse_queue_directive(text) is None


@pytest.mark.spec("QUE-3", "CMD-10")
@pytest.mark.parametrize(
    ("text", "word"),
    [
        ("/queue fast", "'fast'"),
        ("/queue collect default", "'default'"),
        ("/queue steer:1", "'steer:1'"),
        ("/queue drop:some", "'drop:some'"),
        ("/queue drop", "'drop'"),
        ("/queue cap:many", "'cap:many'"),
        ("/queue cap:²", r"'cap:\xb2'"),
        ("/queue cap:1234567890", "'cap:1234567890'"),
        ("/queue debounce:2y", "'debounce:2y'"),
        ("/queue debounce:-1", "'debounce:-1'"),
        ("/queue x\x00\ud800", r"'x\x00\ud800'"),
        ("/queue " + "y" * 10_000, "'" + "y" * 40 + "'"),
    ],
)
def test_words_that_are_not_understood_are_named_with_the_usage(text: str, word: str) -> None:
    assert parse_queue_directive(text) == QueueInvalid(f"Not understood: {word}. {QUEUE_USAGE}")


@pytest.mark.spec("CMD-10")
@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("/queue steer collect", "mode"),
        ("/queue cap:1 cap:2", "cap"),
        ("/queue debounce:1 debounce:1", "debounce_ms"),
    ],
)
def test_a_setting_may_be_given_once(text: str, name: str) -> None:
    assert parse_queue_directive(text) == QueueInvalid(f"{name} is given twice. {QUEUE_USAGE}")


@pytest.mark.spec("CMD-10")
def test_the_usage_lists_every_word() -> None:
    assert QUEUE_USAGE == (
        "Usage: /queue <steer|followup|collect|interrupt|queue|steer-backlog|default> "
        "[debounce:<number><ms|s|m|h|d>] [cap:<number>] [drop:<summarize|old|new>]"
    )


# -- steering boundary ---------------------------------------------------------------------------------------


@pytest.mark.spec("QUE-5")
def test_calls_that_did_not_start_get_a_result_each() -> None:
    calls = (ToolCallBlock("a", "exec", {"command": "ls"}), ToolCallBlock("b", "read", {}))
    content = (TextBlock(SKIPPED_TEXT),)
    assert skipped_results(calls, 77) == (
        ToolResultMessage(tool_call_id="a", tool_name="exec", content=content, timestamp=77, is_error=True),
        ToolResultMessage(tool_call_id="b", tool_name="read", content=content, timestamp=77, is_error=True),
    )
    assert skipped_results((), 77) == ()
    assert SKIPPED_TEXT == "Skipped: a newer message arrived before this call started. It did not run."
