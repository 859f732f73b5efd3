"""The ground of the PostgreSQL driver: one gateway per database, and databases that are not understood."""

from __future__ import annotations

import errno
import os
import signal
import subprocess
import sys
import time
from collections.abc import AsyncIterator
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from openclaw.errors import StoreBusy, StoreCorrupt, StoreError, StoreLocked, StoreReadOnly, StoreTooNew
from openclaw.store import postgres_schema
from openclaw.store.postgres import PostgresDatabase
from openclaw.store.postgres_schema import name_of
from openclaw.store.statements import read_sql
from tests.fakes.postgres_server import URL_VARIABLE, shared_server
from tests.unit.store.driving import Word
from tests.unit.store.postgres_driving import opened, own_database, written

TABLES = "SELECT relname FROM pg_class WHERE relkind = 'r' AND relnamespace = 'public'::regnamespace"


@pytest.fixture
async def url() -> AsyncIterator[str]:
    async with own_database() as address:
        yield address


def database_name(url: str) -> str:
    return urlsplit(url).path[1:]


def kill(url: str, which: str) -> None:
    """End connections from the server's side: the owner's, which holds a lock alone, or the rest."""
    alone = "EXISTS" if which == "owner" else "NOT EXISTS"
    shared_server().execute(
        "SELECT pg_terminate_backend(a.pid, 5000) FROM pg_stat_activity a "
        f"WHERE a.datname = '{database_name(url)}' AND a.application_name = 'openclaw' AND {alone} "
        "(SELECT 1 FROM pg_locks l WHERE l.pid = a.pid AND l.locktype = 'advisory' "
        "AND l.mode = 'ExclusiveLock')"
    )


# -- one gateway per database ----------------------------------------------------------------------


@pytest.mark.spec("OWN-6")
async def test_a_second_gateway_is_refused_and_the_next_one_welcome(
    url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(postgres_schema, "LOCK_PATIENCE_S", 0.2)
    async with opened(url) as first:
        await first.write(Word("a"))
        with pytest.raises(StoreLocked, match="another gateway") as caught:
            await PostgresDatabase.open(url)
        assert "store.url" in caught.value.message
        assert await first.write(Word("b")) == "b"
    async with opened(url) as second:
        assert await written(second) == ["a", "b"]


@pytest.mark.spec("OWN-6")
async def test_schemas_of_one_database_have_owners_of_their_own(url: str) -> None:
    shared_server().execute("CREATE SCHEMA other", url)
    async with opened(url) as first, opened(f"{url}&options=-csearch_path%3Dother") as second:
        await first.write(Word("first"))
        await second.write(Word("second"))
        assert (await written(first), await written(second)) == (["first"], ["second"])


@pytest.mark.spec("OWN-6")
async def test_a_gateway_that_lost_its_lock_but_not_its_connections_keeps_others_out(
    url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(postgres_schema, "LOCK_PATIENCE_S", 0.2)
    async with opened(url) as first:
        await first.write(Word("a"))
        kill(url, "owner")
        with pytest.raises(StoreLocked):
            await PostgresDatabase.open(url)
        assert await first.write(Word("b")) == "b"
        # With the next connection that it needs, it takes the lock again.
        assert await written(first) == ["a", "b"]
        with pytest.raises(StoreLocked):
            await PostgresDatabase.open(url)


@pytest.mark.spec("OWN-6")
async def test_a_gateway_that_lost_everything_cannot_write_beside_its_successor(
    url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(postgres_schema, "LOCK_PATIENCE_S", 0.2)
    async with opened(url) as first:
        await first.write(Word("a"))
        kill(url, "rest")
        kill(url, "owner")
        async with opened(url) as second:
            await second.write(Word("b"))
            late = Word("late")
            with pytest.raises(StoreLocked):
                await first.write(late)
            assert late.ran == 0
            assert await written(second) == ["a", "b"]


async def test_a_gateway_that_lost_everything_goes_on_when_nobody_came(url: str) -> None:
    async with opened(url) as database:
        await database.write(Word("a"))
        kill(url, "rest")
        kill(url, "owner")
        assert await database.write(Word("b")) == "b"
        assert await written(database) == ["a", "b"]


# -- databases that are not understood -------------------------------------------------------------


@pytest.mark.spec("DB-11")
async def test_a_newer_schema_is_refused_and_not_changed(url: str) -> None:
    async with opened(url) as database:
        await database.write(Word("kept"))
    shared_server().execute("UPDATE openclaw_schema SET version = 99", url)
    with pytest.raises(StoreTooNew, match=r"schema 99.*Upgrade"):
        await PostgresDatabase.open(url)
    assert shared_server().execute("SELECT name FROM meta", url) == [("kept",)]
    shared_server().execute("UPDATE openclaw_schema SET version = 1", url)
    async with opened(url) as database:
        assert await written(database) == ["kept"]


async def test_tables_of_another_program_are_refused_and_left_alone(url: str) -> None:
    shared_server().execute("CREATE TABLE customers (name TEXT)", url)
    with pytest.raises(StoreCorrupt, match="another program"):
        await PostgresDatabase.open(url)
    assert shared_server().execute(TABLES, url) == [("customers",)]


@pytest.mark.spec("DB-11")
async def test_a_schema_is_created_whole_or_not_at_all(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    script = read_sql("schema_postgres.sql")
    monkeypatch.setattr(postgres_schema, "read_sql", lambda _: script + "\nSELECT 1 / 0;")
    with pytest.raises(StoreError, match="division by zero"):
        await PostgresDatabase.open(url)
    assert shared_server().execute(TABLES, url) == []
    monkeypatch.undo()
    async with opened(url) as database:
        assert await database.write(Word("a")) == "a"


async def test_a_schema_that_cannot_be_read_is_told(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(_name: str) -> str:
        raise OSError(errno.EMFILE, "Too many open files")

    monkeypatch.setattr(postgres_schema, "read_sql", fail)
    with pytest.raises(StoreBusy, match=r"cannot be read \(Too many open files\)\. Check how many files"):
        await PostgresDatabase.open(url)
    monkeypatch.undo()
    async with opened(url) as database:
        assert await database.write(Word("a")) == "a"


async def test_a_read_only_database_is_refused(url: str) -> None:
    shared_server().execute(f"ALTER DATABASE {database_name(url)} SET default_transaction_read_only = on")
    with pytest.raises(StoreReadOnly, match="read-only"):
        await PostgresDatabase.open(url)


async def test_a_user_without_rights_is_told_so(url: str) -> None:
    server = shared_server()
    role = f"{database_name(url)}_guest"
    server.execute(f"CREATE ROLE {role} LOGIN PASSWORD 'guest'")
    try:
        guest = url.replace("openclaw@", f"{role}:guest@", 1)
        assert guest != url
        with pytest.raises(StoreReadOnly, match="permission denied") as caught:
            await PostgresDatabase.open(guest)
        assert ":guest" not in caught.value.message
    finally:
        server.execute(f"DROP ROLE {role}")


async def test_another_encoding_is_refused() -> None:
    server, name = shared_server(), f"openclaw_ascii_{os.getpid()}"
    server.execute(
        f"CREATE DATABASE {name} TEMPLATE template0 ENCODING 'SQL_ASCII' LOCALE 'C' LOCALE_PROVIDER libc"
    )
    url = urlsplit(server.create())._replace(path=f"/{name}").geturl()
    try:
        with pytest.raises(StoreError, match="UTF8"):
            await PostgresDatabase.open(url)
    finally:
        server.drop(url)


async def test_a_database_that_is_not_there_is_named(url: str) -> None:
    with pytest.raises(StoreError, match="does not exist"):
        await PostgresDatabase.open(url.replace(database_name(url), "nowhere"))
    with pytest.raises(StoreBusy, match="Check that the server runs"):
        await PostgresDatabase.open("postgresql://someone:secret@127.0.0.1:1/db")
    with pytest.raises(StoreError, match="not a PostgreSQL address"):
        await PostgresDatabase.open("postgresql://[")


def test_no_message_shows_a_password() -> None:
    assert name_of("postgresql://me:secret@db.example:6000/mine") == "postgresql://db.example/mine"
    assert name_of("postgresql:///mine?user=me&password=secret") == "postgresql://localhost/mine"
    assert name_of("host=db user=me password=secret dbname=mine") == "postgresql://db/mine"


# -- settings and values ---------------------------------------------------------------------------


@pytest.mark.spec("DB-12", "DB-15")
async def test_commits_wait_for_the_disk_whatever_the_default_is(url: str) -> None:
    shared_server().execute(f"ALTER DATABASE {database_name(url)} SET synchronous_commit = off")
    async with opened(url) as database:
        assert await database.write(lambda tx: tx.row("SHOW synchronous_commit")) == ("on",)
        assert await database.write(lambda tx: tx.row("SHOW transaction_isolation")) == ("serializable",)
        assert await database.read(lambda tx: tx.row("SHOW transaction_isolation")) == ("repeatable read",)
        assert await database.read(lambda tx: tx.row("SHOW transaction_read_only")) == ("on",)


async def test_values_come_back_as_they_were(url: str) -> None:
    columns = "session_id, session_key, id_salt, reason, started_at, base_seq"
    values = ("é\t\u2028", "a\\b'\"", -(2**63), "$1 %s ?", 2**63 - 1, True)
    async with opened(url) as database:
        await database.write(
            lambda tx: tx.run(f"INSERT INTO windows ({columns}) VALUES ($1, $2, $3, $4, $5, $6)", values)
        )
        assert await database.read(lambda tx: tx.row(f"SELECT {columns} FROM windows")) == values
        body = bytes(range(256))
        await database.write(lambda tx: tx.run("INSERT INTO blobs VALUES ($1, 0, $2)", ("a\0b", body)))
        # PostgreSQL has no NUL in text; what is asked for is written the same way.
        found = await database.read(lambda tx: tx.row("SELECT * FROM blobs WHERE hash = $1", ("a\0b",)))
        assert found == ("a\ufffdb", 0, body)
        numbers = (0.1, 1e300, -2.5e-8, float("inf"))
        sql = "SELECT " + ", ".join(f"CAST(${n} AS DOUBLE PRECISION)" for n in range(1, 5))
        assert await database.read(lambda tx: tx.row(sql, numbers)) == numbers
        with pytest.raises(StoreError):
            await database.write(lambda tx: tx.run("INSERT INTO blobs VALUES ('x', $1, '')", (2**63,)))


# -- the server of the tests -----------------------------------------------------------------------

_START_AND_STAND = """
import sys, time
from tests.fakes.postgres_server import PostgresServer
server = PostgresServer()
server.start()
print(server.execute("SHOW data_directory")[0][0], flush=True)
time.sleep(600)
"""


def test_no_server_outlives_its_tests() -> None:
    env = {name: value for name, value in os.environ.items() if name != URL_VARIABLE}
    with subprocess.Popen(
        [sys.executable, "-c", _START_AND_STAND], stdout=subprocess.PIPE, text=True, env=env
    ) as tests:
        assert tests.stdout is not None
        data = Path(tests.stdout.readline().strip())
        server = int((data / "postmaster.pid").read_text().split()[0])
        os.kill(server, 0)
        tests.send_signal(signal.SIGKILL)
    deadline = time.monotonic() + 60
    while data.parent.exists():
        assert time.monotonic() < deadline, "the server is still there"
        time.sleep(0.05)
    with pytest.raises(ProcessLookupError):
        os.kill(server, 0)
