"""Erasing on request: one session, or everything that one person said, with a receipt.

The only verb that breaks the rule that a transcript is never rewritten. A session
that only the person used goes as a whole. In a session that others share, what the
person said becomes a tombstone in its place, and summaries that may retell it lose
their text. At the end the file is rewritten and the log emptied, so that the bytes
are gone and not only the rows. An erase that was cut off is simply asked for again.

This room does not decide who may ask, and it knows nothing outside the database.
"""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import Awaitable, Callable, Iterable
from functools import partial
from typing import Any, Protocol, runtime_checkable

import apsw
import msgspec
from msgspec import Struct
from msgspec.structs import replace

from openclaw.errors import InvalidRequest, SessionNotFound, Unavailable
from openclaw.store import (
    archiving,
    bindings,
    inbox,
    purging,
    runs,
    search,
    senders,
    sessions,
    systemevents,
    tombstones,
)
from openclaw.store.database import Database, Priority, Result, Transaction, Unit
from openclaw.store.purging import Pace
from openclaw.store.statements import load_statements
from openclaw.store.tombstones import Person, Traces, only_theirs

SQL = load_statements("erasing.sql")
SLICE = 100
REWRITE_BYTES = 512 << 20  # rewriting needs as much space again, and everybody waits for it
LIVE_REWRITE_BYTES = 16 << 20  # people who write meanwhile wait a fraction of a second
LOG_PATIENCE_MS = 200  # people who write wait for this, so it is tried again rather than waited for
LOG_TRIES = 50
LOG_REST_S = 0.2
BUSY_MS = 5000  # what the driver sets
NOT_TOUCHED = (
    "workspace files of the agents",
    "backups that were made before",
    "files that an import was read from or an export was written to",
    "archive files of purged sessions that others shared",
    "scheduled jobs and paired devices",
    "what agents wrote or passed on in sessions that others share",
    "their words where somebody else's message quotes them",
    "what was delivered to a platform or a model provider",
)
# Erasing: which statement finds the rows of a session up to which number, which one removes a row, and where
# the receipt counts it.
_ROWS_OF_SESSION = (
    ("inputs_of_session", "admission", "remove_input", "inputs"),
    ("runs_of_session", "window_no", "remove_run", "runs"),
    ("deliveries_of_session", "delivery_no", "remove_delivery", "deliveries"),
    ("usage_of_session", "usage_no", "anonymise_usage", "usage_anonymised"),
    ("removals_of_session", "removal_no", "remove_removal", "removals"),
    ("spawns_of_session", "created_at", "remove_spawn", "spawns"),
)

# Called before a session is touched; True when it goes as a whole.
Quiesce = Callable[[str, bool], Awaitable[None]]


async def _nobody_works(_session_key: str, _whole: bool) -> None:
    """Offline there is nothing to stop."""


class Receipt(Struct, frozen=True, rename="camel"):
    """What was erased, in numbers, without naming anybody: `subject` is a hash of what was asked for."""

    subject: str
    erased_at: int
    sessions: int = 0
    shared_sessions: int = 0
    windows: int = 0
    entries: int = 0
    tombstones: int = 0
    summaries: int = 0
    indexed: int = 0
    blobs: int = 0
    inputs: int = 0
    runs: int = 0
    deliveries: int = 0
    conversations: int = 0
    usage_anonymised: int = 0
    removals: int = 0
    spawns: int = 0
    archives: int = 0
    overheard: int = 0  # what they said in groups without calling the agent
    admissions: int = 0  # that they were let in, or asked to be
    log_emptied: bool = False
    file_rewritten: bool = False
    not_touched: tuple[str, ...] = NOT_TOUCHED

    def plus(self, **counts: int) -> Receipt:
        return replace(self, **{name: getattr(self, name) + number for name, number in counts.items()})


class Scrubbed(Struct, frozen=True):
    """How far the bytes followed the rows."""

    log_emptied: bool
    file_rewritten: bool


class GivenUp(Struct, frozen=True):
    """A session that nothing finds any more: its windows, and the last numbers that were its own."""

    windows: tuple[int, ...]
    conversations: int
    admission: int
    window_no: int
    delivery_no: int
    usage_no: int
    removal_no: int
    created_at: int


@runtime_checkable
class HasFile(Protocol):
    """A database that is a file, whose writing connection can be had for itself."""

    async def between_batches(self, work: Any) -> Any: ...


class Erasing:
    """Erase verbs over one database. `pace` is how much of the writer they take while others work.

    `quiesce` stops what runs in a session before it is touched. A file of more than `rewrite_bytes`
    is not rewritten at the end.
    """

    def __init__(
        self,
        database: Database,
        *,
        pace: Pace | None = None,
        quiesce: Quiesce = _nobody_works,
        rewrite_bytes: int = REWRITE_BYTES,
    ) -> None:
        self._database = database
        self._pace = pace or Pace(slice_s=0.02, rest_s=0.005)
        self._quiesce = quiesce
        self._rewrite_bytes = rewrite_bytes

    async def erase_session(self, session_key: str, *, now_ms: int) -> Receipt:
        """Erase one session: every window it ever had and everything that hangs on its key."""
        receipt = Receipt(_subject("session", session_key), now_ms)
        numbers = await self._database.read(lambda tx: tx.rows(SQL["windows_of_key"], (session_key,)))
        if not numbers:
            raise SessionNotFound(f"session not found: {session_key}")
        await self._finish_older_purges(now_ms)
        receipt = await self._erase_whole(receipt, session_key, now_ms)
        return await self._close(receipt)

    async def erase_person(self, person: Person, *, now_ms: int) -> Receipt:
        """Erase what a person said, wherever it is. Nothing of theirs found is a receipt full of zeros."""
        if not person.principal and not person.peer_id:
            raise InvalidRequest("name the person: a principal, a peer id, or both")
        subject = "\0".join(str(part) for part in msgspec.structs.astuple(person))
        receipt = Receipt(_subject("person", subject), now_ms)
        await self._finish_older_purges(now_ms)
        await self._database.write(search.fold)
        theirs = await self._database.read(lambda tx: tombstones.find_traces(tx, person))
        whole = await self._only_theirs(theirs)
        for session_key in sorted(whole):
            receipt = await self._erase_whole(receipt, session_key, now_ms)
        for session_key in sorted(theirs.session_keys - whole):
            receipt = await self._erase_in_shared(receipt, session_key, theirs, now_ms)
        receipt = await self._erase_rows_of_person(receipt, person, theirs)
        return await self._close(receipt)

    async def _finish_older_purges(self, now_ms: int) -> None:
        """What maintenance gave up and did not empty yet must not appear in this receipt."""
        await purging.purge_marked(self._database, now_ms=now_ms, pace=self._pace)

    # -- a whole session -----------------------------------------------------------------------

    async def _erase_whole(self, receipt: Receipt, session_key: str, now_ms: int) -> Receipt:
        await self._quiesce(session_key, True)
        given_up = await self._database.write(lambda tx: _give_up(tx, session_key, now_ms))
        purged = await purging.purge_marked(self._database, now_ms=now_ms, pace=self._pace)
        receipt = receipt.plus(
            sessions=1, windows=len(given_up.windows), entries=purged.entries, indexed=purged.indexed,
            blobs=purged.blobs, inputs=purged.inputs, runs=purged.runs, conversations=given_up.conversations,
        )  # fmt: skip
        for find, boundary, remove, name in _ROWS_OF_SESSION:
            params = (session_key, getattr(given_up, boundary))
            found = await self._database.read(partial(_column, sql=SQL[find], params=params))
            receipt = receipt.plus(**{name: await self._each(SQL[remove], found)})
        receipt = receipt.plus(archives=await self._erase_archives(session_key))
        # The last step: until here an erase that was cut off finds its windows by their key.
        await self._each(SQL["anonymise_window"], given_up.windows)
        return receipt

    async def _erase_archives(self, session_key: str) -> int:
        files = await self._database.read(partial(archiving.of_session, session_key=session_key))
        try:
            return await archiving.remove(self._database, files) if files else 0
        except OSError as error:
            raise Unavailable(
                f"an archive file cannot be removed: {error}. Make its folder writable, then erase again."
            ) from error

    async def _only_theirs(self, theirs: Traces) -> set[str]:
        """The sessions that nobody else used, and the ones that these started, as far as that holds."""
        whole: set[str] = set()
        waiting = [(session_key, False) for session_key in theirs.session_keys]
        while waiting:
            session_key, started = waiting.pop()
            ask = partial(only_theirs, session_key=session_key, theirs=theirs, started=started)
            if session_key in whole or not await self._database.read(ask):
                continue
            whole.add(session_key)
            children = await self._database.read(partial(sessions.children_of, session_key=session_key))
            waiting += [(child, True) for child in children]
        return whole

    # -- a shared session ----------------------------------------------------------------------

    async def _erase_in_shared(
        self, receipt: Receipt, session_key: str, theirs: Traces, now_ms: int
    ) -> Receipt:
        await self._quiesce(session_key, False)
        found = await self._database.read(lambda tx: tombstones.find_in_shared(tx, session_key, theirs))
        indexed = 0
        while indexed < len(found.indexed):
            part = found.indexed[indexed : indexed + SLICE]
            indexed += await self._slice(purging.unindexing(part, self._pace))
        blobs = 0
        for start in range(0, len(found.entries), SLICE):
            part = found.entries[start : start + SLICE]
            blobs += await self._slice(partial(tombstones.bury, entries=part))
        await self._slice(lambda tx: tombstones.clean_session(tx, session_key, theirs.marks, now_ms))
        return receipt.plus(
            shared_sessions=1, tombstones=found.said, summaries=len(found.entries) - found.said,
            indexed=indexed, blobs=blobs,
        )  # fmt: skip

    async def _erase_rows_of_person(self, receipt: Receipt, person: Person, theirs: Traces) -> Receipt:
        """Their inputs, runs and deliveries in sessions that stay; their places."""
        run_ids = sorted(theirs.run_ids)
        deliveries = await self._database.read(lambda tx: tombstones.deliveries_of(tx, person, theirs))
        usage = await self._database.read(
            lambda tx: [no for run_id in run_ids for no in _column(tx, SQL["usage_of_run"], (run_id,))]
        )
        receipt = receipt.plus(
            inputs=await self._each(SQL["remove_input"], run_ids),
            runs=await self._each(SQL["remove_run"], run_ids),
            deliveries=await self._each(SQL["remove_delivery"], deliveries),
            usage_anonymised=await self._each(SQL["anonymise_usage"], usage),
        )
        await self._each(SQL["unlink_place"], theirs.places)
        if person.peer_id:
            who = (person.peer_id, person.channel or "", person.account_id or "")
            overheard = await self._database.read(lambda tx: _column(tx, senders.SQL["overheard_of"], who))
            receipt = receipt.plus(
                overheard=await self._each(senders.SQL["forget_overheard"], overheard),
                admissions=len(await self._slice(lambda tx: tx.rows(senders.SQL["forget_sender"], who))),
            )
            await self._slice(lambda tx: tx.rows(bindings.SQL["forget_recipient"], who))
        return receipt.plus(conversations=await self._each(SQL["remove_place"], theirs.places))

    # -- slices, and the end -------------------------------------------------------------------

    async def _slice(self, unit: Unit[Result]) -> Result:
        return await self._pace.slice(self._database, unit)

    async def _each(self, sql: str, keys: Iterable[Any]) -> int:
        """Run a statement for each key, in slices; how many rows it changed."""
        listed, changed = list(keys), 0
        for start in range(0, len(listed), SLICE):
            part = listed[start : start + SLICE]
            changed += await self._slice(partial(_run_each, sql=sql, keys=part))
        return changed

    async def _close(self, receipt: Receipt) -> Receipt:
        """Leave an audit row, then make the bytes follow the rows."""
        await self._database.write(
            lambda tx: tx.run(SQL["note_erasure"], (receipt.subject, receipt.erased_at)), Priority.USER
        )
        if not isinstance(self._database, HasFile):
            return receipt
        scrubbed: Scrubbed = await self._database.between_batches(partial(scrub, limit=self._rewrite_bytes))
        emptied = scrubbed.log_emptied
        for _ in range(LOG_TRIES):
            if emptied:
                break
            await asyncio.sleep(LOG_REST_S)
            emptied = await self._database.between_batches(empty_log)
        return replace(receipt, log_emptied=emptied, file_rewritten=scrubbed.file_rewritten)


def scrub(connection: apsw.Connection, limit: int = REWRITE_BYTES) -> Scrubbed:
    """Make the bytes follow the rows.

    What is deleted is overwritten at once (`secure_delete`, in the index too), so an empty log already leaves
    nothing behind. A file of at most `limit` bytes is rewritten on top of that, from what is there.
    """
    pages, size = connection.pragma("page_count"), connection.pragma("page_size")
    small = int(str(pages)) * int(str(size)) <= limit
    if small:
        connection.execute("INSERT INTO search (search) VALUES ('optimize')").fetchall()
        connection.execute("VACUUM").fetchall()
    return Scrubbed(empty_log(connection), small)


def empty_log(connection: apsw.Connection) -> bool:
    """Fold the log into the file and cut it to nothing. False when somebody reads an old state too long."""
    connection.set_busy_timeout(LOG_PATIENCE_MS)
    try:
        connection.wal_checkpoint(mode=apsw.SQLITE_CHECKPOINT_TRUNCATE)
        return True
    except apsw.BusyError:
        return False
    finally:
        connection.set_busy_timeout(BUSY_MS)


def _subject(kind: str, text: str) -> str:
    return hashlib.sha256(f"{kind}\0{text}".encode("utf-8", "replace")).hexdigest()[:16]


def _give_up(tx: Transaction, session_key: str, now_ms: int) -> GivenUp:
    """Delete the key and mark all windows it ever had; nothing finds or restores it from here on.

    Its places go in the same commit, because emptying the windows loses the way to them. A window of somebody
    else that was based on one of these stands on its own from now on.
    """
    row = sessions.find(tx, session_key)
    if row is not None:
        inbox.discard(tx, session_key)
        runs.abandon(tx, session_key, now_ms)
        sessions.delete(tx, sessions.get(tx, session_key), now_ms)
    windows = tuple(int(no) for no in _column(tx, SQL["windows_of_key"], (session_key,)))
    for window_no in windows:
        purging.mark(tx, window_no, now_ms)
        tx.run(SQL["detach_forks"], (window_no,))
    places = _column(tx, SQL["places_of_session"], (session_key,))
    systemevents.clear(tx, session_key)  # also of a key that never became a session
    tx.run(SQL["remove_waits"], (session_key,))
    tx.run(SQL["unlink_session"], (session_key,))
    gone = _run_each(tx, SQL["remove_place"], places)
    last = tx.row(SQL["last_numbers"])
    assert last is not None
    admission, window_no, delivery_no, usage_no, removal_no = last
    return GivenUp(windows, gone, admission, window_no, delivery_no, usage_no, removal_no, now_ms)


def _column(tx: Transaction, sql: str, params: tuple[Any, ...]) -> list[Any]:
    return [row[0] for row in tx.rows(sql, params)]


def _run_each(tx: Transaction, sql: str, keys: list[Any]) -> int:
    return sum(len(tx.rows(sql, (key,))) for key in keys)
