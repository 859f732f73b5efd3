"""Files of a message: a few at a time, tried again for a while, told in the message when they do not come."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Sequence

import pytest
from msgspec import Struct

from openclaw.channels.base import NOT_LET_IN, Answer, Message
from openclaw.channels.fetching import AT_ONCE, LONGEST_PAUSE_S, PAUSES_S, Fetching, UnfetchedError
from openclaw.domain.routing import Envelope

HELLO = Envelope(channel="nest", account_id="default", peer_kind="direct", peer_id="7", text="hello")
LATER, NEVER = UnfetchedError("the line is bad"), UnfetchedError("it is gone", final=True)


class Ref(Struct, frozen=True):
    name: str
    mime: str = "video/mp2t"
    problem: str | None = None


class Stage:
    """A platform, a door and a clock: what `outcomes` holds comes one by one."""

    def __init__(self, *outcomes: bytes | UnfetchedError, wanted: bool = True) -> None:
        self.outcomes = list(outcomes)
        self.wanted = wanted
        self.slept: list[float] = []
        self.now = self.most = self.asked = 0
        self.fetching = Fetching(self.fetch, self, self, "nest (default)")

    async def fetch(self, file: Ref) -> bytes:
        self.now += 1
        self.most = max(self.most, self.now)
        await asyncio.sleep(0)
        self.now -= 1
        outcome = self.outcomes.pop(0)
        if isinstance(outcome, UnfetchedError):
            raise outcome
        return outcome

    async def wants_files(self, envelope: Envelope) -> bool:
        self.asked += 1
        return self.wanted

    async def accept(self, message: Message) -> Answer:
        raise AssertionError("files are fetched before a message is handed in")

    def now_ms(self) -> int:
        return 0

    def monotonic(self) -> float:
        return 0.0

    async def sleep(self, seconds: float) -> None:
        self.slept.append(seconds)

    async def get(self, files: Sequence[Ref]) -> list[tuple[str, str, bytes, str | None]]:
        found = await self.fetching.attachments(HELLO, files)
        return [(one.name, one.mime, one.data, one.problem) for one in found]


async def test_files_come_in_order_and_are_what_their_bytes_say() -> None:
    png, long = b"\x89PNG\r\n\x1a\n0", b"a" * 70_000
    stage = Stage(b"const a = 1", png, b"\0\1", long)
    found = await stage.get([Ref("a.ts"), Ref("b"), Ref("c"), Ref("d", problem="it is too large"), Ref("e")])
    assert found == [
        ("a.ts", "text/plain", b"const a = 1", None),
        ("b", "image/png", png, None),
        ("c", "video/mp2t", b"\0\1", None),
        ("d", "video/mp2t", b"", "it is too large"),
        ("e", "text/plain", long, None),
    ]
    assert stage.asked == 1 and stage.slept == []


async def test_files_of_a_stranger_are_not_fetched_and_without_files_nobody_is_asked() -> None:
    stage = Stage(wanted=False)
    assert await stage.get([Ref("a", problem="too large"), Ref("b")]) == [
        ("a", "video/mp2t", b"", NOT_LET_IN),
        ("b", "video/mp2t", b"", NOT_LET_IN),
    ]
    assert await stage.get([]) == [] and stage.asked == 1


@pytest.mark.parametrize(
    ("outcomes", "slept", "problem"),
    [
        ((LATER, b"x"), PAUSES_S[:1], None),
        ((LATER, LATER, b"x"), PAUSES_S, None),
        ((LATER, LATER, LATER), PAUSES_S, "it could not be fetched: the line is bad"),
        ((LATER, LATER, NEVER), PAUSES_S, "it could not be fetched: it is gone"),
        ((NEVER,), (), "it could not be fetched: it is gone"),
        ((UnfetchedError("slow", retry_after_s=7.0), b"x"), (7.0,), None),
        ((UnfetchedError("slow", retry_after_s=0.0), b"x"), (0.0,), None),
        ((UnfetchedError("slow", retry_after_s=999.0), b"x"), (LONGEST_PAUSE_S,), None),
    ],
)
async def test_what_does_not_come_is_tried_again_and_then_told(
    outcomes: tuple[bytes | UnfetchedError, ...],
    slept: tuple[float, ...],
    problem: str | None,
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level(logging.WARNING, "openclaw.channels")
    stage = Stage(*outcomes)
    [(_, _, data, told)] = await stage.get([Ref("a")])
    assert (told, tuple(stage.slept), stage.outcomes) == (problem, slept, [])
    assert data == (b"x" if problem is None else b"")
    warned = [] if problem is None else ["nest (default): a file could not be fetched"]
    assert [message.rpartition(":")[0] for message in caplog.messages] == warned


async def test_only_a_few_are_fetched_at_once() -> None:
    stage = Stage(*[b"x"] * 20)
    await asyncio.gather(*(stage.get([Ref("a"), Ref("b")]) for _ in range(10)))
    assert stage.most == AT_ONCE and stage.outcomes == []
