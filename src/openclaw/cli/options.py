"""Options that several commands share, and what `--json` promises for a failure."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import click

from openclaw.errors import InvalidRequest, OpenClawError

Function = Callable[..., Any]


def gateway_options(function: Function) -> Function:
    """`--url`, `--token`, `--password`; the command gets them as `flags`."""

    @click.option("--url", metavar="URL", help="The gateway to talk to; nothing is taken from the config.")
    @click.option("--token", metavar="TOKEN", help="Its gateway.auth.token.")
    @click.option("--password", metavar="TEXT", help="Its gateway.auth.password.")
    @functools.wraps(function)
    def with_flags(
        *args: Any, url: str | None, token: str | None, password: str | None, **options: Any
    ) -> Any:
        from openclaw.cli.place import Flags

        return function(*args, flags=Flags(url, token, password), **options)

    return with_flags


def timeout_option(function: Function) -> Function:
    """`--timeout`, in milliseconds as other OpenClaw clients have it; the command gets `timeout_s`."""

    @click.option(
        "--timeout",
        "timeout_ms",
        type=click.IntRange(min=1),
        default=10_000,
        show_default=True,
        metavar="MS",
        help="How long to wait for the gateway, in milliseconds.",
    )
    @functools.wraps(function)
    def with_timeout(*args: Any, timeout_ms: int, **options: Any) -> Any:
        return function(*args, timeout_s=timeout_ms / 1000, **options)

    return with_timeout


def json_option(function: Function) -> Function:
    """`--json`; the command gets `as_json`. A failure is then one JSON object on stdout, exit 1 (CLI-5)."""

    @click.option("--json", "as_json", is_flag=True, help="Print JSON with stable keys.")
    @functools.wraps(function)
    def reporting(*args: Any, as_json: bool, **options: Any) -> Any:
        try:
            return function(*args, as_json=as_json, **options)
        except OpenClawError as error:
            if not as_json:
                raise
            from openclaw.cli.failures import failure_body
            from openclaw.cli.render import print_json

            print_json(failure_body(error))
            raise click.exceptions.Exit(1) from None

    return reporting


def positive_number(text: str, option: str, noun: str) -> int:
    """A positive whole number, or InvalidRequest: these mistakes exit with 1, also with `--json` (CLI-3)."""
    if text.isascii() and text.isdigit() and len(text) <= 15 and int(text) > 0:
        return int(text)
    raise InvalidRequest(f"{option} takes a positive whole number of {noun}, not {text[:40]!r}")
