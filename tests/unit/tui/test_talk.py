"""One conversation on the screen: each message once, in order, whatever comes twice or is missed."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from openclaw.tui.talk import REMEMBERED, Talk, Waiting
from tests.unit.tui.messages import (
    KEY,
    agent,
    chat,
    history,
    lifecycle,
    pending,
    person,
    result,
    stored,
    streamed,
)

Json = dict[str, Any]


def talking(*messages: Json, **more: Any) -> Talk:
    talk = Talk(KEY)
    talk.load(history(*messages, **more))
    return talk


def texts(talk: Talk) -> list[str]:
    return [item.text for item in talk.items]


def states(talk: Talk) -> list[str]:
    return [item.state for item in talk.items]


def hear(talk: Talk, *events: tuple[str, Json]) -> list[str]:
    return [talk.event(*event) for event in events]


@pytest.mark.spec("RPC-14")
class TestStreams:
    def test_words_appear_as_they_come_and_become_the_message(self) -> None:
        talk = talking(person(1, "hi"))
        assert hear(talk, lifecycle("start", startedAt=100)) == ["look"]
        assert (talk.running, talk.running_since_ms) == ("r", 100)
        assert hear(talk, lifecycle("model"), streamed("Hel"), streamed("Hello \x1b")) == ["changed"] * 3
        assert texts(talk) == ["hi", "Hello \ufffd"]
        assert (talk.items[-1].item_id, talk.items[-1].state) == ("stream", "running")
        assert hear(talk, stored(agent(2, "Hello you"))) == ["changed"]
        assert texts(talk) == ["hi", "Hello you"]
        hear(talk, streamed("Hello y"), chat("final", text="Hello you"), lifecycle("end"))
        assert texts(talk) == ["hi", "Hello you"], "what comes late repeats nothing"
        assert talk.running is None

    def test_two_steps_with_a_tool_between(self) -> None:
        talk = talking(person(1, "hi"))
        hear(talk, lifecycle("start"), streamed("I look"), stored(agent(2, "I look", calls=("c",))))
        item = (
            "agent",
            {"sessionKey": KEY, "runId": "r", "stream": "item", "data": {"phase": "start", "title": "look"}},
        )
        hear(talk, item)
        assert (texts(talk), talk.activity) == (["hi", "I look", "look at=c"], "look")
        assert talk.items[-1].state == "running"
        hear(talk, stored(result(3, "c", "there")), lifecycle("model"), streamed("It is there"))
        assert [item.state for item in talk.items] == ["", "", "done", "running"]
        hear(talk, stored(agent(4, "It is there")), chat("final", text="It is there"))
        assert texts(talk) == ["hi", "I look", "look at=c", "It is there"]

    def test_a_call_id_that_is_used_again_is_another_call(self) -> None:
        talk = talking(agent(1, "", calls=("c",)), result(2, "c", "one"), agent(3, "", calls=("c",)))
        assert [item.state for item in talk.items] == ["done", "running"]
        hear(talk, stored(result(4, "c", "two", failed=True)))
        assert [(item.state, item.details[-3:]) for item in talk.items] == [
            ("done", "one"),
            ("failed", "two"),
        ]

    def test_the_last_word_may_come_before_its_message(self) -> None:
        talk = talking(person(1, "hi"))
        hear(talk, lifecycle("start"), chat("final", text="(new day)\n\nHello"))
        assert texts(talk) == ["hi", "(new day)\n\nHello"]
        hear(talk, stored(agent(2, "Hello")))
        assert texts(talk) == ["hi", "(new day)", "Hello"], "the notice is not part of the message"

    def test_a_notice_before_the_reply_is_shown_once(self) -> None:
        talk = talking(person(1, "hi"))
        hear(talk, stored(agent(2, "Hello")), chat("final", text="(new day)\n\nHello"))
        assert [(item.kind, item.text) for item in talk.items[1:]] == [
            ("agent", "Hello"),
            ("note", "(new day)"),
        ]

    def test_the_answer_to_a_command_is_no_message_and_is_shown(self) -> None:
        talk = talking()
        talk.say("r9", "/status", "sent")
        assert hear(talk, chat("final", "r9", "All is well")) == ["look"]
        assert texts(talk) == ["/status", "All is well"]

    def test_stopped_and_failed_turns_say_so(self) -> None:
        talk = talking(person(1, "hi"))
        hear(talk, lifecycle("start"), streamed("Half a"), chat("aborted"))
        assert texts(talk) == ["hi", "Half a", "stopped"]
        hear(talk, stored(agent(2, "Half a")))
        assert sorted(texts(talk)) == ["Half a", "hi", "stopped"]
        hear(talk, chat("error", "r2", errorMessage="no\x07 key"))
        assert (talk.items[-1].kind, talk.items[-1].text) == ("error", "The turn failed: no\ufffd key")
        assert talk.running is None

    def test_other_sessions_and_other_events_change_nothing(self) -> None:
        talk = talking(person(1, "hi"))
        name, payload = stored(agent(2, "x"))
        assert talk.event(name, payload | {"sessionKey": "agent:main:other"}) == "nothing"
        assert (
            talk.event("tick", {"sessionKey": KEY})
            == talk.event("chat", {"sessionKey": KEY, "state": "delta"})
            == "nothing"
        )
        assert hear(talk, streamed("without a step")) == ["nothing"]
        assert texts(talk) == ["hi"]


@pytest.mark.spec("RPC-11")
class TestComingBack:
    def test_a_delta_brings_what_was_missed_and_nothing_twice(self) -> None:
        talk = talking(person(1, "hi"), agent(2, "hello"))
        assert talk.cursor == "c2"
        hear(talk, stored(person(3, "more")), streamed("x"))
        missed = [stored(message)[1] for message in (person(3, "more"), agent(4, "yes"))]
        talk.catch_up({"messages": missed, "deltaCursor": "c9", "pendingInputs": pending(("q", "later"))})
        assert texts(talk) == ["hi", "hello", "more", "yes"]
        assert (talk.cursor, talk.queue) == ("c9", [Waiting("q", "later")])

    def test_a_turn_that_is_on_its_way_goes_on(self) -> None:
        running = {"runId": "r5", "text": "So far", "startedAt": 70}
        talk = talking(person(1, "hi"), inFlightRun=running)
        assert (texts(talk), talk.running, talk.running_since_ms) == (["hi", "So far"], "r5", 70)
        hear(talk, streamed("So far so good", "r5"))
        assert texts(talk) == ["hi", "So far so good"]

    def test_the_committed_text_of_a_first_step_is_not_shown_as_running(self) -> None:
        running = {"runId": "r", "text": "I look", "startedAt": 70}
        talk = talking(person(1, "hi"), agent(2, "I look", calls=("c",)), inFlightRun=running)
        assert texts(talk) == ["hi", "I look", "look at=c"]

    def test_an_event_that_was_faster_than_the_history_stays(self) -> None:
        talk = talking(person(1, "hi"))
        hear(talk, stored(agent(2, "two")), stored(person(3, "three")))
        talk.load(history(person(1, "hi"), agent(2, "two")))
        assert texts(talk) == ["hi", "two", "three"]
        assert hear(talk, stored(person(3, "three"))) == ["nothing"]

    def test_another_window_asks_for_a_new_history(self) -> None:
        talk = talking(person(1, "hi"))
        talk.note("a note")
        assert hear(talk, stored(person(1, "fresh"), "w2")) == ["reload"]
        row = {"sessionKey": KEY, "session": {"sessionId": "w2", "model": "m"}}
        assert talk.event("sessions.changed", row) == "reload"
        talk.load(history(person(1, "fresh"), session_id="w2"))
        assert texts(talk) == ["fresh"]
        assert talk.event("sessions.changed", row) == "look"
        assert talk.row["model"] == "m"

    def test_a_session_that_begins_with_this_message(self) -> None:
        talk = talking(session_id=None)
        talk.say("r1", "first", "unsent")
        assert hear(talk, stored(person(1, "first", "r1"))) == ["changed"]
        assert (texts(talk), talk.session_id) == (["first"], "w1")

    def test_older_pages_stand_before(self) -> None:
        talk = talking(result(4, "c", "late"), agent(5, "e"), nextOffset=2)
        assert talk.next_offset == 2
        assert talk.prepend(history(person(1, "a"), agent(3, "", calls=("c",)), nextOffset=None))
        assert texts(talk) == ["a", "look at=c", "look", "e"]
        assert {item.state for item in talk.items if item.kind == "tool"} == {"done"}
        assert talk.next_offset is None
        assert not talk.prepend(history(person(1, "x"), session_id="w0"))
        assert hear(talk, stored(agent(5, "e"))) == ["nothing"]


@pytest.mark.spec("RPC-12")
class TestTyping:
    def test_what_is_typed_gives_way_to_the_message(self) -> None:
        talk = talking(person(1, "hi"))
        talk.say("r2", "more", "unsent")
        assert states(talk) == ["", "unsent"]
        talk.accepted("r2")
        assert states(talk) == ["", "sent"]
        talk.look(history(pendingInputs=pending(("r2", "more"))))
        assert (talk.items[-1].state, talk.queue) == ("queued", [Waiting("r2", "more")])
        hear(talk, stored(person(2, "more", "r2")))
        assert [(item.item_id, item.state) for item in talk.items] == [("m1", ""), ("m2", "")]

    def test_messages_that_were_collected_into_one_are_not_shown_twice(self) -> None:
        talk = talking()
        for run_id, text in (("r1", "one"), ("r2", "two"), ("r3", "elsewhere")):
            talk.say(run_id, text, "sent")
        talk.look(history(pendingInputs=pending(("r1", "one"), ("r2", "two"))))
        hear(talk, stored(person(1, "[together]\none\ntwo", "r1")))
        assert texts(talk) == ["elsewhere", "[together]\none\ntwo"]

    def test_what_is_refused_is_taken_back_with_the_reason(self) -> None:
        talk = talking()
        talk.say("r1", "x", "unsent")
        talk.refused("r1", "send blocked")
        assert [(item.kind, item.text) for item in talk.items] == [("error", "Not sent: send blocked")]
        talk.accepted("r1")
        assert len(talk.items) == 1

    def test_what_is_not_sent_yet_survives_a_new_history_and_a_look(self) -> None:
        talk = talking(person(1, "hi"))
        talk.say("r2", "waits", "unsent")
        talk.load(history(person(1, "hi")))
        talk.look(history())
        assert [(item.text, item.state) for item in talk.items] == [("hi", ""), ("waits", "unsent")]
        talk.load(history(person(1, "hi"), person(2, "waits", "r2")))
        assert texts(talk) == ["hi", "waits"]

    def test_a_look_tells_what_ended_meanwhile(self) -> None:
        talk = talking(inFlightRun={"runId": "r", "text": "", "startedAt": 1})
        talk.look(history(inFlightRun={"runId": "r"}))
        assert talk.running == "r"
        talk.look(history())
        assert talk.running is None


STEPS = st.lists(
    st.tuples(st.integers(0, 4), st.sampled_from(["events", "history", "delta"]), st.integers(0, 9)),
    max_size=8,
)


@pytest.mark.spec("RPC-11", "RPC-14")
@settings(max_examples=200, deadline=None)
@given(STEPS)
def test_any_mixture_of_events_and_histories_shows_the_transcript_once(
    steps: list[tuple[int, str, int]],
) -> None:
    talk, messages = Talk(KEY), list[Json]()
    talk.load(history())
    for more, how, since in steps:
        seen = len(messages)
        for number in range(seen + 1, seen + more + 1):
            said = f"t{number}"
            messages.append(person(number, said) if number % 2 else agent(number, said, f"r{number}"))
        told = [stored(message) for message in messages]
        if how == "history":
            talk.load(history(*messages))
        elif how == "delta":
            talk.catch_up({"messages": [payload for _name, payload in told[min(since, seen) :]]})
        else:
            hear(talk, *told[min(since, seen) :])
        assert texts(talk) == [f"t{number}" for number in range(1, len(messages) + 1)]


def test_what_was_told_is_remembered_for_a_while_only() -> None:
    talk = talking(*(agent(n, f"t{n}", f"r{n}") for n in range(1, REMEMBERED + 2)))
    hear(talk, chat("final", "r2", "t2"))
    assert len(talk.items) == REMEMBERED + 1
    assert len(talk._told) == REMEMBERED
