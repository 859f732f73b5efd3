"""`openclaw cron`: jobs that run by the clock."""

from __future__ import annotations

import re
import time
from datetime import datetime
from typing import Any

import click

from openclaw.cli.asking import ask_gateway
from openclaw.cli.options import gateway_options, json_option, timeout_option
from openclaw.cli.place import Flags
from openclaw.cli.render import Column, print_json, print_table, say
from openclaw.domain.terminaltext import age, one_line
from openclaw.errors import InvalidRequest
from openclaw.protocol.scopes import READ

Json = dict[str, Any]
_UNITS_MS = {"s": 1000, "m": 60_000, "h": 3_600_000, "d": 86_400_000}
_DURATION = re.compile(r"([0-9]{1,9})(s|m|h|d)")
JOBS = (
    Column("Id"),
    Column("Name", fold=True),
    Column("When", fold=True),
    Column("Where"),
    Column("Next"),
    Column("On"),
)
RUNS = (
    Column("Due"),
    Column("State"),
    Column("Missed", right=True),
    Column("Delivery"),
    Column("Took", right=True),
    Column("Problem", fold=True),
)


@click.group(short_help="Let an agent work by the clock.")
def cron() -> None:
    """Let an agent work by the clock: once, every so often, or by a line of cron.

    \b
    Examples:
      openclaw cron add --name briefing --cron "0 7 * * 1-5" --tz Europe/Madrid -m "Brief me on today"
      openclaw cron add --name tea --at 20m --main --text "The tea is ready"
      openclaw cron list
      openclaw cron run briefing
    """


@cron.command()
@click.option("--name", required=True, help="What to call it.")
@click.option("--at", "at", metavar="TIME", help="Once: 2026-12-24T18:00, or in 20m, 2h, 1d.")
@click.option("--every", metavar="DURATION", help="Again and again: 30m, 2h, 1d.")
@click.option("--cron", "line", metavar="LINE", help='A line of cron: "0 7 * * 1-5".')
@click.option("--tz", metavar="ZONE", help="The zone of --cron; default: the gateway's own.")
@click.option("-m", "--message", help="A turn in a session of its own, with these words.")
@click.option("--text", help="With --main: what the main session is told.")
@click.option("--main", "in_main", is_flag=True, help="Tell the main session instead of running apart.")
@click.option("--session", metavar="NAME", help="Run in this session, which goes on from run to run.")
@click.option("--agent", "agent_id", metavar="ID", help="Which agent; default: the default one.")
@click.option("--model", metavar="REF", help="Another model for this job.")
@click.option("--thinking", metavar="LEVEL", help="How much the model thinks.")
@click.option("--wake", type=click.Choice(["now", "next-heartbeat"]), default="now", show_default=True)
@click.option("--announce/--no-announce", "announce", default=None, help="Send the result to a channel.")
@click.option("--channel", help="Where to: the channel.")
@click.option("--to", help="Where to: the person or chat there.")
@click.option("--webhook", metavar="URL", help="Post the result to this address.")
@click.option("--keep-after-run", is_flag=True, help="Keep a job with --at after it ran.")
@gateway_options
@timeout_option
@json_option
def add(flags: Flags, timeout_s: float, as_json: bool, **options: Any) -> None:
    """Add a job. Exactly one of --at, --every and --cron says when.

    \b
    Examples:
      openclaw cron add --name briefing --cron "0 7 * * 1-5" -m "Brief me on today"
      openclaw cron add --name nag --every 2h --main --text "Ask whether the taxes are done"
      openclaw cron add --name party --at 2026-12-31T23:00 -m "Wish everybody well" --channel telegram --to 42
    """
    job: Json = ask_gateway(flags, "cron.add", job_params(options, time.time_ns() // 1_000_000), timeout_s)
    if as_json:
        print_json(job)
    else:
        say(
            f"Added {one_line(job['name'])} ({job['id'][:8]}); next: {_when(job['state'].get('nextRunAtMs'))}"
        )


def job_params(options: Json, now_ms: int) -> Json:
    """What was typed, as `cron.add` wants it."""
    if (options["message"] is None) == (options["text"] is None):
        raise InvalidRequest("give -m for a turn of its own, or --main with --text")
    if options["in_main"] != (options["text"] is not None):
        raise InvalidRequest("--main and --text go together")
    if options["in_main"] and options["session"]:
        raise InvalidRequest("--main and --session exclude one another")
    params: Json = {
        "name": options["name"],
        "schedule": _schedule(options, now_ms),
        "sessionTarget": "main" if options["in_main"] else "isolated",
        "wakeMode": options["wake"],
    }
    if options["session"]:
        params["sessionTarget"] = f"session:{options['session']}"
    if options["in_main"]:
        params["payload"] = {"kind": "systemEvent", "text": options["text"]}
    else:
        turn = {
            "kind": "agentTurn", "message": options["message"], "model": options["model"],
            "thinking": options["thinking"],
        }  # fmt: skip
        params["payload"] = {name: value for name, value in turn.items() if value is not None}
    if options["agent_id"]:
        params["agentId"] = options["agent_id"]
    if options["keep_after_run"]:
        params["deleteAfterRun"] = False
    delivery = _delivery(options)
    return params if delivery is None else params | {"delivery": delivery}


def _schedule(options: Json, now_ms: int) -> Json:
    given = [name for name in ("at", "every", "line") if options[name]]
    if len(given) != 1:
        raise InvalidRequest("exactly one of --at, --every and --cron says when")
    if options["line"]:
        line = {"kind": "cron", "expr": options["line"]}
        return line | ({"tz": options["tz"]} if options["tz"] else {})
    if options["tz"]:
        raise InvalidRequest("--tz goes with --cron")
    if options["every"]:
        every_ms = _duration_ms(options["every"])
        if every_ms is None:
            raise InvalidRequest(f"--every takes a duration like 30m, not {options['every'][:40]!r}")
        return {"kind": "every", "everyMs": every_ms}
    later_ms = _duration_ms(options["at"])
    return {"kind": "at", "at": options["at"] if later_ms is None else now_ms + later_ms}


def _duration_ms(text: str) -> int | None:
    found = _DURATION.fullmatch(text.strip().lower())
    return None if found is None else int(found[1]) * _UNITS_MS[found[2]]


def _delivery(options: Json) -> Json | None:
    if options["webhook"]:
        return {"mode": "webhook", "to": options["webhook"]}
    target = {name: options[name] for name in ("channel", "to") if options[name]}
    if options["announce"] is False:
        if target:
            raise InvalidRequest("--no-announce and a target exclude one another")
        return {"mode": "none"}
    if target or options["announce"]:
        return {"mode": "announce"} | target
    return None


@cron.command("list")
@gateway_options
@timeout_option
@json_option
def list_jobs(flags: Flags, timeout_s: float, as_json: bool) -> None:
    """List the jobs and when each is due next.

    \b
    Examples:
      openclaw cron list
      openclaw cron list --json | jq '.jobs[].name'
    """
    listed: Json = ask_gateway(flags, "cron.list", {}, timeout_s, scopes=(READ,))
    if as_json:
        print_json(listed)
    elif not listed["jobs"]:
        say("No jobs. `openclaw cron add --help` shows how to make one.")
    else:
        print_table(JOBS, [_job_cells(job) for job in listed["jobs"]])


@cron.command()
@click.argument("job")
@click.option("--due", is_flag=True, help="Only if it is due.")
@gateway_options
@timeout_option
@json_option
def run(job: str, due: bool, flags: Flags, timeout_s: float, as_json: bool) -> None:
    """Run a job now; its schedule stays as it is.

    \b
    Examples:
      openclaw cron run briefing
      openclaw cron run 6f1c2e0a --due
    """
    params = {"id": _find(job, flags, timeout_s)["id"], "mode": "due" if due else "force"}
    ran: Json = ask_gateway(flags, "cron.run", params, timeout_s)
    if as_json:
        print_json(ran)
    else:
        say("Started." if ran["ran"] else f"Not started: {ran['reason']}.")


@cron.command()
@click.argument("job")
@gateway_options
@timeout_option
@json_option
def remove(job: str, flags: Flags, timeout_s: float, as_json: bool) -> None:
    """Remove a job. A run that is under way goes on.

    \b
    Examples:
      openclaw cron remove briefing
    """
    found = _find(job, flags, timeout_s)
    gone: Json = ask_gateway(flags, "cron.remove", {"id": found["id"]}, timeout_s)
    if as_json:
        print_json(gone)
    else:
        say(f"Removed {one_line(found['name'])}.")


@cron.command()
@click.argument("job")
@click.argument("state", type=click.Choice(["on", "off"]))
@gateway_options
@timeout_option
@json_option
def switch(job: str, state: str, flags: Flags, timeout_s: float, as_json: bool) -> None:
    """Switch a job on or off without losing it.

    \b
    Examples:
      openclaw cron switch briefing off
    """
    found = _find(job, flags, timeout_s)
    params = {"id": found["id"], "patch": {"enabled": state == "on"}}
    changed: Json = ask_gateway(flags, "cron.update", params, timeout_s)
    if as_json:
        print_json(changed)
    else:
        say(f"{one_line(changed['name'])} is {state}; next: {_when(changed['state'].get('nextRunAtMs'))}")


@cron.command()
@click.argument("job")
@click.option("--limit", type=click.IntRange(1, 200), default=20, show_default=True)
@gateway_options
@timeout_option
@json_option
def runs(job: str, limit: int, flags: Flags, timeout_s: float, as_json: bool) -> None:
    """Show when a job was due, how it ended, and what was missed.

    \b
    Examples:
      openclaw cron runs briefing
    """
    found = _find(job, flags, timeout_s)
    params = {"id": found["id"], "limit": limit}
    listed: Json = ask_gateway(flags, "cron.runs", params, timeout_s, scopes=(READ,))
    if as_json:
        print_json(listed)
    elif not listed["entries"]:
        say("It was not due yet.")
    else:
        print_table(RUNS, [_run_cells(entry) for entry in listed["entries"]])


def _find(job: str, flags: Flags, timeout_s: float) -> Json:
    """The only job of this name, or whose id begins so."""
    jobs: list[Json] = ask_gateway(flags, "cron.list", {}, timeout_s, scopes=(READ,))["jobs"]
    found = [one for one in jobs if job in (one["id"], one["name"])] or [
        one for one in jobs if one["id"].startswith(job.lower())
    ]
    if len(found) == 1:
        return found[0]
    many = f"{len(found)} jobs are called" if found else "no job is called"
    raise InvalidRequest(f"{many} {job[:80]!r}; `openclaw cron list` shows them")


def _job_cells(job: Json) -> list[str]:
    return [
        job["id"][:8],
        one_line(job["name"]),
        _schedule_text(job["schedule"]),
        one_line(job["sessionTarget"]),
        _when(job["state"].get("nextRunAtMs")),
        "yes" if job["enabled"] else "no",
    ]


def _schedule_text(schedule: Json) -> str:
    if schedule["kind"] == "cron":
        return one_line(schedule["expr"]) + (f" ({one_line(schedule['tz'])})" if schedule.get("tz") else "")
    if schedule["kind"] == "every":
        return f"every {age(schedule['everyMs'])}"
    at = schedule["at"]
    return f"at {_when(at) if isinstance(at, int) else one_line(at)}"


def _run_cells(run: Json) -> list[str]:
    took = (run["endedAt"] - run["firedAt"]) / 1000 if run.get("endedAt") else None
    return [
        _when(run["dueAt"]),
        run.get("status") or "running",
        str(run["missed"]),
        run["delivery"],
        "-" if took is None else f"{took:.1f} s",
        one_line(run.get("error") or "-"),
    ]


def _when(at_ms: int | None) -> str:
    """A time on this machine's clock."""
    if at_ms is None:
        return "-"
    return datetime.fromtimestamp(at_ms / 1000).astimezone().strftime("%Y-%m-%d %H:%M")
