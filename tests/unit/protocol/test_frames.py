"""Frames in and out."""

from __future__ import annotations

import json
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec import Raw

from openclaw.protocol.errors import ErrorShape
from openclaw.protocol.frames import (
    BadFrame,
    PreparedEvent,
    Request,
    StateVersion,
    decode_request,
    encode_error,
    encode_event,
    encode_json,
    encode_response,
)
from tests.unit.protocol.wire import read, request

LIMIT = 65_536


def bad(data: bytes | str, limit: int = LIMIT) -> BadFrame:
    frame = decode_request(data, limit)
    assert isinstance(frame, BadFrame)
    return frame


def good(data: bytes | str) -> Request:
    frame = decode_request(data, LIMIT)
    assert isinstance(frame, Request)
    return frame


@pytest.mark.spec("RPC-1")
class TestDecodeRequest:
    def test_params_stay_undecoded(self) -> None:
        frame = good(request("chat.send", {"a": [1, 2]}, "7:x", traceparent="t" * 128, expectedProfileId="p"))
        assert (frame.id, frame.method, frame.traceparent) == ("7:x", "chat.send", "t" * 128)
        assert (bytes(frame.params), frame.expected_profile_id) == (b'{"a":[1,2]}', "p")

    @pytest.mark.parametrize(
        ("params", "has"), [(None, False), ({}, False), ({"a": None}, True), ({"limit": 100}, True)]
    )
    def test_whether_params_were_sent(self, params: Any, has: bool) -> None:
        assert good(request("sessions.subscribe", params)).has_params() is has
        assert good(b'{"type":"req","id":"1","method":"m","params":null}').has_params() is False
        assert good(b'{"type":"req","id":"1","method":"m","params": { } }').has_params() is False

    def test_text_and_bytes_are_the_same(self) -> None:
        text = request("health", {"é": 1})
        assert good(text) == good(text.decode())

    @pytest.mark.parametrize(
        ("frame", "message"),
        [
            ({"id": "b", "method": "m"}, "must have required property 'type'"),
            ({"type": "req", "id": "b"}, "must have required property 'method'"),
            ({"type": "req", "id": "b", "method": ""}, "at /method: must NOT have fewer than 1 characters"),
            ({"type": "req", "id": "b", "method": 4}, "at /method: must be string"),
            (
                {"type": "res", "id": "b", "method": "m"},
                "at /type: must be equal to one of the allowed values",
            ),
            ({"type": "req", "id": "b", "method": "m", "zzz": 1}, "at root: unexpected property 'zzz'"),
            (
                {"type": "req", "id": "b", "method": "m", "traceparent": "t" * 129},
                "at /traceparent: must NOT have more than 128 characters",
            ),
            (
                {"type": "req", "id": "b", "method": "m", "expectedProfileId": ""},
                "at /expectedProfileId: must NOT have fewer than 1 characters",
            ),
        ],
    )
    def test_closed_and_answered_by_id(self, frame: Any, message: str) -> None:
        refused = bad(msgspec.json.encode(frame))
        assert refused == BadFrame("not_request", f"invalid request frame: {message}", "b")

    @pytest.mark.parametrize(
        "data", [b"3", b"null", b"[]", b'"x"', b"{}", b'{"id":""}', b'{"id":7,"type":"req","method":"m"}']
    )
    def test_without_a_usable_id_there_is_nobody_to_answer(self, data: bytes) -> None:
        assert (bad(data).kind, bad(data).id) == ("not_request", None)

    @pytest.mark.parametrize(
        "data",
        [
            b"",
            b"{",
            b"garbage",
            b"\xff",
            b'{"id":"1"} x',
            b"\xef\xbb\xbf{}",
            b'{"id":"\xed\xa0\x80"}',
            "",
            "{'id':1}",
        ],
    )
    def test_not_json(self, data: bytes | str) -> None:
        assert (bad(data).kind, bad(data).id) == ("not_json", None)

    def test_the_size_is_counted_in_bytes(self) -> None:
        text = request("health", {"x": "é" * 100}).decode()
        size = len(text.encode())
        assert isinstance(decode_request(text, size), Request)
        assert bad(text, size - 1).kind == "too_large"
        assert bad(text.encode(), size - 1).kind == "too_large"

    @pytest.mark.parametrize("levels", [63, 64, 900])
    def test_deep_frames_are_refused_by_id(self, levels: int) -> None:
        deep = b'{"type":"req","id":"d","method":"m","params":%b%b}' % (b"[" * levels, b"]" * levels)
        if levels == 63:
            assert isinstance(decode_request(deep, LIMIT), Request)
        else:
            assert bad(deep).id == "d"
            assert bad(deep).message == "invalid request frame: nested deeper than 64 levels"

    def test_absurdly_deep_frames_are_not_followed(self) -> None:
        assert bad(b'{"id":"d","params":' + b"[" * 60_000).id is None

    def test_lone_surrogates_become_replacement_characters(self) -> None:
        frame = good(b'{"type":"req","id":"\\ud800","method":"m","params":{"t":"a\\udc00b"}}')
        assert frame.id == "\ufffd"
        assert json.loads(bytes(frame.params)) == {"t": "a\ufffdb"}
        assert good('{"type":"req","id":"x\ud800","method":"m"}').id == "x\ufffd"

    @settings(max_examples=300, deadline=None)
    @given(st.one_of(st.binary(max_size=200), st.text(max_size=200)))
    def test_never_raises(self, data: bytes | str) -> None:
        assert isinstance(decode_request(data, LIMIT), (Request, BadFrame))


@pytest.mark.spec("RPC-1")
class TestEncode:
    def test_response(self) -> None:
        assert read(encode_response('a"b', {"x": 1})) == {
            "type": "res",
            "id": 'a"b',
            "ok": True,
            "payload": {"x": 1},
        }
        assert read(encode_response("1", Raw(b'{"y":[]}')))["payload"] == {"y": []}
        assert read(encode_response("1", None))["payload"] is None

    def test_event_is_numbered_by_splicing(self) -> None:
        prepared = PreparedEvent("tick", {"ts": 5})
        assert prepared.event == "tick"
        assert read(prepared.numbered(1)) == {
            "type": "event",
            "event": "tick",
            "payload": {"ts": 5},
            "seq": 1,
        }
        assert read(prepared.numbered(12_345))["seq"] == 12_345
        assert read(prepared.unnumbered()) == {"type": "event", "event": "tick", "payload": {"ts": 5}}

    def test_state_version_rides_along(self) -> None:
        frame = read(encode_event("health", Raw(b'{"ok":true}'), 9, StateVersion(presence=2, health=3)))
        assert frame == {
            "type": "event",
            "event": "health",
            "payload": {"ok": True},
            "seq": 9,
            "stateVersion": {"presence": 2, "health": 3},
        }

    def test_a_payload_with_surrogates_is_repaired_not_refused(self) -> None:
        payload = {"text": "x\ud800", "\udc00": (Raw(b'{"n":1}'), "\ud83d\ude00")}
        shown = read(encode_response("1", payload))["payload"]
        assert shown == {"text": "x\ufffd", "\ufffd": [{"n": 1}, "\U0001f600"]}

    def test_what_is_no_json_is_a_programming_error(self) -> None:
        with pytest.raises(TypeError):
            encode_json({"x": object()})
        with pytest.raises(TypeError, match="object"):
            encode_json({"y": "\ud800", "x": object()})


@pytest.mark.spec("RPC-2")
def test_error_response_leaves_out_what_is_unset() -> None:
    assert encode_error("1", ErrorShape("UNAVAILABLE", "m")) == (
        b'{"type":"res","id":"1","ok":false,"error":{"code":"UNAVAILABLE","message":"m"}}'
    )
    full = ErrorShape("UNAVAILABLE", "m", details={"a": 1}, retryable=True, retry_after_ms=500)
    assert read(encode_error("1", full))["error"] == {
        "code": "UNAVAILABLE",
        "message": "m",
        "details": {"a": 1},
        "retryable": True,
        "retryAfterMs": 500,
    }
