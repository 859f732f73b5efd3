"""The checks can see: each planted bug is found, and without it the same check finds nothing."""

from __future__ import annotations

import re

import pytest

from openclaw.store import search
from tests.conformance.machine import STEPS_PER_EXAMPLE, run_machine
from tests.faults import connections, test_connections, test_disk_faults, vfs
from tests.faults.planted import PLANTED

MOST_STEPS = 50_000
BY_MACHINE = [name for name, bug in PLANTED.items() if bug.found_by == "machine"]
BY_DISK = [name for name, bug in PLANTED.items() if bug.found_by in vfs.MODES]
BY_CONNECTION = [name for name, bug in PLANTED.items() if bug.found_by in connections.MODES]

PROVES = pytest.mark.spec("DB-14", "DB-15", "DB-16")


@PROVES
@pytest.mark.parametrize("name", BY_MACHINE)
def test_the_machine_finds(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(search, "FOLD_EVERY", 8)
    PLANTED[name].plant(monkeypatch)
    with pytest.raises(Exception) as found:
        examples = MOST_STEPS // STEPS_PER_EXAMPLE
        run_machine("sqlite-memory", examples, shrink=False, often=PLANTED[name].often)
    notes = " ".join(found.value.__notes__)
    print(f"{name}: found {notes[-30:]}")
    assert isinstance(found.value, AssertionError), found.value
    assert int(re.findall(r"after (\d+) steps", notes)[-1]) <= MOST_STEPS


@PROVES
@pytest.mark.parametrize("name", BY_DISK)
def test_the_failing_disk_finds(name: str) -> None:
    told, totals = test_disk_faults.run_campaign(
        PLANTED[name].found_by, "--every", "120", "--first", "45", "--plant", name
    )
    print(f"{name}: {totals['wrong']} of {totals['trials']} trials, first in trial {totals['first_found']}")
    assert totals["wrong"] >= 1
    assert len(told) == totals["wrong"]


@PROVES
@pytest.mark.parametrize("name", BY_CONNECTION)
def test_the_broken_connection_finds(name: str) -> None:
    told, totals = test_connections.run_campaign(
        PLANTED[name].found_by, "--every", "7", "--first", "3", "--plant", name
    )
    print(f"{name}: {totals['wrong']} of {totals['trials']} trials")
    assert totals["wrong"] >= 1
    assert len(told) == totals["wrong"]


def test_every_bug_has_a_check() -> None:
    assert sorted([*BY_MACHINE, *BY_DISK, *BY_CONNECTION]) == sorted(PLANTED)
