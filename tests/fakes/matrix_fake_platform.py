"""The small homeserver as the suite of all connectors sees it."""

from __future__ import annotations

from typing import Any

from tests.channels.platform import Chat, Person, Shown
from tests.fakes.matrix_server import HOUSE, TOKEN, FakeMatrix, Fault, Json

GROUP = "!GrOuP:Fake.Test"
ROOT = "$RooT"


def text_of(text: str, *, mention: bool = False, thread: str | None = None) -> Json:
    """What a client of Matrix makes of a person's words."""
    content: Json = {"msgtype": "m.text", "body": f"House: {text}" if mention else text}
    if mention:
        content["m.mentions"] = {"user_ids": [HOUSE]}
    if thread is not None:
        content["m.relates_to"] = {"rel_type": "m.thread", "event_id": thread, "is_falling_back": True,
                                   "m.in_reply_to": {"event_id": thread}}  # fmt: skip
    return content


class FakeMatrixPlatform:
    channel = "matrix"
    longest_text = 12_000
    ann = Person("@Ann:Fake.Test", "Ann")
    bob = Person("@Bob:Fake.Test", "Bob")

    def __init__(self, server: FakeMatrix) -> None:
        self.server = server
        self.options: dict[str, Any] = {"homeserver": server.root, "userId": HOUSE, "accessToken": TOKEN}
        self.places = {"!DmAnn:Fake.Test": self.ann.id, "!DmBob:Fake.Test": self.bob.id}
        for room_id, person in zip(self.places, (self.ann, self.bob), strict=True):
            server.room(room_id, {person.id: person.name})
        server.room(GROUP, {self.ann.id: "Ann", self.bob.id: "Bob"}, name="The house")

    def direct(self, person: Person) -> Chat:
        return Chat("direct", person.id)

    def group(self) -> Chat:
        return Chat("group", GROUP)

    def thread(self) -> Chat | None:
        return Chat("group", GROUP, ROOT)

    def session_key(self, chat: Chat) -> str:
        base = f"matrix:dm:{chat.id}" if chat.kind == "direct" else f"matrix:channel:{chat.id}"
        return f"{base}:thread:{chat.thread}" if chat.thread else base

    def room_of(self, chat: Chat) -> str:
        return next((room for room, person in self.places.items() if person == chat.id), chat.id)

    async def says(
        self, person: Person, chat: Chat, text: str, *, mention: bool = False, repeat: int = 1
    ) -> None:
        content = text_of(text, mention=mention, thread=chat.thread)
        event_id = await self.server.says(person.id, self.room_of(chat), content)
        for _ in range(repeat - 1):
            await self.server.says(person.id, self.room_of(chat), content, event_id=event_id)

    def shown(self) -> list[Shown]:
        found: dict[str, Shown] = {}
        for room_id, content in self.server.sent:
            relation = content.get("m.relates_to", {})
            if relation.get("rel_type") == "m.replace":
                before = found[relation["event_id"]]
                found[relation["event_id"]] = Shown(before.chat, content["m.new_content"]["body"])
                continue
            person = self.places.get(room_id)
            thread = relation.get("event_id")
            chat = Chat("group", room_id, thread) if person is None else Chat("direct", person, thread)
            found[content["event_id"]] = Shown(chat, content["body"])
        return list(found.values())

    async def go_away(self) -> None:
        await self.server.go_away()

    async def come_back(self) -> None:
        await self.server.come_back()

    def slow_down(self, times: int) -> None:
        body = {"errcode": "M_LIMIT_EXCEEDED", "error": "Too Many Requests", "retry_after_ms": 100}
        self.server.faults += [Fault("/send/", 429, body)] * times

    def forget_credentials(self) -> None:
        self.server.token = "another"
