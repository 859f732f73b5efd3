"""Telegram as the suite of all connectors sees it: people who write, and what they got."""

from __future__ import annotations

from typing import Any

from tests.channels.platform import Chat, Person, Shown
from tests.fakes.telegram_html import units
from tests.fakes.telegram_server import LONGEST_TEXT, TOKEN, FakeTelegram, Fault, Json

GROUP = "-1001"
TOPIC = 7


def user_of(person: Person) -> Json:
    return {"id": int(person.id), "is_bot": False, "first_name": person.name}


def chat_of(chat: Chat, name: str = "") -> Json:
    if chat.kind == "direct":
        return {"id": int(chat.id), "type": "private", "first_name": name}
    return {"id": int(chat.id), "type": "supergroup", "title": "The house", "is_forum": True}


def message_of(person: Person, chat: Chat, text: str, number: int, *, mention: bool = False) -> Json:
    """What Telegram makes of a person's words."""
    message: Json = {
        "message_id": number,
        "date": 1_700_000_000,
        "from": user_of(person),
        "chat": chat_of(chat, person.name),
    }
    if mention:
        name = "@House_bot"
        text = f"{name} {text}"
        message["entities"] = [{"type": "mention", "offset": 0, "length": units(name)}]
    message["text"] = text
    if chat.thread is not None:
        message |= {"message_thread_id": int(chat.thread), "is_topic_message": True}
        message["reply_to_message"] = {
            "message_id": int(chat.thread), "date": 1, "chat": message["chat"],
            "from": {"id": 7000, "is_bot": True, "first_name": "House"},
            "forum_topic_created": {"name": "Plans", "icon_color": 1},
        }  # fmt: skip
    return message


class TelegramPlatform:
    channel = "telegram"
    longest_text = LONGEST_TEXT
    ann = Person("101", "Ann")
    bob = Person("102", "Bob")

    def __init__(self, server: FakeTelegram) -> None:
        self.server = server
        server.topics[GROUP] = {TOPIC}
        self.options: dict[str, Any] = {"botToken": TOKEN, "apiRoot": server.root}

    def direct(self, person: Person) -> Chat:
        return Chat("direct", person.id)

    def group(self) -> Chat:
        return Chat("group", GROUP)

    def thread(self) -> Chat | None:
        return Chat("group", GROUP, str(TOPIC))

    def session_key(self, chat: Chat) -> str:
        if chat.kind == "direct":
            return f"telegram:dm:{chat.id}"
        base = f"telegram:group:{chat.id}"
        return f"{base}:topic:{chat.thread}" if chat.thread else base

    async def says(
        self, person: Person, chat: Chat, text: str, *, mention: bool = False, repeat: int = 1
    ) -> None:
        number = self.server.message_id()
        self.server.arrives(message_of(person, chat, text, number, mention=mention), times=repeat)

    def shown(self) -> list[Shown]:
        return [
            Shown(
                Chat(
                    "group" if post.chat_id.startswith("-") else "direct",
                    post.chat_id,
                    None if post.thread is None else str(post.thread),
                ),
                post.text,
            )
            for post in self.server.posts
        ]

    async def go_away(self) -> None:
        await self.server.go_away()

    async def come_back(self) -> None:
        await self.server.come_back()

    def slow_down(self, times: int) -> None:
        refusal = Fault("sendMessage", 429, "retry after 1", {"retry_after": 1})
        self.server.fail_next(*[refusal] * times)

    def forget_credentials(self) -> None:
        self.server.token = "7000:another"
