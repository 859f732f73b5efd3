"""A turn for a request of `/v1`: which agent and session, taken in durably, followed to its end.

Each call without a session of its own gets a fresh one. Nobody is left to answer when the client
goes, so its run is stopped then (and only its run).
"""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Final

from aiohttp import web
from msgspec import Struct

from openclaw.domain.origin import InboundContext
from openclaw.engine.turns import Incoming
from openclaw.gateway.handlers.chat import message_content
from openclaw.gateway.http.answers import Refusal
from openclaw.gateway.http.asked import AskedTurn
from openclaw.gateway.http.credentials import HttpCaller
from openclaw.gateway.http.follow import RunFollower, RunResult
from openclaw.gateway.http.stream import KEEP_ALIVE_S, ClientGone, is_gone
from openclaw.gateway.services import GatewayServices, resolve_seed
from openclaw.protocol.scopes import ADMIN, WRITE, check_scope
from openclaw.store.inbox import Inbound
from openclaw.store.records import SessionSeed, UserInput

SESSION_HEADER: Final = "x-openclaw-session-key"
AGENT_HEADER: Final = "x-openclaw-agent-id"
# As long as the clients of this interface wait by default; a turn may take less, never more.
RUN_S: Final = 600.0
ANSWER_S: Final = RUN_S + 60.0
POLL_S: Final = 0.5
# The official clients repeat a failed request by themselves; a turn that was paid for is not repeated.
NO_RETRY: Final = {"x-should-retry": "false"}


class Place(Struct, frozen=True):
    """Where a turn goes. `lasting`: the session remembers earlier calls."""

    seed: SessionSeed
    lasting: bool


def model_ids(services: GatewayServices) -> list[str]:
    """What `/v1/models` lists: the default agent under two names, then every agent under its own."""
    agents = sorted(services.settings().agents)
    return ["openclaw", "openclaw/default", *(f"openclaw/{name}" for name in agents)]


def find_agent(services: GatewayServices, model: str) -> str | None:
    """The agent that a model's name means; None when it means none."""
    settings = services.settings()
    head, _, name = model.strip().lower().replace(":", "/", 1).partition("/")
    if head != "openclaw":
        return None
    if name in ("", "default"):
        return settings.default_agent
    return name if name in settings.agents else None


def choose_place(
    services: GatewayServices,
    request: web.Request,
    caller: HttpCaller,
    *,
    model: str,
    user: str | None,
    kind: str,
) -> Place:
    """Which session answers. Raises Refusal, Forbidden or InvalidRequest."""
    agent_id = find_agent(services, model)
    if agent_id is None:
        message = f"unknown model {model[:80]!r}; GET /v1/models lists them, such as openclaw/default"
        raise Refusal(404, "invalid_request_error", message, code="model_not_found")
    named, agent_named = request.headers.get(SESSION_HEADER), request.headers.get(AGENT_HEADER)
    if (named or agent_named) and not caller.may_choose_session:
        check_scope((), ADMIN)
    agent_id = agent_named or agent_id
    if named:
        return Place(resolve_seed(services, named, agent_id, "internal"), True)
    if user:
        # Hashed: whatever a client calls its users, two of them never share a session.
        who = hashlib.sha256(user.encode("utf-8", "surrogatepass")).hexdigest()[:32]
        key, lasting = f"agent:{agent_id}:{kind}-user:{who}", True
    else:
        key, lasting = f"agent:{agent_id}:{kind}:{services.ids.uuid()}", False
    return Place(resolve_seed(services, key, agent_id, "internal"), lasting)


@asynccontextmanager
async def started(
    services: GatewayServices, caller: HttpCaller, place: Place, asked: AskedTurn
) -> AsyncIterator[RunFollower]:
    """Take the turn in and follow it. It is stopped if this block is left before its end."""
    caller.require(WRITE)
    known = await services.store.session(place.seed.session_key) if place.lasting else None
    text = asked.text(with_earlier=known is None or known.message_count == 0)
    content = await message_content(text, asked.attachments)
    run_id = services.ids.uuid()
    body = UserInput(
        content,
        services.clock.now_ms(),
        extra_system_prompt=asked.system,
        # Every call has an answer of its own, also in a session that is busy.
        queue_mode="followup",
    )
    incoming = Incoming(
        run_id,
        place.seed,
        "api",
        "operator" if ADMIN in caller.scopes else "client",
        body,
        timeout_s=RUN_S,
        inbound=Inbound(InboundContext(source="api", provider="internal")),
    )
    with services.followers.run(run_id) as follower:
        await services.turns.accept(incoming)
        try:
            yield follower
        finally:
            if follower.result is None:
                await services.turns.abort(place.seed.session_key, run_id, "disconnect")


async def texts(request: web.Request, follower: RunFollower) -> AsyncIterator[str]:
    """The text as it comes; an empty piece now and then while there is none. Raises ClientGone, Refusal."""
    loop = asyncio.get_running_loop()
    overdue, quiet_since = loop.time() + ANSWER_S, loop.time()
    while True:
        await follower.wait(POLL_S)
        text = follower.take()
        if text or loop.time() - quiet_since >= KEEP_ALIVE_S:
            quiet_since = loop.time()
            yield text
        if follower.result is not None:
            return
        if is_gone(request):
            raise ClientGone
        if loop.time() >= overdue:
            raise Refusal(504, "timeout", f"no answer within {ANSWER_S:g} seconds", headers=NO_RETRY)


async def finished(request: web.Request, follower: RunFollower) -> RunResult:
    """Wait for the end. Raises ClientGone, and Refusal when there is no answer."""
    async for _text in texts(request, follower):
        pass
    return settled(follower)


def settled(follower: RunFollower) -> RunResult:
    """The result of a run that has ended well; Refusal otherwise."""
    result = follower.result
    assert result is not None, "asked before the end"
    if result.outcome == "ok":
        return result
    message = result.error or f"the turn ended with: {result.outcome}"
    if result.outcome == "timeout":
        raise Refusal(504, "timeout", message, headers=NO_RETRY)
    if result.outcome == "interrupted":
        raise Refusal(503, "unavailable", message, headers=NO_RETRY)
    if result.outcome == "aborted":
        raise Refusal(409, "aborted", message or "the turn was stopped", headers=NO_RETRY)
    raise Refusal(502, "api_error", message, headers=NO_RETRY)
