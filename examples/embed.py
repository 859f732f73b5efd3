"""A gateway inside a program: spawn two helpers, wait for both, read what they said.

Run it with `python examples/embed.py`. It keeps nothing: the state is in a temporary folder.
The model is the one that a fresh `openclaw` would choose; without any key the built-in
offline model answers, so that the program works as it stands.
"""

from __future__ import annotations

import asyncio
import tempfile

import openclaw

TASKS = {
    "north": "Describe the northern sky in one sentence.",
    "south": "Describe the southern sky likewise.",
}


async def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        async with openclaw.Gateway({}, state_dir=folder) as gw:
            helpers = {label: await gw.sessions.spawn(task, label=label) for label, task in TASKS.items()}
            ended = await asyncio.gather(*(gw.wait(helper.run_id, 120) for helper in helpers.values()))
            for label, done in zip(helpers, ended, strict=True):
                print(f"{label}: {done.status}: {done.text[:72]!r}")
            labels = {helper.child_session_key: label for label, helper in helpers.items()}
            for session in await gw.sessions.list():
                print(f"{session.key}: {labels.get(session.key, 'the session that spawned them')}")


if __name__ == "__main__":
    asyncio.run(main())
