"""The contract of a connector: what it hands in, what it is given to send, what it says it can do.

A connector turns what its platform tells into `Message` values and hands each to the
door it was given; only when the door has answered is the message safe, and only then
may the platform be told to forget it. It sends what the postman gives it. It never
chooses a session, an agent or a recipient.
"""

from __future__ import annotations

from typing import Literal, Protocol, runtime_checkable

from msgspec import Struct

from openclaw.domain.routing import Envelope
from openclaw.errors import OpenClawError


class Abilities(Struct, frozen=True, kw_only=True):
    """What a platform can do. Whoever works with a connector asks these, never its name."""

    longest_text: int = 4000  # characters of one message, as the platform counts them
    threads: bool = False  # threads are conversations of their own
    topics: bool = False
    editing: bool = False  # a message that was sent can be changed
    typing: bool = False
    media: bool = False  # files can be sent
    case_sensitive_ids: bool = False
    idempotent: bool = False  # sending twice with one key shows one message
    binds_threads: bool = False  # a thread can be opened for a helper (BIND-1)


class Attachment(Struct, frozen=True, kw_only=True):
    """A file, in or out. `problem` says why its bytes are not here."""

    name: str
    mime: str = "application/octet-stream"
    data: bytes = b""
    problem: str | None = None


NOT_LET_IN = "it was not fetched, because its sender is not let in"


class Message(Struct, frozen=True, kw_only=True):
    """One message of a platform."""

    envelope: Envelope
    attachments: tuple[Attachment, ...] = ()
    # The message that this one answers, as people read it.
    quoted: str | None = None
    quoted_sender: str | None = None


class Answer(Struct, frozen=True):
    """What became of a message that was handed in. Whatever it says, the message needs no second try.

    `taken`: a turn runs or will run. `kept`: context for a later turn. `asked`: a stranger got a code.
    `ignored`: the rules say no. `duplicate`: it was handed in before.
    """

    status: Literal["taken", "kept", "asked", "ignored", "duplicate"]
    session_key: str | None = None
    run_id: str | None = None
    reason: str | None = None


class Door(Protocol):
    """Where messages go in. It raises only when the store cannot keep the message: try again then."""

    async def accept(self, message: Message) -> Answer: ...

    async def wants_files(self, envelope: Envelope) -> bool:
        """Whether files of this message are worth fetching: a stranger's are not."""
        ...


class Outgoing(Struct, frozen=True, kw_only=True):
    """A reply to carry to its one recipient."""

    key: str  # the same for every attempt
    to: str
    account_id: str = "default"
    thread_id: str | None = None
    text: str = ""
    media: tuple[Attachment, ...] = ()
    # A message that already stands there as a draft of this very reply.
    draft_id: str | None = None


class Sent(Struct, frozen=True):
    """The platform has it."""

    message_ids: tuple[str, ...] = ()


class NotSent(OpenClawError):
    """The platform refused: nobody saw it. Without `retry_after_s` it is useless to try again."""

    def __init__(self, message: str, *, retry_after_s: float | None = None) -> None:
        super().__init__(message)
        self.retry_after_s = retry_after_s


class Down(OpenClawError):
    """The connector cannot work: the platform is away, or a credential is wrong. It is started again later.

    `wait_s` is the least pause; a wrong credential is worth a long one.
    """

    def __init__(self, message: str, *, wait_s: float = 0.0) -> None:
        super().__init__(message)
        self.wait_s = wait_s


class Connector(Protocol):
    """One account on one platform."""

    channel: str
    account_id: str
    abilities: Abilities
    # When the platform's credential was last found to be good; `/status` shows it (CMD-1).
    credentials_refreshed_at: int | None

    async def run(self, door: Door) -> None:
        """Receive until cancelled. Raises `Down`; everything else that escapes counts as `Down` as well."""
        ...

    async def send(self, outgoing: Outgoing) -> Sent:
        """Carry one reply. `NotSent` promises that nobody saw it; any other error leaves that open."""
        ...

    async def show_typing(self, to: str, thread_id: str | None) -> None:
        """Tell people that an answer is being written; best effort, where `abilities.typing` says so."""
        ...

    async def draft(self, outgoing: Outgoing) -> str | None:
        """Show the beginning of a reply, or more of it; the id of the message that shows it, if any."""
        ...


@runtime_checkable
class OpensThreads(Protocol):
    """What a connector with `abilities.binds_threads` can do beside the rest (BIND-1).

    Telegram opens a topic of a forum group, Matrix a thread below a message that it sends.
    """

    async def open_thread(self, to: str, title: str) -> str:
        """Open a thread in the place that answers to `to`; its id, as envelopes and `Outgoing` name it.

        Raises `NotSent` where that place has no threads, or the platform refuses.
        """
        ...


@runtime_checkable
class Complains(Protocol):
    """A connector that can run and yet have something to tell, which `status` then shows."""

    @property
    def complaint(self) -> str | None:
        """What does not work although the connector runs; None when all is well."""
        ...
