"""`openclaw sessions cleanup`: its flags on the wire, and that a wrong store prevents everything."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.unit.cli.conftest import Command
from tests.unit.cli.fake_gateway import FakeGateway, Json, listing_of, running

STORE = "/state/openclaw.sqlite"


def cleaned(params: Json) -> Json:
    retired = 3 if params.get("fixDmScope") else 0
    store: Json = {"agentId": "main", "storePath": STORE, "beforeCount": 9, "afterCount": 4, "missing": 0}
    store |= {"dmScopeRetired": retired, "pruned": 2, "capped": 0}
    return {
        "mode": "enforce", "dryRun": params["dryRun"], "applied": not params["dryRun"], "stores": [store],
        "archived": 2, "deleted": 0, "purged": 0, "archivesWritten": 0, "archivesDropped": 0, "heldBack": 0,
        "usedBytes": 1, "overBudget": False, "reasons": {}, "examples": [],
    }  # fmt: skip


@pytest.fixture
def gateway(point_at: Callable[[FakeGateway], Path]) -> Iterator[FakeGateway]:
    with running(FakeGateway({"sessions.list": listing_of([]), "sessions.cleanup": cleaned})) as fake:
        point_at(fake)
        yield fake


@pytest.mark.spec("CLI-8")
def test_direct_sessions_that_are_left_behind_are_told(gateway: FakeGateway, command: Command) -> None:
    done = command("sessions", "cleanup", "--fix-dm-scope", "--active-key", "k", "--agent", "main")
    assert (done.code, done.err) == (0, "")
    assert "3 direct sessions archived for dmScope main\n" in done.out
    (asked,) = gateway.called("sessions.cleanup")
    assert (asked["fixDmScope"], asked["activeKey"], asked["agent"]) == (True, "k", "main")
    planned = command("sessions", "cleanup", "--fix-dm-scope", "--dry-run")
    assert "3 direct sessions to archive" in planned.out
    plain = command("sessions", "cleanup", "--json")
    assert plain.json()["stores"][0]["dmScopeRetired"] == 0
    assert "fixDmScope" not in gateway.called("sessions.cleanup")[-1]
    assert "direct session" not in command("sessions", "cleanup").out


@pytest.mark.spec("CLI-8")
def test_a_store_that_is_not_the_gateways_prevents_everything(gateway: FakeGateway, command: Command) -> None:
    assert command("sessions", "cleanup", "--store", STORE, "--json").code == 0
    assert len(gateway.called("sessions.cleanup")) == 1
    wrong = command("sessions", "cleanup", "--store", "/elsewhere/sessions.json")
    assert (wrong.code, wrong.out) == (1, "") and STORE in wrong.err
    assert len(gateway.called("sessions.cleanup")) == 1


@pytest.mark.spec("CLI-8", "OWN-4")
def test_without_a_gateway_the_store_is_checked_before_it_is_opened(command: Command, home: Path) -> None:
    wrong = command("sessions", "cleanup", "--store", "/elsewhere/sessions.json")
    assert wrong.code == 1 and str(home / ".openclaw" / "openclaw.sqlite") in wrong.err
    assert not (home / ".openclaw" / "openclaw.sqlite").exists()
