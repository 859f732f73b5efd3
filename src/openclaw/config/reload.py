"""What a changed config means for a running gateway, and watching the file for changes (CFG-4).

`diff` and `ReloadPlan.decide` are pure. `watch` calls back with a decision; it never
applies anything, and a bad edit never replaces the config that is running.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from pathlib import Path
from typing import Any, Literal

import msgspec
from msgspec import Struct

from openclaw.config.load import LoadedConfig, load
from openclaw.config.nodes import format_path
from openclaw.config.problems import Problem
from openclaw.config.schema import Config

ReloadMode = Literal["hybrid", "hot", "restart", "off"]

# Everything else is read anew by each turn. Below `gateway` two parts concern no listening socket.
_RESTART_SECTIONS = ("gateway", "store")
_HOT_EXCEPTIONS = (("gateway", "reload"), ("gateway", "remote"))
_MAX_QUIET_WAITS = 20
_LOOK_EVERY_S = 0.5
_DOUBT_AFTER_LOOKS = 20  # a change before the first look is found after as many


class ReloadAction(Struct, frozen=True):
    """What to do: apply the new config to the next turns, restart afterwards, or neither."""

    apply: bool
    restart: bool
    reason: str


class ReloadPlan(Struct, frozen=True):
    """The settings that differ, by dotted path, and which of them need a restart."""

    changed_paths: tuple[str, ...]
    hot: tuple[str, ...]
    restart_required: tuple[str, ...]

    def decide(self, mode: ReloadMode) -> ReloadAction:
        """The effect of a change under `gateway.reload.mode`."""
        if not self.changed_paths:
            return ReloadAction(False, False, "no setting changed")
        if mode == "off":
            return ReloadAction(False, False, "gateway.reload.mode is off; restart the gateway to apply")
        if mode == "restart":
            return ReloadAction(False, True, "gateway.reload.mode is restart")
        waiting = ", ".join(self.restart_required[:5])
        if not waiting:
            return ReloadAction(True, False, "applied to the next turn")
        if mode == "hot":
            return ReloadAction(True, False, f"restart the gateway to apply {waiting}")
        return ReloadAction(True, True, f"a restart applies {waiting}")


def diff(old: Config, new: Config) -> ReloadPlan:
    """Which settings changed and what that takes."""
    changed: list[tuple[str, ...]] = []
    _collect_changes(old, new, (), changed)
    hot = [path for path in changed if _is_hot(path)]
    restart = [path for path in changed if not _is_hot(path)]
    return ReloadPlan(*(tuple(format_path(path) for path in paths) for paths in (changed, hot, restart)))


def _is_hot(path: tuple[str, ...]) -> bool:
    return path[0] not in _RESTART_SECTIONS or path[:2] in _HOT_EXCEPTIONS


def _collect_changes(old: Any, new: Any, path: tuple[str, ...], changed: list[tuple[str, ...]]) -> None:
    """Go down to the smallest named settings that differ; a list counts as one setting."""
    if old == new:
        return
    if isinstance(old, Struct) and type(old) is type(new):
        for field in msgspec.structs.fields(old):
            parts = (getattr(old, field.name), getattr(new, field.name))
            _collect_changes(*parts, (*path, field.encode_name), changed)
    elif isinstance(old, dict) and isinstance(new, dict):
        for key in dict.fromkeys((*old, *new)):
            _collect_changes(old.get(key), new.get(key), (*path, str(key)), changed)
    else:
        changed.append(path)


# -- watching --------------------------------------------------------------------------------------


class Reloaded(Struct, frozen=True, tag="reloaded"):
    """A valid edit. The receiver makes `loaded.config` the running one as far as `action` says."""

    loaded: LoadedConfig
    plan: ReloadPlan
    action: ReloadAction


class Refused(Struct, frozen=True, tag="refused"):
    """A bad edit: the previous config stays live, the problems belong into the log."""

    problems: tuple[Problem, ...]


ReloadEvent = Reloaded | Refused
OnChange = Callable[[ReloadEvent], Awaitable[None]]
Changes = Callable[[Path], AsyncIterator[object]]
Sleep = Callable[[float], Awaitable[None]]
_Signature = tuple[int, int, int]


async def file_changes(path: Path) -> AsyncIterator[object]:
    """Yield whenever the file is not what it was, and now and then although it seems to be.

    It is looked at, not waited for: a notice comes for the whole directory, and the
    database beside the file changes with every message. Following the name survives
    an editor's renames, links, and file systems that give no notice.
    """
    seen, quiet = await asyncio.to_thread(_signature, path), 0
    while True:
        await asyncio.sleep(_LOOK_EVERY_S)
        found = await asyncio.to_thread(_signature, path)
        quiet = quiet + 1 if found == seen else 0
        if quiet % _DOUBT_AFTER_LOOKS == 0:
            seen = found
            yield found


async def watch(
    current: LoadedConfig,
    env: Mapping[str, str],
    on_change: OnChange,
    *,
    debounce_ms: int | None = None,
    changes: Changes = file_changes,
    sleep: Sleep = asyncio.sleep,
) -> None:
    """Report every settled change of the file until cancelled.

    After an event the file must stay untouched for the debounce time
    (`gateway.reload.debounceMs` unless given), so that an editor that truncates,
    writes and renames is seen once. Text that is the same as before is no change.
    """
    path, seen = current.path, (current.exists, current.hash)
    looked_at: _Signature | None = None
    async for _ in changes(path):
        signature = await asyncio.to_thread(_signature, path)
        if signature == looked_at and signature is not None:
            continue
        quiet_ms = current.config.gateway.reload.debounce_ms if debounce_ms is None else debounce_ms
        looked_at = await _settle(path, quiet_ms / 1000, sleep)
        loaded = await asyncio.to_thread(load, path, env)
        if (loaded.exists, loaded.hash) == seen:
            continue
        seen = (loaded.exists, loaded.hash)
        event = _judge(current, loaded)
        if isinstance(event, Reloaded) and event.action.apply:
            current = loaded
        await on_change(event)


def _judge(current: LoadedConfig, loaded: LoadedConfig) -> ReloadEvent:
    if not loaded.exists:
        gone = "the file is gone; the previous settings stay in force"
        return Refused((Problem(str(loaded.path), 0, "", gone),))
    if loaded.problems:
        return Refused(loaded.problems)
    plan = diff(current.config, loaded.config)
    return Reloaded(loaded, plan, plan.decide(current.config.gateway.reload.mode))


async def _settle(path: Path, quiet_s: float, sleep: Sleep) -> _Signature | None:
    """Wait until the file has been left alone for the quiet time; a restless file is read in the end."""
    before: _Signature | None = None
    for _ in range(_MAX_QUIET_WAITS):
        before = await asyncio.to_thread(_signature, path)
        await sleep(quiet_s)
        if before is not None and before == await asyncio.to_thread(_signature, path):
            break
    return before


def _signature(path: Path) -> _Signature | None:
    try:
        status = path.stat()
    except OSError:
        return None
    return status.st_ino, status.st_size, status.st_mtime_ns
