"""The keys of `channels.matrix` that are Matrix's own: read once, refused with the fix named."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Annotated, Any, Literal
from urllib.parse import urlsplit

import msgspec
from msgspec import Meta, Struct

from openclaw.channels.options import place_of, read_keys
from openclaw.errors import InvalidRequest

_USER_ID = re.compile(r"@[!-9;-~]{1,200}:[A-Za-z0-9.:\[\]-]{1,200}")

AutoJoin = Literal["always", "allowlist", "off"]


class Options(Struct, frozen=True, kw_only=True, rename="camel"):
    """What the connector is told. One of `access_token` and `password` is there."""

    homeserver: str
    user_id: str
    access_token: str | None = None
    password: str | None = None
    device_name: str = "openclaw"
    auto_join: AutoJoin = "allowlist"
    media_max_mb: Annotated[float, Meta(gt=0, le=100)] = 20.0

    @property
    def largest_file(self) -> int:
        return int(self.media_max_mb * 1024 * 1024)


_MUST = (
    ("homeserver", "put the address of the homeserver there, like https://matrix.example.org"),
    ("userId", "put the id of the agent's own account there, like @house:example.org"),
)


def read_options(given: Mapping[str, Any], channel: str, account_id: str) -> Options:
    """The options of one account. Raises InvalidRequest that says what to change."""
    where = place_of(channel, account_id)
    options = read_keys(given, Options, where, _MUST)
    if _USER_ID.fullmatch(options.user_id) is None:
        raise InvalidRequest(f"{where}.userId must be a whole id, like @house:example.org")
    if not options.access_token and not options.password:
        raise InvalidRequest(f"{where}: put an accessToken or a password there for {options.user_id}")
    return msgspec.structs.replace(options, homeserver=_address(options.homeserver, where))


def _address(address: str, where: str) -> str:
    try:
        parts = urlsplit(address)
        usable = parts.scheme in ("http", "https") and parts.hostname
    except ValueError:
        parts, usable = urlsplit(""), False
    if not usable or parts.query or parts.fragment or parts.username:
        raise InvalidRequest(f"{where}.homeserver must be an address like https://matrix.example.org")
    return address.rstrip("/")
