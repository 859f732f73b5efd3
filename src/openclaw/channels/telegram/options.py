"""The keys of `channels.telegram` that are Telegram's own: read once, refused with the fix named."""

from __future__ import annotations

import logging
import re
from collections.abc import Mapping
from typing import Annotated, Any
from urllib.parse import urlsplit

import msgspec
from msgspec import Meta, Struct

from openclaw.channels.webhooks import webhook_path
from openclaw.errors import InvalidRequest

log = logging.getLogger("openclaw.channels")
PUBLIC_ROOT = "https://api.telegram.org"
_TOKEN = re.compile(r"[0-9]{1,20}:[A-Za-z0-9_-]{1,128}")
_SECRET = re.compile(r"[A-Za-z0-9_-]{16,256}")
# Read elsewhere: whether a reply grows while it is written is decided for all platforms in one place.
_FOR_OTHERS = frozenset({"streaming"})


class Options(Struct, frozen=True, kw_only=True, rename="camel"):
    """What the connector is told. `webhook_url` turns long polling off."""

    bot_token: str
    api_root: str = PUBLIC_ROOT
    webhook_url: str | None = None
    webhook_secret: str | None = None
    media_max_mb: Annotated[float, Meta(gt=0, le=20)] = 20.0

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
    if not given.get("botToken"):
        raise InvalidRequest(f"{where}.botToken is missing: put the token there that @BotFather gave you")
    try:
        options = msgspec.convert({name: given[name] for name in given if name in _KNOWN}, Options)
    except msgspec.ValidationError as error:
        raise InvalidRequest(f"{where}: {_plain(error)}") from None
    if _TOKEN.fullmatch(options.bot_token) is None:
        raise InvalidRequest(f"{where}.botToken does not look like a token; one is like 123456:ABC-def")
    options = msgspec.structs.replace(options, api_root=_root(options.api_root, where))
    return _with_webhook(options, where, webhook_path(channel, account_id))


def _plain(error: msgspec.ValidationError) -> str:
    text, _, path = str(error).partition(" - at ")
    return f"{path.strip('`').removeprefix('$.')}: {text}" if path else text


def _root(root: str, where: str) -> str:
    parts = urlsplit(root)
    if parts.scheme not in ("http", "https") or not parts.hostname or parts.query or parts.fragment:
        raise InvalidRequest(f"{where}.apiRoot must be the address of a Bot API server, like {PUBLIC_ROOT}")
    return root.rstrip("/")


def _with_webhook(options: Options, where: str, path: str) -> Options:
    if options.webhook_url is None:
        return options
    parts = urlsplit(options.webhook_url)
    if parts.scheme != "https" or not parts.hostname or parts.query or parts.fragment:
        raise InvalidRequest(f"{where}.webhookUrl must be an https address that leads to this gateway")
    if options.webhook_secret is None or _SECRET.fullmatch(options.webhook_secret) is None:
        raise InvalidRequest(
            f"{where}.webhookSecret: webhooks need a secret of 16 to 256 letters, digits, - and _; "
            "make one with `openssl rand -hex 32`"
        )
    if parts.path in ("", "/"):
        return msgspec.structs.replace(options, webhook_url=f"https://{parts.netloc}{path}")
    return options
