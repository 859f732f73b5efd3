"""The shell around the wire: one aiohttp server, one WebSocket per client, HTTP on the same port.

It moves frames between sockets and `protocol.connection`, checks secrets and
hosts, and runs handlers. A failing handler is an error response; it never takes
the connection, or another client, with it.
"""

from __future__ import annotations

import asyncio
import ipaddress
import logging
from collections.abc import Awaitable, Callable
from functools import partial

import msgspec
from aiohttp import WSMsgType, web
from msgspec import Struct

from openclaw.domain.keys import format_key, main_session_key
from openclaw.errors import OpenClawError, Overloaded
from openclaw.gateway.client import Client
from openclaw.gateway.handlers.system import health
from openclaw.gateway.handlers.table import HANDLERS
from openclaw.gateway.services import Caller, GatewayServices
from openclaw.protocol import params
from openclaw.protocol.auth import AuthMode, AuthOk, AuthRefused, decide_auth
from openclaw.protocol.connection import (
    SERVICE_RESTART,
    Authenticate,
    Call,
    CloseWith,
    Connection,
    ConnectionSettings,
    Outcome,
    Reply,
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
LOOPBACK_HOSTS = frozenset(("localhost", "127.0.0.1", "::1"))


class ServerSettings(Struct, frozen=True):
    """Who may connect. `secret_digest` None refuses everybody unless the mode is "none"."""

    auth_mode: AuthMode
    secret_digest: bytes | None
    port: int
    allowed_hosts: frozenset[str] = LOOPBACK_HOSTS
    allowed_origins: frozenset[str] = frozenset()
    config_path: str = ""
    state_dir: str = ""


class GatewayServer:
    def __init__(self, services: GatewayServices, settings: ServerSettings) -> None:
        self._services = services
        self._settings = settings
        self._strangers = 0
        self._stopping = False
        self._boot_id = services.ids.uuid()
        self._connection_settings = ConnectionSettings()

    def application(self) -> web.Application:
        app = web.Application(middlewares=[self._check_host], client_max_size=1 << 20)
        app.router.add_get("/", self._root)
        for path in ("/healthz", "/health"):
            app.router.add_get(path, self._healthz)
        for path in ("/readyz", "/ready"):
            app.router.add_get(path, self._readyz)
        return app

    # -- HTTP ----------------------------------------------------------------------------------

    @web.middleware
    async def _check_host(
        self, request: web.Request, handler: Callable[[web.Request], Awaitable[web.StreamResponse]]
    ) -> web.StreamResponse:
        """A page that rebinds its name to this address is refused by the name it used."""
        if host_name(request.host) not in self._settings.allowed_hosts:
            return web.json_response(
                {
                    "error": {
                        "message": "host not allowed; add it to gateway.allowedHosts",
                        "type": "forbidden",
                    }
                },
                status=403,
            )
        response = await handler(request)
        if not response.prepared:
            response.headers["X-Content-Type-Options"] = "nosniff"
            response.headers["Referrer-Policy"] = "no-referrer"
            response.headers["X-Frame-Options"] = "DENY"
        return response

    async def _healthz(self, _request: web.Request) -> web.Response:
        return web.json_response({"ok": True, "status": "live"})

    async def _readyz(self, _request: web.Request) -> web.Response:
        uptime_ms = self._services.clock.now_ms() - self._services.started_ms
        ready = not self._stopping
        body = {"ready": ready, "failing": [] if ready else ["stopping"], "uptimeMs": uptime_ms}
        return web.json_response(body, status=200 if ready else 503)

    async def _root(self, request: web.Request) -> web.StreamResponse:
        if request.headers.get("Upgrade", "").lower() == "websocket":
            return await self._serve_socket(request)
        text = (
            f"OpenClaw gateway {self._services.version}\n\n"
            "This port speaks the OpenClaw WebSocket protocol, version 4.\n"
            'Talk to it with:  openclaw agent -m "hello"\n'
        )
        return web.Response(text=text)

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
        peer = request.remote or ""
        auth = decide_auth(
            self._settings.auth_mode,
            self._settings.secret_digest,
            outcome.params,
            loopback=is_loopback(peer) and not is_forwarded(request),
            origin=request.headers.get("Origin"),
            allowed_origins=self._settings.allowed_origins,
        )
        if isinstance(auth, AuthRefused):
            log.warning("refused a connection from %s: %s", peer, auth.error.message)
            self._act(client, connection.refuse(auth))
            return False
        client.send(connection.accept(auth, await self._hello(outcome.protocol, auth, client)))
        return True

    async def _hello(self, protocol: int, auth: AuthOk, client: Client) -> HelloOk:
        services, settings = self._services, self._services.settings()
        caller = Caller(client, "", False, lambda _answer: None)
        now = await health(services, caller, params.HealthParams())
        default = settings.default_agent
        target = settings.agent(default).default_model
        return hello_ok(
            protocol=protocol,
            server=ServerInfo(
                version=services.version, conn_id=client.connection.conn_id, boot_id=self._boot_id
            ),
            auth=auth,
            presence=[],
            health=msgspec.to_builtins(now),
            state_version=StateVersion(presence=1, health=1),
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
            result = await HANDLERS[request.method](self._services, caller, call.params)
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
        self._services.hub.broadcast("shutdown", Shutdown(reason=STOPPING))
        for client in self._services.hub.clients():
            self._act(client, client.connection.close(SERVICE_RESTART, "service restart"))


def _answer(client: Client, request_id: str, result: object) -> None:
    client.send(encode_response(request_id, result))


def host_name(host: str) -> str:
    """The name in a Host header, without its port, lower-cased; brackets of IPv6 removed."""
    text = host.strip().lower()
    if text.startswith("["):
        return text[1:].partition("]")[0]
    return text.rsplit(":", 1)[0] if text.count(":") == 1 else text


def is_loopback(address: str) -> bool:
    try:
        return ipaddress.ip_address(address.partition("%")[0]).is_loopback
    except ValueError:
        return False


def is_forwarded(request: web.Request) -> bool:
    """A reverse proxy speaks for somebody else: its peer is not local (PITFALLS)."""
    return any(name in request.headers for name in ("X-Forwarded-For", "Forwarded", "X-Real-IP"))
