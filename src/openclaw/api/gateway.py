"""A gateway inside a program: `async with openclaw.Gateway(config) as gw: …`.

The program owns this gateway and speaks to it as its owner. It is a whole gateway: it
listens on this machine, keeps its state in the state directory, and what was accepted
goes on at the next start. One event loop, one task: enter and leave it in the same one.
"""

from __future__ import annotations

import asyncio
import os
import uuid
from collections.abc import Mapping, Sequence
from contextlib import AsyncExitStack
from types import TracebackType
from typing import Any

from openclaw.api.connection import Connection
from openclaw.api.events import Events
from openclaw.api.failures import GatewayGone, TurnFailed
from openclaw.api.ground import ConfigSource, environment, load_config, own_address
from openclaw.api.sessions import Sessions
from openclaw.api.values import Reply, Waited
from openclaw.app import Gateway as RunningGateway
from openclaw.protocol.scopes import ADMIN, READ, WRITE

Json = dict[str, Any]
OWNER_SCOPES = (READ, WRITE, ADMIN)


class Gateway:
    """A gateway with its sessions.

    `config` is a mapping (kept in memory), a path, or None for the file that the `openclaw`
    command uses. `state_dir` is where the conversations are; only one gateway may use it at a
    time (OWN-6). `port` 0 takes a free one, None the configured one. `session` is the session
    that `gw.sessions` acts as; its agent's visibility decides what is seen. `scopes` are the
    rights of this object's calls: the owner's, unless fewer are asked for.
    """

    def __init__(
        self,
        config: ConfigSource = None,
        *,
        state_dir: str | os.PathLike[str] | None = None,
        port: int | None = 0,
        session: str = "main",
        scopes: Sequence[str] = OWNER_SCOPES,
        env: Mapping[str, str] | None = None,
    ) -> None:
        self._config = config
        self._env = environment(config, state_dir, env)
        self._port = port
        self._session = session
        self._scopes = scopes
        self._stack = AsyncExitStack()
        self._connection: Connection | None = None
        self._url = ""

    async def __aenter__(self) -> Gateway:
        async with AsyncExitStack() as stack:
            loaded = await asyncio.to_thread(load_config, self._config, self._env)
            running = await stack.enter_async_context(RunningGateway(loaded, self._env, port=self._port))
            address = own_address(loaded.config, running.port)
            connection = await Connection.open(address, self._scopes)
            stack.push_async_callback(connection.close)
            self._url, self._connection = address.url, connection
            self._stack = stack.pop_all()
        return self

    async def __aexit__(
        self, _kind: type[BaseException] | None, _error: BaseException | None, _trace: TracebackType | None
    ) -> None:
        self._connection = None
        await self._stack.aclose()

    # -- sessions ------------------------------------------------------------------------------

    @property
    def sessions(self) -> Sessions:
        """The session tools, acting as the session that this object was made with."""
        return self.acting_as(self._session)

    def acting_as(self, session: str) -> Sessions:
        """The session tools as another session has them."""
        return Sessions(self._link, session)

    async def chat(
        self,
        session: str,
        text: str,
        *,
        model: str | None = None,
        thinking: str | None = None,
        timeout_s: int | None = None,
        run_id: str | None = None,
    ) -> Reply:
        """Say something in a session, as its owner, and await the reply.

        When this is cancelled the turn goes on; `call("chat.abort", …)` stops it. The same `run_id`
        again is the same message, not another one. Raises TurnFailed when the turn fails.
        """
        asked: Json = {
            "message": text,
            "sessionKey": session,
            "idempotencyKey": run_id or str(uuid.uuid4()),
            "model": model,
            "thinking": thinking,
            "timeout": timeout_s,
        }
        given = {name: value for name, value in asked.items() if value is not None}
        accepted, finished = await self._link.call_twice("agent", given)
        result = finished.get("result") or {}
        said = "\n".join(one["text"] for one in result.get("payloads") or () if one.get("text"))
        if finished["status"] != "ok":
            raise TurnFailed(
                str(finished.get("summary") or "no reason was given"),
                run_id=finished["runId"],
                status=finished["status"],
                text=said,
            )
        return Reply(run_id=finished["runId"], session_key=accepted["sessionKey"], text=said)

    async def wait(self, run_id: str, timeout_s: float = 30.0) -> Waited:
        """Wait until a run has ended: of a message, of a spawned helper (RPC-16)."""
        waited = await self._link.call("agent.wait", {"runId": run_id, "timeoutMs": round(timeout_s * 1000)})
        return Waited(
            run_id=waited["runId"],
            status=waited["status"],
            text=(waited.get("terminalReply") or {}).get("text") or "",
            error=waited.get("error"),
            started_at=waited.get("startedAt"),
            ended_at=waited.get("endedAt"),
        )

    # -- the whole gateway -----------------------------------------------------------------------

    def on(self, *names: str) -> Events:
        """The events of these names, such as "chat" or "session.message"; all events without a name."""
        return Events(self._link, names)

    async def call(self, method: str, params: Json | None = None) -> Any:
        """Any method of the gateway, with the rights of its owner; the payload of the answer."""
        return await self._link.call(method, params)

    @property
    def url(self) -> str:
        """Where other clients of this machine reach this gateway."""
        return self._url

    @property
    def _link(self) -> Connection:
        if self._connection is None:
            raise GatewayGone("this gateway is not running; use it inside `async with`")
        return self._connection
