"""Which hooks there are: files of the state directory, and what installed packages offer (AUTO-10).

The configuration names a hook, never a path or a module, so that whoever may change the configuration
cannot have other code run than what lies there already. A hook that cannot be had is left out with a
line in the log; the gateway goes on.
"""

from __future__ import annotations

import importlib.util
import logging
import os
import stat
import sys
from collections.abc import Iterator
from importlib.metadata import entry_points
from pathlib import Path
from typing import Any

from openclaw.config.automation_section import InternalHooksConfig
from openclaw.domain.hookevents import HOOK_NAMES
from openclaw.engine.events import RunScope
from openclaw.engine.hooks import Hook
from openclaw.engine.replies import reply_route
from openclaw.engine.workers import Workers
from openclaw.errors import InvalidRequest

log = logging.getLogger("openclaw.hooks")
GROUP = "openclaw.hooks"
FOLDER = "hooks"
FUNCTION = "handle"


def find_hooks(config: InternalHooksConfig, state: Path) -> tuple[Hook, ...]:
    """The hooks of a configuration, in its order. Runs code of the hooks' modules: not for the event loop."""
    return tuple(_found(config, state / FOLDER)) if config.enabled else ()


def _found(config: InternalHooksConfig, folder: Path) -> Iterator[Hook]:
    for name, entry in config.entries.items():
        if not entry.enabled:
            continue
        try:
            handle = _load(name, folder)
        except Exception as error:  # a stranger's module may raise anything at all
            log.error("hooks.internal.entries.%s is left out: %s", name, error)
            continue
        yield Hook(name, handle, HOOK_NAMES if entry.events is None else frozenset(entry.events))


def _load(name: str, folder: Path) -> Any:
    path = folder / f"{name}.py"
    if path.exists():
        handle = getattr(_import_file(name, path), FUNCTION, None)
        where = str(path)
    else:
        offered = [point for point in entry_points(group=GROUP) if point.name == name]
        if not offered:
            raise InvalidRequest(f"there is neither {path} nor an installed package with a hook of this name")
        handle, where = offered[0].load(), offered[0].value
    if not callable(handle):
        raise InvalidRequest(f"{where} has no function `{FUNCTION}(event)`")
    return handle


def _import_file(name: str, path: Path) -> Any:
    for place in (path.parent, path):
        found = place.stat()
        if found.st_mode & (stat.S_IWGRP | stat.S_IWOTH):
            raise InvalidRequest(f"others may write to {place}; take that away with chmod go-w {place}")
        if found.st_uid not in (os.getuid(), 0):
            raise InvalidRequest(f"{place} belongs to somebody else; make it yours")
    known_as = f"openclaw_hook_{name.replace('-', '_')}"
    spec = importlib.util.spec_from_file_location(known_as, path)
    assert spec is not None and spec.loader is not None, "a .py file has a loader"
    module = importlib.util.module_from_spec(spec)
    sys.modules[known_as] = module  # where dataclasses of the file look for their names
    try:
        spec.loader.exec_module(module)
    except BaseException:
        del sys.modules[known_as]
        raise
    return module


def stays_here(workers: Workers, scope: RunScope) -> bool:
    """Whether the reply of a run that is ending goes to the gateway's own clients, and to no platform."""
    run = workers.active_run(scope.session_key)
    return run is not None and run.run.run_id == scope.run_id and reply_route(run.start) is None
