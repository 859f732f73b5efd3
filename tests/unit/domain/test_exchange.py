"""An exchange between two sessions: who speaks next, when it ends, and that it always does."""

from __future__ import annotations

import time

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from openclaw.domain.exchange import MAX_HOPS, Exchange, NextAnnounce, NextReply, next_step

ANNA, BOB = "agent:main:anna", "agent:main:bob"
CARRIED = 4000
STOPS = ("REPLY_SKIP", " REPLY_SKIP\n", "ANNOUNCE_SKIP", "NO_REPLY", "", " \n\t")


def exchange(**fields: object) -> Exchange:
    made = Exchange("run-1:call-1:send", ANNA, BOB, 5, "what is the word?")
    return msgspec.structs.replace(made, **fields)


def replied(**fields: object) -> Exchange:
    """An exchange in which the first reply was given and the requester is asked."""
    return exchange(phase="reply", turn=1, first_reply="abracadabra", latest="abracadabra", **fields)


@pytest.mark.spec("A2A-12", "A2A-13")
def test_the_first_reply_goes_to_the_requester_as_turn_one() -> None:
    step = next_step(exchange(), BOB, "abracadabra", ok=True)
    assert step == NextReply(ANNA, "abracadabra", replied())


@pytest.mark.spec("A2A-12", "A2A-13")
@pytest.mark.parametrize(("speaker", "hears"), [(ANNA, BOB), (BOB, ANNA)])
def test_then_they_take_turns(speaker: str, hears: str) -> None:
    step = next_step(replied(), speaker, "thank you", ok=True)
    assert isinstance(step, NextReply)
    assert (step.session_key, step.text) == (hears, "thank you")
    assert step.exchange == msgspec.structs.replace(replied(), turn=2, latest="thank you")


@pytest.mark.spec("A2A-12", "A2A-14")
@pytest.mark.parametrize(
    ("turn", "most", "goes_on"), [(1, 2, True), (2, 2, False), (3, 2, False), (1, 1, False)]
)
def test_the_last_turn_is_followed_by_the_announcement(turn: int, most: int, goes_on: bool) -> None:
    now = msgspec.structs.replace(replied(most_turns=most), turn=turn)
    step = next_step(now, ANNA, "well then", ok=True)
    kept = msgspec.structs.replace(now, latest="well then")
    if goes_on:
        assert step == NextReply(BOB, "well then", msgspec.structs.replace(kept, turn=turn + 1))
    else:
        assert step == NextAnnounce(msgspec.structs.replace(kept, phase="announce"))


@pytest.mark.spec("A2A-12", "A2A-13", "A2A-14")
@pytest.mark.parametrize("stop", STOPS)
@pytest.mark.parametrize("ok", [True, False])
def test_a_side_that_stops_leads_to_the_announcement_with_the_latest_words(stop: str, ok: bool) -> None:
    step = next_step(replied(), ANNA, stop, ok=ok)
    assert step == NextAnnounce(msgspec.structs.replace(replied(), phase="announce"))
    failed = next_step(replied(), ANNA, "half a sente", ok=False)
    assert failed == step


@pytest.mark.spec("A2A-13")
@pytest.mark.parametrize("stop", STOPS)
def test_without_a_first_reply_there_is_nothing_to_go_on_with(stop: str) -> None:
    assert next_step(exchange(), BOB, stop, ok=True) is None
    assert next_step(exchange(), BOB, "abracadabra", ok=False) is None


@pytest.mark.spec("A2A-12", "A2A-13", "A2A-14")
@pytest.mark.parametrize("fields", [{"most_turns": 0}, {"most_turns": -1}, {"requester": BOB}])
def test_with_no_turns_or_nobody_else_only_the_announcement_follows(fields: dict[str, object]) -> None:
    asked = exchange(**fields)
    step = next_step(asked, BOB, "abracadabra", ok=True)
    assert step == NextAnnounce(
        msgspec.structs.replace(asked, phase="announce", first_reply="abracadabra", latest="abracadabra")
    )


@pytest.mark.spec("A2A-13", "A2A-14")
def test_nothing_follows_the_announcement_or_a_child_that_is_waited_for() -> None:
    assert next_step(replied(parent_waits=True), ANNA, "more", ok=True) is None
    assert next_step(exchange(parent_waits=True), BOB, "abracadabra", ok=True) is None
    assert next_step(exchange(phase="announce"), BOB, "Everybody!", ok=True) is None


@pytest.mark.spec("A2A-14")
@pytest.mark.parametrize(
    ("length", "kept"), [(CARRIED, CARRIED), (CARRIED + 1, CARRIED), (10 * CARRIED, CARRIED)]
)
def test_what_is_carried_along_is_bounded_and_what_is_handed_over_is_not(length: int, kept: int) -> None:
    said = "w" * length
    carried = "w" * kept + ("…" if length > kept else "")
    first = next_step(exchange(), BOB, said, ok=True)
    assert isinstance(first, NextReply)
    assert first.text == said
    assert (first.exchange.first_reply, first.exchange.latest) == (carried, carried)
    second = next_step(first.exchange, ANNA, said, ok=True)
    assert isinstance(second, NextReply)
    assert (second.text, second.exchange.latest) == (said, carried)


@pytest.mark.spec("A2A-12", "A2A-14")
def test_the_state_survives_its_encoding_and_names_no_defaults() -> None:
    told = msgspec.json.encode(exchange())
    assert msgspec.json.decode(told) == {
        "exchangeId": "run-1:call-1:send", "requester": ANNA, "target": BOB, "mostTurns": 5,
        "request": "what is the word?",
    }  # fmt: skip
    assert msgspec.json.decode(told, type=Exchange) == exchange()
    full = replied(requester_channel="telegram", parent_waits=True)
    assert msgspec.json.decode(msgspec.json.encode(full), type=Exchange) == full
    assert (exchange().phase, exchange().turn, exchange().parent_waits) == ("primary", 0, False)
    assert (exchange().first_reply, exchange().latest, exchange().requester_channel) == ("", "", None)
    assert MAX_HOPS == 8
    step = next_step(exchange(), BOB, "abracadabra", ok=True)
    for value, name in ((exchange(), "turn"), (step, "text"), (NextAnnounce(exchange()), "exchange")):
        with pytest.raises(AttributeError):
            setattr(value, name, None)


REPLIES = st.sampled_from(["yes", "no", "go on", "REPLY_SKIP", "ANNOUNCE_SKIP", "NO_REPLY", ""]) | st.text()


@pytest.mark.spec("A2A-12", "A2A-13", "A2A-14")
@given(
    most=st.integers(-2, 20),
    replies=st.lists(st.tuples(REPLIES, st.booleans() | st.just(True)), min_size=25, max_size=25),
    itself=st.booleans(),
    waits=st.booleans(),
)
@settings(max_examples=300, deadline=None)
def test_every_exchange_ends(most: int, replies: list[tuple[str, bool]], itself: bool, waits: bool) -> None:
    now = exchange(most_turns=most, requester=BOB if itself else ANNA, parent_waits=waits)
    speaker, steps, turns, announced = BOB, 0, 0, 0
    for reply, ok in replies:
        step = next_step(now, speaker, reply, ok=ok)
        steps += 1
        if step is None:
            break
        assert announced == 0, "the announcement is the last turn"
        if isinstance(step, NextAnnounce):
            announced += 1
            speaker = now.target
        else:
            turns += 1
            assert step.exchange.turn == turns
            assert step.session_key != speaker, "nobody answers itself"
            assert step.text == reply and reply.strip()
            speaker = step.session_key
        kept = (
            step.exchange.exchange_id,
            step.exchange.requester,
            step.exchange.target,
            step.exchange.request,
        )
        assert kept == (now.exchange_id, now.requester, now.target, now.request)
        now = step.exchange
    else:
        pytest.fail("the exchange did not end")
    assert turns <= max(0, most)
    assert steps <= max(0, most) + 2
    assert not (waits and (turns or announced))


@pytest.mark.spec("A2A-12")
def test_without_a_stop_word_all_turns_are_used() -> None:
    for most in range(21):
        heard: list[str] = []
        now, speaker = exchange(most_turns=most), BOB
        while (step := next_step(now, speaker, f"word {len(heard)}", ok=True)) is not None:
            heard.append(type(step).__name__)
            now, speaker = step.exchange, step.session_key if isinstance(step, NextReply) else BOB
        assert heard == ["NextReply"] * most + ["NextAnnounce"]
        assert now.latest == f"word {most}"
        assert now.first_reply == "word 0"


@pytest.mark.spec("A2A-12")
def test_megabytes_cost_no_more_than_reading_them() -> None:
    def work(text: str) -> float:
        began = time.process_time()
        for _ in range(20):
            next_step(exchange(), BOB, text, ok=True)
        return time.process_time() - began

    small, large = work(" " * 100_000 + "x"), work(" " * 1_600_000 + "x")
    assert large < max(small, 0.002) * 100
