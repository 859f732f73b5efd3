"""The doorkeeper against a plain model: whatever devices and owners do, nobody gets more than allowed."""

from __future__ import annotations

import asyncio
import itertools
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec import Raw

from openclaw.gateway.doorkeeper import Admission, Doorkeeper, DoorSettings, Visitor
from openclaw.gateway.hub import Hub
from openclaw.protocol.auth import AuthRefused, digest_secret
from openclaw.protocol.connect import decode_connect
from openclaw.protocol.guesses import GuessLimits
from openclaw.store import devices
from openclaw.store.devices import MAX_TOKENS, REQUEST_LIFE_MS, Devices
from openclaw.store.sqlite import SqliteDatabase
from tests.conformance.making import unique_name
from tests.fakes.device import TestDevice
from tests.unit.protocol.wire import NOW_MS, SECRET, connect_params

READ, WRITE, ADMIN, PAIRING = (f"operator.{word}" for word in ("read", "write", "admin", "pairing"))
SCOPES = (READ, WRITE, ADMIN, PAIRING)
KEYS = (TestDevice(31), TestDevice(32))
NEAR, FAR = Visitor("127.0.0.1", True), Visitor("203.0.113.7", False)


class StepClock:
    """Every look at it is a moment later, so that nothing happens at the same time."""

    def __init__(self) -> None:
        self.at_ms = NOW_MS

    def now_ms(self) -> int:
        self.at_ms += 1
        return self.at_ms

    def monotonic(self) -> float:
        return self.at_ms / 1000

    async def sleep(self, _seconds: float) -> None:
        raise AssertionError("nobody waits here")


class CountedIds:
    def __init__(self) -> None:
        self._numbers = itertools.count(1)

    def uuid(self) -> str:
        return f"id-{next(self._numbers)}"


class Known(msgspec.Struct):
    """What the model knows of a paired device. Tokens: value -> (role, scopes), least recently used first."""

    roles: set[str]
    scopes: set[str]
    tokens: dict[str, tuple[str, frozenset[str]]]


def covers(held: set[str] | frozenset[str], scope: str) -> bool:
    return scope in held or ADMIN in held or (scope == READ and WRITE in held)


class Story:
    """One door, and beside it the model of who is allowed what."""

    def __init__(self, door: Doorkeeper, clock: StepClock) -> None:
        self.door, self.clock = door, clock
        self.known: dict[int, Known] = {}
        self.waiting: dict[int, tuple[str, str, list[str], int]] = {}
        self.given: list[tuple[int, str]] = []

    async def come(self, number: int, far: bool, show: int | None, asked: list[str], role: str) -> None:
        """A device connects with the secret, or with the token that was given out as the `show`-th last."""
        token = None if show is None or show >= len(self.given) else self.given[-1 - show][1]
        auth = {"token": SECRET} if token is None else {"deviceToken": token}
        params = connect_params(auth=auth, scopes=asked, role=role)
        signed = KEYS[number].sign(params, "nonce", self.clock.at_ms)
        visitor = FAR if far else NEAR
        outcome = await self.door.admit(decode_connect(Raw(msgspec.json.encode(signed))), "nonce", visitor)
        known = self.known.get(number)
        held: frozenset[str] | None = frozenset(SCOPES)
        if token is not None:
            mine = known.tokens.get(token) if known else None
            held = mine[1] if mine is not None and mine[0] == role else None
        if held is None:
            assert isinstance(outcome, AuthRefused)
            assert (outcome.error.details or {})["code"] == "AUTH_DEVICE_TOKEN_MISMATCH"
            return
        granted = [] if role == "node" else [scope for scope in asked if covers(held, scope)]
        reason = self._reason(known, role, granted)
        if far and reason is not None:
            self._expect_request(outcome, number, role, granted, reason)
            return
        assert isinstance(outcome, Admission), outcome
        assert (list(outcome.auth.scopes), outcome.auth.role) == (granted, role)
        assert outcome.auth.token is not None and outcome.auth.device_id == KEYS[number].device_id
        self._keep(number, role, granted, outcome.auth.token.value, token)

    def _reason(self, known: Known | None, role: str, granted: list[str]) -> str | None:
        if known is None:
            return "not-paired"
        if role not in known.roles:
            return "role-upgrade"
        return None if all(covers(known.scopes, scope) for scope in granted) else "scope-upgrade"

    def _expect_request(
        self, outcome: object, number: int, role: str, granted: list[str], reason: str
    ) -> None:
        assert isinstance(outcome, AuthRefused)
        details = outcome.error.details or {}
        assert (details["code"], details["reason"]) == ("PAIRING_REQUIRED", reason)
        self.waiting[number] = (details["requestId"], role, granted, self.clock.at_ms + REQUEST_LIFE_MS)

    def _keep(self, number: int, role: str, granted: list[str], value: str, shown: str | None) -> None:
        known = self.known.setdefault(number, Known(set(), set(), {}))
        known.roles.add(role)
        known.scopes |= {scope for scope in granted if not covers(known.scopes, scope)}
        if shown is not None:
            assert value == shown
            known.tokens[value] = known.tokens.pop(value)
            return
        assert value not in known.tokens
        same = [name for name, (kind, _) in known.tokens.items() if kind == role]
        if len(same) >= MAX_TOKENS:
            del known.tokens[same[0]]
        known.tokens[value] = (role, frozenset(granted))
        self.given.append((number, value))

    async def approve(self, number: int) -> None:
        database, now_ms = self.door.book.database, self.clock.now_ms()
        request_id, role, granted, until_ms = self.waiting.pop(number, ("none", "", [], 0))
        request = await database.read(lambda tx: devices.find_request(tx, request_id, now_ms))
        assert (request is not None) is (now_ms < until_ms)
        if request is None:
            return
        assert (request.asked.role, list(request.asked.scopes)) == (role, granted)
        await database.write(lambda tx: devices.approve_request(tx, request, now_ms))
        known = self.known.setdefault(number, Known(set(), set(), {}))
        known.roles.add(role)
        known.scopes |= set(granted)

    async def remove(self, number: int) -> None:
        removed = await self.door.book.database.write(
            lambda tx: devices.remove_device(tx, KEYS[number].device_id)
        )
        assert removed is (self.known.pop(number, None) is not None)
        self.waiting.pop(number, None)

    async def revoke(self, number: int, role: str) -> None:
        ended = await self.door.book.database.write(
            lambda tx: devices.drop_tokens(tx, KEYS[number].device_id, role)
        )
        known = self.known.get(number) or Known(set(), set(), {})
        gone = [value for value, (kind, _) in known.tokens.items() if kind == role]
        assert ended == len(gone)
        for value in gone:
            del known.tokens[value]

    async def wait(self, _number: int) -> None:
        self.clock.at_ms += REQUEST_LIFE_MS

    async def check(self) -> None:
        """The rows say what the model says."""
        for device in await self.door.book.paired():
            number = [key.device_id for key in KEYS].index(device.device_id)
            known = self.known[number]
            assert set(device.grant.roles) == known.roles
            assert all(covers(known.scopes, scope) for scope in device.grant.scopes)
            assert {row.token_hash for row in device.tokens} == {
                digest_secret(value).hex() for value in known.tokens
            }
        assert len(await self.door.book.paired()) == len(self.known)


NUMBERS, ROLES = st.integers(0, 1), st.sampled_from(["operator", "operator", "node"])
STEPS = st.lists(
    st.tuples(
        st.just("come"), NUMBERS, st.booleans(), st.none() | st.integers(0, 5),
        st.lists(st.sampled_from(SCOPES), unique=True, max_size=3), ROLES,
    )
    | st.tuples(st.sampled_from(["approve", "approve", "remove", "wait"]), NUMBERS)
    | st.tuples(st.just("revoke"), NUMBERS, ROLES),
    max_size=25,
)  # fmt: skip


async def tell(steps: list[tuple[Any, ...]]) -> None:
    database = await SqliteDatabase.open_memory(unique_name())
    try:
        clock, ids = StepClock(), CountedIds()
        settings_: Any = None
        patient = GuessLimits(max_attempts=1_000_000)
        door_settings = DoorSettings("token", digest_secret(SECRET), guesses=patient)
        door = Doorkeeper(Devices(database), door_settings, Hub(settings_, clock), clock, ids)
        story = Story(door, clock)
        for name, *arguments in steps:
            await getattr(story, name)(*arguments)
            await story.check()
    finally:
        await database.close()


@pytest.mark.spec("RPC-3")
@settings(max_examples=100, deadline=None)
@given(STEPS)
def test_nobody_ever_gets_more_than_allowed(steps: list[tuple[Any, ...]]) -> None:
    asyncio.run(tell(steps))
