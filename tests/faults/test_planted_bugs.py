"""The checks can see: each planted bug is found, and without it the same check finds nothing."""

from __future__ import annotations

import re

import pytest

from openclaw.store import search
from tests.conformance.machine import STEPS_PER_EXAMPLE, run_machine
from tests.faults.planted import PLANTED
from tests.faults.test_disk_faults import run_campaign

MOST_STEPS = 50_000
BY_MACHINE = [name for name, bug in PLANTED.items() if bug.found_by == "machine"]
BY_CAMPAIGN = [name for name, bug in PLANTED.items() if bug.found_by != "machine"]

PROVES = pytest.mark.spec("DB-14", "DB-15", "DB-16")


@PROVES
@pytest.mark.parametrize("name", BY_MACHINE)
def test_the_machine_finds(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(search, "FOLD_EVERY", 8)
    PLANTED[name].plant(monkeypatch)
    with pytest.raises(Exception) as found:
        run_machine("sqlite-memory", MOST_STEPS // STEPS_PER_EXAMPLE, shrink=False)
    notes = " ".join(found.value.__notes__)
    print(f"{name}: found {notes[-30:]}")
    assert isinstance(found.value, AssertionError), found.value
    assert int(re.findall(r"after (\d+) steps", notes)[-1]) <= MOST_STEPS


@PROVES
@pytest.mark.parametrize("name", BY_CAMPAIGN)
def test_the_campaign_finds(name: str) -> None:
    told, totals = run_campaign(PLANTED[name].found_by, "--every", "120", "--first", "45", "--plant", name)
    print(
        f"{name}: {totals['wrong']} of {totals['trials']} trials, the first was the {totals['first_found']}."
    )
    assert totals["wrong"] >= 1
    assert len(told) == totals["wrong"]
