"""Budgets, numbering, and frames made to break things."""

from __future__ import annotations

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from openclaw.protocol.connection import (
    Authenticate,
    Call,
    CloseWith,
    ConnectionSettings,
    Ignore,
    Outcome,
    Reply,
    State,
)
from openclaw.protocol.frames import PreparedEvent
from openclaw.protocol.methods import METHODS
from openclaw.protocol.scopes import ALL_SCOPES, READ
from tests.unit.protocol.wire import NOW_MS, connect_params, new_connection, open_connection, read, request

json_values = st.recursive(
    st.one_of(st.none(), st.booleans(), st.integers(), st.floats(), st.text(max_size=8)),
    lambda inner: st.one_of(
        st.lists(inner, max_size=3), st.dictionaries(st.text(max_size=8), inner, max_size=3)
    ),
    max_leaves=8,
)
methods = st.one_of(st.sampled_from([*METHODS, "connect"]), st.text(max_size=8))
frames = st.one_of(
    st.binary(max_size=120),
    st.text(max_size=120),
    json_values.map(lambda value: json.dumps(value)),
    st.fixed_dictionaries(
        {"type": st.sampled_from(["req", "res", 1]), "id": st.one_of(st.text(max_size=4), json_values)},
        optional={"method": methods, "params": json_values, "zzz": json_values, "traceparent": json_values},
    ).map(lambda value: json.dumps(value)),
    st.tuples(methods, json_values).map(
        lambda pair: request(pair[0], {"sessionKey": "k", "x": str(pair[1])})
    ),
)
connects = st.fixed_dictionaries(
    {},
    optional={
        name: st.one_of(json_values, st.just("operator"), st.just(4))
        for name in (
            "minProtocol",
            "maxProtocol",
            "client",
            "role",
            "scopes",
            "auth",
            "device",
            "caps",
            "zzz",
        )
    },
).map(
    lambda changed: json.dumps(
        {"type": "req", "id": "1", "method": "connect", "params": connect_params(**changed)}
    )
)


def well_formed(outcome: Outcome) -> bool:
    """Every frame that leaves is JSON, every close can be sent."""
    if isinstance(outcome, Reply):
        return read(outcome.frame)["ok"] is False
    if isinstance(outcome, CloseWith):
        answered = outcome.frame is None or read(outcome.frame)["ok"] is False
        return answered and len(outcome.reason.encode()) <= 123 and 1000 <= outcome.code <= 4999
    return isinstance(outcome, (Authenticate, Call, Ignore))


@pytest.mark.spec("RPC-1")
class TestFuzz:
    @settings(max_examples=300, deadline=None)
    @given(st.one_of(frames, connects))
    def test_before_the_handshake(self, frame: bytes | str) -> None:
        connection = new_connection()
        outcome = connection.receive(frame, NOW_MS)
        assert well_formed(outcome)
        assert isinstance(outcome, (CloseWith, Authenticate))
        assert connection.scopes == ()

    @settings(max_examples=300, deadline=None)
    @given(st.lists(frames, max_size=6), st.sampled_from([(), (READ,), ALL_SCOPES]))
    def test_after_the_handshake(self, received: list[bytes | str], scopes: tuple[str, ...]) -> None:
        connection = open_connection(scopes=scopes)
        for frame in received:
            outcome = connection.receive(frame, NOW_MS)
            assert well_formed(outcome)
            assert isinstance(outcome, (Call, Reply, Ignore))
            assert scopes or not isinstance(outcome, Call)
        assert connection.state is State.OPEN


@pytest.mark.spec("RPC-1")
class TestNumbering:
    @settings(max_examples=100, deadline=None)
    @given(st.lists(st.sampled_from(["event", "request", "garbage"]), max_size=60))
    def test_events_are_numbered_without_gaps(self, steps: list[str]) -> None:
        connection, tick, seen = open_connection(), PreparedEvent("tick", {"ts": 1}), []
        for step in steps:
            if step == "event":
                seen.append(read(connection.number(tick))["seq"])
            else:
                connection.receive(request("health") if step == "request" else b"garbage", NOW_MS)
        assert seen == list(range(1, steps.count("event") + 1))

    def test_each_connection_counts_for_itself(self) -> None:
        first, second = open_connection(), open_connection()
        tick = PreparedEvent("tick", {"ts": 1})
        assert [read(c.number(tick))["seq"] for c in (first, first, second, first)] == [1, 2, 1, 3]


@pytest.mark.spec("RPC-1")
class TestRefusals:
    TIGHT = ConnectionSettings(refusal_burst=3, refusals_per_second=1)

    @pytest.mark.parametrize(
        "frame",
        [b"garbage", request("no.such.method"), request("health", {"x": 1}), request("health", zzz=1)],
    )
    def test_too_many_refused_frames_close_the_connection(self, frame: bytes) -> None:
        connection = open_connection(self.TIGHT)
        for _ in range(3):
            assert isinstance(connection.receive(frame, NOW_MS), (Reply, Ignore))
        outcome = connection.receive(frame, NOW_MS)
        assert isinstance(outcome, CloseWith)
        assert (outcome.code, outcome.reason) == (1008, "too many refused requests")
        assert (outcome.frame is None) is (frame == b"garbage")
        assert connection.state is State.CLOSED

    def test_good_requests_cost_nothing_and_time_heals(self) -> None:
        connection = open_connection(self.TIGHT)
        for second in range(20):
            now_ms = NOW_MS + second * 1000
            assert isinstance(connection.receive(b"garbage", now_ms), Ignore)
            assert isinstance(connection.receive(request("health"), now_ms), Call)

    def test_a_client_that_polls_an_unknown_method_is_left_alone(self) -> None:
        connection = open_connection()
        outcomes = [connection.receive(request("no.such.method"), NOW_MS + at * 500) for at in range(2000)]
        assert all(isinstance(outcome, Reply) for outcome in outcomes)


@pytest.mark.spec("RPC-1", "RPC-2")
class TestRate:
    def test_too_many_requests_are_told_when_to_come_back(self) -> None:
        connection = open_connection(ConnectionSettings(request_burst=2, requests_per_second=10))
        assert [type(connection.receive(request("health"), NOW_MS)) for _ in range(2)] == [Call, Call]
        outcome = connection.receive(request("health", request_id="q3"), NOW_MS)
        assert isinstance(outcome, Reply)
        assert read(outcome.frame) == {
            "type": "res",
            "id": "q3",
            "ok": False,
            "error": {
                "code": "UNAVAILABLE",
                "message": "too many requests; slow down",
                "retryable": True,
                "retryAfterMs": 101,
            },
        }
        assert isinstance(connection.receive(request("health"), NOW_MS + 101), Call)

    def test_a_flood_ends_in_a_close(self) -> None:
        settings_ = ConnectionSettings(
            request_burst=2, requests_per_second=1, refusal_burst=5, refusals_per_second=1
        )
        connection = open_connection(settings_)
        outcomes = [connection.receive(request("health"), NOW_MS) for _ in range(9)]
        assert [type(outcome) for outcome in outcomes] == [Call] * 2 + [Reply] * 5 + [CloseWith, Ignore]
