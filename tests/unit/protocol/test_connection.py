"""The life of one connection."""

from __future__ import annotations

import pytest

from openclaw.errors import OpenClawError
from openclaw.protocol.auth import GATEWAY_STARTING, AuthOk
from openclaw.protocol.connection import (
    Authenticate,
    Call,
    CloseWith,
    ConnectionSettings,
    Ignore,
    Reply,
    State,
    clip_reason,
)
from openclaw.protocol.frames import PreparedEvent
from openclaw.protocol.params import ChatHistoryParams
from openclaw.protocol.scopes import ADMIN, READ, WRITE
from tests.unit.protocol.wire import (
    CLI,
    DEVICE,
    NOW_MS,
    SECRET,
    connect_params,
    new_connection,
    open_connection,
    read,
    request,
)


def closed(outcome: object) -> CloseWith:
    assert isinstance(outcome, CloseWith)
    return outcome


def error_of(outcome: object) -> dict[str, object]:
    assert isinstance(outcome, Reply)
    error: dict[str, object] = read(outcome.frame)["error"]
    return error


@pytest.mark.spec("RPC-1")
class TestOpening:
    def test_the_server_speaks_first(self) -> None:
        (challenge,) = new_connection().opening()
        assert read(challenge) == {
            "type": "event",
            "event": "connect.challenge",
            "payload": {"nonce": "nonce-1", "ts": NOW_MS},
        }

    def test_capabilities_are_announced(self) -> None:
        settings = ConnectionSettings(capabilities=("model-catalog-snapshot",))
        (challenge,) = new_connection(settings).opening()
        assert read(challenge)["payload"]["capabilities"] == ["model-catalog-snapshot"]


@pytest.mark.spec("RPC-1")
class TestHandshake:
    def test_a_connect_is_handed_out_for_authentication(self) -> None:
        connection = new_connection()
        params = connect_params(caps=["tool-events"], device=DEVICE, minProtocol=3, maxProtocol=9)
        outcome = connection.receive(request("connect", params, "c1"), NOW_MS)
        assert isinstance(outcome, Authenticate)
        assert (outcome.protocol, outcome.params.scopes) == (4, (ADMIN, READ, WRITE))
        assert outcome.params.device is not None and outcome.params.device.public_key == DEVICE["publicKey"]
        assert connection.state is State.AUTHENTICATING
        assert connection.client is not None and connection.client.id == "cli"
        assert (connection.caps, connection.scopes) == (frozenset({"tool-events"}), ())

    @pytest.mark.parametrize(("mode", "role"), [("probe", "operator"), ("cli", "node")])
    def test_probes_and_nodes_may_speak_3(self, mode: str, role: str) -> None:
        params = connect_params(client=CLI | {"mode": mode}, role=role, minProtocol=3, maxProtocol=3)
        outcome = new_connection().receive(request("connect", params), NOW_MS)
        assert isinstance(outcome, Authenticate) and outcome.protocol == 3
        older = connect_params(client=CLI | {"mode": mode}, role=role, minProtocol=2, maxProtocol=2)
        assert closed(new_connection().receive(request("connect", older), NOW_MS)).code == 1002

    def test_hello_answers_the_same_id(self) -> None:
        connection = new_connection()
        connection.receive(request("connect", connect_params(), "c-77"), NOW_MS)
        frame = connection.accept(AuthOk("token", "operator", (READ,), (READ,)), {"type": "hello-ok"})
        assert read(frame) == {"type": "res", "id": "c-77", "ok": True, "payload": {"type": "hello-ok"}}
        assert (connection.state, connection.scopes, connection.role) == (State.OPEN, (READ,), "operator")

    def test_first_frame_not_connect(self) -> None:
        outcome = closed(new_connection().receive(request("health", {}, "1"), NOW_MS))
        reason = "invalid handshake: first request must be connect"
        assert (outcome.code, outcome.reason) == (1008, reason)
        assert read(outcome.frame)["error"] == {"code": "INVALID_REQUEST", "message": reason}

    @pytest.mark.parametrize("garbage", [b"garbage", b"", "{", b"\xff\xfe", b"{} {}"])
    def test_garbage_is_closed_without_a_word(self, garbage: bytes | str) -> None:
        connection = new_connection()
        assert connection.receive(garbage, NOW_MS) == CloseWith(1000, "")
        assert connection.state is State.CLOSED

    def test_json_that_is_no_request(self) -> None:
        assert new_connection().receive(b"[1]", NOW_MS) == CloseWith(
            1008, "invalid request frame: must be object"
        )
        outcome = closed(new_connection().receive(b'{"type":"req","id":"7"}', NOW_MS))
        assert outcome.reason == "invalid request frame: must have required property 'method'"
        assert read(outcome.frame)["id"] == "7"

    @pytest.mark.parametrize("params", [None, {}])
    def test_connect_without_params(self, params: object) -> None:
        outcome = closed(new_connection().receive(request("connect", params), NOW_MS))
        reason = "invalid connect params: must have required property 'minProtocol'"
        assert (outcome.code, outcome.reason) == (1008, reason)
        assert read(outcome.frame)["error"]["message"] == reason

    def test_nul_in_connect_is_refused(self) -> None:
        outcome = closed(new_connection().receive(request("connect", connect_params(locale="a\0")), NOW_MS))
        assert outcome.reason.startswith("invalid connect params: text must not contain NUL")

    def test_nothing_may_follow_before_hello(self) -> None:
        connection = new_connection()
        connection.receive(request("connect", connect_params()), NOW_MS)
        assert connection.receive(request("health"), NOW_MS) == CloseWith(
            1008, "invalid handshake: wait for hello-ok"
        )

    def test_frames_before_hello_are_small(self) -> None:
        padding = connect_params(userAgent="u" * 2000, pathEnv="")
        frame = request("connect", padding)
        exact = frame.replace(b'"pathEnv":""', b'"pathEnv":"%b"' % (b"p" * 16_000))
        small = ConnectionSettings(handshake_max_bytes=len(exact))
        assert isinstance(new_connection(small).receive(exact, NOW_MS), Authenticate)
        smaller = ConnectionSettings(handshake_max_bytes=len(exact) - 1)
        assert new_connection(smaller).receive(exact, NOW_MS) == CloseWith(1009, "")
        assert new_connection().max_frame_bytes == 65_536
        assert new_connection().receive(b" " * 65_537, NOW_MS) == CloseWith(1009, "")

    def test_the_handshake_has_15_seconds(self) -> None:
        connection = new_connection()
        assert connection.handshake_deadline_ms == NOW_MS + 15_000
        assert connection.check_deadline(NOW_MS + 14_999) is None
        assert connection.check_deadline(NOW_MS + 15_000) == CloseWith(1008, "handshake timeout")
        late = new_connection()
        assert closed(late.receive(request("connect", connect_params()), NOW_MS + 15_000)).code == 1008
        assert open_connection().check_deadline(NOW_MS + 99_999) is None
        waiting = new_connection()
        waiting.receive(request("connect", connect_params()), NOW_MS)
        assert waiting.check_deadline(NOW_MS + 15_000) is not None

    def test_refusal_may_have_its_own_reason(self) -> None:
        connection = new_connection()
        connection.receive(request("connect", connect_params(), "c9"), NOW_MS)
        outcome = connection.refuse(GATEWAY_STARTING)
        assert (outcome.code, outcome.reason) == (1013, "gateway starting")
        assert read(outcome.frame)["error"]["retryAfterMs"] == 500
        assert connection.receive(request("connect", connect_params()), NOW_MS) == Ignore()

    def test_the_shell_may_not_skip_a_step(self) -> None:
        auth = AuthOk("token", "operator", (), ())
        with pytest.raises(OpenClawError, match="CONNECTING"):
            new_connection().accept(auth, {})
        with pytest.raises(OpenClawError, match="OPEN"):
            open_connection().refuse(GATEWAY_STARTING)
        waiting = new_connection()
        with pytest.raises(OpenClawError, match="CONNECTING"):
            waiting.next_seq()
        waiting.receive(request("connect", connect_params()), NOW_MS)
        with pytest.raises(OpenClawError, match="AUTHENTICATING"):
            waiting.next_seq()


class TestCalls:
    @pytest.mark.spec("RPC-1")
    def test_a_call_arrives_typed(self) -> None:
        outcome = open_connection().receive(
            request("chat.history", {"sessionKey": "main", "limit": 3}, "q"), NOW_MS
        )
        assert isinstance(outcome, Call)
        assert (outcome.request.id, outcome.request.method) == ("q", "chat.history")
        assert outcome.params == ChatHistoryParams(session_key="main", limit=3)

    @pytest.mark.spec("RPC-2")
    def test_refusals_are_answered_and_the_socket_stays(self) -> None:
        connection = open_connection(scopes=(READ,))
        invalid = error_of(connection.receive(request("sessions.list", {"limit": "x"}), NOW_MS))
        unknown = error_of(connection.receive(request("no.such.method"), NOW_MS))
        extra = error_of(connection.receive(request("health", {}, "b", zzz=1), NOW_MS))
        again = error_of(connection.receive(request("connect", connect_params()), NOW_MS))
        assert [e["message"] for e in (invalid, unknown, extra, again)] == [
            "invalid sessions.list params: at /limit: must be integer",
            "unknown method: no.such.method",
            "invalid request frame: at root: unexpected property 'zzz'",
            "connect is only valid as the first request",
        ]
        assert {e["code"] for e in (invalid, unknown, extra, again)} == {"INVALID_REQUEST"}
        assert connection.state is State.OPEN

    @pytest.mark.spec("RPC-3")
    def test_scopes_and_roles_are_enforced(self) -> None:
        send = request("chat.send", {"sessionKey": "main", "message": "m", "idempotencyKey": "k"})
        assert error_of(open_connection(scopes=(READ,)).receive(send, NOW_MS))["code"] == "FORBIDDEN"
        assert isinstance(open_connection(scopes=(WRITE,)).receive(send, NOW_MS), Call)
        node = error_of(open_connection(role="node").receive(request("health"), NOW_MS))
        assert node == {"code": "INVALID_REQUEST", "message": "unauthorized role: node"}

    @pytest.mark.spec("RPC-1")
    @pytest.mark.parametrize("data", [b"garbage", b"", b"\xff", b"[]", b"3", b'{"id":""}'])
    def test_what_cannot_be_answered_is_ignored(self, data: bytes) -> None:
        connection = open_connection()
        assert connection.receive(data, NOW_MS) == Ignore()
        assert isinstance(connection.receive(request("health"), NOW_MS), Call)

    @pytest.mark.spec("RPC-1")
    def test_only_writers_may_send_large_frames(self) -> None:
        settings = ConnectionSettings(reader_max_bytes=300, writer_max_bytes=600)
        large = request("sessions.list", {"search": "x" * 300})
        reader, writer = open_connection(settings, (READ,)), open_connection(settings, (WRITE,))
        assert (reader.max_frame_bytes, writer.max_frame_bytes) == (300, 600)
        assert closed(reader.receive(large, NOW_MS)) == CloseWith(1009, "frame larger than 300 bytes")
        assert isinstance(writer.receive(large, NOW_MS), Call)
        defaults = ConnectionSettings()
        assert (defaults.max_bytes((READ,)), defaults.max_bytes((ADMIN,))) == (1_048_576, 26_214_400)


@pytest.mark.spec("RPC-1")
class TestClosing:
    def test_a_closed_connection_takes_nothing(self) -> None:
        connection = open_connection()
        assert connection.close(1012, "service restart") == CloseWith(1012, "service restart")
        assert connection.receive(request("health"), NOW_MS) == Ignore()

    def test_numbering_for_a_closed_connection_harms_nobody(self) -> None:
        connection, tick = open_connection(), PreparedEvent("tick", {"ts": 1})
        connection.number(tick)
        connection.close(1008, "too slow")
        assert read(connection.number(tick))["seq"] == 2

    def test_reasons_fit_into_a_close_frame(self) -> None:
        assert clip_reason("x" * 123) == "x" * 123
        assert clip_reason("x" * 124) == "x" * 123
        assert clip_reason("é" * 100) == "é" * 61
        assert clip_reason("\ud800") == "?"


@pytest.mark.spec("RPC-1")
def test_the_secret_is_neither_kept_nor_printed() -> None:
    connection = new_connection()
    outcome = connection.receive(request("connect", connect_params()), NOW_MS)
    assert isinstance(outcome, Authenticate)
    assert outcome.params.auth is not None and outcome.params.auth.token == SECRET
    kept = {name: value for name, value in vars(connection).items() if name != "settings"}
    assert SECRET not in repr(outcome)
    assert SECRET not in repr(kept)
