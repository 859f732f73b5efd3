"""`openclaw pairing` and `openclaw channels` against a gateway of the test."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from openclaw.errors import InvalidRequest
from tests.unit.cli.conftest import Command
from tests.unit.cli.fake_gateway import FakeGateway, Json, running


def _people(params: Json) -> Json:
    now_ms = time.time_ns() // 1_000_000
    if params.get("channel") == "empty":
        return {"pending": [], "admitted": []}
    zed = {"channel": "telegram", "accountId": "default", "senderId": "66", "name": "Z\x1b[31med"}
    ann = {"channel": "matrix", "accountId": "default", "senderId": "@ann:hs", "name": None}
    return {
        "pending": [zed | {"code": "7K3XQ2MB", "askedAt": now_ms - 65_000, "expiresAt": now_ms}],
        "admitted": [ann | {"owner": True, "askedAt": 1, "approvedAt": now_ms - 7_300_000}],
    }


def _approve(params: Json) -> Json:
    if params["code"] == "WRONG":
        raise InvalidRequest("no one on telegram holds the code 'WRONG'")
    return {"ok": True, "senderId": "66", "name": "Zed", "accountId": "default", **params}


def _status(_params: Json) -> Json:
    now_ms = time.time_ns() // 1_000_000
    well = {"accountId": "default", "state": "running", "sinceMs": now_ms - 61_000, "restarts": 0}
    ill = {"accountId": "work", "state": "waiting", "sinceMs": now_ms, "restarts": 3, "lastError": "401"}
    return {"channelOrder": ["telegram"], "channelAccounts": {"telegram": [well, ill]}}


@pytest.fixture
def gateway(point_at: Callable[[FakeGateway], Path]) -> Iterator[FakeGateway]:
    answers = {
        "pairing.list": _people,
        "pairing.approve": _approve,
        "pairing.remove": lambda params: {"ok": True, "removed": int(params["senderId"] == "66")},
        "channels.status": _status,
    }
    with running(FakeGateway(answers)) as fake:
        point_at(fake)
        yield fake


@pytest.mark.spec("CMD-13")
def test_the_list_shows_codes_and_guests(gateway: FakeGateway, command: Command) -> None:
    shown = command("pairing", "list")
    assert shown.code == 0 and "\x1b" not in shown.out
    waiting, let_in = shown.out.split("Let in\n")
    assert "7K3XQ2MB" in waiting and "66" in waiting and "1m" in waiting
    assert "@ann:hs" in let_in and "owner" in let_in and "2h" in let_in
    assert "Nobody asked yet" in command("pairing", "list", "empty").out
    assert command("pairing", "list", "--json").json()["pending"][0]["senderId"] == "66"


@pytest.mark.spec("CMD-13")
def test_somebody_is_let_in_and_shown_out(gateway: FakeGateway, command: Command) -> None:
    done = command("pairing", "approve", "telegram", "7K3XQ2MB", "--owner")
    assert (done.code, done.out.strip()) == (0, "Zed (66) may now talk on telegram as an owner.")
    plain = command("pairing", "approve", "telegram", "7K3XQ2MB", "--json")
    assert plain.json()["owner"] is False
    wrong = command("pairing", "approve", "telegram", "WRONG")
    assert wrong.code == 1 and "holds the code" in wrong.err
    assert command("pairing", "remove", "telegram", "66").out.strip() == "Removed."
    assert "Nobody of this id" in command("pairing", "remove", "telegram", "9").out
    assert command("pairing", "remove", "telegram", "66", "--json").json()["removed"] == 1


def test_the_channels_show_how_they_do(gateway: FakeGateway, command: Command) -> None:
    shown = command("channels", "status")
    assert shown.code == 0
    _, well, ill = shown.out.splitlines()
    assert well.split()[:4] == ["telegram", "default", "running", "1m"]
    assert "waiting" in ill and "401" in ill and "3" in ill
    assert command("channels", "status", "--json").json()["channelOrder"] == ["telegram"]
