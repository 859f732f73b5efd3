"""`openclaw doctor --import-devices`: devices that an earlier layout kept in a file (DB-3)."""

from __future__ import annotations

import asyncio
import os

from openclaw.cli.render import note, print_json, say
from openclaw.config.load import config_path, load_or_raise
from openclaw.domain.terminaltext import counted, printable

SHOWN_PROBLEMS = 20


def import_devices(as_json: bool) -> bool:
    """Import `devices/paired.json` of the state directory and tell what became of it; whether all of it."""
    from openclaw.app.devices import import_devices as bring_in

    env = dict(os.environ)
    done = asyncio.run(bring_in(load_or_raise(config_path(env), env), env))
    if as_json:
        print_json(done)
        return not done.problems
    say(f"{counted(done.imported, 'device')} imported, {done.already} known already.")
    say(f"{done.path} was only read.")
    for problem in done.problems[:SHOWN_PROBLEMS]:
        note(f"left out {printable(problem)}")
    return not done.problems
