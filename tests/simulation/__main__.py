"""`python -m tests.simulation`: tell stories from a seed on. See `scripts/simulate`."""

from __future__ import annotations

import argparse
import sys
import time

from tests.simulation.family import FamilyStory
from tests.simulation.story import STEPS_PER_STORY, Story, Told, tell_stories


def main() -> int:
    parser = argparse.ArgumentParser(prog="scripts/simulate", description="Simulate the engine.")
    parser.add_argument("--seed", type=int, default=1, help="the seed of the first story (1)")
    parser.add_argument("--steps", type=int, default=STEPS_PER_STORY, help="how many steps in all (1000)")
    parser.add_argument("--verbose", action="store_true", help="print what happens in a single story")
    parser.add_argument("--helpers", action="store_true", help="with sub-agents, exchanges and commands")
    chosen = parser.parse_args()
    kind = FamilyStory if chosen.helpers else Story
    if chosen.verbose:
        return _tell_aloud(kind(chosen.seed, min(chosen.steps, STEPS_PER_STORY)))
    began = time.monotonic()
    told = tell_stories(chosen.seed, chosen.steps, _show_progress, kind)
    print(f"\n{told.steps} steps in {time.monotonic() - began:.0f} s, every promise held")
    _show(told)
    return 0


def _tell_aloud(story: Story) -> int:
    try:
        _show(story.tell())
    finally:
        print("\n".join(story.memory.log))
    return 0


def _show_progress(told: Told) -> None:
    print(
        f"\r{told.steps} steps, {told.processes} starts, {told.audits} quiet points", end="", file=sys.stderr
    )


def _show(told: Told) -> None:
    print(f"{told.processes} starts of a gateway, {told.audits} quiet points")
    share = 100 * told.prefix_kept / max(1, told.prefix_pairs)
    print(f"{told.prefix_kept} of {told.prefix_pairs} requests begin as the one before ({share:.3f} %)")
    for kind, count in sorted(told.kinds.items(), key=lambda item: -item[1]):
        print(f"{count:8} {kind}")


if __name__ == "__main__":
    sys.exit(main())
