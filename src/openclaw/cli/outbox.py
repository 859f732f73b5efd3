"""`openclaw outbox`: replies on their way out; look at them, send one again, give one up."""

from __future__ import annotations

import os
import time
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Any

import click

from openclaw.cli.asking import ask_or_own
from openclaw.cli.client import GatewayClient
from openclaw.cli.options import gateway_options, json_option, timeout_option
from openclaw.cli.place import Flags
from openclaw.cli.render import Column, note, print_json, print_labels, print_table, print_text, say
from openclaw.domain.terminaltext import age, one_line, printable

if TYPE_CHECKING:
    from openclaw.store.outboxdesk import OutboxDesk

Json = dict[str, Any]
STATES = ("prepared", "sending", "sent", "unknown", "failed")
COLUMNS = (
    Column("No", right=True),
    Column("State"),
    Column("Age", right=True),
    Column("Channel"),
    Column("To"),
    Column("Session"),
    Column("Text", fold=True),
)
number_argument = click.argument("number", type=click.IntRange(min=1))


@click.group(short_help="Look after replies on their way out.")
def outbox() -> None:
    """Look after replies that wait, failed, or may or may not have arrived.

    A delivery that was cut off is "unknown": it is never sent again unless you say so.

    \b
    Examples:
      openclaw outbox list --state failed
      openclaw outbox show 17
      openclaw outbox retry 17
      openclaw outbox drop 17
    """


@outbox.command(name="list")
@click.option("--state", type=click.Choice(STATES), help="Only deliveries in this state.")
@click.option("--channel", metavar="NAME", help="Only deliveries on this channel.")
@click.option("--session-key", metavar="KEY", help="Only deliveries of this session.")
@click.option(
    "--limit",
    type=click.IntRange(1, 500),
    default=50,
    show_default=True,
    metavar="N",
    help="At most so many.",
)
@gateway_options
@timeout_option
@json_option
def list_(limit: int, flags: Flags, timeout_s: float, as_json: bool, **given: str | None) -> None:
    """List deliveries, newest first.

    \b
    Examples:
      openclaw outbox list
      openclaw outbox list --state unknown --json
    """
    names = {"state": "state", "channel": "channel", "session_key": "sessionKey"}
    params: Json = {"limit": limit} | {names[name]: value for name, value in given.items() if value}

    async def own(desk: OutboxDesk) -> Json:
        from openclaw.store.outboxdesk import DeliveryQuery, delivery_view

        key = given["session_key"]
        query = DeliveryQuery(
            state=given["state"] or "",
            channel=given["channel"] or "",
            session_key="" if key is None else _meant(key),
            limit=limit,
        )
        page = await desk.page(query)
        shown: Json = {
            "ts": time.time_ns() // 1_000_000,
            "deliveries": [delivery_view(row) for row in page.deliveries],
            "states": page.states,
        }
        return shown | ({} if page.before is None else {"before": page.before})

    told = _carry_out("outbox.list", params, own, flags, timeout_s)
    if as_json:
        print_json(told)
    else:
        _print_list(told)


@outbox.command()
@number_argument
@gateway_options
@timeout_option
@json_option
def show(number: int, flags: Flags, timeout_s: float, as_json: bool) -> None:
    """Show one delivery with its whole text.

    \b
    Example:
      openclaw outbox show 17
    """
    told = _one("outbox.get", number, lambda desk: desk.get(number), flags, timeout_s)
    if as_json:
        print_json(told)
        return
    item = told["delivery"]
    names = {"deliveryNo": "number", "state": "state", "error": "error", "channel": "channel", "target": "to",
             "accountId": "account", "threadId": "thread", "sessionKey": "session", "runId": "run",
             "attempts": "attempts"}  # fmt: skip
    print_labels(
        (label, one_line(str(item[name]))) for name, label in names.items() if item.get(name) is not None
    )
    say()
    print_text(printable(item["text"]))


@outbox.command()
@number_argument
@gateway_options
@timeout_option
@json_option
def retry(number: int, flags: Flags, timeout_s: float, as_json: bool) -> None:
    """Send a failed or unknown delivery again. An unknown one may then arrive twice.

    \b
    Example:
      openclaw outbox retry 17
    """

    def own(desk: OutboxDesk) -> Awaitable[Any]:
        return desk.retry(number, now_ms=time.time_ns() // 1_000_000)

    told = _one("outbox.retry", number, own, flags, timeout_s)
    _done(told, f"Delivery {number} waits to be sent again.", as_json)


@outbox.command()
@number_argument
@click.option("--yes", is_flag=True, help="Do not ask.")
@gateway_options
@timeout_option
@json_option
def drop(number: int, yes: bool, flags: Flags, timeout_s: float, as_json: bool) -> None:
    """Give up a delivery that was not sent. It cannot be brought back; its words stay in the transcript.

    \b
    Examples:
      openclaw outbox drop 17
      openclaw outbox drop 17 --yes
    """
    if not yes and not as_json:
        click.confirm(f"Give up delivery {number}?", abort=True, err=True)
    told = _one("outbox.drop", number, lambda desk: desk.drop(number), flags, timeout_s)
    _done(told, f"Delivery {number} is gone.", as_json)


def _done(told: Json, sentence: str, as_json: bool) -> None:
    if as_json:
        print_json(told)
    else:
        say(sentence)


def _one(
    method: str, number: int, own: Callable[[OutboxDesk], Awaitable[Any]], flags: Flags, timeout_s: float
) -> Json:
    async def work(desk: OutboxDesk) -> Json:
        from openclaw.store.outboxdesk import delivery_view

        return {"ok": True, "delivery": delivery_view(await own(desk), whole=True)}

    return _carry_out(method, {"deliveryNo": number}, work, flags, timeout_s)


def _carry_out(
    method: str,
    params: Json,
    own: Callable[[OutboxDesk], Awaitable[Json]],
    flags: Flags,
    timeout_s: float,
) -> Json:
    def ask(client: GatewayClient) -> Json:
        answer: Json = client.call(method, params, timeout_s)
        return answer

    return ask_or_own(flags, ask, lambda: _offline(own))


def _offline(own: Callable[[OutboxDesk], Awaitable[Json]]) -> Json:
    import asyncio

    from openclaw.app.offline import offline_store
    from openclaw.config.load import config_path, load_or_raise
    from openclaw.store.outboxdesk import OutboxDesk

    env = dict(os.environ)
    loaded = load_or_raise(config_path(env), env)

    async def work() -> Json:
        async with offline_store(loaded.config, env, doing="looking after the outbox") as database:
            return await own(OutboxDesk(database))

    return asyncio.run(work())


def _meant(key: str) -> str:
    from openclaw.app.offline import meant_key
    from openclaw.config.load import config_path, load_or_raise

    env = dict(os.environ)
    return meant_key(load_or_raise(config_path(env), env), key, None)


def _print_list(told: Json) -> None:
    rows = [
        [str(item["deliveryNo"]), item["state"], age(told["ts"] - item["createdAt"]), item["channel"],
         item["target"], item["sessionKey"], item["error"] or item["text"]]
        for item in told["deliveries"]
    ]  # fmt: skip
    if not rows:
        say("No deliveries.")
        return
    print_table(COLUMNS, rows)
    counts = ", ".join(f"{told['states'][name]} {name}" for name in STATES if told["states"].get(name))
    note(f"In the outbox: {counts}.")
    if told.get("before"):
        note("There are more; raise --limit to see them.")
