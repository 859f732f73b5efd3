"""The store without a gateway: take the owner lock, do one thing, release it.

A command that reads or changes the database files must hold the lock of the state
directory for as long as it does (OWN-6). Where a gateway holds it, the command refuses
and says how to go on; it never waits and never looks at the files.
"""

from __future__ import annotations

import re
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import Any, Literal

from msgspec import Struct

from openclaw.app.gateway import DATABASE_NAME
from openclaw.config import views
from openclaw.config.agent_view import agent_ids, default_agent_id
from openclaw.config.credentials import secrets
from openclaw.config.load import LoadedConfig, session_store_path, state_dir
from openclaw.config.schema import Config
from openclaw.domain import transcript_text
from openclaw.domain.keys import canonical_key, format_key, looks_like_session_id, split_thread, strip_agent
from openclaw.errors import InvalidRequest, InvalidSessionKey, SessionNotFound, StoreLocked, Unavailable
from openclaw.store.database import Database
from openclaw.store.export import Export
from openclaw.store.lockfile import OwnerLock
from openclaw.store.records import Window
from openclaw.store.sqlite import SqliteDatabase

Format = Literal["jsonl", "markdown", "html"]
SUFFIXES: dict[Format, str] = {"jsonl": ".jsonl", "markdown": ".md", "html": ".html"}
_SAFE_NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9._-]{0,200}")


def database_path(env: Mapping[str, str]) -> Path:
    return state_dir(env) / DATABASE_NAME


def is_sqlite(config: Config) -> bool:
    return config.store.url is None or config.store.url.startswith("sqlite://")


def shown_place(config: Config, env: Mapping[str, str]) -> str:
    """Where the store is, for people; never the password of a server."""
    return str(database_path(env)) if is_sqlite(config) else "PostgreSQL (store.url)"


@asynccontextmanager
async def offline_database(
    config: Config, env: Mapping[str, str], *, doing: str, create: bool = False
) -> AsyncIterator[SqliteDatabase]:
    """Like `offline_store`, for work on the files of SQLite itself."""
    if not is_sqlite(config):
        raise Unavailable(f"store.url: {doing} works on SQLite only")
    async with offline_store(config, env, doing=doing, create=create) as database:
        assert isinstance(database, SqliteDatabase)
        yield database


@asynccontextmanager
async def offline_store(
    config: Config, env: Mapping[str, str], *, doing: str, create: bool = False
) -> AsyncIterator[Database]:
    """The database, owned by this process inside the block. `doing` is for the refusal: "an export".

    Without `create`, a file that does not exist yet is an empty database in memory: looking makes no file.
    """
    async with AsyncExitStack() as stack:
        try:
            database = await _open(config, env, create, stack)
        except StoreLocked as refusal:
            owner = refusal.fields.get("owner")
            raise StoreLocked(
                f"a gateway is running{f' (process {owner})' if owner else ''} and owns "
                f"{shown_place(config, env)}; {doing} needs the store for itself. "
                "Stop the gateway, then run this command again.",
                **refusal.fields,
            ) from refusal
        stack.push_async_callback(database.close)
        yield database


async def _open(config: Config, env: Mapping[str, str], create: bool, stack: AsyncExitStack) -> Database:
    if not is_sqlite(config):
        try:
            from openclaw.store.postgres import PostgresDatabase  # its driver is an extra
        except ImportError as error:
            raise Unavailable("store.url: PostgreSQL needs `pip install openclaw[postgres]`") from error
        return await PostgresDatabase.open(str(config.store.url))
    path = database_path(env)
    if create or path.exists():
        return await SqliteDatabase.open(path, readers=1)
    lock = OwnerLock(path)
    if lock.path.exists():
        lock.take()
        stack.callback(lock.release)
    return await SqliteDatabase.open_memory(f"nothing-{id(path)}", readers=1)


# -- exporting one session -------------------------------------------------------------------------


class ExportRequest(Struct, frozen=True):
    """Which session, and how it shall look. Without `agent_id` the key, then the default agent, decides."""

    key: str
    agent_id: str | None = None
    format: Format = "jsonl"
    redact: bool = False


class Exported(Struct, frozen=True):
    """What was exported, and where the founding layout would keep it (AMB-6)."""

    session_key: str
    session_id: str
    agent_id: str
    saved_as: Path | None


async def export_session(
    request: ExportRequest,
    loaded: LoadedConfig,
    env: Mapping[str, str],
    open_output: Callable[[Exported], Callable[[bytes], object]],
) -> Exported:
    """Write a transcript piece by piece to what `open_output` gives (CLI-11). Raises SessionNotFound.

    JSONL is exact unless `redact`; what is made for reading never shows a secret (TRX-11).
    """
    config = loaded.config
    async with offline_store(config, env, doing="an export") as database:
        export = Export(database)
        window, agent_id = await _find_window(export, request, config)
        exported = _describe(window, agent_id, request.format, config, env)
        write = open_output(exported)
        known = secrets(config, loaded.referenced_secrets)
        lines = export.lines(window, cwd=_workspace(config, agent_id, env))
        async for piece in _rendered(lines, request, exported, known):
            write(piece)
    return exported


async def _find_window(export: Export, request: ExportRequest, config: Config) -> tuple[Window, str]:
    """The window that is meant; an agent that was named wins over the one in the key (DB-4)."""
    settings = views.key_settings(config)
    agent_id = request.agent_id or default_agent_id(config)
    text = strip_agent(request.key) if request.agent_id is not None else request.key
    try:
        key = canonical_key(text, agent_id=agent_id, settings=settings)
        window = await export.window_of(format_key(key))
        agent_id = key.agent_id or agent_id
    except InvalidSessionKey:
        if not looks_like_session_id(request.key, settings):
            raise
        window = None
    if window is None and looks_like_session_id(request.key, settings):
        window = await export.window_by_id(request.key.strip())
    if window is None:
        raise SessionNotFound(f"no session {request.key[:80]!r}; see what there is with: openclaw sessions")
    return window, agent_id


def _describe(
    window: Window, agent_id: str, form: Format, config: Config, env: Mapping[str, str]
) -> Exported:
    thread = split_thread(window.session_key)
    topic = f"-topic-{thread.thread_id}" if thread.thread_kind == "topic" else ""
    name = window.session_id if window.session_id.endswith(topic) else window.session_id + topic
    folder = session_store_path(config, agent_id, env).parent
    path = folder / (name + SUFFIXES[form]) if _SAFE_NAME.fullmatch(name) else None
    return Exported(window.session_key, window.session_id, agent_id, path)


def _workspace(config: Config, agent_id: str, env: Mapping[str, str]) -> str:
    known = agent_id in agent_ids(config)
    return str(views.agent(config, agent_id, env).workspace if known else state_dir(env))


async def _rendered(
    lines: AsyncIterator[bytes], request: ExportRequest, exported: Exported, known: frozenset[str]
) -> AsyncIterator[bytes]:
    if request.format == "jsonl" and not request.redact:
        async for piece in lines:
            yield piece
        return
    names = (exported.session_key, exported.session_id)
    if request.format == "markdown":
        yield transcript_text.markdown_head(*names).encode()
    elif request.format == "html":
        yield transcript_text.html_head(*names).encode()
    async for piece in lines:
        for record in transcript_text.objects_of(piece):
            yield _render_record(transcript_text.redacted(record, known), request.format)
    if request.format == "html":
        yield transcript_text.HTML_END.encode()


def _render_record(record: dict[str, Any], form: Format) -> bytes:
    if form == "jsonl":
        return transcript_text.line_of(record)
    return (transcript_text.markdown_of if form == "markdown" else transcript_text.html_of)(record).encode()


def require_place(exported: Exported) -> Path:
    """Where `--save` writes. Raises InvalidRequest when the session id cannot be a file name."""
    if exported.saved_as is None:
        raise InvalidRequest(f"session id {exported.session_id[:60]!r} is no file name; use --output FILE")
    return exported.saved_as
