"""Work that the running gateway does when there is one, and this process when there is none (OWN-4).

Which of the two it is, is found out by asking: a gateway that answers is asked; where
none answers, the lock of the state directory decides.
"""

from __future__ import annotations

import functools
import os
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, TypeVar

import click

from openclaw.cli.client import GatewayClient
from openclaw.cli.failures import GatewayUnreachable
from openclaw.cli.place import URL_NAME, Flags, find_place
from openclaw.errors import StoreLocked
from openclaw.protocol.scopes import ADMIN

Answer = TypeVar("Answer")
Function = Callable[..., Any]
CONNECT_S = 10.0


def ask_gateway(
    flags: Flags,
    method: str,
    params: dict[str, Any],
    timeout_s: float,
    *,
    scopes: Sequence[str] = (ADMIN,),
) -> Any:
    """One question to the gateway that runs, on a connection of its own."""
    with GatewayClient(find_place(flags, os.environ), scopes, connect_timeout_s=timeout_s) as client:
        return client.call(method, params, timeout_s)


def ask_or_own(
    flags: Flags,
    ask: Callable[[GatewayClient], Answer],
    own: Callable[[], Answer],
    *,
    scopes: Sequence[str] = (ADMIN,),
) -> Answer:
    """Let `ask` talk to the gateway that runs or, where none answers on this machine, call `own`.

    A gateway that was named with --url or in the environment is never passed over.
    """
    place = find_place(flags, os.environ)
    named = flags.url is not None or bool(os.environ.get(URL_NAME, "").strip()) or place.remote
    try:
        client = GatewayClient(place, scopes, connect_timeout_s=CONNECT_S).__enter__()
    except GatewayUnreachable:
        if named:
            raise
    else:
        try:
            return ask(client)
        finally:
            client.close()
    try:
        return own()
    except StoreLocked as refusal:
        raise StoreLocked(
            f"{refusal.message} It did not answer at {place.shown_url}: if it listens elsewhere, name that "
            "address with --url and --token, or its port with OPENCLAW_GATEWAY_PORT.",
            **refusal.fields,
        ) from refusal


def long_timeout_option(function: Function) -> Function:
    """`--timeout` for work that takes minutes; the command gets `timeout_s`."""

    @click.option(
        "--timeout",
        "timeout_ms",
        type=click.IntRange(min=1),
        default=600_000,
        show_default=True,
        metavar="MS",
        help="How long to wait for the gateway's answer, in milliseconds; it goes on by itself after that.",
    )
    @functools.wraps(function)
    def with_timeout(*args: Any, timeout_ms: int, **options: Any) -> Any:
        return function(*args, timeout_s=timeout_ms / 1000, **options)

    return with_timeout


@contextmanager
def waiting(text: str) -> Iterator[None]:
    """Show on the terminal's stderr that something goes on, and for how long; elsewhere, nothing."""
    if not sys.stderr.isatty():
        yield
        return
    from rich.console import Console
    from rich.progress import Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

    columns = (SpinnerColumn(), TextColumn(text), TimeElapsedColumn())
    with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
        bar.add_task(text, total=None)
        yield


@contextmanager
def progress_bar(title: str) -> Iterator[Callable[[int, int], None]]:
    """A bar on the terminal's stderr that hears how much is done, and of how much; elsewhere, nothing."""
    if not sys.stderr.isatty():
        yield lambda _done, _all: None
        return
    from rich.console import Console
    from rich.progress import Progress

    with Progress(console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task(title, total=None)
        yield lambda done, total: bar.update(task, completed=done, total=total)
