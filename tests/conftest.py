"""What all tests share: the choice of tests by requirement, and how hard the property tests try.

`pytest --spec LIFE-11` runs only the tests that prove LIFE-11. A marker with an ID that the specification
does not have stops the run. Asynchronous tests run on a loop that does not count the time in which the
machine stands still. Fixtures do not live here; they stand beside the tests that use them.
"""

from __future__ import annotations

import os

import pytest
from hypothesis import settings

from scripts.spec_coverage import IDS, ROOT, read_requirements
from tests.fakes.even_loop import EvenLoop

# In CI the examples are the same on every run, so that a red run means that the change broke something.
settings.register_profile("ci", deadline=None, print_blob=True, derandomize="CI" in os.environ)
# `scripts/long`: as many examples as an hour allows, for tests that leave the number to the profile.
settings.register_profile(
    "long", deadline=None, print_blob=True, max_examples=20_000, stateful_step_count=200
)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "ci"))


def pytest_addoption(parser: pytest.Parser) -> None:
    help_text = "run only the tests that prove this requirement (may be given several times)"
    parser.addoption("--spec", action="append", default=[], metavar="ID", help=help_text)


def pytest_asyncio_loop_factories() -> dict[str, type[EvenLoop]]:
    return {"even": EvenLoop}


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    _, requirements = read_requirements(ROOT / IDS)
    wanted = set(config.getoption("--spec"))
    unknown = [f"--spec {spec_id}" for spec_id in sorted(wanted - requirements.keys())]
    chosen: list[pytest.Item] = []
    left_out: list[pytest.Item] = []
    for item in items:
        named = {spec_id for mark in item.iter_markers("spec") for spec_id in mark.args}
        unknown += [f"{item.nodeid}: {spec_id}" for spec_id in sorted(named - requirements.keys())]
        (chosen if not wanted or named & wanted else left_out).append(item)
    if unknown:
        raise pytest.UsageError("unknown requirements:\n" + "\n".join(unknown))
    if left_out:
        config.hook.pytest_deselected(items=left_out)
        items[:] = chosen
