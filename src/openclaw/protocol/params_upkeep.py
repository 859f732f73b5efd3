"""The parameters of methods that look after the store: clean up, erase, back up, export.

Shapes only. All of them need the owner's scope; see `methods`.
"""

from __future__ import annotations

from typing import Annotated, Literal

from msgspec import Meta

from openclaw.protocol.connect import ClosedObject
from openclaw.protocol.params import IdText, SessionKeyText

PathText = Annotated[str, Meta(min_length=1, max_length=4096)]
CursorText = Annotated[str, Meta(min_length=1, max_length=256)]


class SessionsCleanupParams(ClosedObject, frozen=True, kw_only=True):
    """CLI-8. Without `enforce` the configured mode decides; `dryRun` only looks."""

    agent: IdText | None = None
    all_agents: bool = False
    dry_run: bool = False
    enforce: bool = False
    active_key: SessionKeyText | None = None
    fix_missing: bool = False
    fix_dm_scope: bool = False


class PersonParams(ClosedObject, frozen=True, kw_only=True):
    """A person as a channel knows them."""

    channel: IdText
    peer_id: IdText
    account_id: IdText | None = None


class SessionsEraseParams(ClosedObject, frozen=True, kw_only=True):
    """A session or a person, exactly one of them. `confirm` must be true: it cannot be undone."""

    confirm: bool
    key: SessionKeyText | None = None
    agent_id: IdText | None = None
    person: PersonParams | None = None


class SessionsExportParams(ClosedObject, frozen=True, kw_only=True):
    """One page of a transcript; the cursor of one page asks for the next."""

    key: SessionKeyText
    agent_id: IdText | None = None
    format: Literal["jsonl", "markdown", "html"] = "jsonl"
    redact: bool = False
    cursor: CursorText | None = None


class BackupCreateParams(ClosedObject, frozen=True, kw_only=True):
    """`output` is a folder on the gateway's machine that does not exist yet, as an absolute path."""

    output: PathText
