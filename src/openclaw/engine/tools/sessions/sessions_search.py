"""sessions_search: find words in what people and assistants said (SPEC §25).

Only sessions that the caller may see are searched, before anything is counted.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from typing import Annotated, Any

import msgspec
from msgspec import Meta

from openclaw.domain.display import text_of_content
from openclaw.domain.doortext import clean_text, cut
from openclaw.domain.sanitise import sanitise_assistant_text
from openclaw.domain.searchtext import Phrase, query_terms, snippet
from openclaw.engine.ports import ToolContext, ToolOutcome, ToolSpec
from openclaw.engine.tools.sessions.parameters import Parameters, answer, read_parameters, tool_spec
from openclaw.engine.tools.sessions.reach import Reach, Refused, Sight
from openclaw.errors import InvalidRequest
from openclaw.store.search import Hit
from openclaw.store.store import Store

DEFAULT_LIMIT = 20
MOST_HITS = 50
# What is looked at for snippets: of one text, of all hits, and of a text when the others took it all.
# Words that stand further behind are found, but the snippet shows the beginning of the text.
READ_CHARS = 64 * 1024
READ_ALL_CHARS = 512 * 1024
LEAST_READ_CHARS = 2 * 1024
_decode = msgspec.json.Decoder().decode


class SearchParameters(Parameters, frozen=True):
    query: Annotated[str, Meta(description="Words that must all occur, in any order, in any language.")]
    limit: Annotated[
        int,
        Meta(
            description=f"At most so many hits, the newest first. Default {DEFAULT_LIMIT}.",
            extra_json_schema={"minimum": 1, "maximum": MOST_HITS},
        ),
    ] = DEFAULT_LIMIT
    session_key: Annotated[
        str | None, Meta(description="Search only this session: a key, a sessionId, `main` or `current`.")
    ] = None
    agent_id: Annotated[str | None, Meta(description="Search only the sessions of this agent.")] = None


class SessionsSearchTool:
    def __init__(self, store: Store, reach: Reach, secrets: Callable[[], frozenset[str]]) -> None:
        self._store = store
        self._reach = reach
        self._secrets = secrets

    @property
    def spec(self) -> ToolSpec:
        return _SPEC

    async def call(self, arguments: dict[str, Any], context: ToolContext) -> ToolOutcome:
        asked = read_parameters(arguments, SearchParameters)
        terms = query_terms(clean_text(asked.query))
        if not terms:
            raise InvalidRequest("query: there is no word in it to look for")
        session_key = None
        if asked.session_key is not None:
            reached = await self._reach.resolve(asked.session_key, context)
            if isinstance(reached, Refused):
                return reached.outcome()
            session_key = reached.row.session_key
        sight = self._reach.sight(context)
        found = await self._store.search(
            terms,
            agent_id=None if asked.agent_id is None else clean_text(asked.agent_id).strip().lower(),
            session_key=session_key,
            limit=min(max(asked.limit, 1), MOST_HITS),
            scope=sight.scope,
            judge=sight.sees,
        )
        hits = await asyncio.to_thread(show_hits, found, terms, sight, self._secrets())
        return answer({"count": len(hits), "hits": hits})


def show_hits(
    found: Sequence[Hit], terms: tuple[Phrase, ...], sight: Sight, secrets: frozenset[str]
) -> list[dict[str, Any]]:
    """Hits as the caller sees them: a snippet of at most 160 characters, secrets masked (SRCH-2)."""
    shown: list[dict[str, Any]] = []
    room = READ_ALL_CHARS
    for hit in found:
        text = cut(text_of_content(_decode(hit.body)), min(READ_CHARS, max(room, LEAST_READ_CHARS)))
        room -= len(text)
        said = sanitise_assistant_text(text) if hit.role == "assistant" else text
        shown.append(
            {
                "sessionKey": sight.show_key(hit.session_key),
                "sessionId": hit.session_id,
                "messageId": hit.entry_id,
                "timestamp": hit.created_at,
                "role": hit.role,
                "snippet": snippet(said, terms, known_secrets=secrets),
            }
        )
    return shown


_SPEC = tool_spec(
    "sessions_search",
    "Find messages by words in the sessions you may see, newest first. Each hit has a snippet; read around "
    "it with sessions_history: the hit's sessionId as sessionKey, and its messageId.",
    SearchParameters,
)
