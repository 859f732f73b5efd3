"""The session tools as Python methods: look at sessions, read them, write to them, spawn helpers.

Every method acts as one session and sees what that session sees; the names and rules are
those of the tools that agents have. What a method cannot do it raises; see `failures`.
"""

from __future__ import annotations

import uuid
from collections.abc import Sequence
from typing import Any, TypeVar

import msgspec
from msgspec import Struct

from openclaw.api.connection import Link
from openclaw.api.failures import ToolFailed, tool_refusal
from openclaw.api.values import AgentInfo, History, SearchHit, Sent, SessionInfo, Spawned, StatusCard, Value

Json = dict[str, Any]
V = TypeVar("V", bound=Value)


class ToolAnswer(Struct, frozen=True):
    """What a tool said: its text, and the object behind it where there is one."""

    text: str
    details: Json


class Sessions:
    """The tools of the session `key`, which is created when it is first used."""

    def __init__(self, link: Link, key: str) -> None:
        self._link = link
        self._key = key
        self._exists = False

    @property
    def key(self) -> str:
        """The session that these methods act as."""
        return self._key

    # -- looking -------------------------------------------------------------------------------

    async def list(
        self,
        *,
        kinds: Sequence[str] = (),
        limit: int = 100,
        active_minutes: int | None = None,
        label: str | None = None,
        agent_id: str | None = None,
        search: str | None = None,
        messages: int = 0,
        titles: bool = False,
        previews: bool = False,
    ) -> tuple[SessionInfo, ...]:
        """The sessions that this one may see, newest first (LIST-1).

        `messages`, `titles` and `previews` say how much of each conversation comes with its row.
        """
        answer = await self._object(
            "sessions_list",
            kinds=tuple(kinds) or None,
            limit=limit,
            activeMinutes=active_minutes,
            label=label,
            agentId=agent_id,
            search=search,
            messageLimit=messages or None,
            includeDerivedTitles=titles or None,
            includeLastMessage=previews or None,
        )
        return tuple(_read(row, SessionInfo) for row in answer["sessions"])

    async def history(
        self,
        session: str,
        *,
        limit: int | None = None,
        offset: int = 0,
        include_tools: bool = False,
        message_id: str | None = None,
    ) -> History:
        """The newest messages of a session, oldest first; secrets are masked (HIST-1)."""
        answer = await self._object(
            "sessions_history",
            sessionKey=session,
            limit=limit,
            offset=offset or None,
            includeTools=include_tools or None,
            messageId=message_id,
        )
        return _read(answer, History)

    async def search(
        self, query: str, *, limit: int = 20, session: str | None = None, agent_id: str | None = None
    ) -> tuple[SearchHit, ...]:
        """Messages that have all words of the query, newest first (SRCH-1)."""
        answer = await self._object(
            "sessions_search", query=query, limit=limit, sessionKey=session, agentId=agent_id
        )
        return tuple(_read(hit, SearchHit) for hit in answer["hits"])

    async def status(self, session: str = "current", *, model: str | None = None) -> StatusCard:
        """A card about a session; with `model` it first sets the model of the session (STAT-1)."""
        answer = await self.use("session_status", sessionKey=session, model=model)
        return _read({**answer.details, "text": answer.text}, StatusCard)

    async def agents(self) -> tuple[AgentInfo, ...]:
        """The agents that may be named when spawning, the own one first (AGL-1)."""
        answer = await self._object("agents_list")
        return tuple(_read(agent, AgentInfo) for agent in answer["agents"])

    # -- doing ---------------------------------------------------------------------------------

    async def send(
        self,
        session: str | None = None,
        message: str = "",
        *,
        label: str | None = None,
        agent_id: str | None = None,
        timeout_s: int | None = None,
    ) -> Sent:
        """Write to another session and wait for its reply; `timeout_s=0` does not wait (A2A-1)."""
        answer = await self._object(
            "sessions_send",
            sessionKey=session,
            label=label,
            agentId=agent_id,
            message=message,
            timeoutSeconds=timeout_s,
        )
        return _read(answer, Sent)

    async def spawn(
        self,
        task: str,
        *,
        label: str | None = None,
        agent_id: str | None = None,
        model: str | None = None,
        thinking: str | None = None,
        timeout_s: int | None = None,
        cleanup: str | None = None,
        context: str | None = None,
    ) -> Spawned:
        """Give a task to a new sub-agent and return at once (SPAWN-2, SPAWN-3)."""
        answer = await self._object(
            "sessions_spawn",
            task=task,
            label=label,
            agentId=agent_id,
            model=model,
            thinking=thinking,
            runTimeoutSeconds=timeout_s,
            cleanup=cleanup,
            context=context,
        )
        return _read(answer, Spawned)

    async def subagents(
        self, action: str = "list", *, target: str | None = None, message: str | None = None
    ) -> Json:
        """List, steer or kill the sub-agents of this session (SUB-1); the answer as the tool gives it."""
        return await self._object("subagents", action=action, target=target, message=message)

    async def use(self, tool: str, /, **arguments: Any) -> ToolAnswer:
        """Any tool that the session has, by its name; an argument that is None counts as not given.

        Raises Forbidden for what the session may not do, ToolFailed for what the tool could not.
        """
        await self._be_there()
        given = {name: value for name, value in arguments.items() if value is not None}
        answer = await self._link.call(
            "tools.invoke",
            {"name": tool, "args": given, "sessionKey": self._key, "idempotencyKey": str(uuid.uuid4())},
        )
        if not answer["ok"]:
            raise tool_refusal(tool, answer.get("error"))
        blocks = answer["output"]["content"]
        text = "\n".join(block["text"] for block in blocks if block.get("type") == "text")
        return ToolAnswer(text, answer["output"].get("details") or {})

    async def _object(self, tool: str, **arguments: Any) -> Json:
        """The answer of a tool that answers with a JSON object (TOOL-7)."""
        answer = await self.use(tool, **arguments)
        try:
            value = msgspec.json.decode(answer.text)
        except msgspec.DecodeError:
            value = None
        if not isinstance(value, dict):
            raise ToolFailed(f"{tool} did not answer with an object", tool=tool)
        return value

    async def _be_there(self) -> None:
        if not self._exists:
            await ensure_session(self._link, self._key)
            self._exists = True


async def ensure_session(link: Link, key: str) -> None:
    """A tool acts as a session that exists; one that does not yet is created."""
    found = await link.call("sessions.resolve", {"key": key, "allowMissing": True})
    if not found["ok"]:
        await link.call("sessions.create", {"key": key})


def _read(value: Any, kind: type[V]) -> V:
    try:
        return msgspec.convert(value, kind)
    except msgspec.ValidationError as error:
        raise ToolFailed(f"the gateway answered in a way that this version does not know: {error}") from None
