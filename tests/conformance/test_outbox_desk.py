"""Deliveries in the hands of a person: listed, read, sent again, given up; never what was sent."""

from __future__ import annotations

from functools import partial
from typing import Literal

import pytest

from openclaw.domain.entry import DeliveryContext
from openclaw.errors import InvalidRequest
from openclaw.store import outbox
from openclaw.store.database import Database
from openclaw.store.insight import Insight
from openclaw.store.outboxdesk import RETRY_LIFE_MS, DeliveryQuery, OutboxDesk, delivery_view
from openclaw.store.records import DeliveryDraft
from openclaw.store.store import Store
from tests.conformance.making import MAIN, NOON

OTHER = "agent:main:other"


async def prepare(
    database: Database, name: str, *, channel: str = "telegram", key: str = MAIN.session_key, text: str = "hi"
) -> int:
    body = b'{"text":"' + text.encode() + b'"}'
    draft = DeliveryDraft(name, DeliveryContext(channel=channel, to="42"), body, NOON + 1000)
    await database.write(lambda tx: outbox.prepare(tx, draft, key, "run-1", NOON))
    page = await OutboxDesk(database).page(DeliveryQuery(limit=1))
    return page.deliveries[0].delivery_no


@pytest.mark.spec("REST-7")
async def test_a_list_is_newest_first_filtered_and_continued(store: Store, database: Database) -> None:
    desk = OutboxDesk(database)
    assert (await desk.page(DeliveryQuery())).deliveries == ()
    first = await prepare(database, "one")
    second = await prepare(database, "two", channel="irc")
    third = await prepare(database, "three", key=OTHER)
    assert await store.start_delivery(second, now_ms=NOON)
    everything = await desk.page(DeliveryQuery())
    assert [row.delivery_no for row in everything.deliveries] == [third, second, first]
    assert everything.states == {"prepared": 2, "sending": 1} and everything.before is None
    for query, expected in (
        (DeliveryQuery(state="sending"), [second]),
        (DeliveryQuery(channel="telegram"), [third, first]),
        (DeliveryQuery(session_key=OTHER), [third]),
        (DeliveryQuery(state="sent"), []),
    ):
        assert [row.delivery_no for row in (await desk.page(query)).deliveries] == expected
    page = await desk.page(DeliveryQuery(limit=2))
    assert [row.delivery_no for row in page.deliveries] == [third, second] and page.before == second
    rest = await desk.page(DeliveryQuery(limit=2).continued(second))
    assert [row.delivery_no for row in rest.deliveries] == [first] and rest.before is None
    assert len((await desk.page(DeliveryQuery(limit=0))).deliveries) == 1


@pytest.mark.spec("REST-7")
async def test_only_what_failed_or_is_unknown_is_sent_again(store: Store, database: Database) -> None:
    desk = OutboxDesk(database)
    number = await prepare(database, "one")
    with pytest.raises(InvalidRequest, match="is prepared; only failed and unknown ones"):
        await desk.retry(number, now_ms=NOON)
    await store.start_delivery(number, now_ms=NOON)
    with pytest.raises(InvalidRequest, match="is sending"):
        await desk.retry(number, now_ms=NOON)
    await store.settle_delivery(number, "unknown", error="cut off", now_ms=NOON)
    assert (await desk.get(number)).error == "cut off"
    again = await desk.retry(number, now_ms=NOON + 5)
    assert (again.state, again.error, again.expires_at) == ("prepared", None, NOON + 5 + RETRY_LIFE_MS)
    assert again.attempts == 1 and again.updated_at == NOON + 5
    await store.start_delivery(number, now_ms=NOON + 6)
    await store.settle_delivery(number, "sent", now_ms=NOON + 7)
    with pytest.raises(InvalidRequest, match="is sent"):
        await desk.retry(number, now_ms=NOON + 8)


@pytest.mark.spec("REST-7")
async def test_what_was_not_sent_can_be_given_up_and_nothing_else(store: Store, database: Database) -> None:
    desk = OutboxDesk(database)
    number = await prepare(database, "one", text="bye")
    gone = await desk.drop(number)
    assert (gone.state, gone.body) == ("prepared", b'{"text":"bye"}')
    with pytest.raises(InvalidRequest, match=f"no delivery {number}"):
        await desk.get(number)
    for verb in (desk.drop(999), desk.retry(999, now_ms=NOON)):
        with pytest.raises(InvalidRequest, match="no delivery 999"):
            await verb
    busy = await prepare(database, "two")
    await store.start_delivery(busy, now_ms=NOON)
    with pytest.raises(InvalidRequest, match="is sending and cannot be taken back"):
        await desk.drop(busy)
    await store.settle_delivery(busy, "failed", error="no", now_ms=NOON)
    assert (await desk.drop(busy)).state == "failed"
    assert (await desk.page(DeliveryQuery())).states == {}


async def test_what_is_shown_of_a_body(database: Database) -> None:
    desk = OutboxDesk(database)
    row = await desk.get(await prepare(database, "one", text="x" * 200))
    short, whole = delivery_view(row), delivery_view(row, whole=True)
    assert len(short["text"]) == 120 and short["text"].endswith("x…") and whole["text"] == "x" * 200
    assert "body" not in whole and whole["deliveryNo"] == row.delivery_no and whole["target"] == "42"
    exact = await desk.get(await prepare(database, "two", text="y" * 120))
    assert delivery_view(exact)["text"] == "y" * 120
    for name, body, shown in (("a", b"[1]", "[1]"), ("b", b'{"n":1}', '{"n":1}'), ("c", b"\xff{", "\ufffd{")):
        draft = DeliveryDraft(name, DeliveryContext(channel="irc", to="1"), body, NOON + 1)
        await database.write(
            partial(outbox.prepare, draft=draft, session_key=OTHER, run_id=None, now_ms=NOON)
        )
        (odd,) = (await desk.page(DeliveryQuery(limit=1))).deliveries
        assert delivery_view(odd)["text"] == shown


@pytest.mark.spec("KEY-3", "DB-9")
async def test_sessions_in_which_several_people_meet(store: Store, database: Database) -> None:
    from openclaw.store import conversations
    from openclaw.store.conversations import ConversationRef

    insight = Insight(database)
    assert await insight.shared_sessions() == {}

    async def link(key: str, kind: Literal["direct", "group"], peer: str, channel: str = "telegram") -> None:
        place = ConversationRef(channel, "default", kind, peer)
        await database.write(lambda tx: conversations.link(tx, key, place, NOON))

    await link("agent:main:main", "direct", "1")
    await link("agent:main:main", "group", "-1")
    assert await insight.shared_sessions() == {}, "one person and a group are not several people"
    await link("agent:main:main", "direct", "2", "irc")
    await link(OTHER, "direct", "3")
    met = await insight.shared_sessions()
    assert list(met) == ["agent:main:main"]
    assert [(one.channel, one.sender_id) for one in met["agent:main:main"]] == [
        ("telegram", "1"),
        ("irc", "2"),
    ]
