"""`openclaw doctor --import-auth|cron|tui`: what an earlier layout kept in files of its own (DB-3)."""

from __future__ import annotations

import asyncio
import os

from openclaw.cli.render import note, print_json, say
from openclaw.config.load import config_path, load_or_raise, state_dir
from openclaw.domain.terminaltext import counted, printable

SHOWN_PROBLEMS = 20


def bring_in(as_json: bool, *, auth: bool, cron: bool, tui: bool) -> bool:
    """Import what is asked for, each to its end; whether nothing was left out."""
    asked = ((auth, import_auth), (cron, import_cron), (tui, import_tui))
    done = [work(as_json) for wanted, work in asked if wanted]
    return all(done)


def import_auth(as_json: bool) -> bool:
    """Import the keys of model providers into the configuration and tell of which; whether all of them."""
    from openclaw.app.legacyauth import import_keys

    env = dict(os.environ)
    done = import_keys(load_or_raise(config_path(env), env), env)
    if as_json:
        print_json(done)
    else:
        say(f"Keys imported: {', '.join(done.imported) or 'none'}; there already: {len(done.already)}.")
        for path in done.paths:
            say(f"{path} was only read; it still holds the keys, so delete it when all is well.")
        _tell_left_out(done.problems)
    return not done.problems


def import_cron(as_json: bool) -> bool:
    """Import `cron/jobs.json` of the state directory and tell what became of it; whether all of it."""
    from openclaw.app.legacyjobs import import_jobs

    env = dict(os.environ)
    done = asyncio.run(import_jobs(load_or_raise(config_path(env), env), env))
    if as_json:
        print_json(done)
    else:
        say(f"{counted(done.imported, 'job')} imported, {done.already} known already.")
        say(f"{done.path} was only read.")
        _tell_left_out(done.problems)
    return not done.problems


def import_tui(as_json: bool) -> bool:
    """Import the sessions that an earlier terminal UI had open last, as far as they are of known gateways."""
    from openclaw.cli.place import Flags, find_place
    from openclaw.config.agent_view import agent_ids
    from openclaw.tui.legacy import Known, import_last_sessions, last_sessions_file
    from openclaw.tui.memory import FILE_NAME, ClientMemory

    env = dict(os.environ)
    config = load_or_raise(config_path(env), env).config
    place = find_place(Flags(), env)
    known = Known(gateways=(place.shown_url,), agent_ids=tuple(agent_ids(config)))
    with ClientMemory(state_dir(env) / FILE_NAME) as memory:
        done = import_last_sessions(last_sessions_file(state_dir(env)), memory, known)
    if as_json:
        print_json(done)
    else:
        say(f"{counted(done.imported, 'last session')} imported, {done.already} known already.")
        say(f"{done.path} was only read.")
        _tell_left_out(done.problems)
    return not done.problems


def _tell_left_out(problems: tuple[str, ...]) -> None:
    for problem in problems[:SHOWN_PROBLEMS]:
        note(f"left out {printable(problem)}")
