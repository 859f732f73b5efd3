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

from msgspec import Struct

from openclaw.app.gateway import DATABASE_NAME
from openclaw.app.upkeep import ground_of, workspace_of
from openclaw.config import views
from openclaw.config.agent_view import default_agent_id
from openclaw.config.credentials import secrets
from openclaw.config.load import LoadedConfig, session_store_path, state_dir
from openclaw.config.schema import Config
from openclaw.domain.keys import canonical_key, format_key, split_thread
from openclaw.errors import InvalidRequest, StoreLocked, Unavailable
from openclaw.store import rendering
from openclaw.store.database import Database
from openclaw.store.erasing import REWRITE_BYTES
from openclaw.store.export import Export
from openclaw.store.lockfile import OwnerLock
from openclaw.store.purging import Pace
from openclaw.store.rendering import Format, View
from openclaw.store.sqlite import SqliteDatabase
from openclaw.store.upkeep import Upkeep

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


@asynccontextmanager
async def offline_upkeep(
    loaded: LoadedConfig, env: Mapping[str, str], *, doing: str
) -> AsyncIterator[Upkeep]:
    """Upkeep of a store that this process owns inside the block. `doing` is for the refusal."""
    async with offline_store(loaded.config, env, doing=doing) as database:
        ground = ground_of(lambda: loaded, env, database, shown_place(loaded.config, env))
        # Nobody else waits, so there is no need to rest.
        yield Upkeep(database, ground, rewrite_bytes=REWRITE_BYTES, pace=Pace(rest_s=0.0))


def meant_key(loaded: LoadedConfig, key: str, agent_id: str | None) -> str:
    """The session key that a person means. Raises InvalidSessionKey."""
    owner = agent_id or default_agent_id(loaded.config)
    return format_key(canonical_key(key, agent_id=owner, settings=views.key_settings(loaded.config)))


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
        window, agent_id = await export.find_window(
            request.key,
            request.agent_id,
            default_agent=default_agent_id(config),
            settings=views.key_settings(config),
        )
        exported = describe_export(
            window.session_key, window.session_id, agent_id, request.format, loaded, env
        )
        write = open_output(exported)
        known = secrets(config, loaded.referenced_secrets)
        view = View(request.format, request.redact)
        cwd = workspace_of(config, agent_id, env)
        async for piece in rendering.whole(export, window, view, cwd=cwd, secrets=known):
            write(piece)
    return exported


def describe_export(
    session_key: str,
    session_id: str,
    agent_id: str,
    form: Format,
    loaded: LoadedConfig,
    env: Mapping[str, str],
) -> Exported:
    """What an export is of, and the file that `--save` writes."""
    thread = split_thread(session_key)
    topic = f"-topic-{thread.thread_id}" if thread.thread_kind == "topic" else ""
    name = session_id if session_id.endswith(topic) else session_id + topic
    folder = session_store_path(loaded.config, agent_id, env).parent
    path = folder / (name + SUFFIXES[form]) if _SAFE_NAME.fullmatch(name) else None
    return Exported(session_key, session_id, agent_id, path)


def require_place(exported: Exported) -> Path:
    """Where `--save` writes. Raises InvalidRequest when the session id cannot be a file name."""
    if exported.saved_as is None:
        raise InvalidRequest(f"session id {exported.session_id[:60]!r} is no file name; use --output FILE")
    return exported.saved_as
