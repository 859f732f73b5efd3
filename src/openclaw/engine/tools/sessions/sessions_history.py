"""sessions_history: what was said in another session, bounded and safe to read (SPEC §14)."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Annotated, Any

from msgspec import Meta
from msgspec.structs import replace

from openclaw.domain.doortext import clean_text, cut
from openclaw.domain.history import (
    HISTORY_DEFAULT_LIMIT,
    HISTORY_MAX_LIMIT,
    HistoryView,
    clamp_limit,
    history_result,
    view_history,
)
from openclaw.engine.ports import ToolContext, ToolOutcome, ToolSpec
from openclaw.engine.tools.sessions.parameters import Parameters, answer, read_parameters, tool_spec
from openclaw.engine.tools.sessions.reach import Reach, Refused
from openclaw.engine.tools.sessions.reading import VIEW_MAX_CHARS, read_messages
from openclaw.errors import InvalidRequest
from openclaw.store.recall import Recall, Recalled
from openclaw.store.transcript import LAST

# Far more than the answer holds: what is cut must be seen first. Pictures are heavy and leave nothing.
READ_MAX_BYTES = 16 << 20
# So many messages are shown behind one that was named.
FOLLOWING = 5


class HistoryParameters(Parameters, frozen=True):
    session_key: Annotated[
        str,
        Meta(
            description="Which session: a key or sessionId from sessions_list, `main` for your main session, "
            "or `current` for this one."
        ),
    ]
    limit: Annotated[
        int | None,
        Meta(
            description=f"At most so many messages, the newest ones. Default {HISTORY_DEFAULT_LIMIT}.",
            extra_json_schema={"minimum": 1, "maximum": HISTORY_MAX_LIMIT},
        ),
    ] = None
    include_tools: Annotated[bool, Meta(description="Show the results of tools too. Default false.")] = False
    offset: Annotated[
        int,
        Meta(
            description="Leave out so many of the newest messages. Pass nextOffset of the last answer to "
            "read on backwards.",
            extra_json_schema={"minimum": 0},
        ),
    ] = 0
    message_id: Annotated[
        str | None,
        Meta(
            description="Read around this message instead of the end: messageId of a hit of "
            "sessions_search, with the sessionId of the hit as sessionKey."
        ),
    ] = None


class SessionsHistoryTool:
    def __init__(self, reach: Reach, recall: Recall, secrets: Callable[[], frozenset[str]]) -> None:
        self._reach = reach
        self._recall = recall
        self._secrets = secrets

    @property
    def spec(self) -> ToolSpec:
        return _SPEC

    async def call(self, arguments: dict[str, Any], context: ToolContext) -> ToolOutcome:
        asked = read_parameters(arguments, HistoryParameters)
        reached = await self._reach.resolve(asked.session_key, context)
        if isinstance(reached, Refused):
            return reached.outcome()
        before_seq = await self._end_of_page(asked, reached.window_no)
        limit, offset = clamp_limit(asked.limit), max(asked.offset, 0)
        recalled = await self._recall.newest(
            reached.window_no, limit, max_bytes=READ_MAX_BYTES, offset=offset,
            include_tools=asked.include_tools, before_seq=before_seq,
        )  # fmt: skip
        # Masking and normalising megabytes is no work for the event loop.
        view = await asyncio.to_thread(view_page, recalled, limit, asked.include_tools, self._secrets())
        flags = history_result(reached.key, view)
        if recalled.more or view.dropped_messages:
            flags["nextOffset"] = offset + len(view.messages)
        value = dict(flags)
        flags["count"] = len(flags.pop("messages"))
        return answer(value, flags)

    async def _end_of_page(self, asked: HistoryParameters, window_no: int) -> int:
        """Where to read backwards from: the end, or a little behind the message that was named (HIST-14)."""
        if asked.message_id is None:
            return LAST
        before_seq = await self._recall.just_after(
            window_no, clean_text(asked.message_id), following=FOLLOWING, include_tools=asked.include_tools
        )
        if before_seq is None:
            raise InvalidRequest(
                f"messageId: no message {cut(asked.message_id, 40)!r} in this session. "
                "Pass messageId and, as sessionKey, sessionId of the same hit of sessions_search."
            )
        return before_seq


def view_page(recalled: Recalled, limit: int, include_tools: bool, secrets: frozenset[str]) -> HistoryView:
    """The view of a page. One that ended because of its size has dropped what was asked for (HIST-12)."""
    page = read_messages(recalled.entries, VIEW_MAX_CHARS)
    view = view_history(page.messages, limit=limit, include_tools=include_tools, known_secrets=secrets)
    is_cut = recalled.cut or page.cut
    return replace(view, dropped_messages=True, truncated=True) if is_cut else view


_SPEC = tool_spec(
    "sessions_history",
    "Read the newest messages of a session, oldest first. Long texts are cut and secrets are masked; the "
    "flags truncated, droppedMessages, contentTruncated and contentRedacted say what was done.",
    HistoryParameters,
)
