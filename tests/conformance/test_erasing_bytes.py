"""One person among a hundred is erased; then the bytes of the files are searched for what they said."""

from __future__ import annotations

import asyncio
import hashlib
import sys
from pathlib import Path

from openclaw.store.erasing import Erasing
from openclaw.store.purging import Pace
from openclaw.store.search import fold
from openclaw.store.sqlite import SqliteDatabase
from openclaw.store.store import Store
from openclaw.store.tombstones import Person
from tests.conformance.making import MAIN, NOON, seed
from tests.conformance.test_erasing import GROUP, said_by
from tests.conformance.test_maintenance_purge import check_index, found

PEOPLE = 100
VICTIM = 37
MARKERS = 50
# Run outside this process: whoever opens and closes a database file here drops SQLite's locks on it.
SCAN = """
import pathlib, sys
folder, *markers = sys.argv[1:]
data = b"".join(path.read_bytes().lower() for path in sorted(pathlib.Path(folder).iterdir()))
print(sum(marker.encode() in data for marker in markers))
"""


def marker(number: int) -> str:
    """A word that shares no beginning with others: the index shortens words that do."""
    return hashlib.sha256(f"marker {number}".encode()).hexdigest()[:24]


def peer(number: int) -> str:
    return hashlib.sha256(f"peer {number}".encode()).hexdigest()[:20]


async def scan(folder: Path, markers: list[str]) -> int:
    """How many of the markers are in the files, without their first letters, which an index may share."""
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-c", SCAN, str(folder), *(text[4:] for text in markers),
        stdout=asyncio.subprocess.PIPE,
    )  # fmt: skip
    out, _ = await process.communicate()
    return int(out)


async def fill(store: Store) -> None:
    """Everybody writes in private, in the shared main session and in a group; one plants markers."""
    planted = iter(range(MARKERS))
    for number in range(PEOPLE):
        name = peer(number)
        for round_no in range(5 if number == VICTIM else 1):
            for place in (seed(f"telegram:direct:{name}"), MAIN, GROUP):
                words = [marker(next(planted)) for _ in range(3)] if number == VICTIM else ["nothing special"]
                run_id = f"run-{number}-{round_no}-{place.session_key[-5:]}"
                text = " and ".join(words) + f" said in {'much ' * 15_000 if round_no == 2 else ''}talk"
                private = name if place not in (MAIN, GROUP) else None
                await said_by(store, f"telegram:{name}", run_id, text, to=place, peer=private)
    left = [marker(number) for number in planted]
    await said_by(store, f"telegram:{peer(VICTIM)}", "run-last", " ".join(left), to=MAIN)


async def test_no_byte_of_an_erased_person_is_left(tmp_path: Path) -> None:
    folder = tmp_path / "state"
    database = await SqliteDatabase.open(folder / "openclaw.sqlite")
    store = Store(database)
    await fill(store)
    await database.write(fold)
    planted = [marker(number) for number in range(MARKERS)]
    assert await scan(folder, planted) == MARKERS
    assert await scan(folder, [peer(VICTIM)]) == 1
    victim = Person(principal=f"telegram:{peer(VICTIM)}", peer_id=peer(VICTIM))
    receipt = await Erasing(database, pace=Pace(rest_s=0.0)).erase_person(victim, now_ms=NOON + 1)
    assert (receipt.sessions, receipt.shared_sessions, receipt.tombstones) == (1, 2, 11)
    assert (receipt.inputs, receipt.entries, receipt.blobs, receipt.conversations) == (16, 10, 3, 1)
    assert (receipt.deliveries, receipt.usage_anonymised, receipt.runs) == (16, 16, 16)
    assert receipt.indexed == 10 + 11
    assert await scan(folder, planted) == 0
    assert await scan(folder, [peer(VICTIM)]) == 0
    assert await scan(folder, [peer(number) for number in range(PEOPLE)]) == PEOPLE - 1
    assert await found(store, "nothing special") == 20, "a full page: the others are still found"
    assert sum([await found(store, text) for text in planted]) == 0
    await check_index(database)
    await store.close()
    assert await scan(folder, [*planted, peer(VICTIM)]) == 0
