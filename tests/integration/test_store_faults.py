"""One call to the disk fails, whichever it is: callers are told, and nothing acknowledged is lost."""

from __future__ import annotations

import pytest

from tests.integration.child_process import started


@pytest.mark.spec("DB-15", "DB-16")
@pytest.mark.parametrize(("kind", "step", "error"), [("sync", 1, "StoreError"), ("write", 3, "StoreFull")])
async def test_a_failing_disk_loses_nothing_that_was_acknowledged(kind: str, step: int, error: str) -> None:
    async with started("faults", kind, str(step)) as child:
        sound, *reports = await child.rest()
        assert await child.ended() == 0
    assert (sound["kept"], sound["errors"], sound["lost"]) == (36, [], [])
    assert len(reports) >= 15
    for report in reports:
        assert (report["lost"], report["twice"], report["check"]) == ([], 0, [["ok"]]), report
        assert set(report["errors"]) <= {error}, report
        # Only a fault while the log is folded is nobody's business: the log still has everything.
        assert report["errors"] or report["kept"] == 36, report
    assert any(report["errors"] and report["kept"] > 20 for report in reports)
