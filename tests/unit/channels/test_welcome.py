"""Which invitations may be taken up."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import msgspec
import pytest

from openclaw.channels.welcome import welcomes
from openclaw.config.schema import Config
from openclaw.store.senders import SenderRef, Senders
from openclaw.store.sqlite import SqliteDatabase

ANN, ROOM = "@Ann:Hs", "!Room:Hs"


@pytest.fixture
async def senders(tmp_path: Path) -> AsyncIterator[Senders]:
    database = await SqliteDatabase.open(tmp_path / "state.sqlite")
    yield Senders(database)
    await database.close()


async def ask(
    senders: Senders, section: dict[str, Any], *, direct: bool = False, account: str = "default"
) -> bool:
    config = msgspec.convert({"channels": {"matrix": section}}, Config)
    return await welcomes(senders, config, "matrix", account, (ANN, ROOM, direct))


@pytest.mark.parametrize(
    ("section", "room", "direct"),
    [
        ({}, False, True),
        ({"dmPolicy": "pairing"}, False, True),
        ({"dmPolicy": "allowlist"}, False, False),
        ({"dmPolicy": "disabled", "allowFrom": [ANN]}, False, False),
        ({"dmPolicy": "open"}, True, True),
        ({"allowFrom": [ANN]}, True, True),
        ({"allowFrom": [ANN.lower()], "dmPolicy": "allowlist"}, False, False),
        ({"groups": {ROOM: {}}, "dmPolicy": "disabled"}, True, True),
        ({"groups": {ROOM: {"enabled": False}}, "dmPolicy": "disabled"}, False, False),
        ({"groups": {"*": {}}, "dmPolicy": "disabled"}, False, False),
        ({"groups": {ROOM.lower(): {}}, "dmPolicy": "disabled"}, False, False),
        (
            {"accounts": {"default": {"groups": {}}}, "groups": {ROOM: {}}, "dmPolicy": "disabled"},
            False,
            False,
        ),
        ({"accounts": {"default": {"groups": {ROOM: {}}}}, "dmPolicy": "disabled"}, True, True),
        ({"accounts": {"default": {}}, "groups": {ROOM: {}}, "dmPolicy": "disabled"}, True, True),
    ],
)
async def test_the_rules_for_people_and_groups_decide(
    senders: Senders, section: dict[str, Any], room: bool, direct: bool
) -> None:
    assert await ask(senders, section) is room
    assert await ask(senders, section, direct=True) is direct


async def test_somebody_whom_a_person_let_in_is_welcome(senders: Senders) -> None:
    assert not await ask(senders, {})
    who = SenderRef("matrix", "default", ANN)
    asked = await senders.ask(who, "Ann", "CODE2345", now_ms=1)
    assert asked is not None
    await senders.approve("matrix", "CODE2345", owner=False, now_ms=2)
    assert await ask(senders, {})
    assert not await ask(senders, {}, account="work"), "each account lets people in by itself"
