"""Erasing: what goes, what stays, and that a receipt tells it in numbers."""

from __future__ import annotations

import msgspec
import pytest

from openclaw.domain.entry import DeliveryContext, Origin
from openclaw.domain.origin import InboundContext
from openclaw.domain.searchtext import query_terms
from openclaw.domain.transcript import encode
from openclaw.errors import InvalidRequest, SessionNotFound
from openclaw.store.conversations import ConversationRef
from openclaw.store.database import Database
from openclaw.store.erasing import NOT_TOUCHED, Erasing
from openclaw.store.inbox import ExternalId, Inbound
from openclaw.store.purging import Pace
from openclaw.store.records import DeliveryDraft, EntryDraft, SessionSeed, UsageRow
from openclaw.store.search import fold
from openclaw.store.senders import NewlyHeard, Place, SenderRef, Senders
from openclaw.store.sqlite import SqliteDatabase
from openclaw.store.store import Accepted, Store
from openclaw.store.tombstones import Person, known_as
from tests.conformance.making import (
    DONE,
    MAIN,
    NOON,
    PLAN,
    RESETS,
    begin,
    create,
    draft_inputs,
    execute,
    note,
    present,
    queue,
    say,
    seed,
    select,
    texts,
    turn,
)
from tests.conformance.test_maintenance import check_counters
from tests.conformance.test_maintenance_purge import LARGE, check_index, count, found

ANN = Person(principal="telegram:ann-4711")
GROUP = seed("telegram:group:1", kind="group", session_type="group", chat_type="group")


def erasing(database: SqliteDatabase) -> Erasing:
    return Erasing(database, pace=Pace(rest_s=0.0))


async def said_by(
    store: Store, principal: str, run_id: str, text: str, *, to: SessionSeed = GROUP, peer: str | None = None
) -> None:
    """A whole turn of somebody, with a delivery, a priced call and, with `peer`, the place it came from."""
    new = msgspec.structs.replace(say(run_id, text, to=to, source="channel"), principal=principal)
    if peer is not None:
        place = ConversationRef("telegram", "bot", "direct", peer, "", f"Name of {peer}", peer)
        context = InboundContext(
            provider="telegram", chat_type="direct", from_=peer, to=peer, sender_name=peer
        )
        new = msgspec.structs.replace(
            new,
            external=ExternalId("telegram", "bot", peer, run_id),
            inbound=Inbound(context, place, "per-peer"),
        )
    taken = await store.accept(
        new, RESETS, session_id=f"{run_id}-window", now_ms=NOON, start=PLAN, draft_inputs=draft_inputs
    )
    assert isinstance(taken, Accepted) and taken.claimed is not None
    route = DeliveryContext("telegram", peer or "group-1", "bot")
    await store.finish(
        taken.claimed.run,
        (note("reply", "assistant", run_id),),
        DONE,
        (UsageRow(f"call-{run_id}", "offline", "m", 5, 7, cost_usd=0.5),),
        (DeliveryDraft(run_id, route, b"{}", NOON + 1),),
        now_ms=NOON,
    )


async def test_a_session_goes_with_everything_that_hangs_on_it(
    store: Store, database: SqliteDatabase
) -> None:
    private = seed("telegram:direct:ann-4711")
    await said_by(store, "telegram:ann-4711", "run-1", f"walrus {LARGE}", to=private, peer="ann-4711")
    await store.reset_session(private.session_key, "new", session_id="again", now_ms=NOON)
    await said_by(store, "telegram:ann-4711", "run-2", "walrus", to=private, peer="ann-4711")
    await queue(store, "run-3", "walrus waits", to=private)
    await begin(store, "run-4", "other", to=MAIN)
    await execute(database, "INSERT INTO waits VALUES ('agent:main:telegram:direct:ann-4711', 'x', 1, NULL)")
    receipt = await erasing(database).erase_session(private.session_key, now_ms=NOON + 5)
    assert (receipt.sessions, receipt.windows, receipt.entries, receipt.blobs) == (1, 2, 4, 1)
    assert (receipt.inputs, receipt.runs, receipt.deliveries, receipt.conversations) == (3, 2, 2, 1)
    assert (receipt.usage_anonymised, receipt.indexed) == (2, 4)
    is_file = isinstance(database, SqliteDatabase)
    assert (receipt.log_emptied, receipt.file_rewritten) == (is_file, is_file)
    assert receipt.not_touched == NOT_TOUCHED and len(receipt.subject) == 16
    assert await store.session(private.session_key) is None
    assert await store.session_by_id("run-1-window") is None and await found(store, "walrus") == 0
    for table, rows in (("inbox", 1), ("runs", 1), ("outbox", 0), ("conversations", 0), ("waits", 0)):
        assert await count(database, table) == rows, table
    assert (
        await select(database, "SELECT session_key, run_id, cost_usd FROM usage")
        == [("erased", "erased", 0.5)] * 2
    )
    assert await select(database, "SELECT state, reason, session_id FROM removals") == [
        ("erased", "erase", receipt.subject)
    ]
    assert (await present(store)).last_seq == 1, "other sessions are untouched, also running ones"
    await check_counters(database)
    await check_index(database)
    with pytest.raises(SessionNotFound):
        await erasing(database).erase_session(private.session_key, now_ms=NOON + 6)


async def test_in_a_shared_session_only_their_words_become_tombstones(
    store: Store, database: SqliteDatabase
) -> None:
    await said_by(store, "telegram:bob", "run-1", "bob begins")
    summary = encode({"summary": "bob began", "firstKeptEntryId": "x", "tokensBefore": 1})
    await store.append(
        GROUP.session_key, (EntryDraft("compaction", summary, audience="internal"),), now_ms=NOON
    )
    await said_by(store, "telegram:ann-4711", "run-2", "ann tells of a walrus")
    retold = encode(
        {"summary": "ann has a walrus", "firstKeptEntryId": "y", "tokensBefore": 2, "details": {"a": 1}}
    )
    await store.append(
        GROUP.session_key, (EntryDraft("compaction", retold, audience="internal"),), now_ms=NOON
    )
    await said_by(store, "telegram:bob", "run-3", "bob ends")
    await said_by(store, "telegram:ann-4711", "run-4", f"walrus again {LARGE}")
    await database.write(fold)
    before = await present(store, GROUP.session_key)
    receipt = await erasing(database).erase_person(ANN, now_ms=NOON + 5)
    assert (receipt.sessions, receipt.shared_sessions, receipt.tombstones, receipt.summaries) == (0, 1, 2, 1)
    assert (receipt.inputs, receipt.runs, receipt.deliveries, receipt.usage_anonymised) == (2, 2, 2, 2)
    assert (receipt.indexed, receipt.blobs, receipt.entries) == (2, 1, 0)
    after = await present(store, GROUP.session_key)
    entries = await store.context(after.window_no)
    assert [entry.seq for entry in entries] == list(range(1, 11)) and after.last_seq == before.last_seq
    assert [entry.entry_id for entry in entries] == [
        row[0] for row in await select(database, "SELECT entry_id FROM entries ORDER BY seq")
    ]
    messages = texts(entry for entry in entries if entry.type == "message")
    assert messages == ["bob begins", "reply", "[erased]", "reply", "bob ends", "reply", "[erased]", "reply"]
    kept, dropped = (msgspec.json.decode(entry.body) for entry in entries if entry.type == "compaction")
    assert kept["summary"] == "bob began"
    assert dropped == {"summary": "[erased]", "firstKeptEntryId": "y", "tokensBefore": 2}
    assert await found(store, "walrus") == 0 and await found(store, "begins") == 1
    assert await found(store, "reply") == 4
    await check_index(database)


async def test_what_only_they_used_goes_and_its_helpers_too(store: Store, database: SqliteDatabase) -> None:
    private, helper = (
        seed("telegram:direct:ann-4711"),
        seed("subagent:1", spawned_by="agent:main:telegram:direct:ann-4711"),
    )
    await said_by(store, "telegram:ann-4711", "run-1", "secret", to=private, peer="ann-4711")
    beat = say("run-2", "tick", to=private, source="heartbeat")
    await store.accept(beat, RESETS, session_id="x", now_ms=NOON, start=PLAN, draft_inputs=draft_inputs)
    await create(store, helper)
    await store.append(helper.session_key, (note("the secret is retold"),), now_ms=NOON)
    await turn(store, "run-3", "mine", to=MAIN)
    receipt = await erasing(database).erase_person(
        Person(peer_id="ann-4711", channel="telegram"), now_ms=NOON
    )
    assert receipt.sessions == 2 and await store.session(helper.session_key) is None
    assert await found(store, "secret") == 0
    assert await store.session(private.session_key) is None
    assert await store.session(MAIN.session_key) is not None
    assert receipt.conversations == 1 and await count(database, "conversations") == 0


async def test_a_message_of_an_unknown_author_keeps_a_session(store: Store, database: SqliteDatabase) -> None:
    await said_by(store, "telegram:ann-4711", "run-1", "from ann", to=MAIN)
    await store.append(MAIN.session_key, (note("from before, author unknown"),), now_ms=NOON)
    receipt = await erasing(database).erase_person(ANN, now_ms=NOON)
    assert (receipt.sessions, receipt.tombstones) == (0, 1)
    assert await found(store, "unknown") == 1 and await found(store, "ann") == 0


async def test_an_input_of_somebody_else_that_waits_keeps_a_session(
    store: Store, database: SqliteDatabase
) -> None:
    await said_by(store, "telegram:ann-4711", "run-1", "from ann", to=MAIN)
    await queue(store, "run-2", "from the operator")
    receipt = await erasing(database).erase_person(ANN, now_ms=NOON)
    assert (receipt.sessions, receipt.tombstones) == (0, 1)
    assert [item.run_id for item in await store.queued(MAIN.session_key)] == ["run-2"]


async def test_names_leave_the_row_of_a_shared_session(store: Store, database: SqliteDatabase) -> None:
    await said_by(store, "telegram:bob", "run-1", "bob begins")
    await said_by(store, "telegram:ann-4711", "run-2", "ann ends", peer="ann-4711")
    await create(
        store, GROUP, label="with ann-4711", subject="club", display_name="Name of ann-4711",
        origin=Origin(label="x", from_="telegram:ann-4711"),
        delivery_context=DeliveryContext("telegram", "ann-4711"), last_heartbeat_text="ann-4711 was here",
    )  # fmt: skip
    # What a tool answered is nobody's word.
    await store.append(GROUP.session_key, (note('{"count": 1}', "toolResult"),), now_ms=NOON)
    receipt = await erasing(database).erase_person(Person(peer_id="ann-4711"), now_ms=NOON)
    assert (receipt.shared_sessions, receipt.tombstones, receipt.conversations) == (1, 1, 1)
    row = await present(store, GROUP.session_key)
    entry = row.entry
    assert (entry.label, entry.display_name, entry.origin, entry.delivery_context) == (None, None, None, None)
    assert (entry.last_heartbeat_text, entry.subject) == (None, "club")
    assert (row.first_text, row.last_text) == ("bob begins", "reply")
    rows = await select(database, "SELECT * FROM sessions")
    assert not any("ann-4711" in str(value) for value in rows[0])


async def test_somebody_unknown_is_a_receipt_of_zeros_and_nobody_is_a_mistake(
    store: Store, database: SqliteDatabase
) -> None:
    await said_by(store, "telegram:bob", "run-1", "bob")
    receipt = await erasing(database).erase_person(Person(principal="telegram:nobody"), now_ms=NOON)
    assert (receipt.sessions, receipt.tombstones, receipt.inputs, receipt.entries) == (0, 0, 0, 0)
    assert len(await store.search(query_terms("bob"))) == 1
    for nobody in (Person(), Person(principal="", peer_id=""), Person(channel="telegram")):
        with pytest.raises(InvalidRequest, match="name the person"):
            await erasing(database).erase_person(nobody, now_ms=NOON)


async def test_the_same_peer_elsewhere_is_another_person(store: Store, database: SqliteDatabase) -> None:
    await said_by(store, "telegram:1", "run-1", "here", to=seed("telegram:direct:one"), peer="one")
    receipt = await erasing(database).erase_person(Person(peer_id="one", channel="discord"), now_ms=NOON)
    assert (receipt.sessions, receipt.inputs) == (0, 0)
    receipt = await erasing(database).erase_person(
        Person(peer_id="one", channel="telegram", account_id="other"), now_ms=NOON
    )
    assert (receipt.sessions, receipt.inputs) == (0, 0)
    receipt = await erasing(database).erase_person(Person(peer_id="one", account_id="bot"), now_ms=NOON)
    assert (receipt.sessions, receipt.inputs) == (1, 1)


@pytest.mark.spec("ROUTE-3")
async def test_a_person_who_was_only_overheard_or_let_in_is_forgotten(database: Database) -> None:
    people, erasing = Senders(database), Erasing(database)
    ann, bob = (SenderRef("telegram", "default", name) for name in ("ann-4711", "bob"))
    place = Place("telegram", "default", "-100")
    for number, who in enumerate((ann, bob, ann)):
        await people.hear(
            NewlyHeard(place, f"m{number}", who.sender_id, who.sender_id, "secret words"), now_ms=NOON
        )
    await people.admit(ann, "Ann", owner=False, now_ms=NOON)
    await people.ask(bob, "Bob", "CODE2222", now_ms=NOON)
    receipt = await erasing.erase_person(known_as("telegram", "ann-4711"), now_ms=NOON)
    assert (receipt.overheard, receipt.admissions) == (2, 1)
    assert [one.sender for one in await people.heard(place)] == ["bob"]
    assert [row.sender_id for row in await people.list(now_ms=NOON)] == ["bob"]
