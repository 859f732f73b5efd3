"""The keys of `channels.telegram` that are Telegram's own: read once, refused with the fix named."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Annotated, Any
from urllib.parse import urlsplit

import msgspec
from msgspec import Meta, Struct

from openclaw.channels.options import place_of, read_keys
from openclaw.channels.webhooks import webhook_path
from openclaw.errors import InvalidRequest

PUBLIC_ROOT = "https://api.telegram.org"
_TOKEN = re.compile(r"[0-9]{1,20}:[A-Za-z0-9_-]{1,128}")
_SECRET = re.compile(r"[A-Za-z0-9_-]{16,256}")


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


_MUST = (("botToken", "put the token there that @BotFather gave you"),)


def read_options(given: Mapping[str, Any], channel: str, account_id: str) -> Options:
    """The options of one account. Raises InvalidRequest that says what to change."""
    where = place_of(channel, account_id)
    options = read_keys(given, Options, where, _MUST)
    if _TOKEN.fullmatch(options.bot_token) is None:
        raise InvalidRequest(f"{where}.botToken does not look like a token; one is like 123456:ABC-def")
    options = msgspec.structs.replace(options, api_root=_root(options.api_root, where))
    return _with_webhook(options, where, webhook_path(channel, account_id))


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
