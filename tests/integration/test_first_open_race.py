"""Many processes open the same fresh store at the same moment: one owns it, the others are told so."""

from __future__ import annotations

import asyncio
from contextlib import AsyncExitStack
from pathlib import Path

import pytest

from tests.integration.child_process import started

PROCESSES = 8
STORES = 20


@pytest.mark.spec("OWN-6")
async def test_exactly_one_process_owns_each_fresh_store(tmp_path: Path) -> None:
    async with AsyncExitStack() as children:
        racers = await asyncio.gather(
            *(children.enter_async_context(started("race")) for _ in range(PROCESSES))
        )
        for racer in racers:
            assert await racer.told() == {"ready": True}
        pids = {str(racer.pid) for racer in racers}
        for number in range(STORES):
            state = tmp_path / f"state-{number}"
            await asyncio.gather(*(racer.say(str(state / "openclaw.sqlite")) for racer in racers))
            answers = await asyncio.gather(*(racer.told() for racer in racers))
            owners = [racer for racer, answer in zip(racers, answers, strict=True) if answer["opened"]]
            assert len(owners) == 1, answers
            assert await owners[0].told() == {"written": True}
            for answer in answers:
                if not answer["opened"]:
                    assert answer["code"] == "STORE_LOCKED", answer
                    # A loser may look before the winner has signed; it never names a stranger.
                    assert answer["fields"]["owner"] in {"", str(owners[0].pid)} <= pids | {""}
                    assert f"owns {state}. Stop it, or use another OPENCLAW_STATE_DIR." in answer["message"]
            for racer in racers:
                await racer.say("release")
                assert await racer.told() == {"released": True}
