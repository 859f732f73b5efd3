"""The first thing a person sees: where the gateway listens, which model, whose money, what to do next.

Never shows a credential.
"""

from __future__ import annotations

import shlex
import shutil
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from openclaw import __version__
from openclaw.cli.render import print_labels, say
from openclaw.domain.terminaltext import counted, one_line, printable

if TYPE_CHECKING:
    from openclaw.app import Announcement


def print_start_screen(announcement: Announcement, *, hint: str = "") -> None:
    """Tell that the gateway is up. `hint` stands before client commands when they need it to find it."""
    if announcement.config_created:
        say(
            "Welcome to OpenClaw. This is the first start, so a config with a fresh access token was written."
        )
        say("Only you can read it; the commands below find the token there by themselves.")
        say()
    say(f"OpenClaw {__version__} is running.")
    say()
    print_labels(list(_facts(announcement)))
    for warning in announcement.warnings:
        say(f"warning: {printable(warning)}")
    say()
    _print_ways(hint + command_name())
    say()
    say("Ctrl-C stops it. Nothing is lost: what is unfinished goes on at the next start.")
    sys.stdout.flush()


def print_running(url: str, version: str) -> None:
    """Tell that there is a gateway already, so that none was started."""
    say(f"OpenClaw {one_line(version) or __version__} is already running at {url}.")
    say()
    _print_ways(command_name())
    say()
    say("Stop it where it was started, with Ctrl-C.")


def _print_ways(command: str) -> None:
    say("Talk to it, from another terminal:")
    ways = (
        ("chat", "a conversation in the terminal"),
        ("dashboard", "the same in a browser"),
        ('agent -m "hello"', "one message, one answer"),
        ("sessions", "what it remembers"),
    )
    width = max(len(words) for words, _ in ways)
    for words, meaning in ways:
        say(f"  {command} {words.ljust(width)}  {meaning}")


def command_name() -> str:
    """What to type for `openclaw` here: the name, or the whole path when the shell would not find it."""
    started_as = Path(sys.argv[0])
    if shutil.which("openclaw") or started_as.name != "openclaw" or not started_as.is_file():
        return "openclaw"
    return shlex.quote(str(started_as.resolve()))


def _facts(announcement: Announcement) -> list[tuple[str, str]]:
    facts = [
        ("listens at", f"{announcement.url}  (health: {announcement.http_url}/healthz)"),
        ("web page", f"{announcement.http_url}/  (`openclaw dashboard` opens it, signed in)"),
        ("model", announcement.model),
    ]
    facts += [("", clause) for clause in announcement.model_note.split("; ") if clause]
    facts += [
        ("agents", ", ".join(announcement.agents)),
        ("config", announcement.config_path),
        ("database", announcement.database),
    ]
    picked_up = []
    if announcement.resumed_runs:
        picked_up.append(f"{counted(announcement.resumed_runs, 'interrupted run')} resumed")
    if announcement.woken_sessions:
        picked_up.append(f"{counted(announcement.woken_sessions, 'session')} had waiting messages")
    if picked_up:
        facts.append(("picked up", ", ".join(picked_up)))
    return [(label, one_line(value)) for label, value in facts]
