"""Devices of the founding layout: what is taken over, what is left out, what is never broken by a file."""

from __future__ import annotations

import contextlib
import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from openclaw.errors import StoreCorrupt
from openclaw.protocol.auth import digest_secret
from openclaw.store.devices import Device, DeviceFacts, Devices, Grant, TokenRow
from openclaw.store.legacy.devices import LegacyDevices, import_paired, read_paired
from openclaw.store.sqlite import SqliteDatabase
from tests.conformance.making import unique_name
from tests.fakes.device import TestDevice

DESK = TestDevice(21)
READ, ADMIN = "operator.read", "operator.admin"
ANY_JSON = st.recursive(
    st.none() | st.integers() | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=8,
)


def entry(**changes: Any) -> dict[str, Any]:
    known = {
        "deviceId": DESK.device_id, "publicKey": DESK.public_key, "displayName": " my desk\0 ",
        "platform": "linux", "clientId": "openclaw-tui", "clientMode": "ui", "role": "operator",
        "roles": ["operator", "king"], "scopes": [ADMIN, "operator.zzz", ADMIN], "remoteIp": "::1",
        "tokens": {"operator": {"token": "t-1", "role": "operator", "scopes": [READ, "x"], "createdAtMs": 5,
                                "lastUsedAtMs": 9}},
        "createdAtMs": 3, "approvedAtMs": 4,
    }  # fmt: skip
    return known | changes


def read(*entries: dict[str, Any]) -> LegacyDevices:
    return read_paired(json.dumps({str(at): one for at, one in enumerate(entries)}).encode())


@pytest.mark.spec("DB-3")
class TestReading:
    def test_a_device_is_taken_over(self) -> None:
        token = TokenRow(digest_secret("t-1").hex(), DESK.device_id, "operator", (READ,), 5, 9)
        facts = DeviceFacts("linux", "openclaw-tui", "ui", "my desk")
        grant = Grant(("operator",), (ADMIN,))
        assert read(entry()).devices == (
            Device(DESK.device_id, DESK.public_key, facts, grant, "owner", 3, 4, 4, "imported", (token,)),
        )

    def test_what_is_absent_has_a_word(self) -> None:
        bare = {"deviceId": DESK.device_id, "publicKey": DESK.public_key, "role": "node"}
        (device,) = read(bare).devices
        assert device.facts == DeviceFacts("unknown", "unknown", "unknown")
        assert (device.grant, device.tokens) == (Grant(("node",), ()), ())
        (seen,) = read(entry(lastSeenAtMs=77, approvedVia="silent")).devices
        assert (seen.last_seen_at, seen.approved_via) == (77, "silent")

    def test_a_node_gets_no_scopes(self) -> None:
        token = {"token": "n", "scopes": [ADMIN], "createdAtMs": 1}
        (device,) = read(entry(role="node", roles=[], tokens={"node": token})).devices
        assert device.grant.scopes == () and [one.scopes for one in device.tokens] == [()]
        assert device.tokens[0].last_used_at == 1

    @pytest.mark.parametrize(
        "tokens",
        [
            {"operator": {"token": "t", "revokedAtMs": 5}},
            {"operator": {"token": ""}},
            {"node": {"token": "t"}},
            {},
        ],
    )
    def test_tokens_that_are_over_stay_behind(self, tokens: dict[str, Any]) -> None:
        (device,) = read(entry(tokens=tokens)).devices
        assert device.tokens == ()

    @pytest.mark.parametrize(
        ("changes", "problem"),
        [
            ({"deviceId": TestDevice(22).device_id}, "its id is not the hash of its key"),
            ({"publicKey": "-----BEGIN PUBLIC KEY-----"}, "its id is not the hash of its key"),
            ({"role": None, "roles": ["king"]}, "it has no role"),
            ({"createdAtMs": -1}, "Expected `int`"),
            ({"createdAtMs": 2**60}, "Expected `int`"),
            ({"deviceId": 7}, "Expected `str`"),
        ],
    )
    def test_what_cannot_be_used_is_named(self, changes: dict[str, Any], problem: str) -> None:
        found = read(entry(**changes), entry())
        assert len(found.devices) == 1 and len(found.problems) == 1
        assert found.problems[0].startswith("0: ") and problem in found.problems[0]

    @pytest.mark.parametrize(
        "data", [b"", b"[]", b"{", b"7", b"\xff", b'{"a":' + b"[" * 100 + b"]" * 100 + b"}"]
    )
    def test_another_file_is_refused(self, data: bytes) -> None:
        with pytest.raises(StoreCorrupt, match="not a list of paired devices"):
            read_paired(data)

    @settings(max_examples=200, deadline=None)
    @given(st.binary(max_size=80) | ANY_JSON.map(lambda value: json.dumps({"x": value}).encode()))
    def test_no_file_breaks_it(self, data: bytes) -> None:
        with contextlib.suppress(StoreCorrupt):
            found = read_paired(data)
            assert not found.devices


@pytest.mark.spec("DB-3")
async def test_what_is_in_the_store_wins_and_twice_is_once() -> None:
    database = await SqliteDatabase.open_memory(unique_name())
    try:
        other = TestDevice(22)
        second = entry(deviceId=other.device_id, publicKey=other.public_key)  # with the token of the first
        data = json.dumps({"a": entry(), "b": second, "c": {}}).encode()
        first = await import_paired(database, "/p", data)
        assert (first.path, first.found, first.imported, first.already) == ("/p", 3, 2, 0)
        assert len(first.problems) == 1
        paired = await Devices(database).paired()
        again = await import_paired(database, "/p", json.dumps({"a": entry(scopes=[])}).encode())
        assert (again.found, again.imported, again.already) == (1, 0, 1)
        assert await Devices(database).paired() == paired
        assert sum(len(device.tokens) for device in paired) == 1
    finally:
        await database.close()
