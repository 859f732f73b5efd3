"""A thin client of one homeserver: one call, one answer, and a clear word about each way it can fail.

The requests are written by matrix-nio, which knows the paths; they travel over the gateway's
own HTTP session, and their answers are read here. nio's own client is not used: it
tries again by itself without end, and checks every event against a schema on the event loop.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from importlib import import_module
from typing import Any, TypeVar
from urllib.parse import parse_qsl, urlencode

import aiohttp
import msgspec
from yarl import URL

from openclaw.channels.matrix.wire import (
    Event,
    LoggedIn,
    Members,
    Page,
    Profile,
    SentEvent,
    Sync,
    Trouble,
    Uploaded,
    WhoAmI,
    clean,
    event_of,
    read_sync,
)
from openclaw.channels.web import cause_of, read_bounded
from openclaw.errors import InvalidRequest, OpenClawError

ANSWER_WITHIN_S = 30.0
UPLOAD_WITHIN_S = 60.0
CONNECT_WITHIN_S = 15.0
LARGEST_ANSWER = 256 << 20  # the first sync of an account in many rooms is large
OFF_LOOP_BYTES = 65_536
NO_TOKEN = "M_UNKNOWN_TOKEN"
T = TypeVar("T")
Request = tuple[str, ...]


class MatrixError(OpenClawError):
    """A call did not succeed."""


class Refused(MatrixError):
    """The homeserver said no: nothing happened. `retry_after_s` is its own hint."""

    def __init__(self, status: int, errcode: str, words: str, *, retry_after_s: float | None = None) -> None:
        super().__init__(f"the homeserver refused: {words or 'no reason given'} ({errcode or status})")
        self.status = status
        self.errcode = errcode
        self.words = words
        self.retry_after_s = retry_after_s


class Unclear(MatrixError):
    """No proper answer came: it may have been carried out, or never have arrived."""


async def load_requests() -> Any:
    """nio's writer of requests. Importing it takes most of a second, so not on the event loop."""
    try:
        nio = await asyncio.to_thread(import_module, "nio.api")
    except ImportError as error:
        raise InvalidRequest(
            f"channels.matrix: {error}. Its library is an extra: pip install 'openclaw[matrix]'"
        ) from error
    return nio.Api


class Homeserver:
    """The methods that one account uses."""

    def __init__(self, http: aiohttp.ClientSession, address: str, requests: Any) -> None:
        self._http = http
        self._address = address
        self._requests = requests
        self.access_token = ""

    # -- who we are ----------------------------------------------------------------------------

    async def log_in(self, user_id: str, password: str, device_name: str, device_id: str) -> LoggedIn:
        request = self._requests.login(user_id, password, device_name, device_id)
        return _read(LoggedIn, await self._call(request))

    async def who_am_i(self) -> WhoAmI:
        return _read(WhoAmI, await self._call(self._requests.whoami("")))

    async def name_of(self, user_id: str) -> str:
        """The name that an account shows; empty when it has none."""
        try:
            found = await self._call(self._requests.profile_get_displayname(user_id))
        except Refused:
            return ""
        return _read(Profile, found).displayname

    # -- receiving -----------------------------------------------------------------------------

    async def sync(self, since: str | None, wait_s: float, wanted: Mapping[str, Any]) -> Sync:
        """What happened since; waits for something to happen."""
        request = self._requests.sync("", since=since, timeout=int(wait_s * 1000), filter=dict(wanted))
        data = await self._call(request, within_s=wait_s + 2 * ANSWER_WITHIN_S)
        if len(data) > OFF_LOOP_BYTES:
            answer = await asyncio.to_thread(read_sync, data)
        else:
            answer = read_sync(data)
        if answer is None:
            raise Unclear("the homeserver's answer to sync cannot be read")
        return answer

    async def history(self, room_id: str, start: str, end: str, most: int) -> Page:
        """A page of what was said before `start`, newest first, not beyond `end`."""
        request = self._requests.room_messages("", room_id, start=start, end=end, limit=most)
        return _read(Page, await self._call(request))

    async def event(self, room_id: str, event_id: str) -> Event:
        event = event_of(await self._call(self._requests.room_get_event("", room_id, event_id)))
        if event is None:
            raise Unclear("an event cannot be read")
        return event

    async def members(self, room_id: str) -> Members:
        return _read(Members, await self._call(self._requests.joined_members("", room_id)))

    async def join(self, room_id: str) -> None:
        await self._call(self._requests.join("", room_id))

    async def fetch(self, server: str, media_id: str, most: int) -> bytes:
        """The bytes of a file; Refused when there are more than `most`."""
        request = self._requests.download(server, media_id)
        return await self._call(request, within_s=UPLOAD_WITHIN_S, most=most)

    # -- sending -------------------------------------------------------------------------------

    async def put(self, room_id: str, content: Mapping[str, Any], transaction: str) -> str:
        """Send a message, once for each transaction; the id of its event."""
        request = self._requests.room_send("", room_id, "m.room.message", dict(content), transaction)
        return _read(SentEvent, await self._call(request)).event_id

    async def upload(self, name: str, mime: str, data: bytes) -> str:
        method, path = self._requests.upload("", name)
        return _read(Uploaded, await self._send(method, path, data, mime, UPLOAD_WITHIN_S)).content_uri

    async def typing(self, room_id: str, user_id: str, for_s: float) -> None:
        typing = for_s > 0
        request = self._requests.room_typing("", room_id, user_id, typing, int(for_s * 1000))
        await self._call(request)

    # -- one call ------------------------------------------------------------------------------

    async def _call(
        self, request: Request, *, within_s: float = ANSWER_WITHIN_S, most: int = LARGEST_ANSWER
    ) -> bytes:
        method, path, *body = request
        data = body[0].encode("utf-8", "replace") if body else b"{}" if method == "POST" else None
        return await self._send(method, path, data, "application/json", within_s, most)

    async def _send(
        self,
        method: str,
        path: str,
        data: bytes | None,
        mime: str,
        within_s: float,
        most: int = LARGEST_ANSWER,
    ) -> bytes:
        headers = {"Authorization": f"Bearer {self.access_token}"} if self.access_token else {}
        if data is not None:
            headers["Content-Type"] = mime
        timeout = aiohttp.ClientTimeout(total=within_s, sock_connect=CONNECT_WITHIN_S)
        try:
            async with self._http.request(
                method,
                _encoded(self._address + without_token(path)),
                data=data,
                headers=headers,
                timeout=timeout,
                allow_redirects=False,
            ) as response:
                found = await read_bounded(response, most)
                status = response.status
        except (aiohttp.ClientConnectorError, aiohttp.ConnectionTimeoutError) as error:
            raise Unclear(f"the homeserver cannot be reached: {cause_of(error)}") from None
        except (aiohttp.ClientError, TimeoutError, OSError) as error:
            raise Unclear(f"no answer of the homeserver: {cause_of(error)}") from None
        if found is None:
            raise Refused(413, "M_TOO_LARGE", f"more than {most} bytes")
        if status == 200:
            return found
        raise _failure(status, found)


def without_token(path: str) -> str:
    """A path whose query holds no credential: those travel in a header and stand in no log."""
    plain, mark, query = path.partition("?")
    kept = [(name, value) for name, value in parse_qsl(query, True) if name != "access_token"]
    return f"{plain}?{urlencode(kept)}" if mark and kept else plain


def _encoded(address: str) -> URL:
    """An address that is sent as it is: ids hold characters that would be written otherwise."""
    return URL(address, encoded=True)


def _failure(status: int, data: bytes) -> MatrixError:
    """What an answer other than yes means."""
    try:
        trouble = msgspec.json.decode(clean(data) or b"", type=Trouble)
    except msgspec.MsgspecError:
        trouble = Trouble()
    words = " ".join(trouble.error.split())[:300]
    wait_s = None if trouble.retry_after_ms is None else trouble.retry_after_ms / 1000
    if status == 429 or trouble.errcode == "M_LIMIT_EXCEEDED":
        return Refused(status, "M_LIMIT_EXCEEDED", words or "too many requests", retry_after_s=wait_s or 1.0)
    if 400 <= status < 500 and (trouble.errcode or status != 404):
        return Refused(status, trouble.errcode, words, retry_after_s=wait_s)
    if status == 404:
        return Unclear("no homeserver answers there; check channels.matrix.homeserver (HTTP 404)")
    return Unclear(f"the homeserver failed: {words or 'no reason given'} (HTTP {status})")


def _read(kind: type[T], data: bytes) -> T:
    try:
        return msgspec.json.decode(clean(data) or b"", type=kind)
    except msgspec.MsgspecError:
        raise Unclear("the homeserver's answer cannot be read") from None
