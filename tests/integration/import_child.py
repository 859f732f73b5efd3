"""An import in a process of its own, for the tests that kill it: one line on stdout for every part."""

from __future__ import annotations

import asyncio
import os
import sys

from openclaw.app.doctor import ProgressFeed, session_sqlite
from openclaw.config.load import config_path, load_or_raise


def main() -> int:
    env = dict(os.environ)

    def tell(count: int) -> None:
        if count == 0:  # a part is on disk; a file that is done tells its size
            sys.stdout.write("part\n")
            sys.stdout.flush()

    loaded = load_or_raise(config_path(env), env)
    report = asyncio.run(session_sqlite("import", loaded, env, None, ProgressFeed(advance=tell)))
    return 0 if report.ok else 1


if __name__ == "__main__":
    sys.exit(main())
