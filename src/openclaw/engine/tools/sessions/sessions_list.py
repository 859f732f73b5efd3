"""sessions_list: the sessions that the calling session may see, newest first (SPEC §13).

Rows come from columns alone. A transcript is opened only for messages that were
asked for, of rows that are shown, and never beyond fixed bounds (VIS-6).
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Sequence
from typing import Annotated, Any, get_args

import msgspec
from msgspec import Meta, Struct

from openclaw.domain.doortext import clean_text
from openclaw.domain.groups import SessionKind
from openclaw.domain.titles import LIST_MESSAGES_MAX, list_messages
from openclaw.domain.visibility import SomeRows
from openclaw.engine.ports import ToolContext, ToolOutcome, ToolSpec
from openclaw.engine.tools.sessions.parameters import Parameters, answer, read_parameters, tool_spec
from openclaw.engine.tools.sessions.reach import Reach, Sight
from openclaw.engine.tools.sessions.reading import VIEW_MAX_CHARS, read_messages
from openclaw.engine.tools.sessions.rows import RowView, kind_of
from openclaw.store.recall import Met, Recall
from openclaw.store.records import SessionRow, fold_name
from openclaw.store.sessions import ListQuery
from openclaw.store.store import Store

DEFAULT_LIMIT = 100
MOST_ROWS = 200
# Titles, previews and messages are made for so many rows (LIST-2).
MOST_DETAILED_ROWS = 100
# Together below what a tool result may hold, so that the answer stays one JSON object.
ROWS_MAX_BYTES = 120 * 1024
MESSAGES_MAX_BYTES = 64 * 1024
# Of one row: as many as fit, the newest first.
ROW_MESSAGES_MAX_BYTES = 24 * 1024
MESSAGES_READ_BYTES = 1 << 20
# With less room left no transcript is opened.
LEAST_MESSAGES_ROOM = 1024
PAGE = 500
MOST_PAGES = 20
_KINDS: tuple[SessionKind, ...] = get_args(SessionKind)
_encode = msgspec.json.Encoder().encode


class ListParameters(Parameters, frozen=True):
    kinds: Annotated[
        tuple[str, ...],
        Meta(description=f"Only sessions of these kinds: {', '.join(_KINDS)}."),
    ] = ()
    limit: Annotated[
        int,
        Meta(
            description=f"At most so many sessions. Default {DEFAULT_LIMIT}.",
            extra_json_schema={"minimum": 1, "maximum": MOST_ROWS},
        ),
    ] = DEFAULT_LIMIT
    active_minutes: Annotated[
        int | None,
        Meta(
            description="Only sessions with something new in the last so many minutes.",
            extra_json_schema={"minimum": 1},
        ),
    ] = None
    message_limit: Annotated[
        int,
        Meta(
            description="Show so many of the newest messages of each session, without tool results. "
            "Default 0: none.",
            extra_json_schema={"minimum": 0, "maximum": LIST_MESSAGES_MAX},
        ),
    ] = 0
    label: Annotated[str | None, Meta(description="Only the session with exactly this label.")] = None
    agent_id: Annotated[str | None, Meta(description="Only the sessions of exactly this agent.")] = None
    search: Annotated[
        str | None, Meta(description="Only sessions whose key, id, label, name or subject has this text.")
    ] = None
    include_derived_titles: Annotated[
        bool, Meta(description="Give each session a readable title. Default false.")
    ] = False
    include_last_message: Annotated[
        bool, Meta(description="Show the beginning of the last message of each session. Default false.")
    ] = False


class Wanted(Struct, frozen=True):
    """The filters of one call."""

    kinds: frozenset[str]
    limit: int
    since_ms: int | None
    label: str | None
    agent_id: str | None
    search: str | None

    def matches(self, row: SessionRow) -> bool:
        """What the store filters where it can, for rows that it did not."""
        entry = row.entry
        if self.search is not None:
            names = (row.session_key, entry.session_id, entry.label, entry.display_name, entry.subject)
            text = fold_name(self.search)
            if not any(text in fold_name(name) for name in names if name):
                return False
        return (
            (not self.kinds or kind_of(row) in self.kinds)
            and self.agent_id in (None, row.agent_id)
            and self.label in (None, entry.label)
            and (self.since_ms is None or entry.updated_at >= self.since_ms)
        )


class SessionsListTool:
    """`view` draws rows; `secrets` are masked in what was said."""

    def __init__(
        self,
        store: Store,
        recall: Recall,
        reach: Reach,
        view: RowView,
        secrets: Callable[[], frozenset[str]],
    ) -> None:
        self._store = store
        self._recall = recall
        self._reach = reach
        self._view = view
        self._secrets = secrets

    @property
    def spec(self) -> ToolSpec:
        return _SPEC

    async def call(self, arguments: dict[str, Any], context: ToolContext) -> ToolOutcome:
        asked = read_parameters(arguments, ListParameters)
        sight = self._reach.sight(context)
        rows, whole = await self._visible_rows(read_wanted(asked, context.now_ms), sight)
        children = await self._recall.children([row.session_key for row in rows])
        shown: list[dict[str, Any]] = []
        room, inline = ROWS_MAX_BYTES, InlineMessages(self._recall, asked.message_limit, self._secrets())
        for number, row in enumerate(rows):
            drawn = self._view.draw(row, sight, children[number], host_paths=not context.sandboxed)
            if number < MOST_DETAILED_ROWS:
                drawn |= self._texts(row, asked)
            room -= len(_encode(drawn)) + 1
            if room < 0:
                whole = False
                break
            if asked.message_limit > 0 and number < MOST_DETAILED_ROWS:
                drawn["messages"] = await inline.of(row)
            shown.append(drawn)
        return _answer(shown, whole and inline.whole)

    # -- which rows ----------------------------------------------------------------------------

    async def _visible_rows(self, wanted: Wanted, sight: Sight) -> tuple[list[SessionRow], bool]:
        """The newest rows that pass, and whether every row was looked at that could.

        The check comes before the limit, so that nothing unseen shapes the answer (VIS-6).
        """
        scope = sight.scope
        assert isinstance(scope, SomeRows), "a session is never an operator"
        found: dict[str, SessionRow] = {}
        whole = await self._take(self._tree(sight), wanted, sight, found)
        if scope.agent_patterns:
            whole &= await self._take(self._pages(wanted, sight, wanted.agent_id), wanted, sight, found)
        elif scope.agent_id is not None and wanted.agent_id in (None, scope.agent_id):
            whole &= await self._take(self._pages(wanted, sight, scope.agent_id), wanted, sight, found)
        newest = sorted(found.values(), key=lambda row: (row.entry.updated_at, row.session_no), reverse=True)
        return newest[: wanted.limit], whole

    async def _take(
        self,
        pages: AsyncIterator[Sequence[Met]],
        wanted: Wanted,
        sight: Sight,
        found: dict[str, SessionRow],
    ) -> bool:
        """Read on until enough of this source is found; False when it was left with some unread."""
        taken = 0
        async for page in pages:
            for met in page:
                if sight.sees(met.facts) and wanted.matches(met.row):
                    found[met.row.session_key] = met.row
                    taken += 1
            if taken >= wanted.limit or len(page) < PAGE:
                return True
        return False

    async def _tree(self, sight: Sight) -> AsyncIterator[Sequence[Met]]:
        for number in range(MOST_PAGES):
            yield await self._recall.tree(sight.own_key, PAGE, number * PAGE)

    async def _pages(
        self, wanted: Wanted, sight: Sight, agent_id: str | None
    ) -> AsyncIterator[Sequence[Met]]:
        for number in range(MOST_PAGES):
            listed = await self._store.list_sessions(
                ListQuery(
                    agent_id=agent_id, active_since_ms=wanted.since_ms, label=wanted.label,
                    search=wanted.search, include_global=sight.keys.scope == "global", limit=PAGE,
                    offset=number * PAGE,
                )
            )  # fmt: skip
            yield [Met(row, row.window_no) for row in listed.rows]

    # -- what is shown of them -----------------------------------------------------------------

    def _texts(self, row: SessionRow, asked: ListParameters) -> dict[str, Any]:
        texts: dict[str, Any] = {}
        if asked.include_derived_titles:
            texts["derivedTitle"] = self._view.title(row, self._secrets())
        if asked.include_last_message and row.last_text:
            texts["lastMessagePreview"] = self._view.preview(row, self._secrets())
        return texts


class InlineMessages:
    """The newest messages of the rows of one list: bounded for each row and for all of them.

    `whole` is false as soon as something was left out that was asked for.
    """

    def __init__(self, recall: Recall, limit: int, secrets: frozenset[str]) -> None:
        self._recall = recall
        self._limit = limit
        self._secrets = secrets
        self._bytes = MESSAGES_MAX_BYTES
        self._chars = VIEW_MAX_CHARS
        self.whole = True

    async def of(self, row: SessionRow) -> list[dict[str, Any]]:
        """Of a row that is shown. At most 20 are read; a tool call costs its place among them."""
        if self._bytes < LEAST_MESSAGES_ROOM or self._chars <= 0:
            self.whole = False
            return []
        recalled = await self._recall.newest(row.window_no, LIST_MESSAGES_MAX, max_bytes=MESSAGES_READ_BYTES)
        page = await asyncio.to_thread(read_messages, recalled.entries, self._chars)
        self._chars -= page.chars
        messages = await asyncio.to_thread(list_messages, page.messages, self._limit, self._secrets)
        kept = _newest_within(messages, min(self._bytes, ROW_MESSAGES_MAX_BYTES))
        self._bytes -= len(_encode(kept))
        self.whole &= len(kept) == len(messages) and not page.cut
        return kept


def read_wanted(asked: ListParameters, now_ms: int) -> Wanted:
    """Clamped filters. Kinds that nobody knows are ignored, and none left means no filter (LIST-2)."""
    since_ms = None
    if asked.active_minutes is not None:
        since_ms = max(now_ms - max(asked.active_minutes, 1) * 60_000, 0)
    label, agent_id, search = (clean_text(text or "") for text in (asked.label, asked.agent_id, asked.search))
    return Wanted(
        kinds=frozenset(kind.strip().lower() for kind in asked.kinds) & frozenset(_KINDS),
        limit=min(max(asked.limit, 1), MOST_ROWS),
        since_ms=since_ms,
        label=label or None,
        agent_id=agent_id.strip().lower() or None,
        search=search.strip() or None,
    )


def _newest_within(messages: list[dict[str, Any]], max_bytes: int) -> list[dict[str, Any]]:
    kept: list[dict[str, Any]] = []
    for message in reversed(messages):
        max_bytes -= len(_encode(message)) + 1
        if max_bytes < 0:
            break
        kept.append(message)
    return kept[::-1]


def _answer(shown: list[dict[str, Any]], whole: bool) -> ToolOutcome:
    """`truncated` is there only when something was left out that was asked for."""
    head: dict[str, Any] = {"count": len(shown)} if whole else {"count": len(shown), "truncated": True}
    bare = [{name: value for name, value in row.items() if name != "messages"} for row in shown]
    return answer({**head, "sessions": shown}, {**head, "sessions": bare})


_SPEC = tool_spec(
    "sessions_list",
    "List the sessions you may see, newest first: key, kind, channel, model, token counts. Use search or "
    "label to find one; includeDerivedTitles, includeLastMessage and messageLimit show what each is about.",
    ListParameters,
)
