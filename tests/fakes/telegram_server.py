"""A Bot API server of the tests' own: real HTTP on loopback, with the habits of the real one.

Updates wait until an offset confirms them; a second poller throws the first one out with 409; long
polls end by their timeout; texts are measured and their markup is read; files have a limit.
`fail_next` scripts what goes wrong.
"""

from __future__ import annotations

import asyncio
import json
import re
from collections import deque
from collections.abc import Callable
from types import TracebackType
from typing import Any, Self

from aiohttp import web
from msgspec import Struct

from tests.fakes.telegram_html import EntityError, read_html, units

Json = dict[str, Any]
LONGEST_TEXT = 4096
LARGEST_FETCH = 20 * 1024 * 1024
TOKEN = "7000:AAF-test_token_of_the_house_bot_0123"


class Refusal(Exception):
    def __init__(self, code: int, words: str, **parameters: Any) -> None:
        super().__init__(words)
        self.code, self.words, self.parameters = code, words, parameters


class Fault(Struct, frozen=True):
    """What happens to a call: an answer of this status, or the connection is cut `before` or `after` it."""

    method: str
    code: int = 0
    words: str = ""
    parameters: Json = {}
    cut: str = ""
    raw: bytes | None = None


class Post(Struct):
    """One message of the bot that people can see."""

    chat_id: str
    message_id: int
    text: str
    thread: int | None = None
    entities: list[dict[str, object]] = []
    file: bytes | None = None
    file_name: str = ""
    method: str = "sendMessage"
    edits: int = 0


class FakeTelegram:
    """Start and stop with `async with`; `go_away` and `come_back` keep the port."""

    def __init__(self) -> None:
        self.token = TOKEN
        self.bot = {"id": 7000, "is_bot": True, "first_name": "House", "username": "House_bot"}
        self.port = 0
        self.updates: deque[Json] = deque()
        self.next_update = 501
        self.confirmed: list[int] = []
        self.chats: set[str] = set()
        self.blocked: set[str] = set()
        self.topics: dict[str, set[int]] = {}
        self.migrated: dict[str, str] = {}
        self.posts: list[Post] = []
        self.files: dict[str, bytes] = {}
        self.menu: list[Json] = []
        self.webhook: Json = {}
        self.calls: list[tuple[str, Json]] = []
        self.faults: deque[Fault] = deque()
        self.actions: list[Json] = []
        self.longest_poll_s: float | None = None
        # Deliver what was confirmed long ago again, as a careless proxy in between would.
        self.repeat: Callable[[list[Json]], list[Json]] | None = None
        self._message_ids = 100
        self._more = asyncio.Event()
        self._poller: asyncio.Future[None] | None = None
        self._runner: web.AppRunner | None = None

    # -- the server ----------------------------------------------------------------------------

    @property
    def root(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    async def __aenter__(self) -> Self:
        await self.come_back()
        return self

    async def __aexit__(
        self, _kind: type[BaseException] | None, _error: BaseException | None, _trace: TracebackType | None
    ) -> None:
        await self.go_away()

    async def come_back(self) -> None:
        app = web.Application(client_max_size=64 << 20)
        app.router.add_post("/bot{token}/{method}", self._answer)
        app.router.add_get("/file/bot{token}/{path:.+}", self._file)
        self._runner = web.AppRunner(app, access_log=None, shutdown_timeout=0.1)
        await self._runner.setup()
        site = web.TCPSite(self._runner, "127.0.0.1", self.port, reuse_address=True)
        await site.start()
        self.port = int(self._runner.addresses[0][1])

    async def go_away(self) -> None:
        if self._runner is not None:
            await self._runner.cleanup()
            self._runner = None

    def fail_next(self, *faults: Fault) -> None:
        self.faults.extend(faults)

    async def _answer(self, request: web.Request) -> web.StreamResponse:
        method = request.match_info["method"]
        params = await _params(request)
        self.calls.append((method, params))
        fault = self._fault(method)
        if fault is not None and fault.cut == "before":
            return _cut(request)
        try:
            if request.match_info["token"] != self.token:
                raise Refusal(401, "Unauthorized")
            if fault is not None and fault.code:
                raise Refusal(fault.code, fault.words, **fault.parameters)
            if fault is not None and fault.raw is not None:
                return web.Response(body=fault.raw, status=502)
            handler = getattr(self, f"_do_{_snake(method)}", None)
            if handler is None:
                raise Refusal(404, "Not Found")
            result = await handler(params)
        except Refusal as refusal:
            words = (
                refusal.words if refusal.code in (401, 404) else f"{_NAMES[refusal.code]}: {refusal.words}"
            )
            body: Json = {"ok": False, "error_code": refusal.code, "description": words}
            if refusal.parameters:
                body["parameters"] = refusal.parameters
            return web.json_response(body, status=refusal.code)
        if fault is not None and fault.cut == "after":
            return _cut(request)
        return web.json_response({"ok": True, "result": result})

    def _fault(self, method: str) -> Fault | None:
        for fault in self.faults:
            if fault.method == method:
                self.faults.remove(fault)
                return fault
        return None

    async def _file(self, request: web.Request) -> web.StreamResponse:
        data = self.files.get(request.match_info["path"].removeprefix("files/"))
        if request.match_info["token"] != self.token or data is None:
            return web.json_response({"ok": False, "error_code": 404, "description": "Not Found"}, status=404)
        if (fault := self._fault("file")) is not None:
            return _cut(request) if fault.cut else web.Response(status=fault.code)
        return web.Response(body=data)

    # -- what people do ------------------------------------------------------------------------

    def message_id(self) -> int:
        self._message_ids += 1
        return self._message_ids

    def arrives(self, message: Json, *, times: int = 1) -> Json:
        """A message comes in and waits; `times` > 1 puts the same update into the queue again."""
        update = {"update_id": self.next_update, "message": message}
        self.next_update += 1
        self.chats.add(str(message["chat"]["id"]))
        self.raw_update(update, times=times)
        return update

    def raw_update(self, update: Json, *, times: int = 1) -> None:
        self.updates.extend([update] * times)
        self._more.set()

    # -- receiving -----------------------------------------------------------------------------

    async def _do_get_me(self, _params: Json) -> Json:
        return self.bot

    async def _do_get_updates(self, params: Json) -> list[Json]:
        if self.webhook.get("url"):
            raise Refusal(409, "can't use getUpdates method while webhook is active")
        if self._poller is not None and not self._poller.done():
            self._poller.set_exception(
                Refusal(409, "terminated by other getUpdates request; make sure that only one bot is running")
            )
        offset = int(params.get("offset") or 0)
        if offset > self.next_update + 10:
            offset = 0  # after a quiet week numbers begin anew, and an offset of before means nothing
        while self.updates and self.updates[0]["update_id"] < offset:
            self.confirmed.append(self.updates.popleft()["update_id"])
        limit = min(100, int(params.get("limit") or 100))
        await self._wait_for_more(float(params.get("timeout") or 0))
        found = list(self.updates)[:limit]
        return self.repeat(found) if self.repeat is not None else found

    async def _wait_for_more(self, timeout_s: float) -> None:
        if self.updates:
            return
        if self.longest_poll_s is not None:
            timeout_s = min(timeout_s, self.longest_poll_s)
        me = self._poller = asyncio.get_running_loop().create_future()
        self._more.clear()
        more = asyncio.ensure_future(self._more.wait())
        try:
            await asyncio.wait({more, me}, timeout=timeout_s, return_when=asyncio.FIRST_COMPLETED)
            if me.done():
                me.result()
        finally:
            more.cancel()
            if not me.done():
                me.cancel()

    async def _do_set_webhook(self, params: Json) -> bool:
        if not str(params.get("url", "")).startswith("https://"):
            raise Refusal(400, "bad webhook: An HTTPS URL must be provided for webhook")
        self.webhook = params
        return True

    async def _do_delete_webhook(self, _params: Json) -> bool:
        self.webhook = {}
        return True

    async def _do_get_webhook_info(self, _params: Json) -> Json:
        return {"url": self.webhook.get("url", ""), "pending_update_count": len(self.updates)}

    async def _do_get_file(self, params: Json) -> Json:
        data = self.files.get(str(params.get("file_id")))
        if data is None:
            raise Refusal(400, "invalid file_id")
        if len(data) > LARGEST_FETCH:
            raise Refusal(400, "file is too big")
        return {
            "file_id": params["file_id"],
            "file_size": len(data),
            "file_path": f"files/{params['file_id']}",
        }

    async def _do_set_my_commands(self, params: Json) -> bool:
        for command in params["commands"]:
            if re.fullmatch(r"[a-z0-9_]{1,32}", command["command"]) is None:
                raise Refusal(400, "BOT_COMMAND_INVALID")
            if not 1 <= len(command["description"]) <= 256:
                raise Refusal(400, "BOT_COMMAND_DESCRIPTION_INVALID")
        self.menu = params["commands"]
        return True

    async def _do_create_forum_topic(self, params: Json) -> Json:
        chat_id, _ = self._place(params)
        if chat_id not in self.topics:
            raise Refusal(400, "the chat is not a forum")
        if not 1 <= len(params["name"]) <= 128:
            raise Refusal(400, "TOPIC_NAME_INVALID")
        number = self.message_id()
        self.topics[chat_id].add(number)
        return {"message_thread_id": number, "name": params["name"], "icon_color": 7322096}

    # -- sending -------------------------------------------------------------------------------

    def _place(self, params: Json) -> tuple[str, int | None]:
        chat_id = str(params.get("chat_id"))
        if chat_id in self.migrated:
            raise Refusal(
                400, "group chat was upgraded to a supergroup chat",
                migrate_to_chat_id=int(self.migrated[chat_id]),
            )  # fmt: skip
        if chat_id in self.blocked:
            raise Refusal(403, "bot was blocked by the user")
        if chat_id not in self.chats:
            raise Refusal(400, "chat not found")
        thread = int(params["message_thread_id"]) if params.get("message_thread_id") else None
        if thread is not None and thread not in self.topics.get(chat_id, set()):
            raise Refusal(400, "message thread not found")
        return chat_id, thread

    def _text(self, params: Json) -> tuple[str, list[dict[str, object]]]:
        text = str(params.get("text", ""))
        entities: list[dict[str, object]] = []
        if params.get("parse_mode") == "HTML":
            try:
                text, entities = read_html(text)
            except EntityError as error:
                raise Refusal(400, str(error)) from None
        text = text.strip()
        if not text:
            raise Refusal(400, "message text is empty")
        if units(text) > LONGEST_TEXT:
            raise Refusal(400, "message is too long")
        return text, entities

    async def _do_send_message(self, params: Json) -> Json:
        chat_id, thread = self._place(params)
        text, entities = self._text(params)
        return self._show(Post(chat_id, self.message_id(), text, thread, entities))

    def _show(self, post: Post) -> Json:
        self.posts.append(post)
        return {
            "message_id": post.message_id,
            "chat": {"id": int(post.chat_id), "type": "private"},
            "date": 1,
        }

    async def _do_edit_message_text(self, params: Json) -> Json:
        chat_id, _ = self._place(params)
        wanted = int(params["message_id"])
        post = next((p for p in self.posts if (p.chat_id, p.message_id) == (chat_id, wanted)), None)
        if post is None:
            raise Refusal(400, "message to edit not found")
        text, entities = self._text(params)
        if (text, entities) == (post.text, post.entities):
            raise Refusal(400, "message is not modified: specified new message content is exactly the same")
        post.text, post.entities, post.edits = text, entities, post.edits + 1
        return {"message_id": wanted, "chat": {"id": int(chat_id), "type": "private"}, "date": 1}

    async def _do_send_photo(self, params: Json) -> Json:
        if not params["photo"][1].startswith((b"\x89PNG", b"\xff\xd8\xff")):
            raise Refusal(400, "IMAGE_PROCESS_FAILED")
        return self._put(params, "photo", "sendPhoto")

    async def _do_send_document(self, params: Json) -> Json:
        return self._put(params, "document", "sendDocument")

    def _put(self, params: Json, field: str, method: str) -> Json:
        chat_id, thread = self._place(params)
        name, data = params[field]
        post = Post(chat_id, self.message_id(), str(params.get("caption", "")), thread)
        post.file, post.file_name, post.method = data, name, method
        return self._show(post)

    async def _do_send_chat_action(self, params: Json) -> bool:
        self._place(params)
        self.actions.append(params)
        return True


_NAMES = {
    400: "Bad Request", 403: "Forbidden", 409: "Conflict", 429: "Too Many Requests",
    500: "Internal Server Error", 502: "Bad Gateway",
}  # fmt: skip


async def _params(request: web.Request) -> Json:
    if request.content_type == "application/json":
        decoded: Json = json.loads(await request.read() or b"{}")
        return decoded
    found: Json = {}
    for name, value in (await request.post()).items():
        if isinstance(value, web.FileField):
            found[name] = (value.filename, value.file.read())
        else:
            found[name] = value
    return found


def _snake(method: str) -> str:
    return re.sub(r"[A-Z]", lambda letter: f"_{letter[0].lower()}", method)


def _cut(request: web.Request) -> web.StreamResponse:
    assert request.transport is not None
    request.transport.close()
    return web.Response()
