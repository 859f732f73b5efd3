"""Operating commands where no gateway runs: they hold the store themselves, work, and let it go (OWN-4)."""

from __future__ import annotations

import asyncio
import json
import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from openclaw.domain.entry import DeliveryContext
from openclaw.store import conversations, outbox
from openclaw.store.conversations import ConversationRef
from openclaw.store.devices import Device, DeviceFacts, Grant, put_device
from openclaw.store.lockfile import OwnerLock
from openclaw.store.records import DeliveryDraft
from openclaw.store.sqlite import SqliteDatabase
from tests.integration.conftest import Said

DAY = 86_400_000


@pytest.fixture
def state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A private state directory with a config; the port is one where nobody listens."""
    usual = os.umask(0o077)
    for name in [one for one in os.environ if one.startswith("OPENCLAW_")]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("HOME", str(tmp_path))
    place = tmp_path / ".openclaw"
    place.mkdir()
    (place / "openclaw.json").write_text('{ gateway: { port: 1 }, tools: { deny: ["exec"] } }')
    yield place
    os.umask(usual)


def write(state: Path, *units: Callable[[Any], object]) -> None:
    async def work() -> None:
        database = await SqliteDatabase.open(state / "openclaw.sqlite")
        for unit in units:
            await database.write(unit)
        await database.close()

    asyncio.run(work())


def delivery(name: str, now_ms: int, key: str = "agent:main:main") -> Callable[[Any], None]:
    draft = DeliveryDraft(name, DeliveryContext(channel="irc", to="#x"), b'{"text":"hello"}', now_ms)
    return lambda tx: outbox.prepare(tx, draft, key, None, now_ms)


@pytest.mark.spec("OWN-4", "REST-7")
def test_the_outbox_of_a_store_that_nobody_runs(state: Path, openclaw: Callable[..., Said]) -> None:
    assert openclaw("outbox", "list") == (0, "No deliveries.\n", "")
    write(
        state,
        delivery("one", 1000),
        delivery("two", 1000, "agent:main:x"),
        lambda tx: outbox.expire(tx, 2000),
    )
    code, out, _ = openclaw("outbox", "list", "--session-key", "main", "--state", "failed", "--json")
    (item,) = json.loads(out)["deliveries"]
    assert code == 0 and item["error"] == "expired before it could be sent"
    assert json.loads(openclaw("outbox", "list", "--limit", "1", "--json")[1])["before"] == 2
    number = str(item["deliveryNo"])
    assert "hello" in openclaw("outbox", "show", number)[1]
    assert json.loads(openclaw("outbox", "show", number, "--json")[1])["delivery"]["channel"] == "irc"
    assert openclaw("outbox", "retry", number)[1] == f"Delivery {number} waits to be sent again.\n"
    assert json.loads(openclaw("outbox", "show", number, "--json")[1])["delivery"]["state"] == "prepared"
    assert openclaw("outbox", "drop", number, "--yes")[0] == 0
    assert f"no delivery {number}" in openclaw("outbox", "show", number)[2]


@pytest.mark.spec("CLI-14", "OWN-4")
def test_an_audit_of_a_store_that_nobody_runs(
    state: Path, openclaw: Callable[..., Said], monkeypatch: pytest.MonkeyPatch
) -> None:
    assert openclaw("security", "audit") == (0, "Nothing to put right.\n", "")
    assert not (state / "openclaw.sqlite").exists(), "looking makes no file"
    facts = DeviceFacts("linux", "cli", "cli", display_name="Old laptop")
    grant = Grant(("operator",), ("operator.read",))
    now_ms = 1_800_000_000_000
    monkeypatch.setattr("openclaw.cli.security.time.time_ns", lambda: now_ms * 1_000_000)
    devices = [
        Device(name, f"key of {name}", facts, grant, "owner", 1, 1, seen, "connect")
        for name, seen in (("old", now_ms - 90 * DAY - 1), ("new", now_ms - 90 * DAY))
    ]
    places = [ConversationRef("irc", "default", "direct", peer) for peer in ("ann", "ben")]
    write(
        state,
        *(lambda tx, one=one: put_device(tx, one) for one in devices),
        *(lambda tx, one=one: conversations.link(tx, "agent:main:main", one, 1) for one in places),
        *(lambda tx, one=one: conversations.link(tx, "not a key of ours", one, 1) for one in places),
    )
    code, out, _ = openclaw("security", "audit", "--json")
    report = json.loads(out)
    assert code == 0 and report["counts"] == {"critical": 0, "warn": 1, "info": 1}
    shared, unused = report["findings"]
    assert shared["check"] == "session.dmScope" and "2 people share one session" in shared["detail"]
    assert unused["check"] == "devices.unused" and "Old laptop" in unused["detail"]
    assert "90 days ago" in unused["detail"] and unused["fix"] == "openclaw devices revoke old"


def test_many_open_files_are_counted_and_closed(state: Path, openclaw: Callable[..., Said]) -> None:
    for number in range(30):
        (state / f"note-{number}").write_text("x")
        (state / f"note-{number}").chmod(0o644)
    code, out, _ = openclaw("security", "audit", "--deep")
    assert code == 0 and "10 more files are open to others" in out and "--fix closes the files" in out
    assert openclaw("security", "audit", "--deep", "--fix")[0] == 0
    assert {path.stat().st_mode & 0o777 for path in state.glob("note-*")} == {0o600}
    assert openclaw("security", "audit", "--deep")[1] == "Nothing to put right.\n"


@pytest.mark.spec("OWN-6")
def test_a_store_that_is_owned_is_not_opened(state: Path, openclaw: Callable[..., Said]) -> None:
    write(state)
    lock = OwnerLock(state / "openclaw.sqlite")
    lock.take()
    try:
        for arguments in (("outbox", "list"), ("explain", "reset", "main"), ("security", "audit")):
            code, out, err = openclaw(*arguments)
            assert (code, out) == (1, "") and "did not answer at" in err and "--url" in err, arguments
    finally:
        lock.release()
