"""Following runs and sessions from engine events, without a gateway."""

from __future__ import annotations

import logging
from typing import Any

import msgspec
import pytest

from openclaw.domain.transcript import AssistantMessage, TextBlock, Usage, encode
from openclaw.engine import events
from openclaw.errors import Overloaded
from openclaw.gateway.http.credentials import HttpCaller
from openclaw.gateway.http.follow import MOST_FOLLOWERS, Followers, RunFollower
from openclaw.protocol.scopes import ALL_SCOPES, READ, WRITE
from openclaw.store.records import StoredEntry

KEY = "agent:main:main"
NO_SESSION: Any = None  # events carry a row that followers never read


def scope(run_id: str = "r1", key: str = KEY, *, hidden: bool = False) -> events.RunScope:
    return events.RunScope(run_id, key, "main", "sid", hidden)


def streamed(step: int, text: str, run_id: str = "r1") -> events.TextStreamed:
    return events.TextStreamed(scope(run_id), step, "", text)


def ended(text: str, *, run_id: str = "r1", absorbed: tuple[str, ...] = ()) -> events.RunEnded:
    return events.RunEnded(scope(run_id), NO_SESSION, "ok", "stop", None, text, None, 0, 1, absorbed)


def stored(
    seq: int, *, usage: Usage | None = None, run: events.RunScope | None = None
) -> events.MessageStored:
    body = encode(AssistantMessage((TextBlock("x"),), 0, usage=usage))
    entry = StoredEntry(seq, f"e{seq}", None, "message", "assistant", None, "people", "r1", 0, body)
    return events.MessageStored(run or scope(), NO_SESSION, entry)


async def test_text_comes_as_it_grows_and_steps_are_told_apart() -> None:
    followers = Followers()
    with followers.run("r1") as follower:
        for event in (streamed(1, "Hel"), streamed(1, "Hello"), streamed(1, "Hello")):
            followers.observe(event)
        await follower.wait(1)
        assert follower.take() == "Hello"
        assert follower.take() == ""
        followers.observe(streamed(2, "Bye"))
        followers.observe(streamed(2, "Other run", "r2"))
        followers.observe(ended("Bye!"))
        assert follower.take() == "\n\nBye!"
        assert follower.result is not None
        assert (follower.result.outcome, follower.result.text) == ("ok", "Bye!")


def test_an_end_that_differs_is_not_said_twice() -> None:
    follower = RunFollower()
    follower.hear(streamed(1, "Draft"))
    follower.hear(ended("Final"))
    assert follower.take() == "Draft"
    assert follower.result is not None
    assert follower.result.text == "Final"


def test_usage_is_the_sum_of_what_is_known() -> None:
    follower = RunFollower()
    follower.hear(stored(1, usage=Usage(input=1, output=2, cache_read=3, cache_write=4, total_tokens=10)))
    follower.hear(stored(2))
    follower.hear(stored(3, usage=Usage(input=5, output=6, cache_read=7, cache_write=8, total_tokens=26)))
    follower.hear(ended("x"))
    assert follower.result is not None
    assert follower.result.usage == Usage(input=6, output=8, cache_read=10, cache_write=12, total_tokens=36)
    unknown = RunFollower()
    unknown.hear(stored(1))
    unknown.hear(ended("x"))
    assert unknown.result is not None
    assert unknown.result.usage is None


def test_an_absorbed_input_ends_with_the_run_that_took_it() -> None:
    followers = Followers()
    with followers.run("r1") as mine:
        followers.observe(ended("both", run_id="r9", absorbed=("r1",)))
        assert mine.take() == "both"
        assert mine.result is not None


def test_a_cancelled_input_ends_too() -> None:
    followers = Followers()
    with followers.run("r1") as mine, followers.run("r2") as other:
        followers.observe(events.InputCancelled("r1", KEY, "main", "dropped"))
        assert mine.result is not None
        assert (mine.result.outcome, "dropped" in (mine.result.error or "")) == ("aborted", True)
        assert other.result is None


def test_a_stop_ends_what_waits_and_what_comes() -> None:
    followers = Followers()
    with followers.run("r1") as ran, followers.run("r2") as waits, followers.session(KEY) as follows:
        followers.observe(ended("done"))
        followers.stop()
        assert ran.result is not None
        assert ran.result.outcome == "ok"
        assert waits.result is not None
        assert waits.result.outcome == "interrupted"
        assert follows.stopped
    with followers.run("r3") as late:
        assert late.result is not None


async def test_a_session_is_followed_by_its_visible_messages() -> None:
    followers = Followers()
    with (
        followers.session(KEY) as one,
        followers.session(KEY) as two,
        followers.session("x") as three,
    ):
        followers.observe(stored(1))
        followers.observe(stored(2, run=scope(hidden=True)))
        followers.observe(streamed(1, "text"))
        followers.observe(events.InputCancelled("r1", KEY, "main"))
        for follower in (one, two):
            told = await follower.next(1)
            assert told is not None
            assert told.entry.seq == 1
            assert await follower.next(0.01) is None
        assert await three.next(0.01) is None
    followers.observe(stored(3))
    assert await one.next(0.01) is None


async def test_a_slow_reader_loses_and_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("openclaw.gateway.http.follow.MOST_WAITING", 2)
    followers = Followers()
    with followers.session(KEY) as follower:
        for seq in range(1, 6):
            followers.observe(stored(seq))
        assert follower.lost
        first, second = await follower.next(1), await follower.next(1)
        assert (first and first.entry.seq, second and second.entry.seq) == (1, 2)
        assert await follower.next(60) is None


def test_followers_are_bounded_and_leave_no_trace() -> None:
    followers = Followers()
    for _ in range(3):
        for number in range(MOST_FOLLOWERS):
            with followers.run(f"r{number}"), followers.session(KEY):
                pass
    with followers.run("r0") as first:
        followers._count = MOST_FOLLOWERS
        with pytest.raises(Overloaded), followers.run("r1"):
            pass
        with pytest.raises(Overloaded), followers.session(KEY):
            pass
        followers._count = 1
        assert first.result is None
    assert (followers._count, followers._runs, followers._sessions) == (0, {}, {})


def test_a_failure_here_never_reaches_the_run(caplog: pytest.LogCaptureFixture) -> None:
    followers = Followers()
    broken = msgspec.structs.replace(stored(1).entry, body=b"{")
    with followers.run("r1") as follower, caplog.at_level(logging.ERROR, logger="openclaw.http"):
        followers.observe(events.MessageStored(scope(), NO_SESSION, broken))
        followers.observe(ended("still told"))
        assert follower.take() == "still told"
    assert "MessageStored could not be followed" in caplog.text


def test_only_the_owners_credential_chooses_sessions() -> None:
    assert HttpCaller("secret", ALL_SCOPES, (READ,)).may_choose_session
    assert not HttpCaller("secret", (READ, WRITE), (READ, WRITE)).may_choose_session
