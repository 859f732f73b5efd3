"""Bringing one agent's folder into the store, and checking that it arrived (DB-3, DB-7).

A run may be killed at any moment and started again: every file knows how far it has
come, and a file whose content is already in the store is left alone. What is in the
store always wins over what a file says later.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from hashlib import sha256
from pathlib import Path

from msgspec import Struct

from openclaw.store import sessions
from openclaw.store.database import Database, Transaction
from openclaw.store.export import Export
from openclaw.store.legacy import writing
from openclaw.store.legacy.planning import ImportPlan, LegacyStore, PlannedSession
from openclaw.store.legacy.reading import Problem, Scanned, TranscriptScan, hash_of_file
from openclaw.store.legacy.writing import ImportRow, Part, Settled

PART_RECORDS = 500
PART_BYTES = 1 << 20
MAX_TOLD = 1000

Progress = Callable[[int], None]


class Outcome(Struct, kw_only=True, rename="camel"):
    """What happened to one agent's folder; `failed` counts files that have to be looked at again."""

    agent_id: str
    path: str
    sessions: int = 0
    transcripts: int = 0
    records: int = 0
    skipped: int = 0
    imported: int = 0
    already: int = 0
    failed: int = 0
    problem_count: int = 0
    problems: list[str] = []

    def tell(self, problem: Problem) -> None:
        self.problem_count += 1
        if len(self.problems) < MAX_TOLD:
            self.problems.append(str(problem))

    def tell_scan(self, scan: TranscriptScan) -> None:
        self.records += scan.records_read
        self.skipped += scan.skipped
        for problem in scan.problems:
            self.tell(problem)
        self.problem_count += scan.problem_count - len(scan.problems)


def outcome_of(plan: ImportPlan) -> Outcome:
    outcome = Outcome(agent_id=plan.store.agent_id, path=str(plan.store.index_path))
    outcome.sessions = len(plan.sessions)
    outcome.transcripts = sum(planned.file_name is not None for planned in plan.sessions)
    for problem in plan.problems:
        outcome.tell(problem)
    return outcome


class LegacyImport:
    """Imports and checks folders. `on_bytes` hears how many bytes of transcripts are behind us."""

    def __init__(
        self, database: Database, now_ms: Callable[[], int], on_bytes: Progress = lambda _count: None
    ) -> None:
        self._database = database
        self._now_ms = now_ms
        self._on_bytes = on_bytes

    # -- importing -----------------------------------------------------------------------------

    async def run(self, plan: ImportPlan) -> Outcome:
        """Import what is not in the store yet. The same folder again changes nothing."""
        outcome = outcome_of(plan)
        for planned in plan.sessions:
            try:
                if planned.file_name is None:
                    await self._import_empty(planned, plan, outcome)
                else:
                    await self._import_file(planned, planned.file_name, plan.store, outcome)
            except OSError as error:
                outcome.failed += 1
                name = planned.file_name or plan.store.index_path.name
                outcome.tell(
                    Problem(str(plan.store.folder / name), 0, f"cannot be read: {error.strerror or error}")
                )
        if plan.index is not None and not outcome.failed:
            await self._note_index(plan)
        return outcome

    async def _note_index(self, plan: ImportPlan) -> None:
        assert plan.index is not None
        index, name = plan.index, plan.store.index_path.name
        row = ImportRow(
            plan.store.agent_id, name, None, len(index.entries), len(index.problems), index.hash, index.hash,
            index.size, index.changed_ns,
        )  # fmt: skip

        def unit(tx: Transaction) -> None:
            if writing.find_import(tx, row.agent_id, name) != row:
                writing.put_import(tx, row, self._now_ms())

        await self._database.write(unit)

    async def _import_empty(self, planned: PlannedSession, plan: ImportPlan, outcome: Outcome) -> None:
        """A session without a transcript: its entry is all there is."""
        row = ImportRow(plan.store.agent_id, "", None, 0, 0, "", None, 0, 0)
        now_ms = self._now_ms()
        entry = planned.entry
        started = (entry.session_started_at or entry.created_at or entry.updated_at) if entry else 0
        part = Part((), row, b"", b"", started or now_ms, 0)

        def unit(tx: Transaction) -> Settled | None:
            if _is_known(tx, planned):
                return None
            return writing.settle(tx, planned, None, part, now_ms)

        self._note_settled(await self._database.write(unit), plan.store, outcome)

    async def _import_file(
        self, planned: PlannedSession, file_name: str, store: LegacyStore, outcome: Outcome
    ) -> None:
        path = store.folder / file_name
        row = await self._database.read(lambda tx: writing.find_import(tx, store.agent_id, file_name))
        if row is None and await self._knows(planned):
            outcome.already += 1
            return
        if row is not None and row.hash is not None:
            if hash_of_file(path) == row.hash:
                outcome.already += 1
                outcome.records, outcome.skipped = (
                    outcome.records + row.records,
                    outcome.skipped + row.skipped,
                )
                self._on_bytes(row.size)
                return
            if not await self._database.read(lambda tx: _is_untouched(tx, planned, row)):
                await self._keep_ours(path, row, outcome)
                return
        scan = TranscriptScan(path)
        settled = None
        parts = self._parts(scan, row, store.agent_id, file_name)
        async for part, is_last in parts:
            settled = await self._write(planned, part, is_last)
            self._on_bytes(0)
        outcome.tell_scan(scan)
        if settled is None and row is not None and row.hash is None:
            outcome.failed += 1
            reason = "changed between two runs of its import; restore it as it was, or move it away"
            outcome.tell(Problem(str(path), 0, reason))
        elif settled is None and row is not None:
            await self._keep_ours(path, row, outcome)
        else:
            self._note_settled(settled, store, outcome)
        self._on_bytes(scan.bytes_read)

    async def _parts(
        self, scan: TranscriptScan, row: ImportRow | None, agent_id: str, file_name: str
    ) -> AsyncIterator[tuple[Part, bool]]:
        """What is not in the store yet, in parts. None when the file does not begin as it did before."""
        done, window_no = (row.records, row.window_no) if row else (0, None)
        batch: list[Scanned] = []
        size = 0
        changed_ns = scan.path.stat().st_mtime_ns

        def part(whole_hash: str | None) -> Part:
            progress = ImportRow(
                agent_id, file_name, window_no, done + len(batch), scan.skipped, scan.prefix_hash, whole_hash,
                scan.bytes_read, changed_ns,
            )  # fmt: skip
            first_at = batch[0].record.created_at if batch else 0
            started = scan.started_at or first_at or changed_ns // 1_000_000
            tail = scan.tail if whole_hash is not None else b""
            return Part(tuple(batch), progress, scan.header_bytes, tail, started, scan.last_at_ms)

        is_same = done == 0
        for scanned in scan.records():
            if scanned.seq <= done:
                is_same = scanned.seq == done and row is not None and scan.prefix_hash == row.prefix_hash
                if scanned.seq == done and not is_same:
                    return
                continue
            batch.append(scanned)
            size += len(scanned.record.body)
            if len(batch) >= PART_RECORDS or size >= PART_BYTES:
                yield part(None), False
                window_no = await self._window_of(agent_id, file_name)
                done, size = done + len(batch), 0
                batch.clear()
        if is_same:
            yield part(scan.whole_hash), True

    async def _window_of(self, agent_id: str, file_name: str) -> int | None:
        row = await self._database.read(lambda tx: writing.find_import(tx, agent_id, file_name))
        return row.window_no if row else None

    async def _write(self, planned: PlannedSession, part: Part, is_last: bool) -> Settled | None:
        now_ms = self._now_ms()

        def unit(tx: Transaction) -> Settled | None:
            window_no = writing.write_part(tx, planned, part, now_ms)
            return writing.settle(tx, planned, window_no, part, now_ms) if is_last else None

        return await self._database.write(unit)

    def _note_settled(self, settled: Settled | None, store: LegacyStore, outcome: Outcome) -> None:
        if settled is None:
            outcome.already += 1
            return
        outcome.imported += 1
        path = str(store.index_path)
        if settled.lies_behind:
            reason = f"{settled.session_key} is in use already; this history lies behind it"
            outcome.tell(Problem(path, 0, reason))
        if settled.label_dropped is not None:
            reason = f"{settled.session_key}: the label {settled.label_dropped[:60]!r} is taken; dropped"
            outcome.tell(Problem(path, 0, reason))

    async def _keep_ours(self, path: Path, row: ImportRow, outcome: Outcome) -> None:
        """Both sides went on. A file that is our own export of the session is no news."""
        outcome.already += 1
        if row.window_no is None or await self._hash_of_window(row.window_no) != hash_of_file(path):
            reason = "changed after its import, and so did the session; the store keeps what it has"
            outcome.tell(Problem(str(path), 0, reason))

    async def _hash_of_window(self, window_no: int, *, imported_only: bool = False) -> str:
        """Of the bytes that an export would give."""
        window = await self._database.read(lambda tx: sessions.window_by_no(tx, window_no))
        stored = sha256()
        async for piece in Export(self._database).lines(window, cwd="", imported_only=imported_only):
            stored.update(piece)
        return stored.hexdigest()

    # -- looking ahead, and back ---------------------------------------------------------------

    async def preview(self, plan: ImportPlan) -> Outcome:
        """What `run` would import, and every problem that it would meet. Writes nothing."""
        outcome = outcome_of(plan)
        for planned in plan.sessions:
            row = await self._import_row(planned, plan.store)
            is_there = await self._knows(planned) if row is None else row.hash is not None
            if is_there:
                outcome.already += 1
                continue
            outcome.imported += 1
            if planned.file_name is not None:
                scan = TranscriptScan(plan.store.folder / planned.file_name)
                try:
                    for _ in scan.records():
                        pass
                except OSError as error:
                    outcome.failed += 1
                    outcome.tell(Problem(str(scan.path), 0, f"cannot be read: {error.strerror or error}"))
                outcome.tell_scan(scan)
                self._on_bytes(scan.bytes_read)
        return outcome

    async def _import_row(self, planned: PlannedSession, store: LegacyStore) -> ImportRow | None:
        name = planned.file_name
        if name is None:
            return None
        return await self._database.read(lambda tx: writing.find_import(tx, store.agent_id, name))

    async def _knows(self, planned: PlannedSession) -> bool:
        return await self._database.read(lambda tx: _is_known(tx, planned))

    async def validate(self, plan: ImportPlan) -> Outcome:
        """Compare every file with what an export of the store gives; each difference is a problem."""
        outcome = outcome_of(plan)
        outcome.problems, outcome.problem_count = [], 0
        for planned in plan.sessions:
            difference = await self._difference(planned, plan.store, outcome)
            if difference is None:
                outcome.already += 1
            else:
                outcome.failed += 1
                name = planned.file_name or f"{plan.store.index_path.name} ({planned.seed.session_key})"
                outcome.tell(Problem(str(plan.store.folder / name), 0, difference))
        return outcome

    async def _difference(self, planned: PlannedSession, store: LegacyStore, outcome: Outcome) -> str | None:
        if planned.file_name is None:
            return None if await self._knows(planned) else "not imported"
        row = await self._import_row(planned, store)
        if row is None:
            return None if await self._knows(planned) else "not imported"
        if row.hash is None or row.window_no is None:
            return "not imported to its end; run the import again"
        outcome.records, outcome.skipped = outcome.records + row.records, outcome.skipped + row.skipped
        self._on_bytes(row.size)
        whole = hash_of_file(store.folder / planned.file_name)
        if whole != row.hash:
            is_export = whole == await self._hash_of_window(row.window_no)
            return None if is_export else "changed since its import; run the import again"
        stored = await self._hash_of_window(row.window_no, imported_only=True)
        return None if stored == whole else "an export does not give back the same bytes"


def _is_known(tx: Transaction, planned: PlannedSession) -> bool:
    """Whether the session id is in the store; an import never brings back what was deleted there."""
    return sessions.window(tx, planned.session_id) is not None


def _is_untouched(tx: Transaction, planned: PlannedSession, row: ImportRow) -> bool:
    """Whether nobody spoke in the session since its import."""
    session = sessions.find(tx, planned.seed.session_key)
    return session is not None and session.window_no == row.window_no and session.last_seq == row.records
