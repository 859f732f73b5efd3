"""The config file as clients read and change it: shown without secrets, changed by compare-and-set (CFG-6).

Every change is made from the text that the client saw, is validated as a whole, and is
written by `config.write`; a refused one leaves the file as it was. Work on files happens
on a thread, one change at a time. What a change means for the running gateway is decided
by whoever gave `apply`.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from functools import cache
from pathlib import Path
from typing import Any

from msgspec import Struct

from openclaw.config import edit
from openclaw.config.credentials import redacted_text
from openclaw.config.json5 import Json5Error, parse
from openclaw.config.jsonschema import config_schema
from openclaw.config.load import LoadedConfig, load
from openclaw.config.nodes import plain
from openclaw.config.problems import Problem
from openclaw.config.reload import ReloadAction, ReloadPlan, diff
from openclaw.config.shown import Unrestorable, find_placeholder, restore_secrets, shown_values
from openclaw.config.write import write_config
from openclaw.errors import ConfigInvalid, InvalidRequest, Unavailable, VersionConflict

Json = dict[str, Any]
MAX_CHANGES = 200  # each one is made in the text by itself
READ_AGAIN = "config changed since last load; re-run config.get and retry"


class ConfigShown(Struct, frozen=True):
    """A config file without its secrets. `raw` is None when the text cannot be shown safely."""

    path: str
    exists: bool
    raw: str | None
    parsed: Json
    config: Json
    hash: str
    issues: tuple[Problem, ...]
    warnings: tuple[Problem, ...]


class ConfigWritten(Struct, frozen=True):
    """A change that is on disk: the file as it is now, and what the change takes."""

    shown: ConfigShown
    plan: ReloadPlan
    action: ReloadAction


class ConfigDoor:
    """`apply` makes a written config the one in force, as far as its action says."""

    def __init__(
        self,
        path: Path,
        env: Mapping[str, str],
        in_force: Callable[[], LoadedConfig],
        apply: Callable[[LoadedConfig, ReloadAction], None],
    ) -> None:
        self._path = path
        self._env = env
        self._in_force = in_force
        self._apply = apply
        self._changing = asyncio.Lock()

    async def show(self) -> ConfigShown:
        """The file as it stands now, valid or not."""
        return await asyncio.to_thread(lambda: show(load(self._path, self._env)))

    async def replace(self, raw: str, base_hash: str | None) -> ConfigWritten:
        """Put a whole text in place of the file; placeholders in it keep the secrets of the file."""
        return await self._change(base_hash, lambda stored: restore_secrets(raw, stored))

    async def patch(self, raw: str, base_hash: str | None) -> ConfigWritten:
        """Merge an object of changes into the file: null removes, comments stay."""

        def make(stored: str) -> str:
            changes = plain(parse(raw, "raw").root)
            if not isinstance(changes, dict):
                raise InvalidRequest("raw must be an object of changes, such as {session: {scope: 'global'}}")
            if _count(changes) > MAX_CHANGES:
                raise InvalidRequest(f"more than {MAX_CHANGES} changes at once; send the whole file instead")
            return edit.patch(stored if stored.strip() else "{}\n", changes, env=self._env)

        return await self._change(base_hash, make)

    async def _change(self, base_hash: str | None, make: Callable[[str], str]) -> ConfigWritten:
        async with self._changing:
            written = await asyncio.to_thread(self._write, base_hash, make)
            plan = diff(self._in_force().config, written.config)
            action = plan.decide(self._in_force().config.gateway.reload.mode)
            self._apply(written, action)
        return ConfigWritten(await asyncio.to_thread(show, written), plan, action)

    def _write(self, base_hash: str | None, make: Callable[[str], str]) -> LoadedConfig:
        stored = load(self._path, self._env)
        if stored.exists and not base_hash:
            raise InvalidRequest("config base hash required; re-run config.get and send its hash as baseHash")
        if (base_hash or "") != stored.hash:
            raise InvalidRequest(READ_AGAIN, reason="config-changed")
        try:
            text = make(stored.raw_text)
            left = find_placeholder(text)
        except Json5Error as error:
            raise InvalidRequest(f"raw is not JSON5: {error.message}") from None
        except Unrestorable as error:
            raise InvalidRequest(f"config not written: {error}") from None
        except ValueError as error:
            raise InvalidRequest(f"config not written: {str(error)[:500]}") from None
        if left is not None:
            raise InvalidRequest(f"config not written: {left}: no secret is stored here; send its value")
        try:
            return write_config(self._path, text, self._env, expected_hash=stored.hash)
        except VersionConflict:
            raise InvalidRequest(READ_AGAIN, reason="config-changed") from None
        except ConfigInvalid as error:
            raise _refused(error) from None
        except OSError as error:
            raise Unavailable(f"cannot write {self._path}: {error.strerror or error}") from error


def _count(changes: Json) -> int:
    return sum(_count(part) if isinstance(part, dict) else 1 for part in changes.values())


def show(loaded: LoadedConfig) -> ConfigShown:
    """A loaded config without its secrets."""
    raw, parsed = _shown_text(loaded.raw_text)
    return ConfigShown(
        path=str(loaded.path),
        exists=loaded.exists,
        raw=raw,
        parsed=parsed,
        config=shown_values(loaded.config),
        hash=loaded.hash,
        issues=loaded.problems,
        warnings=loaded.warnings,
    )


def _shown_text(text: str) -> tuple[str | None, Json]:
    if not text.strip():
        return text, {}
    try:
        redacted = redacted_text(text)
        parsed = plain(parse(redacted).root)
    except Json5Error:
        return None, {}
    return redacted, parsed if isinstance(parsed, dict) else {}


def issue(problem: Problem) -> Json:
    """A problem as clients read it. Of a broken text no excerpt: it may hold a secret."""
    return {"path": problem.path, "message": problem.reason.partition("\n")[0], "line": problem.line}


def _refused(error: ConfigInvalid) -> InvalidRequest:
    """Every problem of a refused text, not only those that fit into a message."""
    problems = error.fields.get("problems", ())
    listed = (
        [issue(one) for one in problems if isinstance(one, Problem)] if isinstance(problems, tuple) else []
    )
    return InvalidRequest(f"invalid config: {error.message}", issues=listed)


@cache
def schema_of_config() -> Json:
    """The JSON Schema of the file; made once, from the types that validation walks."""
    return config_schema()
