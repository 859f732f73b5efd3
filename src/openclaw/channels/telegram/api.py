"""A thin client of the Bot API: one call, one answer, and a clear word about each way it can fail.

It knows what Telegram's answers mean for a message that was being sent: refused (nobody saw it),
or unclear (the request had left, no answer came). It decides nothing else. The token is part of
every address here, so no error of the HTTP library leaves this room.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import aiohttp
import msgspec
from msgspec import Struct

from openclaw.channels.web import cause_of, read_bounded
from openclaw.errors import OpenClawError

ANSWER_WITHIN_S = 30.0
CONNECT_WITHIN_S = 15.0
LARGEST_ANSWER = 32 << 20


class TelegramError(OpenClawError):
    """A call did not succeed."""


class Refused(TelegramError):
    """Telegram said no: nothing happened. `retry_after_s` and `migrated_to` are its own hints."""

    def __init__(
        self, code: int, words: str, *, retry_after_s: float | None = None, migrated_to: str | None = None
    ) -> None:
        super().__init__(f"Telegram refused: {words} ({code})")
        self.status = code
        self.words = words
        self.retry_after_s = retry_after_s
        self.migrated_to = migrated_to

    def says(self, *parts: str) -> bool:
        """Whether Telegram's own words hold one of these, in any case."""
        return any(part in self.words.lower() for part in parts)


class Unreachable(TelegramError):
    """No connection was made: the request never left."""


class Unclear(TelegramError):
    """The request left and no proper answer came: it may have been carried out."""


class Upload(Struct, frozen=True):
    """A file that goes with a call."""

    field: str
    name: str
    mime: str
    data: bytes


class _Hints(Struct, frozen=True):
    retry_after: float | None = None
    migrate_to_chat_id: int | None = None


class _Answer(Struct, frozen=True):
    ok: bool
    result: msgspec.Raw = msgspec.Raw(b"null")
    error_code: int = 0
    description: str = ""
    parameters: _Hints | None = None


_decode_answer = msgspec.json.Decoder(_Answer).decode


class BotApi:
    """The methods of one bot. `root` is the server, the public one or somebody's own."""

    def __init__(self, http: aiohttp.ClientSession, root: str, token: str) -> None:
        self._http = http
        self._methods = f"{root}/bot{token}"
        self._files = f"{root}/file/bot{token}"

    async def call(
        self, method: str, params: Mapping[str, Any] | None = None, *, within_s: float = ANSWER_WITHIN_S
    ) -> bytes:
        """The result of a method as JSON. Raises Refused, Unreachable or Unclear."""
        body = msgspec.json.encode(
            {name: value for name, value in (params or {}).items() if value is not None}
        )
        return await self._post(method, body, {"Content-Type": "application/json"}, within_s)

    async def upload(
        self, method: str, params: Mapping[str, Any], upload: Upload, *, within_s: float
    ) -> bytes:
        """The same with a file."""
        form = aiohttp.FormData()
        for name, value in params.items():
            if value is not None:
                form.add_field(name, str(value))
        form.add_field(upload.field, upload.data, filename=upload.name, content_type=upload.mime)
        return await self._post(method, form, {}, within_s)

    async def _post(
        self, method: str, body: bytes | aiohttp.FormData, headers: Mapping[str, str], within_s: float
    ) -> bytes:
        timeout = aiohttp.ClientTimeout(total=within_s, sock_connect=CONNECT_WITHIN_S)
        try:
            async with self._http.post(
                f"{self._methods}/{method}",
                data=body,
                headers=headers,
                timeout=timeout,
                allow_redirects=False,
            ) as response:
                data = await read_bounded(response, LARGEST_ANSWER)
                if data is None:
                    raise Unclear(f"{method}: too long an answer")
                status = response.status
        except (aiohttp.ClientConnectorError, aiohttp.ConnectionTimeoutError) as error:
            raise Unreachable(f"Telegram cannot be reached: {cause_of(error)}") from None
        except (aiohttp.ClientError, TimeoutError, OSError) as error:
            raise Unclear(f"no answer of Telegram to {method}: {cause_of(error)}") from None
        return _result(method, status, data)

    async def fetch(self, path: str, most: int, *, within_s: float) -> bytes:
        """The bytes of a file that `getFile` named; Refused when there are more than `most`."""
        timeout = aiohttp.ClientTimeout(total=within_s, sock_connect=CONNECT_WITHIN_S)
        try:
            async with self._http.get(
                f"{self._files}/{path}", timeout=timeout, allow_redirects=False
            ) as response:
                if response.status >= 500:
                    raise Unclear(f"the file server answered {response.status}")
                if response.status != 200:
                    raise Refused(response.status, "the file is not there")
                data = await read_bounded(response, most)
        except (aiohttp.ClientError, TimeoutError, OSError) as error:
            raise Unclear(f"the file did not come: {cause_of(error)}") from None
        if data is None:
            raise Refused(413, f"it has more than {most} bytes")
        return data


def _result(method: str, status: int, data: bytes) -> bytes:
    try:
        answer = _decode_answer(data)
    except (msgspec.MsgspecError, UnicodeDecodeError):
        # Not the Bot API itself but something in front of it, which tells us only what it refused.
        if 400 <= status < 500:
            raise Refused(status, "refused before it came to Telegram") from None
        raise Unclear(f"{method}: an answer that is not Telegram's (HTTP {status})") from None
    if answer.ok and status < 300:
        return bytes(answer.result)
    hints = answer.parameters or _Hints()
    if status >= 500 or answer.error_code >= 500:
        raise Unclear(f"{method}: Telegram failed: {answer.description[:200]} ({status})")
    raise Refused(
        answer.error_code or status,
        answer.description[:500] or "no reason given",
        retry_after_s=hints.retry_after,
        migrated_to=None if hints.migrate_to_chat_id is None else str(hints.migrate_to_chat_id),
    )
