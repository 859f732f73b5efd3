"""The simulation can see: each planted bug is found, and without it the same stories hold."""

from __future__ import annotations

import re

import pytest

from tests.simulation.memory import Violation
from tests.simulation.planted import PLANTED
from tests.simulation.story import tell_stories

MOST_STEPS = 50_000


@pytest.mark.parametrize("name", PLANTED)
@pytest.mark.spec("QUE-1", "QUE-8", "REST-2")
def test_the_simulation_finds(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    PLANTED[name](monkeypatch)
    with pytest.raises(Violation) as found:
        tell_stories(1, MOST_STEPS)
    steps = int(re.findall(r"found after (\d+) steps", " ".join(found.value.__notes__))[0])
    print(f"{name}: found after {steps} steps: {str(found.value)[:100]}")
    assert steps <= MOST_STEPS
