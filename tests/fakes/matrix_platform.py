"""Matrix as the suite of all connectors sees it. People use matrix-nio against a real homeserver."""

from __future__ import annotations

import asyncio
import contextlib
import itertools
from importlib import import_module
from types import TracebackType
from typing import Any, Self

from tests.channels.platform import Chat, Person, Shown
from tests.fakes.matrix_door import MatrixDoor
from tests.fakes.synapse import SERVER_NAME, Synapse

PASSWORD = "a long password of tests"
_numbers = itertools.count(1)


class Post:
    """One message that the agent's account sent, as people see it now."""

    def __init__(self, chat: Chat, event_id: str, content: dict[str, Any]) -> None:
        self.chat = chat
        self.event_id = event_id
        self.content = content
        self.edits = 0

    @property
    def text(self) -> str:
        return str(self.content.get("body", ""))


class MatrixPlatform:
    channel = "matrix"
    longest_text = 12_000

    def __init__(self, synapse: Synapse, door: MatrixDoor) -> None:
        self.door = door
        self._synapse = synapse
        # An extra that only this suite needs: the module is collected without it.
        self.nio: Any = import_module("nio")
        number = next(_numbers)
        self.names = {name: f"{name}{number}" for name in ("ann", "bob", "house")}
        self.ann = Person(f"@{self.names['ann']}:{SERVER_NAME}", "Ann")
        self.bob = Person(f"@{self.names['bob']}:{SERVER_NAME}", "Bob")
        self.own_id = f"@{self.names['house']}:{SERVER_NAME}"
        self.clients: dict[str, Any] = {}
        self.posts: dict[str, Post] = {}
        self.rooms: dict[str, Chat] = {}
        self.notices: list[str] = []
        self._tasks: list[asyncio.Task[None]] = []
        self._root = ""
        self.options: dict[str, Any] = {}

    async def __aenter__(self) -> Self:
        for name, shown in (("ann", "Ann"), ("bob", "Bob"), ("house", "House")):
            config = self.nio.AsyncClientConfig(max_timeouts=3, request_timeout=60)
            client = self.nio.AsyncClient(self._synapse.root, self.names[name], config=config)
            answer = await client.register(self.names[name], PASSWORD)
            assert isinstance(answer, self.nio.RegisterResponse), answer
            await client.set_displayname(shown)
            self.clients[name] = client
        self.options = {
            "homeserver": self.door.root,
            "userId": self.own_id,
            "accessToken": self.clients["house"].access_token,
        }
        for person in (self.ann, self.bob):
            room = await self.make_room(person, [self.own_id], direct=True)
            self.rooms[room] = Chat("direct", person.id)
        self.group_id = await self.make_room(self.ann, [self.own_id, self.bob.id], name="The house")
        self.rooms[self.group_id] = Chat("group", self.group_id)
        await self.clients["bob"].join(self.group_id)
        self._root = await self.write(self.ann, self.group_id, "about the garden")
        for name in ("ann", "bob"):
            self._tasks.append(asyncio.create_task(self._watch(self.clients[name])))
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for task in self._tasks:
            task.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await task
        for client in self.clients.values():
            await client.close()

    def client(self, person: Person) -> Any:
        return self.clients["ann" if person is self.ann else "bob"]

    async def make_room(
        self,
        person: Person,
        invited: list[str],
        *,
        name: str | None = None,
        direct: bool = False,
        **more: Any,
    ) -> str:
        answer = await self.client(person).room_create(name=name, invite=invited, is_direct=direct, **more)
        assert isinstance(answer, self.nio.RoomCreateResponse), answer
        return str(answer.room_id)

    async def write(self, person: Person, room_id: str, text: str, **more: Any) -> str:
        content = {"msgtype": "m.text", "body": text, **more}
        return await self.put(person, room_id, content)

    async def put(self, person: Person, room_id: str, content: dict[str, Any], txn: str | None = None) -> str:
        client = self.client(person)
        answer = await client.room_send(room_id, "m.room.message", content, tx_id=txn)
        assert isinstance(answer, self.nio.RoomSendResponse), answer
        return str(answer.event_id)

    # -- what the suite asks -------------------------------------------------------------------

    def direct(self, person: Person) -> Chat:
        return Chat("direct", person.id)

    def group(self) -> Chat:
        return Chat("group", self.group_id)

    def thread(self) -> Chat | None:
        return Chat("group", self.group_id, self._root)

    def session_key(self, chat: Chat) -> str:
        base = f"matrix:dm:{chat.id}" if chat.kind == "direct" else f"matrix:channel:{chat.id}"
        return f"{base}:thread:{chat.thread}" if chat.thread else base

    def room_of(self, chat: Chat) -> str:
        return next(
            room for room, there in self.rooms.items() if (there.kind, there.id) == (chat.kind, chat.id)
        )

    async def says(
        self, person: Person, chat: Chat, text: str, *, mention: bool = False, repeat: int = 1
    ) -> None:
        content: dict[str, Any] = {"msgtype": "m.text", "body": text}
        if mention:
            content |= {
                "body": f"House: {text}",
                "format": "org.matrix.custom.html",
                "formatted_body": f'<a href="https://matrix.to/#/{self.own_id}">House</a>: {text}',
                "m.mentions": {"user_ids": [self.own_id]},
            }
        if chat.thread is not None:
            content["m.relates_to"] = {
                "rel_type": "m.thread",
                "event_id": chat.thread,
                "is_falling_back": True,
                "m.in_reply_to": {"event_id": chat.thread},
            }
        transaction = f"says-{next(_numbers)}"
        for _ in range(repeat):
            await self.put(person, self.room_of(chat), content, transaction)

    def shown(self) -> list[Shown]:
        return [Shown(post.chat, post.text) for post in self.posts.values()]

    async def go_away(self) -> None:
        await self.door.shut()

    async def come_back(self) -> None:
        await self.door.open()

    def slow_down(self, times: int) -> None:
        self.door.refusals = times

    def forget_credentials(self) -> None:
        self.door.spoilt = True

    # -- what people see -----------------------------------------------------------------------

    async def _watch(self, client: Any) -> None:
        since = ""
        while True:
            answer = await client.sync(timeout=10_000, since=since or None)
            if not isinstance(answer, self.nio.SyncResponse):
                await asyncio.sleep(0.1)
                continue
            since = answer.next_batch
            for room_id, room in answer.rooms.join.items():
                for event in room.timeline.events:
                    self._see(room_id, event.source)

    def _see(self, room_id: str, event: dict[str, Any]) -> None:
        if event.get("sender") != self.own_id or event.get("type") != "m.room.message":
            return
        content, event_id = event["content"], event["event_id"]
        relation = content.get("m.relates_to") or {}
        if relation.get("rel_type") == "m.replace":
            post = self.posts[relation["event_id"]]
            post.content = content["m.new_content"]
            post.edits += 1
            return
        place = self.rooms[room_id]
        thread = relation["event_id"] if relation.get("rel_type") == "m.thread" else None
        self.posts.setdefault(event_id, Post(Chat(place.kind, place.id, thread), event_id, content))
