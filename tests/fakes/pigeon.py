"""A platform in memory with a connector of its own: the smallest thing that passes the suite.

It delivers again what was not acknowledged, as real platforms do.
"""

from __future__ import annotations

import asyncio
from collections import deque
from typing import Any, ClassVar

from openclaw.channels.base import Abilities, Door, Down, Message, NotSent, Outgoing, Sent
from openclaw.channels.pieces import split_text
from openclaw.channels.registry import Ground
from openclaw.domain.routing import Envelope
from tests.channels.platform import Chat, Person, Shown

LONGEST = 200


class Loft:
    """The platform's side: chats, people, and a queue of what was not taken yet."""

    channel = "pigeon"
    longest_text = LONGEST
    ann = Person("101", "Ann")
    bob = Person("102", "Bob")
    lofts: ClassVar[dict[str, Loft]] = {}

    def __init__(self, name: str) -> None:
        self.options: dict[str, Any] = {"loft": name}
        self.waiting: deque[Message] = deque()
        self.more = asyncio.Event()
        self.away = False
        self.refusals = 0
        self.bad_credential = False
        self.titles: dict[str, str] = {}  # of the threads that were opened, by their ids
        self.no_threads = False
        self.tells_mentions = True  # False: like platforms that cannot say who was called
        self.typed: list[Chat] = []
        self.drafted: list[str] = []
        self.edited: list[str] = []  # what drafts became
        self._shown: list[Shown] = []
        self._numbers = 0
        Loft.lofts[name] = self

    def direct(self, person: Person) -> Chat:
        return Chat("direct", person.id)

    def group(self) -> Chat:
        return Chat("group", "Flock")

    def thread(self) -> Chat | None:
        return Chat("group", "Flock", "T1")

    def session_key(self, chat: Chat) -> str:
        base = f"pigeon:dm:{chat.id}" if chat.kind == "direct" else f"pigeon:group:{chat.id.lower()}"
        return f"{base}:thread:{chat.thread.lower()}" if chat.thread else base

    async def says(
        self, person: Person, chat: Chat, text: str, *, mention: bool = False, repeat: int = 1
    ) -> None:
        self._numbers += 1
        envelope = Envelope(
            channel="pigeon",
            peer_kind="direct" if chat.kind == "direct" else "group",
            peer_id=chat.id,
            thread_id=chat.thread,
            thread_kind="thread" if chat.thread else None,
            sender_id=person.id,
            sender_name=person.name,
            message_id=f"m{self._numbers}",
            text=text,
            was_mentioned=mention,
            mentions_detectable=self.tells_mentions,
        )
        self.waiting.extend([Message(envelope=envelope)] * repeat)
        self.more.set()

    def shown(self) -> list[Shown]:
        return list(self._shown)

    def show(self, chat: Chat, text: str) -> None:
        self._shown.append(Shown(chat, text))

    async def go_away(self) -> None:
        self.away = True
        self.more.set()

    async def come_back(self) -> None:
        self.away = False

    def slow_down(self, times: int) -> None:
        self.refusals = times

    def forget_credentials(self) -> None:
        self.bad_credential = True


class PigeonConnector:
    abilities = Abilities(longest_text=LONGEST, threads=True, binds_threads=True, typing=True, editing=True)
    credentials_refreshed_at: int | None = None

    def __init__(self, ground: Ground, loft: Loft) -> None:
        self.channel, self.account_id = ground.channel, ground.account_id
        self._loft = loft
        self._clock = ground.clock

    async def run(self, door: Door) -> None:
        loft = self._loft
        if loft.bad_credential:
            raise Down("the ring on the leg is not known", wait_s=60)
        self.credentials_refreshed_at = self._clock.now_ms()
        while True:
            if loft.away:
                raise Down("the loft is closed")
            while loft.waiting:
                await door.accept(loft.waiting[0])
                loft.waiting.popleft()  # taken only now that it is safe
            loft.more.clear()
            await loft.more.wait()

    async def send(self, outgoing: Outgoing) -> Sent:
        loft = self._loft
        if loft.away:
            raise NotSent("the loft is closed", retry_after_s=0.05)
        if loft.refusals:
            loft.refusals -= 1
            raise NotSent("too many pigeons", retry_after_s=0.05)
        kind = "group" if outgoing.to == "Flock" else "direct"
        if outgoing.draft_id:
            loft.edited.append(outgoing.text)
        for piece in split_text(outgoing.text, LONGEST):
            loft.show(Chat(kind, outgoing.to, outgoing.thread_id), piece)
        return Sent()

    async def open_thread(self, to: str, title: str) -> str:
        if self._loft.no_threads:
            raise NotSent("this loft has no room for another thread")
        thread_id = f"P{len(self._loft.titles) + 1}"
        self._loft.titles[thread_id] = title
        return thread_id

    async def show_typing(self, to: str, thread_id: str | None) -> None:
        self._loft.typed.append(Chat("group" if to == "Flock" else "direct", to, thread_id))

    async def draft(self, outgoing: Outgoing) -> str | None:
        self._loft.drafted.append(outgoing.text)
        return outgoing.draft_id or "draft"


async def build(ground: Ground) -> PigeonConnector:
    return PigeonConnector(ground, Loft.lofts[str(ground.options["loft"])])
