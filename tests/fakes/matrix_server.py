"""A small homeserver in the test's process: sync, send, join, history, files. Real HTTP, no checks.

It stands in where Synapse is too heavy; `scripts/test-matrix` runs the same suite against the real one.
"""

from __future__ import annotations

import asyncio
import itertools
import json
from types import TracebackType
from typing import Any, Self
from urllib.parse import quote, urlencode

from aiohttp import web
from msgspec import Struct

Json = dict[str, Any]
TOKEN = "syt_house_token"
HOUSE = "@House:Fake.Test"


class Requests:
    """The requests that the connector makes, in the shape in which matrix-nio writes them."""

    @staticmethod
    def _path(*parts: str, base: str = "/_matrix/client/v3", **query: Any) -> str:
        asked = {"access_token": ""} | {name: value for name, value in query.items() if value is not None}
        return f"{base}/{'/'.join(quote(part, safe='') for part in parts)}?{urlencode(asked)}"

    def login(self, user: str, password: str, device_name: str, device_id: str) -> tuple[str, str, str]:
        body = {"user": user, "password": password, "device": device_name, "device_id": device_id}
        return "POST", "/_matrix/client/v3/login", json.dumps(body)

    def whoami(self, token: str) -> tuple[str, str]:
        return "GET", self._path("account", "whoami")

    def profile_get_displayname(self, user_id: str) -> tuple[str, str]:
        return "GET", self._path("profile", user_id, "displayname")

    def sync(self, token: str, since: str | None, timeout: int, filter: Json) -> tuple[str, str]:
        return "GET", self._path("sync", since=since, timeout=timeout, filter=json.dumps(filter))

    def room_messages(self, token: str, room_id: str, start: str, end: str, limit: int) -> tuple[str, str]:
        named: Json = {"from": start, "to": end, "limit": limit, "dir": "b"}
        return "GET", self._path("rooms", room_id, "messages", **named)

    def room_get_event(self, token: str, room_id: str, event_id: str) -> tuple[str, str]:
        return "GET", self._path("rooms", room_id, "event", event_id)

    def joined_members(self, token: str, room_id: str) -> tuple[str, str]:
        return "GET", self._path("rooms", room_id, "joined_members")

    def join(self, token: str, room_id: str) -> tuple[str, str]:
        return "POST", self._path("join", room_id)

    def download(self, server: str, media_id: str) -> tuple[str, str]:
        return "GET", self._path("download", server, media_id, base="/_matrix/client/v1/media")

    def room_send(self, token: str, room_id: str, kind: str, body: Json, txn: str) -> tuple[str, str, str]:
        return "PUT", self._path("rooms", room_id, "send", kind, txn), json.dumps(body)

    def upload(self, token: str, name: str) -> tuple[str, str]:
        return "POST", self._path("upload", base="/_matrix/media/v3", filename=name)

    def room_typing(self, token: str, room: str, user: str, on: bool, for_ms: int) -> tuple[str, str, str]:
        body = {"typing": on, "timeout": for_ms}
        return "PUT", self._path("rooms", room, "typing", user), json.dumps(body)


class Fault(Struct, frozen=True):
    """What the next request whose path holds `part` gets instead. Status 0 cuts the connection."""

    part: str
    status: int
    body: Any = None
    carried_out: bool = False


class FakeRoom:
    def __init__(self, room_id: str, members: dict[str, str], state: list[Json]) -> None:
        self.id = room_id
        self.members = members
        self.invited: str | None = None  # who has invited the house
        self.invited_at = 0
        self.state = state
        self.events: list[tuple[int, Json]] = []


class FakeMatrix:
    def __init__(self) -> None:
        self.token = TOKEN
        self.rooms: dict[str, FakeRoom] = {}
        self.direct: dict[str, list[str]] = {}
        self.files: dict[str, bytes] = {}
        self.faults: list[Fault] = []
        self.requests: list[tuple[str, str]] = []
        self.sent: list[tuple[str, Json]] = []
        self.logins: list[Json] = []
        self.typing: list[tuple[str, bool]] = []
        self.sends = 0
        self.last_since: int | None = None
        self.sync_limit = 50
        self._transactions: dict[str, str] = {}
        self._numbers = itertools.count(1)
        self._place = 0
        self._changed = asyncio.Condition()
        self._runner: web.AppRunner | None = None
        self._port = 0

    # -- what tests do -------------------------------------------------------------------------

    def room(
        self, room_id: str, members: dict[str, str], *, name: str = "", invited: str | None = None
    ) -> FakeRoom:
        """A room with these people. With `invited` the house is not in it yet."""
        state = [
            {"type": "m.room.member", "state_key": user, "sender": user, "event_id": f"$m{user}",
             "content": {"membership": "join", "displayname": shown}}
            for user, shown in members.items()
        ]  # fmt: skip
        if name:
            state.append(
                {
                    "type": "m.room.name",
                    "state_key": "",
                    "sender": "",
                    "event_id": "$n",
                    "content": {"name": name},
                }
            )
        made = self.rooms[room_id] = FakeRoom(room_id, dict(members), state)
        if invited is None:
            made.members[HOUSE] = "House"
            made.state.append(self._membership(HOUSE, "House"))
        self._place += 1
        made.invited, made.invited_at = invited, self._place
        return made

    def _membership(self, user: str, shown: str) -> Json:
        content = {"membership": "join", "displayname": shown}
        return {"type": "m.room.member", "state_key": user, "sender": user, "event_id": f"$join{user}",
                "content": content}  # fmt: skip

    @property
    def is_followed(self) -> bool:
        """Whether the account has kept its place behind everything that happened."""
        return self.last_since == self._place

    async def says(self, sender: str, room_id: str, content: Json, **more: Any) -> str:
        """An event of a person."""
        event_id = f"$Ev{next(self._numbers)}"
        kind = more.pop("type", "m.room.message")
        event = {"type": kind, "sender": sender, "event_id": event_id, "content": content, **more}
        await self._add(room_id, event)
        return event_id

    async def _add(self, room_id: str, event: Any) -> None:
        async with self._changed:
            self._place += 1
            self.rooms[room_id].events.append((self._place, event))
            self._changed.notify_all()

    async def go_away(self) -> None:
        if self._runner is not None:
            await self._runner.cleanup()
            self._runner = None

    async def come_back(self) -> None:
        app = web.Application(client_max_size=64 << 20)
        app.router.add_route("*", "/{path:.*}", self._answer)
        self._runner = web.AppRunner(app, shutdown_timeout=0.1)
        await self._runner.setup()
        await web.TCPSite(self._runner, "127.0.0.1", self._port).start()
        self._port = self._port or self._runner.addresses[0][1]

    @property
    def root(self) -> str:
        return f"http://127.0.0.1:{self._port}"

    async def __aenter__(self) -> Self:
        await self.come_back()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.go_away()

    # -- answers -------------------------------------------------------------------------------

    async def _answer(self, request: web.Request) -> web.StreamResponse:
        self.requests.append((request.method, request.raw_path))
        fault = next((one for one in self.faults if one.part in request.path), None)
        if fault is not None:
            self.faults.remove(fault)
            if fault.carried_out:
                await self._carry_out(request)
            if fault.status == 0:
                assert request.transport is not None
                request.transport.abort()
                return web.Response()
            body = fault.body if isinstance(fault.body, bytes) else json.dumps(fault.body).encode()
            return web.Response(status=fault.status, body=body)
        is_open = request.path.endswith("/login")
        if not is_open and request.headers.get("Authorization") != f"Bearer {self.token}":
            return web.json_response(
                {"errcode": "M_UNKNOWN_TOKEN", "error": "Invalid access token"}, status=401
            )
        return await self._carry_out(request)

    async def _carry_out(self, request: web.Request) -> web.StreamResponse:
        parts = request.path.split("/")[4:]
        match parts:
            case ["login"]:
                self.logins.append(await request.json())
                return web.json_response({"user_id": HOUSE, "access_token": self.token, "device_id": "DEV1"})
            case ["account", "whoami"]:
                return web.json_response({"user_id": HOUSE, "device_id": "DEV1"})
            case ["profile", _, "displayname"]:
                return web.json_response({"displayname": "House"})
            case ["sync"]:
                return await self._sync(request)
            case ["join", room_id]:
                return await self._join(room_id)
            case ["rooms", room_id, "send", _, transaction]:
                return await self._send(room_id, transaction, await request.json())
            case ["rooms", room_id, "event", event_id]:
                events = [
                    event for _, event in self.rooms[room_id].events if event.get("event_id") == event_id
                ]
                return web.json_response(events[0]) if events else _trouble(404, "M_NOT_FOUND")
            case ["rooms", room_id, "joined_members"]:
                joined = {user: {"display_name": name} for user, name in self.rooms[room_id].members.items()}
                return web.json_response({"joined": joined})
            case ["rooms", room_id, "messages"]:
                return self._messages(room_id, request)
            case ["rooms", room_id, "typing", _]:
                self.typing.append((room_id, (await request.json())["typing"]))
                return web.json_response({})
            case ["upload"]:
                media_id = f"file{next(self._numbers)}"
                self.files[media_id] = await request.read()
                return web.json_response({"content_uri": f"mxc://fake.test/{media_id}"})
            case ["media", "download", _, media_id]:
                data = self.files.get(media_id)
                return _trouble(404, "M_NOT_FOUND") if data is None else web.Response(body=data)
        return _trouble(404, "M_UNRECOGNIZED")

    async def _join(self, room_id: str) -> web.Response:
        room = self.rooms[room_id]
        room.invited, room.members[HOUSE] = None, "House"
        await self._add(room_id, self._membership(HOUSE, "House"))
        return web.json_response({"room_id": room_id})

    async def _send(self, room_id: str, transaction: str, content: Json) -> web.Response:
        self.sends += 1
        if room_id not in self.rooms:
            return _trouble(403, "M_FORBIDDEN")
        event_id = self._transactions.get(transaction)
        if event_id is None:
            event_id = self._transactions[transaction] = f"$Ours{next(self._numbers)}"
            self.sent.append((room_id, content | {"event_id": event_id}))
            await self._add(room_id, {"type": "m.room.message", "sender": HOUSE, "event_id": event_id,
                                      "content": content})  # fmt: skip
        return web.json_response({"event_id": event_id})

    def _messages(self, room_id: str, request: web.Request) -> web.Response:
        before, after = int(request.query["from"]), int(request.query["to"])
        found = [(at, event) for at, event in self.rooms[room_id].events if after < at < before][::-1]
        page = found[: int(request.query["limit"])]
        answer: Json = {"chunk": [event for _, event in page]}
        if len(page) < len(found):
            answer["end"] = str(page[-1][0])
        return web.json_response(answer)

    async def _sync(self, request: web.Request) -> web.Response:
        given = request.query.get("since")
        since = self.last_since = None if given is None else int(given)
        async with self._changed:
            if since is not None and self._place <= since:
                try:
                    async with asyncio.timeout(int(request.query["timeout"]) / 1000):
                        await self._changed.wait()
                except TimeoutError:
                    pass
            return web.json_response(self._story(since))

    def _story(self, since: int | None) -> Json:
        join, invite = {}, {}
        for room in self.rooms.values():
            if room.invited is not None:
                if since is not None and room.invited_at <= since:
                    continue
                content = {"membership": "invite", "is_direct": len(room.members) == 1}
                asked = {
                    "type": "m.room.member",
                    "state_key": HOUSE,
                    "sender": room.invited,
                    "content": content,
                }
                invite[room.id] = {"invite_state": {"events": [asked]}}
                continue
            events = [(at, event) for at, event in room.events if since is None or at > since]
            kept = events[-self.sync_limit :]
            if since is not None and not events:
                continue
            count = {"m.joined_member_count": len(room.members), "m.invited_member_count": 0}
            arrived = any(event.get("event_id") == f"$join{HOUSE}" for _, event in events)
            join[room.id] = {
                "state": {"events": room.state if since is None or arrived else []},
                "summary": count if since is None or arrived else {},
                "timeline": {
                    "events": [event for _, event in kept],
                    "limited": len(kept) < len(events),
                    "prev_batch": str(kept[0][0] if kept else self._place),
                },
            }
        marks = {"type": "m.direct", "content": self.direct}
        return {
            "next_batch": str(self._place),
            "rooms": {"join": join, "invite": invite},
            "account_data": {"events": [marks] if since is None else []},
        }


def _trouble(status: int, errcode: str) -> web.Response:
    return web.json_response({"errcode": errcode, "error": errcode.lower()}, status=status)
