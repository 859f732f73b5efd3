"""What the suite needs of a platform: people who write in chats, and a look at what arrived there."""

from __future__ import annotations

from typing import Any, Protocol

from msgspec import Struct


class Chat(Struct, frozen=True):
    """A place on a platform, as the platform names it. `thread` is a topic or thread inside a group."""

    kind: str  # direct | group
    id: str
    thread: str | None = None


class Person(Struct, frozen=True):
    id: str
    name: str


class Shown(Struct, frozen=True):
    """One message that the agent's account sent and that people can read now."""

    chat: Chat
    text: str


class Platform(Protocol):
    """A platform of the test's own that behaves like the real one. Started and stopped by its fixture."""

    channel: str
    longest_text: int
    # Keys under `channels.<channel>` that make the connector work.
    options: dict[str, Any]
    ann: Person
    bob: Person

    def direct(self, person: Person) -> Chat: ...

    def group(self) -> Chat: ...

    def thread(self) -> Chat | None:
        """A thread of that group which is a session of its own; None where the platform has none."""
        ...

    def session_key(self, chat: Chat) -> str:
        """The key behind `agent:<id>:` under dmScope `per-channel-peer`."""
        ...

    async def says(
        self, person: Person, chat: Chat, text: str, *, mention: bool = False, repeat: int = 1
    ) -> None:
        """A person writes; the platform may deliver the same message several times."""
        ...

    def shown(self) -> list[Shown]:
        """Everything that the agent's account sent, in order."""
        ...

    async def go_away(self) -> None:
        """From now on nobody can reach the platform."""
        ...

    async def come_back(self) -> None: ...

    def slow_down(self, times: int) -> None:
        """Refuse the next sends with the platform's own words for `too many requests`."""
        ...

    def forget_credentials(self) -> None:
        """The credential of the agent's account is not good any more."""
        ...
