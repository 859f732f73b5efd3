"""Which session a reference means, and whether the caller may see it: asked by every session tool.

The only place where a tool gets hold of another session. A reference is a key, a
short key such as `main`, `current`, or the id of any window of a session (TOOL-6).
What may not be seen is never handed out, not even in part; to a sandboxed caller a
hidden session and one that does not exist are the same (VIS-7). Nothing is changed here.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal

from msgspec import Struct

from openclaw.domain.doortext import clean_text, cut
from openclaw.domain.keys import (
    KeySettings,
    canonical_key,
    display_key,
    format_key,
    looks_like_session_id,
    parse_key,
)
from openclaw.domain.visibility import (
    Denied,
    SessionCaller,
    TargetFacts,
    VisibilityPolicy,
    VisibilityScope,
    Visible,
    decide_visibility,
    visibility_scope,
)
from openclaw.engine.ports import ToolContext, ToolOutcome
from openclaw.engine.tools.registry import failure
from openclaw.errors import InvalidSessionKey
from openclaw.store.recall import Met, Recall
from openclaw.store.records import SessionRow

_SHOWN_CHARS = 80


class Reached(Struct, frozen=True, tag="reached"):
    """A session that the caller may see.

    `key` is how the caller is shown it (KEY-2). `window_no` is the window that was named: an earlier
    one when the reference was its id, else the current one.
    """

    row: SessionRow
    key: str
    window_no: int


class Refused(Struct, frozen=True, tag="refused"):
    """Why there is no session for the caller, in words that say what to do."""

    status: Literal["error", "forbidden"]
    error: str

    def outcome(self) -> ToolOutcome:
        return failure(self.error, self.status)


class Sight:
    """What one caller sees. The same for the whole of a call, whatever is reconfigured meanwhile."""

    def __init__(self, context: ToolContext, keys: KeySettings, policy: VisibilityPolicy) -> None:
        self.keys = keys
        self.own_key = context.session_key
        self.agent_id = context.agent_id
        self._policy = policy
        self._caller = SessionCaller(
            session_key=context.session_key, agent_id=context.agent_id, sandboxed=context.sandboxed
        )

    @property
    def scope(self) -> VisibilityScope:
        """Where there can be something to see; `sees` remains the judge."""
        return visibility_scope(self._policy, self._caller)

    def decide(self, facts: TargetFacts | None) -> Visible | Denied:
        """A reserved key is no session for a tool, unless `global` is the main one (KEY-15, KEY-16)."""
        hidden = facts is not None and self._is_reserved(facts.session_key)
        return decide_visibility(self._policy, self._caller, None if hidden else facts)

    def sees(self, facts: TargetFacts) -> bool:
        return isinstance(self.decide(facts), Visible)

    def _is_reserved(self, session_key: str) -> bool:
        return session_key == "unknown" or (session_key == "global" and self.keys.scope != "global")

    def show_key(self, session_key: str) -> str:
        """A key as tools spell it: the caller's own main session is `main` (KEY-2)."""
        try:
            key = parse_key(session_key, self.keys)
        except InvalidSessionKey:  # an imported row may name anything
            return session_key
        return display_key(key, agent_id=self.agent_id, settings=self.keys)


class Reach:
    """`keys` and `visibility` give the configuration in force; the latter for an agent."""

    def __init__(
        self,
        recall: Recall,
        keys: Callable[[], KeySettings],
        visibility: Callable[[str], VisibilityPolicy],
    ) -> None:
        self._recall = recall
        self._keys = keys
        self._visibility = visibility

    def sight(self, context: ToolContext) -> Sight:
        return Sight(context, self._keys(), self._visibility(context.agent_id))

    async def resolve(self, reference: str, context: ToolContext) -> Reached | Refused:
        """The session that the caller means, if it may see it.

        `forbidden` names the setting that hides it; `error` says that there is no such session, or that
        the reference cannot be one. Never raises for what a model may write.
        """
        sight = self.sight(context)
        try:
            met = await self._find(reference, sight)
        except InvalidSessionKey as error:
            return Refused("error", clean_text(error.message))
        decided = sight.decide(None if met is None else met.facts)
        if isinstance(decided, Denied):
            return _refuse(decided, reference)
        assert met is not None, "only a session that was found is visible"
        return Reached(met.row, sight.show_key(met.row.session_key), met.window_no)

    async def _find(self, reference: str, sight: Sight) -> Met | None:
        """An id first, where it can be one; a short name that is no id is a key of the own agent (KEY-26)."""
        if looks_like_session_id(reference, sight.keys):
            named = reference.strip()
            for session_id in dict.fromkeys((named, named.lower())):
                met = await self._recall.by_session_id(session_id, sight.own_key)
                if met is not None:
                    return met
        key = canonical_key(reference, agent_id=sight.agent_id, settings=sight.keys, current=sight.own_key)
        return await self._recall.by_key(format_key(key), sight.own_key)


def _refuse(denied: Denied, reference: str) -> Refused:
    if denied.reason != "not-found":
        return Refused("forbidden", denied.message)
    shown = clean_text(cut(reference, _SHOWN_CHARS))
    return Refused(
        "error",
        f"No session {shown!r}. Pass the key or sessionId of a row of sessions_list, or `current`.",
    )
