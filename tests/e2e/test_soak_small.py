"""A few hundred turns of the soak, with everything in it: nothing fails and nothing stays behind."""

from __future__ import annotations

from pathlib import Path

from benchmarks.soak import Plan, soak
from benchmarks.zero_model import zero_model


async def test_a_small_soak_leaves_nothing_behind(tmp_path: Path) -> None:
    plan = Plan(turns=400, lanes=8, every_s=0.2)
    with zero_model(acting=True) as model:
        record = await soak(plan, tmp_path, model)
    assert record.errors == []
    assert record.turns == 400
    # Which kinds of work came up in so few turns is chance; that there was some is not.
    assert sum(record.done.get(kind, 0) for kind in ("spawns", "visits", "resets", "stops")) > 0
    last = record.samples[-1]
    # Lanes have gone, so have their tasks; what is left is the gateway itself.
    assert last.tasks < 40
    assert last.descriptors < 64
    assert last.threads < 16
    assert max(sample.wal_bytes for sample in record.samples) <= 64 << 20
