"""What the terminal UI remembers on this machine, in `<stateDir>/client.sqlite` (CLI-12, DB-1).

The last session per gateway and agent, what was typed, what could not be sent yet, and
the key of this device. It belongs to the client alone: no gateway opens it, and it holds
nothing of a conversation that a gateway has accepted. For one thread; several processes
may use the file at once.
"""

from __future__ import annotations

import os
from pathlib import Path
from types import TracebackType
from typing import Final

import apsw
from msgspec import Struct

from openclaw.errors import StoreError

FILE_NAME: Final = "client.sqlite"
SCHEMA_VERSION: Final = 1
KEPT_LINES: Final = 500
MAX_LINE_CHARS: Final = 32_768
_BUSY_MS: Final = 5000

_SCHEMA: Final = """
CREATE TABLE last_sessions (
  gateway TEXT NOT NULL, agent_id TEXT NOT NULL, session_key TEXT NOT NULL, at_ms INTEGER NOT NULL,
  PRIMARY KEY (gateway, agent_id)) WITHOUT ROWID;
CREATE TABLE typed (number INTEGER PRIMARY KEY, line TEXT NOT NULL);
CREATE TABLE unsent (
  number INTEGER PRIMARY KEY, gateway TEXT NOT NULL, run_id TEXT NOT NULL UNIQUE,
  session_key TEXT NOT NULL, message TEXT NOT NULL, at_ms INTEGER NOT NULL);
CREATE TABLE device_key (only_one INTEGER PRIMARY KEY CHECK (only_one = 1), seed BLOB NOT NULL);
CREATE TABLE device_tokens (gateway TEXT PRIMARY KEY, token TEXT NOT NULL) WITHOUT ROWID;
CREATE TABLE choices (name TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID;
"""


class Unsent(Struct, frozen=True):
    """A message that no gateway has acknowledged. Its run id makes sending it again harmless."""

    run_id: str
    session_key: str
    message: str
    at_ms: int


class ClientMemory:
    """Opens the file, makes it when there is none, and closes it at the end of a `with` block."""

    def __init__(self, path: Path) -> None:
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        try:
            # A private key is kept in it: nobody else may read it, not even for a moment. SQLite gives the
            # files that it makes beside it the same mode.
            os.close(os.open(path, os.O_RDWR | os.O_CREAT, 0o600))
            path.chmod(0o600)
            self._db = apsw.Connection(str(path))
            self._db.set_busy_timeout(_BUSY_MS)
            self._prepare(path)
        except (apsw.Error, OSError) as error:
            raise StoreError(f"cannot use {path}: {error}; move the file away to begin a new one") from error

    def _prepare(self, path: Path) -> None:
        self._db.execute("PRAGMA journal_mode = WAL")
        self._db.execute("PRAGMA synchronous = NORMAL")
        # The lock is taken before the look, so that two first starts do not both make the tables.
        self._db.execute("BEGIN IMMEDIATE")
        version = self._db.execute("PRAGMA user_version").get
        if version == 0:
            self._db.execute(_SCHEMA)
            self._db.execute(f"PRAGMA user_version = {SCHEMA_VERSION}")
        self._db.execute("COMMIT")
        if version > SCHEMA_VERSION:
            self._db.close()
            raise StoreError(f"{path} was made by a newer openclaw; upgrade this one")

    def __enter__(self) -> ClientMemory:
        return self

    def __exit__(
        self, _kind: type[BaseException] | None, _error: BaseException | None, _trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        self._db.close()

    # -- where one was -------------------------------------------------------------------------

    def last_session(self, gateway: str, agent_id: str | None = None) -> str | None:
        """The session that was last open there; without an agent, of any of them (CLI-12)."""
        found = self._db.execute(
            "SELECT session_key FROM last_sessions WHERE gateway = ?1 AND (?2 IS NULL OR agent_id = ?2)"
            " ORDER BY at_ms DESC, agent_id LIMIT 1",
            (gateway, agent_id),
        ).get
        return None if found is None else str(found)

    def remember_session(self, gateway: str, agent_id: str, session_key: str, at_ms: int) -> None:
        self._db.execute(
            "INSERT INTO last_sessions VALUES (?1, ?2, ?3, ?4) ON CONFLICT (gateway, agent_id)"
            " DO UPDATE SET session_key = ?3, at_ms = ?4",
            (gateway, agent_id, session_key, at_ms),
        )

    # -- what was typed ------------------------------------------------------------------------

    def typed_lines(self) -> list[str]:
        """The last inputs, oldest first."""
        rows = self._db.execute("SELECT line FROM typed ORDER BY number DESC LIMIT ?", (KEPT_LINES,))
        return [str(line) for (line,) in rows][::-1]

    def remember_line(self, line: str) -> None:
        """A huge paste is not worth keeping; the same line twice in a row is kept once."""
        if len(line) > MAX_LINE_CHARS:
            return
        with self._db:
            if self._db.execute("SELECT line FROM typed ORDER BY number DESC LIMIT 1").get == line:
                return
            self._db.execute("INSERT INTO typed (line) VALUES (?)", (line,))
            self._db.execute(
                "DELETE FROM typed WHERE number <= (SELECT max(number) FROM typed) - ?", (KEPT_LINES,)
            )

    # -- what waits for a connection -----------------------------------------------------------

    def keep_unsent(self, gateway: str, unsent: Unsent) -> None:
        self._db.execute(
            "INSERT OR IGNORE INTO unsent (gateway, run_id, session_key, message, at_ms)"
            " VALUES (?, ?, ?, ?, ?)",
            (gateway, unsent.run_id, unsent.session_key, unsent.message, unsent.at_ms),
        )

    def unsent(self, gateway: str) -> list[Unsent]:
        """In the order in which they were written."""
        rows = self._db.execute(
            "SELECT run_id, session_key, message, at_ms FROM unsent WHERE gateway = ? ORDER BY number",
            (gateway,),
        )
        return [Unsent(str(run), str(key), str(text), int(str(at))) for run, key, text, at in rows]

    def forget_unsent(self, run_id: str) -> None:
        self._db.execute("DELETE FROM unsent WHERE run_id = ?", (run_id,))

    # -- who this device is --------------------------------------------------------------------

    def device_seed(self, made: bytes) -> bytes:
        """The private key of this device; `made` becomes it when there is none yet."""
        self._db.execute("INSERT OR IGNORE INTO device_key VALUES (1, ?)", (made,))
        seed = self._db.execute("SELECT seed FROM device_key").get
        assert isinstance(seed, bytes)
        return seed

    def device_token(self, gateway: str) -> str | None:
        found = self._db.execute("SELECT token FROM device_tokens WHERE gateway = ?", (gateway,)).get
        return None if found is None else str(found)

    def remember_device_token(self, gateway: str, token: str) -> None:
        self._db.execute("INSERT OR REPLACE INTO device_tokens VALUES (?, ?)", (gateway, token))

    def forget_device_token(self, gateway: str) -> None:
        self._db.execute("DELETE FROM device_tokens WHERE gateway = ?", (gateway,))

    # -- how it looks --------------------------------------------------------------------------

    def choice(self, name: str) -> str | None:
        found = self._db.execute("SELECT value FROM choices WHERE name = ?", (name,)).get
        return None if found is None else str(found)

    def remember_choice(self, name: str, value: str) -> None:
        self._db.execute("INSERT OR REPLACE INTO choices VALUES (?, ?)", (name, value))
