"""`openclaw gateway call`: one method of a running gateway, as it is (CLI-4, CLI-5)."""

from __future__ import annotations

import os
import sys
from typing import Any

import click
import msgspec
from msgspec import Raw

from openclaw.cli.client import GatewayClient
from openclaw.cli.options import gateway_options, json_option, timeout_option
from openclaw.cli.place import Flags, find_place
from openclaw.cli.render import print_json
from openclaw.errors import InvalidRequest
from openclaw.protocol.methods import METHODS, decode_params, required_scope
from openclaw.protocol.scopes import ADMIN

Json = dict[str, Any]


@click.command()
@click.argument("method")
@click.option("--params", "params_text", metavar="JSON", help="The parameters, a JSON object; - reads stdin.")
@click.option("--expect-final", is_flag=True, help="Wait for the second answer of a method such as `agent`.")
@gateway_options
@timeout_option
@json_option
def call(
    method: str, params_text: str | None, expect_final: bool, flags: Flags, timeout_s: float, as_json: bool
) -> None:
    """Call a METHOD of the gateway and print its answer as JSON.

    Asks for no more rights than the method needs. With --url no credential is taken
    from the config: give --token or --password.

    \b
    Examples:
      openclaw gateway call sessions.list --params '{}'
      openclaw gateway call health --json
      openclaw gateway call status --url wss://gateway.example --token "$TOKEN"
    """
    params = read_params(params_text)
    place = find_place(flags, os.environ)
    with GatewayClient(place, [scope_of(method, params)], connect_timeout_s=timeout_s) as client:
        if expect_final:
            payload = client.call_twice(method, params, timeout_s)
        else:
            payload = client.call(method, params, timeout_s)
    print_json(payload, pretty=False if as_json else None)


def read_params(text: str | None) -> Json:
    """The parameters that were written; none are an empty object."""
    if text is None:
        return {}
    try:
        # What the shell passed as bytes that are no text is refused here, by its bytes.
        raw = sys.stdin.buffer.read() if text == "-" else text.encode("utf-8", "surrogateescape")
        params = msgspec.json.decode(raw)
    except (msgspec.DecodeError, UnicodeError) as error:
        raise InvalidRequest(f"--params is not JSON ({error}); write it like '{{\"limit\": 5}}'") from None
    if not isinstance(params, dict):
        raise InvalidRequest("--params must be a JSON object, like '{\"limit\": 5}'")
    return params


def scope_of(method: str, params: Json) -> str:
    """The least scope for this call; a method that this version does not know may need the most."""
    if method not in METHODS:
        return ADMIN
    try:
        return required_scope(method, decode_params(method, Raw(msgspec.json.encode(params))))
    except InvalidRequest:
        # The gateway says what is wrong with them; it may be newer than this client.
        return required_scope(method)
