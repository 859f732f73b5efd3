"""Which file becomes which session: the plan of an import, made before anything is written.

Keys are brought to their canonical form; a transcript that no entry names any more
(from before a reset) becomes an archived session of its own, so that nothing of the
old folder is needed afterwards. Nothing here touches the database.
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

import msgspec
from msgspec import Struct

from openclaw.domain.entry import SessionEntry
from openclaw.domain.groups import has_unsafe_text
from openclaw.domain.jsonl import derived_id
from openclaw.domain.keys import (
    KeySettings,
    KeyShape,
    SessionKey,
    canonical_key,
    channel_of_key,
    chat_type_of_key,
    format_key,
    session_kind,
)
from openclaw.domain.lifecycle import session_type
from openclaw.errors import InvalidSessionKey
from openclaw.store.legacy.index import IndexEntry, LegacyIndex, read_index
from openclaw.store.legacy.reading import Problem
from openclaw.store.records import SessionSeed

ARCHIVE_NAME = "imported"
_KINDS = {KeyShape.cron_run: "cron-run", KeyShape.global_: "global", KeyShape.unknown: "unknown"}


class PlannedSession(Struct, frozen=True):
    """One window to come. `entry` is None for a transcript that no session names any more.

    `is_current` is false for a window that lies behind the one the key points at.
    """

    seed: SessionSeed
    session_id: str
    file_name: str | None
    entry: SessionEntry | None
    is_current: bool = True


class LegacyStore(Struct, frozen=True):
    """The folder of one agent."""

    agent_id: str
    index_path: Path

    @property
    def folder(self) -> Path:
        return self.index_path.parent


class ImportPlan(Struct, frozen=True):
    store: LegacyStore
    index: LegacyIndex | None
    sessions: tuple[PlannedSession, ...]
    problems: tuple[Problem, ...]
    other_files: tuple[str, ...]


def make_plan(store: LegacyStore, settings: KeySettings) -> ImportPlan:
    """Read the folder and the index. Raises StoreCorrupt when the index is no map."""
    index = read_index(store.index_path) if store.index_path.is_file() else None
    problems = list(index.problems) if index else []
    names = _names(store.folder, problems)
    transcripts = {name for name in names if name.endswith(".jsonl")}
    named = _named_sessions(store, index.entries if index else (), transcripts, settings, problems)
    used = {planned.file_name for planned in named}
    ids = {planned.session_id for planned in named}
    orphans = [_orphan(store, name, ids, settings) for name in sorted(transcripts - used)]
    ordered = sorted(named, key=lambda planned: planned.entry.updated_at if planned.entry else 0)
    others = tuple(sorted(names - transcripts - {store.index_path.name}))
    return ImportPlan(store, index, (*orphans, *ordered), tuple(problems), others)


def _names(folder: Path, problems: list[Problem]) -> set[str]:
    names = {path.name for path in folder.iterdir() if path.is_file()} if folder.is_dir() else set()
    foreign = {name for name in names if has_unsafe_text(name)}
    problems += [
        Problem(str(folder), 0, f"the file name {name!a} is not text; rename it") for name in foreign
    ]
    return names - foreign


def _named_sessions(
    store: LegacyStore,
    entries: Iterable[IndexEntry],
    transcripts: set[str],
    settings: KeySettings,
    problems: list[Problem],
) -> list[PlannedSession]:
    """What the index names. The newest entry of a key is its session; older ones lie behind it."""
    planned: list[PlannedSession] = []
    keys: set[str] = set()
    labels: set[tuple[str, str]] = set()
    ids: set[str] = set()
    files: set[str | None] = set()
    path = str(store.index_path)
    for item in sorted(entries, key=lambda one: one.entry.updated_at, reverse=True):
        try:
            seed = seed_of_legacy(item, store.agent_id, settings)
        except InvalidSessionKey as refusal:
            problems.append(Problem(path, 0, f"{refusal.message} Its transcript is archived."))
            continue
        key, entry = seed.session_key, _with_canonical_parents(item.entry, store.agent_id, settings)
        file_name = _file_of(item, transcripts)
        if file_name is not None and file_name in files:
            problems.append(Problem(path, 0, f"{key}: {file_name} belongs to a newer session; starts empty"))
            file_name = None
        session_id = _free_id(item.entry.session_id, file_name, ids)
        if key in keys:
            problems.append(
                Problem(path, 0, f"{item.key[:80]!r} is {key} again; it lies behind the newer one")
            )
        if entry.label is not None and (seed.agent_id, entry.label) in labels:
            problems.append(Problem(path, 0, f"{key}: the label {entry.label[:60]!r} is taken; dropped"))
            entry = msgspec.structs.replace(entry, label=None)
        elif entry.label is not None and key not in keys:
            labels.add((seed.agent_id, entry.label))
        files.add(file_name)
        planned.append(PlannedSession(seed, session_id, file_name, entry, key not in keys))
        keys.add(key)
        ids.add(session_id)
    return planned


def seed_of_legacy(item: IndexEntry, agent_id: str, settings: KeySettings) -> SessionSeed:
    """The row that an old key becomes; `group:<id>` gets the channel of its entry (KEY-12)."""
    entry = item.entry
    route = entry.delivery_context
    provider = entry.channel or (route.channel if route else None)
    key = canonical_key(item.key, agent_id=agent_id, settings=settings, provider=provider)
    return _seed(key, entry, agent_id, settings)


def _seed(key: SessionKey, entry: SessionEntry | None, agent_id: str, settings: KeySettings) -> SessionSeed:
    text = format_key(key)
    chat_type = (entry.chat_type if entry else None) or chat_type_of_key(key)
    return SessionSeed(
        text,
        key.agent_id or agent_id,
        _KINDS.get(key.shape) or session_kind(key, chat_type, settings),
        session_type(key_text=text),
        chat_type or "direct",
        channel_of_key(key) or (entry.channel if entry else None),
    )


def _with_canonical_parents(entry: SessionEntry, agent_id: str, settings: KeySettings) -> SessionEntry:
    def canonical(text: str | None) -> str | None:
        try:
            return format_key(canonical_key(text, agent_id=agent_id, settings=settings)) if text else None
        except InvalidSessionKey:
            return None

    return msgspec.structs.replace(
        entry,
        spawned_by=canonical(entry.spawned_by),
        parent_session_key=canonical(entry.parent_session_key),
    )


def _file_of(item: IndexEntry, transcripts: set[str]) -> str | None:
    """The transcript of an entry: looked up among the names of the folder, never made into a path."""
    session_id, route = item.entry.session_id, item.entry.delivery_context
    thread_id = item.key.rpartition(":topic:")[2] if ":topic:" in item.key else None
    thread_id = thread_id or (route.thread_id if route else None)
    candidates = [
        item.file,
        f"{session_id}-topic-{thread_id}.jsonl" if thread_id else None,
        f"{session_id}.jsonl",
    ]
    return next((name for name in candidates if name in transcripts), None)


def _free_id(session_id: str, file_name: str | None, taken: set[str]) -> str:
    """Topics of one chat could share a session id; a window has its own, here that of its file."""
    if session_id in taken and file_name is not None:
        session_id = file_name.removesuffix(".jsonl")
    number = 2
    free = session_id
    while free in taken:
        free, number = f"{session_id}-{number}", number + 1
    return free


def _orphan(store: LegacyStore, file_name: str, taken: set[str], settings: KeySettings) -> PlannedSession:
    session_id = _free_id(file_name.removesuffix(".jsonl"), None, taken)
    taken.add(session_id)
    try:
        key = canonical_key(f"{ARCHIVE_NAME}:{session_id}", agent_id=store.agent_id, settings=settings)
    except InvalidSessionKey:
        key = canonical_key(
            f"{ARCHIVE_NAME}:{derived_id(session_id)}", agent_id=store.agent_id, settings=settings
        )
    return PlannedSession(_seed(key, None, store.agent_id, settings), session_id, file_name, None)
