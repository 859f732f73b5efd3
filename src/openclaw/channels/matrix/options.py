"""The keys of `channels.matrix` that are Matrix's own: read once, refused with the fix named."""

from __future__ import annotations

import logging
import re
from collections.abc import Mapping
from typing import Annotated, Any, Literal
from urllib.parse import urlsplit

import msgspec
from msgspec import Meta, Struct

from openclaw.errors import InvalidRequest

log = logging.getLogger("openclaw.channels")
_USER_ID = re.compile(r"@[!-9;-~]{1,200}:[A-Za-z0-9.:\[\]-]{1,200}")
# Read elsewhere: whether a reply grows while it is written is decided for all platforms in one place.
_FOR_OTHERS = frozenset({"streaming"})

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


_KNOWN = frozenset(Options.__struct_encode_fields__) | _FOR_OTHERS


def read_options(given: Mapping[str, Any], channel: str, account_id: str) -> Options:
    """The options of one account. Raises InvalidRequest that says what to change."""
    where = f"channels.{channel}" if account_id == "default" else f"channels.{channel}.accounts.{account_id}"
    unknown = sorted(set(given) - _KNOWN)
    if unknown:
        log.warning("%s: these keys are not known and do nothing: %s", where, ", ".join(unknown)[:300])
    for name, fix in _MUST:
        if not given.get(name):
            raise InvalidRequest(f"{where}.{name} is missing: {fix}")
    try:
        options = msgspec.convert({name: given[name] for name in given if name in _KNOWN}, Options)
    except msgspec.ValidationError as error:
        raise InvalidRequest(f"{where}: {_plain(error)}") from None
    if _USER_ID.fullmatch(options.user_id) is None:
        raise InvalidRequest(f"{where}.userId must be a whole id, like @house:example.org")
    if not options.access_token and not options.password:
        raise InvalidRequest(f"{where}: put an accessToken or a password there for {options.user_id}")
    return msgspec.structs.replace(options, homeserver=_address(options.homeserver, where))


_MUST = (
    ("homeserver", "put the address of the homeserver there, like https://matrix.example.org"),
    ("userId", "put the id of the agent's own account there, like @house:example.org"),
)


def _plain(error: msgspec.ValidationError) -> str:
    text, _, path = str(error).partition(" - at ")
    return f"{path.strip('`').removeprefix('$.')}: {text}" if path else text


def _address(address: str, where: str) -> str:
    try:
        parts = urlsplit(address)
        usable = parts.scheme in ("http", "https") and parts.hostname
    except ValueError:
        parts, usable = urlsplit(""), False
    if not usable or parts.query or parts.fragment or parts.username:
        raise InvalidRequest(f"{where}.homeserver must be an address like https://matrix.example.org")
    return address.rstrip("/")
