"""Devices on every database: what is kept of them, what is bounded, what expires."""

from __future__ import annotations

from functools import partial

import msgspec
import pytest

from openclaw.store import devices
from openclaw.store.database import Database, Transaction
from openclaw.store.devices import (
    MAX_PENDING,
    MAX_TOKENS,
    REQUEST_LIFE_MS,
    Device,
    DeviceFacts,
    Devices,
    Grant,
    NewRequest,
    PairRequest,
    TokenRow,
)
from tests.conformance.making import NOON, select

FACTS = DeviceFacts("linux", "openclaw-tui", "ui", "my desk", "Linux")
READ, WRITE, ADMIN = "operator.read", "operator.write", "operator.admin"


def device(name: str = "d1", *, via: devices.ApprovedVia = "silent", at: int = NOON) -> Device:
    return Device(name, f"key of {name}", FACTS, Grant(("operator",), (READ,)), via, at, at, at, "connect")


def token(name: str, role: str = "operator", *, used: int = NOON, owner: str = "d1") -> TokenRow:
    return TokenRow(name, owner, role, (READ, WRITE) if role == "operator" else (), NOON, used)


def asking(name: str = "d1", scopes: tuple[str, ...] = (READ,), role: str = "operator") -> NewRequest:
    return NewRequest(name, f"key of {name}", FACTS, role, scopes, "not-paired", "203.0.113.7")


async def put(database: Database, *known: Device) -> None:
    for one in known:
        await database.write(partial(_put, one))


def _put(one: Device, tx: Transaction) -> None:
    devices.put_device(tx, one)


async def issue(database: Database, *rows: TokenRow) -> None:
    for row in rows:
        await database.write(partial(_issue, row))


def _issue(row: TokenRow, tx: Transaction) -> None:
    devices.add_token(tx, row)


async def ask(database: Database, asked: NewRequest, name: str, at: int = NOON) -> PairRequest | None:
    return await database.write(lambda tx: devices.ask_owner(tx, asked, name, at))


async def names(database: Database) -> list[str]:
    return [one.device_id for one in await Devices(database).paired()]


@pytest.mark.spec("DB-1")
class TestDevices:
    async def test_a_device_is_read_back_as_it_was_put(self, database: Database) -> None:
        await put(database, device())
        await issue(database, token("t1"))
        expected = msgspec.structs.replace(device(), tokens=(token("t1"),))
        assert await database.read(lambda tx: devices.find_device(tx, "d1")) == expected
        assert await Devices(database).paired() == (expected,)
        assert await database.read(lambda tx: devices.find_device(tx, "D1")) is None

    async def test_putting_it_again_keeps_its_birth_its_key_and_its_tokens(self, database: Database) -> None:
        await put(database, device())
        await issue(database, token("t1"))
        changed = msgspec.structs.replace(
            device(at=NOON + 9),
            public_key="another",
            grant=Grant(("operator", "node"), (ADMIN,)),
            approved_via="owner",
            facts=DeviceFacts("ios", "openclaw-ios", "ui"),
        )
        await put(database, changed)
        (found,) = await Devices(database).paired()
        assert (found.created_at, found.public_key, found.tokens) == (NOON, "key of d1", (token("t1"),))
        assert (found.approved_at, found.last_seen_at) == (NOON + 9, NOON + 9)
        assert (found.grant, found.facts.display_name) == (Grant(("operator", "node"), (ADMIN,)), None)

    async def test_those_approved_last_stand_first(self, database: Database) -> None:
        await put(database, device("b", at=NOON), device("a", at=NOON), device("c", at=NOON + 1))
        assert await names(database) == ["c", "a", "b"]

    async def test_removing_takes_everything_along(self, database: Database) -> None:
        await put(database, device(), device("d2"))
        await issue(database, token("t1"))
        await issue(database, token("t2", owner="d2"))
        await ask(database, asking(), "r1")
        assert await database.write(lambda tx: devices.remove_device(tx, "d1"))
        assert not await database.write(lambda tx: devices.remove_device(tx, "d1"))
        assert await names(database) == ["d2"]
        assert await select(database, "SELECT token_hash FROM device_tokens") == [("t2",)]
        assert await Devices(database).pending(NOON) == ()

    async def test_devices_that_paired_themselves_make_room(
        self, database: Database, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        assert devices.MAX_DEVICES == 1000
        monkeypatch.setattr(devices, "MAX_DEVICES", 3)
        await put(database, device("owned", via="owner", at=NOON), device("old", at=NOON + 1))
        await issue(database, token("t1", owner="old"))
        await put(database, device("young", at=NOON + 2))
        assert await names(database) == ["young", "old", "owned"]
        await put(database, device("new", at=NOON + 3))
        assert await names(database) == ["new", "young", "owned"]
        await put(database, device("young", at=NOON + 4))  # known: nobody has to go
        assert await names(database) == ["young", "new", "owned"]

    async def test_what_the_owner_approved_is_never_pushed_out(
        self, database: Database, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(devices, "MAX_DEVICES", 1)
        await put(database, device("a", via="owner"), device("b", via="owner", at=NOON + 1))
        assert await names(database) == ["b", "a"]


@pytest.mark.spec("DB-1")
class TestTokens:
    async def test_the_one_unused_for_longest_ends(self, database: Database) -> None:
        assert MAX_TOKENS == 4
        await put(database, device())
        for name, used in (("t1", NOON), ("t2", NOON + 5), ("t3", NOON + 3), ("t4", NOON + 4)):
            await issue(database, token(name, used=used))
        await issue(database, token("n1", "node", used=NOON))
        await database.write(lambda tx: devices.use_token(tx, "t1", NOON + 9))
        await issue(database, token("t5", used=NOON + 10))
        (found,) = await Devices(database).paired()
        assert [row.token_hash for row in found.tokens] == ["t5", "t1", "t2", "t4", "n1"]
        assert found.tokens[1].last_used_at == NOON + 9 and found.tokens[1].created_at == NOON
        assert (found.tokens[0].scopes, found.tokens[4].scopes) == ((READ, WRITE), ())

    async def test_the_tokens_of_a_role_end_together(self, database: Database) -> None:
        await put(database, device(), device("d2"))
        await issue(database, token("a"), token("b"), token("n", "node"), token("c", owner="d2"))
        assert await database.write(lambda tx: devices.drop_tokens(tx, "d1", "operator")) == 2
        assert await database.write(lambda tx: devices.drop_tokens(tx, "d1", "operator")) == 0
        left = await select(database, "SELECT token_hash FROM device_tokens ORDER BY token_hash")
        assert left == [("c",), ("n",)]


@pytest.mark.spec("DB-1")
class TestRequests:
    async def test_the_same_request_keeps_its_id_and_lives_longer(self, database: Database) -> None:
        first = await ask(database, asking(), "r1", NOON)
        again = await ask(database, asking(), "r2", NOON + 1000)
        assert first == PairRequest("r1", asking(), NOON, NOON + REQUEST_LIFE_MS)
        assert again == PairRequest("r1", asking(), NOON, NOON + 1000 + REQUEST_LIFE_MS)
        assert await Devices(database).pending(NOON) == (again,)

    async def test_another_request_takes_its_place_under_another_id(self, database: Database) -> None:
        await ask(database, asking(), "r1")
        other = await ask(database, asking(scopes=(ADMIN,)), "r2", NOON + 1)
        assert await Devices(database).pending(NOON + 1) == (other,)
        assert await database.read(lambda tx: devices.find_request(tx, "r1", NOON + 1)) is None
        assert other is not None and (other.request_id, other.created_at) == ("r2", NOON + 1)

    async def test_a_request_expires(self, database: Database) -> None:
        made = await ask(database, asking(), "r1")
        last = NOON + REQUEST_LIFE_MS - 1
        assert await database.read(lambda tx: devices.find_request(tx, "r1", last)) == made
        assert await database.read(lambda tx: devices.find_request(tx, "r1", last + 1)) is None
        assert await Devices(database).pending(last) == (made,)
        assert await Devices(database).pending(last + 1) == ()
        renewed = await ask(database, asking(), "r2", last + 1)
        assert renewed is not None and renewed.request_id == "r2"
        assert await select(database, "SELECT request_id FROM device_requests") == [("r2",)]

    async def test_so_many_wait_at_most(self, database: Database) -> None:
        assert (MAX_PENDING, REQUEST_LIFE_MS) == (32, 600_000)
        for number in range(MAX_PENDING):
            assert await ask(database, asking(f"d{number}"), f"r{number}")
        assert await ask(database, asking("late"), "late") is None
        assert await ask(database, asking("d0"), "r-new") is not None
        assert len(await Devices(database).pending(NOON)) == MAX_PENDING
        assert await ask(database, asking("late"), "late", NOON + REQUEST_LIFE_MS)

    async def test_approving_adds_to_what_was_allowed(self, database: Database) -> None:
        await put(database, device())
        await issue(database, token("t1"))
        request = await ask(database, asking(scopes=(WRITE, READ)), "r1", NOON + 5)
        assert request is not None
        approved = await database.write(lambda tx: devices.approve_request(tx, request, NOON + 7))
        assert (approved,) == await Devices(database).paired()
        assert (approved.grant, approved.approved_via) == (Grant(("operator",), (READ, WRITE)), "owner")
        assert (approved.created_at, approved.approved_at, approved.last_seen_at) == (NOON, NOON + 7, NOON)
        assert await Devices(database).pending(NOON + 7) == ()

    async def test_approving_a_new_node_grants_no_scopes(self, database: Database) -> None:
        request = await ask(database, asking("n1", (ADMIN,), "node"), "r1", NOON)
        assert request is not None
        approved = await database.write(lambda tx: devices.approve_request(tx, request, NOON + 7))
        assert approved.grant == Grant(("node",), ())
        assert (approved.created_at, approved.last_seen_at, approved.tokens) == (NOON + 7, NOON, ())
        assert await names(database) == ["n1"]
