"""The parameters of methods that work on whole sessions, and of the lists that clients ask for.

Shapes only. Least scopes are in `methods`.
"""

from __future__ import annotations

from typing import Annotated, Final, Literal

from msgspec import Meta

from openclaw.protocol.connect import ClosedObject
from openclaw.protocol.params import (
    DEFAULT_HISTORY_LIMIT,
    Attachments,
    Count,
    HistoryFields,
    IdText,
    Positive,
    SessionKeyText,
    ShortText,
)

DateText = Annotated[str, Meta(pattern=r"^\d{4}-\d{2}-\d{2}$")]
UsageRange = Literal["7d", "30d", "90d", "1y", "all"]
DEFAULT_PREVIEW_ITEMS: Final = 12
DEFAULT_PREVIEW_CHARS: Final = 240
DEFAULT_USAGE_SESSIONS: Final = 50
DEFAULT_TREE_NODES: Final = 1000
DEFAULT_SEARCH_HITS: Final = 20
DEFAULT_WINDOWS: Final = 50
DEFAULT_MESSAGE_CHARS: Final = 1_000_000


# -- changing ----------------------------------------------------------------------------------


class SessionsResetParams(ClosedObject, frozen=True, kw_only=True):
    """RPC-8. With `expectedSessionId` only if the session has not been reset since."""

    key: SessionKeyText
    reason: Literal["new", "reset"] = "reset"
    expected_session_id: IdText | None = None
    agent_id: IdText | None = None


class SessionsDeleteParams(ClosedObject, frozen=True, kw_only=True):
    """RPC-8. `archivedOnly`: only if the session is still archived."""

    key: SessionKeyText
    delete_transcript: bool = True
    archived_only: bool = False
    expected_session_id: IdText | None = None
    agent_id: IdText | None = None


class SessionsRestoreParams(ClosedObject, frozen=True, kw_only=True):
    """Takes the last reset back, or the deletion of a session that is gone."""

    key: SessionKeyText
    expected_session_id: IdText | None = None
    agent_id: IdText | None = None


class SessionsCompactParams(ClosedObject, frozen=True, kw_only=True):
    """RPC-9. With `maxLines` nothing is summarised: only the last messages stay in the context."""

    key: SessionKeyText
    max_lines: Positive | None = None
    agent_id: IdText | None = None


class SessionsSendParams(ClosedObject, frozen=True, kw_only=True):
    """Of both `sessions.send` and `sessions.steer`. Without a key of its own each call is a new message."""

    key: SessionKeyText
    message: str
    idempotency_key: IdText | None = None
    thinking: IdText | None = None
    attachments: Attachments = ()
    timeout_ms: Count | None = None
    agent_id: IdText | None = None


class SessionsAbortParams(ClosedObject, frozen=True, kw_only=True):
    """A session, a run, or a run of a session. `clearQueued` also cancels what waits."""

    key: SessionKeyText | None = None
    run_id: IdText | None = None
    clear_queued: bool = False
    agent_id: IdText | None = None

    def __post_init__(self) -> None:
        if self.key is None and self.run_id is None:
            raise ValueError("give key, runId or both")


# -- reading -----------------------------------------------------------------------------------


class SessionsPreviewParams(ClosedObject, frozen=True, kw_only=True):
    keys: Annotated[tuple[SessionKeyText, ...], Meta(min_length=1, max_length=64)]
    limit: Annotated[int, Meta(ge=1, le=50)] = DEFAULT_PREVIEW_ITEMS
    max_chars: Annotated[int, Meta(ge=20, le=2000)] = DEFAULT_PREVIEW_CHARS
    agent_id: IdText | None = None


class SessionsGetParams(ClosedObject, frozen=True, kw_only=True):
    key: SessionKeyText
    limit: Annotated[int, Meta(ge=1, le=1000)] = DEFAULT_HISTORY_LIMIT
    agent_id: IdText | None = None


class SessionsUsageParams(ClosedObject, frozen=True, kw_only=True):
    """Days of the gateway's time zone. `startDate` and `endDate` win over `range`."""

    key: SessionKeyText | None = None
    agent_id: IdText | None = None
    start_date: DateText | None = None
    end_date: DateText | None = None
    range: UsageRange = "30d"
    limit: Annotated[int, Meta(ge=1, le=1000)] = DEFAULT_USAGE_SESSIONS
    group_by: Literal["instance", "family"] = "family"
    include_context_weight: bool = False


class SessionsSearchParams(ClosedObject, frozen=True, kw_only=True):
    """SRCH-1, for an operator: every session counts."""

    query: Annotated[str, Meta(min_length=1, max_length=4096)]
    key: SessionKeyText | None = None
    agent_id: IdText | None = None
    limit: Annotated[int, Meta(ge=1, le=100)] = DEFAULT_SEARCH_HITS


class SessionsTreeParams(ClosedObject, frozen=True, kw_only=True):
    """All families, or the one that `key` belongs to. `includeArchived` shows finished helpers as well."""

    key: SessionKeyText | None = None
    agent_id: IdText | None = None
    include_archived: bool = False
    limit: Annotated[int, Meta(ge=1, le=5000)] = DEFAULT_TREE_NODES


class SessionsWindowsParams(ClosedObject, frozen=True, kw_only=True):
    key: SessionKeyText
    limit: Annotated[int, Meta(ge=1, le=200)] = DEFAULT_WINDOWS
    agent_id: IdText | None = None


class ChatStartupParams(HistoryFields, frozen=True, kw_only=True):
    """As `chat.history`; a session may be named by a short id instead."""

    session_key: SessionKeyText | None = None
    short_id: IdText | None = None

    def __post_init__(self) -> None:
        if (self.session_key is None) == (self.short_id is None):
            raise ValueError("give sessionKey or shortId, one of them")


class ChatMessageGetParams(ClosedObject, frozen=True, kw_only=True):
    """One message, whole: `chat.history` cuts long ones. `sessionId` names an earlier conversation."""

    session_key: SessionKeyText
    message_id: IdText
    session_id: IdText | None = None
    agent_id: IdText | None = None
    max_chars: Positive = DEFAULT_MESSAGE_CHARS


class ChatMetadataParams(ClosedObject, frozen=True, kw_only=True):
    agent_id: IdText | None = None
    session_key: SessionKeyText | None = None


class CommandsListParams(ClosedObject, frozen=True, kw_only=True):
    agent_id: IdText | None = None
    session_key: SessionKeyText | None = None
    scope: Literal["text", "native", "both"] = "both"
    include_args: bool = True
    provider: ShortText | None = None


class AgentIdentityParams(ClosedObject, frozen=True, kw_only=True):
    agent_id: IdText | None = None
    session_key: SessionKeyText | None = None


class NothingListedParams(ClosedObject, frozen=True, kw_only=True):
    """Of lists of things that this gateway does not have."""

    agent_id: IdText | None = None
    session_key: SessionKeyText | None = None
    limit: Positive | None = None
