"""Which session a message reaches: each scope, with and without links, for people, groups and topics."""

from __future__ import annotations

from typing import Any

import pytest

from tests.fakes.openai_server import FakeReply
from tests.integration.conftest import House, client_of

Json = dict[str, Any]
LINKS = {"alice": ["telegram:111", "matrix:@alice:hs"]}
ALICE_TELEGRAM = {"channel": "telegram", "peer": {"kind": "direct", "id": "111"}, "senderId": "111"}
ALICE_WORK = ALICE_TELEGRAM | {"accountId": "work"}
ALICE_MATRIX = {"channel": "matrix", "peer": {"kind": "direct", "id": "@alice:hs"}, "senderId": "@alice:hs"}
BOB_TELEGRAM = {"channel": "telegram", "peer": {"kind": "direct", "id": "222"}, "senderId": "222"}
GROUP = {"channel": "telegram", "peer": {"kind": "group", "id": "-100"}, "senderId": "111", "mentioned": True}
THREAD = GROUP | {"threadId": "7"}
ROOM = {
    "channel": "matrix",
    "peer": {"kind": "channel", "id": "!AbC:hs"},
    "senderId": "@alice:hs",
    "mentioned": True,
}
ALWAYS = {
    "group": "telegram:group:-100",
    "thread": "telegram:group:-100:thread:7",
    "room": "matrix:channel:!AbC:hs",
}
PLACES: dict[str, Json] = {
    "alice on telegram": ALICE_TELEGRAM,
    "alice at work": ALICE_WORK,
    "alice on matrix": ALICE_MATRIX,
    "bob": BOB_TELEGRAM,
    "group": GROUP,
    "thread": THREAD,
    "room": ROOM,
}
# scope, links -> the keys of alice on telegram, alice at work, alice on matrix, bob
TABLE = [
    ("main", False, ("main", "main", "main", "main")),
    ("main", True, ("main", "main", "main", "main")),
    ("per-peer", False, ("dm:111", "dm:111", "dm:@alice:hs", "dm:222")),
    ("per-peer", True, ("dm:alice", "dm:alice", "dm:alice", "dm:222")),
    (
        "per-channel-peer",
        False,
        ("telegram:dm:111", "telegram:dm:111", "matrix:dm:@alice:hs", "telegram:dm:222"),
    ),
    (
        "per-channel-peer",
        True,
        ("telegram:dm:alice", "telegram:dm:alice", "matrix:dm:alice", "telegram:dm:222"),
    ),
    (
        "per-account-channel-peer",
        False,
        (
            "telegram:default:dm:111",
            "telegram:work:dm:111",
            "matrix:default:dm:@alice:hs",
            "telegram:default:dm:222",
        ),
    ),
    (
        "per-account-channel-peer",
        True,
        (
            "telegram:default:dm:alice",
            "telegram:work:dm:alice",
            "matrix:default:dm:alice",
            "telegram:default:dm:222",
        ),
    ),
]


@pytest.mark.spec("KEY-3", "KEY-4", "KEY-5", "KEY-6", "KEY-7", "KEY-8", "KEY-9", "KEY-11", "KEY-20", "KEY-25")
@pytest.mark.parametrize(("scope", "linked", "direct"), TABLE)
async def test_the_table_of_keys(house: House, scope: str, linked: bool, direct: tuple[str, ...]) -> None:
    house.config["session"] = {"dmScope": scope} | ({"identityLinks": LINKS} if linked else {})
    rules = {"dmPolicy": "open", "groupPolicy": "open"}
    house.config["channels"] = {"telegram": rules, "matrix": rules}
    house.model.decide = lambda _body: FakeReply(texts=("ok",))
    expected = dict(zip(PLACES, (*direct, *ALWAYS.values()), strict=True))
    async with house.gateway() as gateway, client_of(gateway) as client:
        reached = {}
        for number, (name, place) in enumerate(PLACES.items()):
            params = place | {"messageId": f"m{number}", "text": f"I am {name}"}
            reached[name] = (await client.call("channels.inbound", params))["sessionKey"]
    assert reached == {name: f"agent:main:{key}" for name, key in expected.items()}


@pytest.mark.spec("KEY-3")
async def test_several_people_in_one_session_are_warned_about_once(
    house: House, caplog: pytest.LogCaptureFixture
) -> None:
    house.config["channels"] = {"telegram": {"dmPolicy": "open"}}
    house.model.decide = lambda _body: FakeReply(texts=("ok",))
    async with house.gateway() as gateway, client_of(gateway) as client:
        await client.call("channels.attach", {"channel": "telegram"})
        for number, place in enumerate((ALICE_TELEGRAM, BOB_TELEGRAM, BOB_TELEGRAM)):
            await client.call("channels.inbound", place | {"messageId": f"m{number}", "text": "hi"})
    warnings = [record.getMessage() for record in caplog.records if "dmScope" in record.getMessage()]
    assert len(warnings) == 1 and "2 people share the session agent:main:main" in warnings[0]


@pytest.mark.spec("KEY-3")
@pytest.mark.parametrize(
    "change",
    [
        {"session": {"dmScope": "main"}},
        {"commands": {"ownerAllowFrom": ["telegram:222"]}},
    ],
)
async def test_nobody_is_warned_who_chose_it_or_is_an_owner(
    house: House, caplog: pytest.LogCaptureFixture, change: Json
) -> None:
    house.config |= change
    house.config["channels"] = {"telegram": {"dmPolicy": "open"}}
    house.model.decide = lambda _body: FakeReply(texts=("ok",))
    async with house.gateway() as gateway, client_of(gateway) as client:
        for number, place in enumerate((ALICE_TELEGRAM, BOB_TELEGRAM)):
            await client.call("channels.inbound", place | {"messageId": f"m{number}", "text": "hi"})
    assert not [record for record in caplog.records if "dmScope" in record.getMessage()]
