"""The client on a real socket: handshake, answers, and a clear sentence for everything that fails."""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from websockets.sync.server import ServerConnection, serve

from openclaw import __version__
from openclaw.cli.client import GatewayClient
from openclaw.cli.failures import (
    GatewayClosed,
    GatewayTimeout,
    GatewayUnreachable,
    NotAGateway,
    NotLetIn,
    RequestRefused,
    VersionsDiffer,
)
from openclaw.cli.place import CredentialSource, Place, place_at
from openclaw.cli.refusals import connection_refused, read_refusal
from openclaw.errors import InvalidRequest, Overloaded
from openclaw.protocol.scopes import READ, WRITE
from tests.fakes.ports import free_port
from tests.unit.cli.fake_gateway import TOKEN, FakeGateway, HangUp, Json, Silence, Twice, running


def place_of(gateway: FakeGateway, token: str | None = TOKEN, source: CredentialSource = "config") -> Place:
    place = place_at(gateway.url, "the test")
    return Place(place.url, place.host, place.port, token, None, source, "/c/openclaw.json")


@contextmanager
def listening(answer: bytes | None) -> Iterator[int]:
    """Something that is no gateway: it accepts, says `answer`, and waits for the client to leave."""
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        listener.listen(1)

        def converse() -> None:
            peer, _ = listener.accept()
            with peer:
                peer.recv(65536)
                if answer is not None:
                    peer.sendall(answer)
                    peer.shutdown(socket.SHUT_WR)
                while peer.recv(65536):
                    pass

        thread = threading.Thread(target=converse)
        thread.start()
        yield listener.getsockname()[1]
        thread.join(5)


@pytest.mark.spec("CLI-4")
def test_it_introduces_itself_as_the_command_line_with_the_least_scope() -> None:
    with running(FakeGateway({"health": lambda _params: {"ok": True}})) as gateway:
        with GatewayClient(place_of(gateway), [READ]) as client:
            assert client.call("health", {"probe": True}) == {"ok": True}
            assert client.hello["server"]["version"] == "9.9.9"
        (connect,) = gateway.connects
    assert (connect.client.id, connect.client.mode, connect.client.version) == ("cli", "cli", __version__)
    assert (connect.role, connect.scopes) == ("operator", (READ,))
    assert (connect.min_protocol, connect.max_protocol) == (4, 4)
    assert connect.auth is not None
    assert (connect.auth.token, connect.auth.password, connect.device) == (TOKEN, None, None)
    assert gateway.calls == [("health", {"probe": True})]


@pytest.mark.spec("CLI-4")
def test_a_gateway_without_a_secret_is_asked_as_a_local_program() -> None:
    with running(FakeGateway({"health": lambda _params: {"ok": True}}, mode="none")) as gateway:
        with GatewayClient(place_of(gateway, None, "none"), [READ]) as client:
            client.call("health")
        (connect,) = gateway.connects
    assert (connect.client.id, connect.client.mode, connect.auth) == ("gateway-client", "backend", None)


@pytest.mark.spec("CLI-4")
def test_answers_of_many_megabytes_arrive_whole() -> None:
    text = "é" * 13_500_000
    with (
        running(FakeGateway({"chat.history": lambda _params: {"text": text}})) as gateway,
        GatewayClient(place_of(gateway), [READ]) as client,
    ):
        assert client.call("chat.history", {"sessionKey": "main"}, timeout_s=60)["text"] == text


@pytest.mark.spec("CLI-5")
def test_the_second_answer_is_waited_for_where_there_is_one() -> None:
    accepted, final = {"runId": "r1", "status": "accepted"}, {"runId": "r1", "status": "ok"}
    with (
        running(FakeGateway({"agent": lambda _params: Twice(accepted, final)})) as gateway,
        GatewayClient(place_of(gateway), [WRITE]) as client,
    ):
        params = {"message": "hi", "idempotencyKey": "r1"}
        assert client.call_twice("agent", params, 10) == final
        assert client.call("agent", params) == accepted
        gateway.answers["agent"] = lambda _params: final
        assert client.call_twice("agent", params, 10) == final


@pytest.mark.spec("CLI-5")
def test_a_refused_call_carries_the_words_of_the_gateway() -> None:
    def refuse(params: Json) -> object:
        if params.get("label") == "busy":
            raise Overloaded()
        raise InvalidRequest("no such thing")

    with (
        running(FakeGateway({"sessions.list": refuse})) as gateway,
        GatewayClient(place_of(gateway), [READ]) as client,
    ):
        with pytest.raises(RequestRefused, match="no such thing") as refused:
            client.call("sessions.list", {})
        assert (refused.value.wire_code, refused.value.may_retry) == ("INVALID_REQUEST", False)
        with pytest.raises(RequestRefused, match="Too much work") as refused:
            client.call("sessions.list", {"label": "busy"})
        assert (refused.value.wire_code, refused.value.may_retry) == ("UNAVAILABLE", True)
        with pytest.raises(RequestRefused, match="unexpected property 'kinds'"):
            client.call("sessions.list", {"kinds": []})


@pytest.mark.spec("CLI-5")
def test_a_silent_gateway_ends_in_a_time_out_that_names_the_method() -> None:
    with (
        running(FakeGateway({"health": lambda _params: Silence()})) as gateway,
        GatewayClient(place_of(gateway), [READ]) as client,
    ):
        with pytest.raises(
            GatewayTimeout, match=r"waited 0\.05 s for the answer to health from ws://.*--timeout"
        ) as late:
            client.call("health", {}, timeout_s=0.05)
        assert late.value.may_retry


@pytest.mark.spec("CLI-5")
def test_a_connection_that_ends_says_with_which_words() -> None:
    with (
        running(FakeGateway({"health": lambda _params: HangUp()})) as gateway,
        GatewayClient(place_of(gateway), [READ]) as client,
    ):
        with pytest.raises(GatewayClosed, match="1012 service restart"):
            client.call("health", {})
        with pytest.raises(GatewayClosed, match="before it answered"):
            client.call("health", {})


@pytest.mark.spec("CLI-4")
def test_a_gateway_that_is_still_starting_is_waited_for() -> None:
    with running(FakeGateway({"health": lambda _params: {"ok": True}}, starting=1)) as gateway:
        with GatewayClient(place_of(gateway), [READ]) as client:
            assert client.call("health") == {"ok": True}
        assert len(gateway.connects) == 2
        gateway.starting = 9
        with (
            pytest.raises(RequestRefused, match="gateway starting") as refused,
            GatewayClient(place_of(gateway), [READ], connect_timeout_s=0.4),
        ):
            pass
        assert refused.value.may_retry
        assert len(gateway.connects) == 3


@pytest.mark.spec("CLI-4")
@pytest.mark.parametrize(
    ("token", "source", "fix"),
    [
        ("wrong", "flag", "--token is not its gateway.auth.token"),
        ("wrong", "env", "OPENCLAW_GATEWAY_TOKEN is not its gateway.auth.token"),
        ("wrong", "config", "gateway.auth.token in /c/openclaw.json is not the one it was started with"),
        ("wrong", "remote", "gateway.remote.token in /c/openclaw.json"),
        (None, "none", "no token is set in /c/openclaw.json"),
    ],
)
def test_a_wrong_token_names_the_exact_fix_and_never_the_token(
    token: str | None, source: CredentialSource, fix: str
) -> None:
    with running(FakeGateway({})) as gateway:
        with (
            pytest.raises(NotLetIn) as refused,
            GatewayClient(place_of(gateway, token, source), [READ]),
        ):
            pass
        assert gateway.calls == []
    assert fix in refused.value.message
    assert TOKEN not in refused.value.message
    assert refused.value.wire_code == ("AUTH_TOKEN_MISMATCH" if token else "DEVICE_IDENTITY_REQUIRED")


@pytest.mark.spec("CLI-4")
def test_a_place_without_a_config_or_in_remote_mode_is_told_where_the_token_goes() -> None:
    refusal = read_refusal({"code": "NOT_PAIRED", "message": "device identity required"})
    bare = place_at("wss://far.example", "--url")
    assert "--token or OPENCLAW_GATEWAY_TOKEN" in connection_refused(bare, refusal).message
    remote = Place("wss://f", "f", 443, config_path="/c", remote=True)
    assert "gateway.remote.token in /c" in connection_refused(remote, refusal).message
    secret = Place("wss://f", "f", 443, password="hunter2", source="env")
    message = connection_refused(secret, refusal).message
    assert "OPENCLAW_GATEWAY_PASSWORD is not its gateway.auth.password" in message
    assert "hunter2" not in message


@pytest.mark.spec("CLI-4")
def test_another_protocol_version_is_named() -> None:
    details = {"code": "PROTOCOL_MISMATCH", "expectedProtocol": 7}
    error = {"code": "INVALID_REQUEST", "message": "protocol mismatch", "details": details}
    failure = connection_refused(place_at("ws://127.0.0.1:5", "x"), read_refusal(error))
    assert isinstance(failure, VersionsDiffer)
    assert "speaks protocol 4" in failure.message and "speaks 7" in failure.message
    assert failure.wire_code == "PROTOCOL_MISMATCH"


@pytest.mark.spec("CLI-5")
def test_an_error_that_says_nothing_is_still_an_error() -> None:
    odd: list[object] = [None, [], {"code": 5, "details": "x", "retryAfterMs": "soon", "retryable": 1}]
    for nonsense in odd:
        refusal = read_refusal(nonsense)
        assert refusal.message == "the gateway gave no reason"
        assert (dict(refusal.details), refusal.retryable, refusal.retry_after_ms) == ({}, False, None)


@pytest.mark.spec("CLI-4")
def test_nobody_there_says_how_to_start_one() -> None:
    port = free_port()
    with (
        pytest.raises(GatewayUnreachable) as refused,
        GatewayClient(place_at(f"ws://127.0.0.1:{port}", "x"), [READ]),
    ):
        pass
    assert refused.value.message == (
        f"no gateway at ws://127.0.0.1:{port} — start one with `openclaw gateway run`"
    )
    with (
        pytest.raises(GatewayUnreachable, match="no such host"),
        GatewayClient(place_at("ws://no-such-host.invalid", "x"), [READ]),
    ):
        pass
    with (
        pytest.raises(GatewayUnreachable, match="cannot reach"),
        GatewayClient(place_at(f"ws://{'a' * 70}.example", "x"), [READ]),
    ):
        pass


@pytest.mark.spec("CLI-4")
@pytest.mark.parametrize(
    ("answer", "words"),
    [
        (b"HTTP/1.1 404 Not Found\r\nContent-Length: 2\r\n\r\nno", r"not an openclaw gateway \(HTTP 404\)"),
        (b"HTTP/1.1 302 Found\r\nLocation: ws://evil.example/\r\nContent-Length: 0\r\n\r\n", "right port"),
        (
            b'HTTP/1.1 403 Forbidden\r\nContent-Length: 40\r\n\r\n{"error":{"message":"host not allowed"}}',
            "refused the connection: host not allowed",
        ),
        (b"220 mail.example ESMTP\r\n", "does not speak WebSocket"),
        (b"", "does not speak WebSocket"),
    ],
)
def test_something_else_on_the_port_is_not_taken_for_a_gateway(answer: bytes, words: str) -> None:
    with listening(answer) as port:
        place = Place(f"ws://127.0.0.1:{port}", "127.0.0.1", port, token="secret-that-stays-here")
        with pytest.raises(NotAGateway, match=words), GatewayClient(place, [READ]):
            pass


@pytest.mark.spec("CLI-5")
def test_a_port_that_never_answers_ends_in_a_time_out() -> None:
    with listening(None) as port:
        place = place_at(f"ws://127.0.0.1:{port}", "x")
        with (
            pytest.raises(GatewayTimeout, match=r"waited 0\.1 s for a connection to ws://"),
            GatewayClient(place, [READ], connect_timeout_s=0.1),
        ):
            pass


@pytest.mark.spec("CLI-4")
@pytest.mark.parametrize("greeting", ["not json", "[1]", '{"type":"event","event":"hello"}', "\\"])
def test_a_socket_that_speaks_something_else_gets_no_credential(greeting: str) -> None:
    received: list[str | bytes] = []

    def converse(connection: ServerConnection) -> None:
        connection.send(greeting)
        received.extend(connection)

    with serve(converse, "127.0.0.1", 0) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        port = server.socket.getsockname()[1]
        place = Place(f"ws://127.0.0.1:{port}", "127.0.0.1", port, token=TOKEN)
        with pytest.raises(NotAGateway), GatewayClient(place, [READ]):
            pass
        server.shutdown()
        thread.join(5)
    assert received == []
