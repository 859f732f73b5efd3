"""The shell around the wire: one aiohttp server, one WebSocket per client, HTTP on the same port.

It moves frames between sockets and `protocol.connection`, checks secrets, and runs
handlers; what is not a socket belongs to `http`. A failing handler is an error
response; it never takes the connection, or another client, with it.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from functools import partial

from aiohttp import WSMsgType, web
from msgspec import Struct

from openclaw.domain.keys import format_key, main_session_key
from openclaw.errors import OpenClawError, Overloaded
from openclaw.gateway.client import Client
from openclaw.gateway.doorkeeper import DEVICES_CHANGED, Visitor
from openclaw.gateway.handlers.table import HANDLERS, NODE_HANDLERS
from openclaw.gateway.http.credentials import Door, LockedOut, SignedIn
from openclaw.gateway.http.files import Pages, read_pages
from openclaw.gateway.http.guards import LOOPBACK_HOSTS, is_local
from openclaw.gateway.http.routes import build_application
from openclaw.gateway.http.site import HttpSettings, Site
from openclaw.gateway.presence import entry_of
from openclaw.gateway.services import Caller, GatewayServices
from openclaw.protocol.auth import POLICY_VIOLATION, AuthMode, AuthOk, AuthRefused
from openclaw.protocol.connect import NODE
from openclaw.protocol.connection import (
    SERVICE_RESTART,
    Authenticate,
    Call,
    CloseWith,
    Connection,
    ConnectionSettings,
    Outcome,
    Reply,
    State,
)
from openclaw.protocol.errors import wire_error
from openclaw.protocol.events import STOPPING, Shutdown, Tick
from openclaw.protocol.frames import StateVersion, encode_error, encode_response
from openclaw.protocol.hello import TICK_INTERVAL_MS, HelloOk, ServerInfo, SessionDefaults, hello_ok

log = logging.getLogger("openclaw.gateway")
MAX_STRANGERS = 64  # sockets that have not authenticated yet
MAX_IN_FLIGHT = 1000
ENDS_WITH_CLIENT = frozenset(("agent.wait",))  # pure waiting: nobody is left to answer
LARGE_FRAME = 256 * 1024
CLOSE_WAIT_S = 3.0


class ServerSettings(Struct, frozen=True):
    """How the gateway is reached, and what it tells about itself; who may come in is the door's."""

    auth_mode: AuthMode
    port: int
    allowed_hosts: frozenset[str] = LOOPBACK_HOSTS
    config_path: str = ""
    state_dir: str = ""
    http: HttpSettings = HttpSettings()


class GatewayServer:
    def __init__(self, services: GatewayServices, settings: ServerSettings) -> None:
        self._services = services
        self._settings = settings
        self._strangers = 0
        self._stopping = False
        self._boot_id = services.ids.uuid()
        self._connection_settings = ConnectionSettings()
        self._door = Door(settings.auth_mode, self._check_secret, services.signins)
        # How to tell a browser's sign-in that one of its sockets is gone.
        self._signed_in: dict[Client, Callable[[], None]] = {}

    def application(self) -> web.Application:
        """Everything on this port: the rows of `http.routes`, and the socket at "/"."""
        return build_application(
            Site(
                services=self._services,
                settings=self._settings.http,
                allowed_hosts=self._settings.allowed_hosts,
                door=self._door,
                pages=read_pages() if self._settings.http.page else Pages(),
                serve_socket=self._serve_socket,
                is_stopping=lambda: self._stopping,
            )
        )

    def _check_secret(self, offered: str, request: web.Request, hook_token: str | None) -> bool | LockedOut:
        door, visitor = self._services.door, _visitor(request)
        if hook_token is None:
            checked = door.check_secret(offered, visitor)
        else:
            checked = door.check_hook_token(offered, hook_token, visitor)
        return LockedOut(checked.error.retry_after_ms or 0) if isinstance(checked, AuthRefused) else checked

    # -- sockets -------------------------------------------------------------------------------

    async def _serve_socket(self, request: web.Request) -> web.StreamResponse:
        if self._stopping or self._strangers >= MAX_STRANGERS:
            return web.json_response(
                {"error": {"message": "too many connections are waiting; try again", "type": "unavailable"}},
                status=503,
            )
        socket = web.WebSocketResponse(
            max_msg_size=self._connection_settings.writer_max_bytes + 1, compress=False, heartbeat=25.0,
            timeout=CLOSE_WAIT_S,
        )  # fmt: skip
        await socket.prepare(request)
        services = self._services
        connection = Connection(
            self._connection_settings, services.ids.uuid(), services.ids.uuid(), services.clock.now_ms()
        )
        assert request.transport is not None, "a prepared socket has its transport"
        client = Client(connection, socket, request.transport)
        sender = services.spawn(client.drain())
        try:
            await self._converse(request, socket, client)
        finally:
            services.hub.remove(client)
            self._signed_in.pop(client, lambda: None)()
            client.leave()
            sender.cancel()
        return socket

    async def _converse(self, request: web.Request, socket: web.WebSocketResponse, client: Client) -> None:
        connection = client.connection
        for frame in connection.opening():
            client.send(frame)
        self._strangers += 1
        try:
            async with asyncio.timeout(connection.settings.handshake_timeout_ms / 1000):
                accepted = await self._shake_hands(request, socket, client)
        except TimeoutError:
            accepted = False
            overdue = connection.check_deadline(connection.handshake_deadline_ms)
            if overdue is not None:
                self._act(client, overdue)
        finally:
            self._strangers -= 1
        if not accepted:
            await self._let_go(socket)
            return
        self._services.hub.add(client)
        async for message in socket:
            if message.type not in (WSMsgType.TEXT, WSMsgType.BINARY):
                break
            outcome = await self._receive(connection, message.data)
            if isinstance(outcome, Call):
                self._start(client, outcome)
            else:
                self._act(client, outcome)

    async def _receive(self, connection: Connection, data: str | bytes) -> Outcome:
        now_ms = self._services.clock.now_ms()
        if len(data) > LARGE_FRAME:
            # Reading a large frame takes longer than the event loop may stand still.
            return await asyncio.to_thread(connection.receive, data, now_ms)
        return connection.receive(data, now_ms)

    def _start(self, client: Client, call: Call) -> None:
        """Run a request on its own. One that changes something is finished even if its client goes away."""
        if client.in_flight >= MAX_IN_FLIGHT:
            error = Overloaded(f"{MAX_IN_FLIGHT} requests of this connection are still running")
            client.send(encode_error(call.request.id, wire_error(error)))
            return
        client.in_flight += 1
        task = self._services.spawn(self._handle(client, call))
        if call.request.method in ENDS_WITH_CLIENT:
            client.cancel_when_gone(task)

    async def _shake_hands(self, request: web.Request, socket: web.WebSocketResponse, client: Client) -> bool:
        connection = client.connection
        message = await socket.receive()
        if message.type not in (WSMsgType.TEXT, WSMsgType.BINARY):
            return False
        outcome = connection.receive(message.data, self._services.clock.now_ms())
        if not isinstance(outcome, Authenticate):
            self._act(client, outcome)
            return False
        signed_in = self._door.admit_socket(request, outcome.params)
        if signed_in is not None:
            return await self._welcome_page(outcome.protocol, signed_in, client)
        door = self._services.door
        admitted = await door.admit(outcome.params, connection.nonce, _visitor(request))
        if isinstance(admitted, AuthRefused):
            self._act(client, connection.refuse(admitted))
            return False
        hello = await self._hello(outcome.protocol, admitted.auth, client)
        if not door.is_current(admitted):
            self._act(client, connection.refuse(DEVICES_CHANGED))
            return False
        client.send(connection.accept(admitted.auth, hello))
        return True

    async def _welcome_page(self, protocol: int, signed_in: SignedIn, client: Client) -> bool:
        """Our own page, by its browser's sign-in. Its socket ends with that, at once."""
        connection = client.connection

        def hang_up() -> None:
            self._act(client, connection.close(POLICY_VIOLATION, "signed out"))

        self._signed_in[client] = self._services.signins.attach(signed_in.signin, hang_up)
        hello = await self._hello(protocol, signed_in.auth, client)
        if connection.state is State.CLOSED:
            return False
        client.send(connection.accept(signed_in.auth, hello))
        return True

    async def _hello(self, protocol: int, auth: AuthOk, client: Client) -> HelloOk:
        services, settings = self._services, self._services.settings()
        about = services.about
        now = await about.health.snapshot()
        default = settings.default_agent
        target = settings.agent(default).default_model
        return hello_ok(
            protocol=protocol,
            server=ServerInfo(
                version=services.version, conn_id=client.connection.conn_id, boot_id=self._boot_id
            ),
            auth=auth,
            presence=about.presence.entries(joining=entry_of(client, auth)),
            health=now,
            # The change that this client makes itself is counted already.
            state_version=StateVersion(presence=about.presence.version + 1, health=about.health.version),
            uptime_ms=services.clock.now_ms() - services.started_ms,
            session_defaults=SessionDefaults(
                default_agent_id=default,
                main_key=settings.keys.main_key,
                main_session_key=format_key(main_session_key(default, settings.keys)),
                scope=settings.keys.scope,
                model_configured=target.api != "offline",
            ),
            auth_mode=self._settings.auth_mode,
            max_payload=self._connection_settings.max_bytes(auth.scopes),
            config_path=self._settings.config_path,
            state_dir=self._settings.state_dir,
        )

    async def _let_go(self, socket: web.WebSocketResponse) -> None:
        """Give the sender time to deliver the refusal, without waiting for a peer that is silent."""
        try:
            async with asyncio.timeout(CLOSE_WAIT_S):
                while not socket.closed:
                    await socket.receive()
        except TimeoutError:
            await socket.close()

    def _act(self, client: Client, outcome: Outcome) -> None:
        if isinstance(outcome, Reply):
            client.send(outcome.frame)
        elif isinstance(outcome, CloseWith):
            if outcome.frame is not None:
                client.send(outcome.frame)
            client.close(outcome.code, outcome.reason)

    async def _handle(self, client: Client, call: Call) -> None:
        request = call.request
        later = partial(_answer, client, request.id)
        caller = Caller(client, request.id, request.has_params(), later)
        try:
            handlers = NODE_HANDLERS if client.connection.role == NODE else HANDLERS
            result = await handlers[request.method](self._services, caller, call.params)
        except OpenClawError as error:
            if error.code.startswith("STORE"):
                log.error("%s: %s", request.method, error)
            client.send(encode_error(request.id, wire_error(error)))
        except Exception as error:
            log.exception("%s failed inside the gateway", request.method)
            client.send(encode_error(request.id, wire_error(error)))
        else:
            client.send(encode_response(request.id, result))
        finally:
            client.in_flight -= 1

    # -- life ----------------------------------------------------------------------------------

    async def tick_forever(self) -> None:
        """Tell every client that the connection is alive."""
        while True:
            await self._services.clock.sleep(TICK_INTERVAL_MS / 1000)
            self._services.hub.broadcast("tick", Tick(ts=self._services.clock.now_ms()))

    def say_goodbye(self) -> None:
        """The last event, then a close that tells clients to come back."""
        self._stopping = True
        self._services.followers.stop()
        self._services.hub.broadcast("shutdown", Shutdown(reason=STOPPING))
        for client in self._services.hub.clients():
            self._act(client, client.connection.close(SERVICE_RESTART, "service restart"))


def _visitor(request: web.Request) -> Visitor:
    return Visitor(request.remote or "", is_local(request), request.headers.get("Origin"))


def _answer(client: Client, request_id: str, result: object) -> None:
    client.send(encode_response(request_id, result))
