"""What an account sends: places, pieces, files, drafts, and that a second try shows nothing twice."""

from __future__ import annotations

from typing import Any

import pytest

from openclaw.channels.base import Attachment, NotSent, OpensThreads, Outgoing
from tests.channels.suite import until
from tests.channels.test_matrix_connector import ANN, BOB, DIRECT, GROUP, Life, Stage, stage
from tests.fakes.matrix_server import Fault

__all__ = ["stage"]
LIMIT = {"errcode": "M_LIMIT_EXCEEDED", "retry_after_ms": 1500}


def reply(to: str = DIRECT, text: str = "hello", **more: Any) -> Outgoing:
    return Outgoing(key="run-1:reply", to=to, text=text, **more)


@pytest.mark.parametrize(
    ("fault", "wait_s", "words"),
    [
        (Fault("/send/", 429, LIMIT), 1.5, "LIMIT"),
        (Fault("/send/", 429, b""), 1.0, "too many"),
        (Fault("/send/", 502, b""), 5.0, "502"),
        (Fault("/send/", 0, carried_out=True), 5.0, "no answer"),
        (Fault("/send/", 401, {"errcode": "M_UNKNOWN_TOKEN"}), 60.0, "access token"),
        (Fault("/send/", 403, {"errcode": "M_FORBIDDEN", "error": "not in room"}), None, "not in room"),
        (Fault("/send/", 413, {"errcode": "M_TOO_LARGE", "error": "big"}), None, "big"),
    ],
)
async def test_a_refusal_says_when_to_try_again(
    stage: Stage, fault: Fault, wait_s: float | None, words: str
) -> None:
    async with Life(stage) as connector:
        # A connection that was kept open and broke is tried once more by the HTTP library itself.
        stage.server.faults = [fault, fault] if fault.status == 0 else [fault]
        with pytest.raises(NotSent, match=words) as caught:
            await connector.send(reply())
        assert caught.value.retry_after_s == wait_s
        assert await connector.send(reply())
        assert [content["body"] for _, content in stage.server.sent] == ["hello"]


@pytest.mark.spec("ROUTE-2")
async def test_a_long_reply_that_was_cut_off_is_sent_once_in_whole(stage: Stage) -> None:
    words = " ".join(f"word{number}" for number in range(4000))
    async with Life(stage) as connector:
        await connector.send(reply(text="before"))
        outgoing = Outgoing(key="run-2:reply", to=DIRECT, text=words)
        first = await connector.send(outgoing)
        assert await connector.send(outgoing) == first and len(first.message_ids) > 1
    bodies = [content["body"] for _, content in stage.server.sent[1:]]
    assert " ".join(bodies) == words and len(bodies) == len(first.message_ids)


async def test_a_reply_to_a_person_waits_until_the_rooms_are_known(stage: Stage) -> None:
    connector = await stage.build()
    with pytest.raises(NotSent) as caught:  # it has just come back and has not looked around yet
        await connector.send(reply(ANN))
    assert caught.value.retry_after_s == 5.0
    async with Life(stage) as connector:
        await until(lambda: stage.server.is_followed, "a look at the rooms")
        assert await connector.send(reply(ANN))
        with pytest.raises(NotSent, match="must write first") as caught:
            await connector.send(reply("@stranger:Fake.Test"))
        assert caught.value.retry_after_s is None
    assert [room_id for room_id, _ in stage.server.sent] == [DIRECT]


@pytest.mark.parametrize("to", ["nowhere", "@stranger:Fake.Test", "!", "#alias:h", "!a b", ""])
async def test_an_address_that_is_none_is_refused(stage: Stage, to: str) -> None:
    async with Life(stage) as connector:
        await until(lambda: stage.server.is_followed, "a look at the rooms")
        with pytest.raises(NotSent) as caught:
            await connector.send(reply(to=to))
        assert caught.value.retry_after_s is None
    with pytest.raises(NotSent, match="thread"):
        await connector.send(reply(thread_id="7"))


@pytest.mark.spec("KEY-11", "ROUTE-2")
async def test_threads_and_files_stay_in_their_place(stage: Stage) -> None:
    files = (
        Attachment(name="cat.png", mime="image/png", data=b"PNG"),
        Attachment(name="a.txt", mime="text/plain", data=b"words"),
        Attachment(name="lost", problem="gone"),
    )
    async with Life(stage) as connector:
        sent = await connector.send(reply(to=f"room:{GROUP}", thread_id="$RooT", media=files))
    assert len(sent.message_ids) == 3 and {room for room, _ in stage.server.sent} == {GROUP}
    contents = [content for _, content in stage.server.sent]
    assert [content["msgtype"] for content in contents] == ["m.text", "m.image", "m.file"]
    assert all(content["m.relates_to"]["event_id"] == "$RooT" for content in contents)
    assert sorted(stage.server.files.values()) == [b"PNG", b"words"]


async def test_a_flood_becomes_its_beginning_and_a_file(stage: Stage) -> None:
    text = "word " * 40_000
    async with Life(stage) as connector:
        await connector.send(reply(text=text))
    assert [content["msgtype"] for _, content in stage.server.sent] == ["m.text", "m.file"]
    assert list(stage.server.files.values()) == [text.encode()]


def draft(text: str, draft_id: str | None = None) -> Outgoing:
    return Outgoing(key="run-1:draft", to=DIRECT, text=text, draft_id=draft_id)


async def test_a_draft_grows_and_becomes_the_reply(stage: Stage) -> None:
    async with Life(stage) as connector:
        shown = await connector.draft(draft("the beg"))
        assert await connector.draft(draft("the beginning", shown)) == shown
        assert await connector.draft(draft("  ")) is None
        sent = await connector.send(reply(text="the **whole**", draft_id=shown))
        assert sent.message_ids == (shown,)
    (_, first), *edits = stage.server.sent
    assert first["event_id"] == shown and len(edits) == 2
    assert all(content["m.relates_to"]["event_id"] == shown for _, content in edits)
    assert edits[-1][1]["m.new_content"]["formatted_body"] == "the <strong>whole</strong>"


@pytest.mark.spec("REST-7")
async def test_a_draft_of_an_earlier_life_becomes_the_reply(stage: Stage) -> None:
    async with Life(stage) as connector:
        shown = await connector.draft(draft("the beg"))
    async with Life(stage) as connector:
        assert await connector.draft(draft("the beginn")) == shown
        await connector.send(reply(text="the end"))
        await connector.send(Outgoing(key="run-2:reply", to=DIRECT, text="another"))
    kinds = [content.get("m.relates_to", {}).get("rel_type") for _, content in stage.server.sent]
    assert kinds == [None, "m.replace", "m.replace", None]


@pytest.mark.spec("REST-7")
async def test_a_draft_whose_answer_was_lost_is_found_again(stage: Stage) -> None:
    async with Life(stage) as connector:
        stage.server.faults = [Fault("/send/", 0, carried_out=True)] * 2
        with pytest.raises(Exception, match="no answer"):
            await connector.draft(draft("the beg"))
    async with Life(stage) as connector:
        sent = await connector.send(reply(text="the end"))
    (_, first), (_, edit) = stage.server.sent
    assert sent.message_ids == (first["event_id"],) and edit["m.new_content"]["body"] == "the end"


async def test_typing_is_shown_and_ends_with_the_reply(stage: Stage) -> None:
    async with Life(stage) as connector:
        await connector.show_typing(DIRECT, None)
        stage.server.faults = [Fault("/typing/", 502, b"")]
        with pytest.raises(Exception, match="502"):
            await connector.show_typing(DIRECT, None)
        await connector.send(reply())
        await connector.send(reply(to=GROUP))
    assert stage.server.typing == [(DIRECT, True), (DIRECT, False)]


@pytest.mark.spec("BIND-1")
async def test_a_thread_is_opened_below_a_message(stage: Stage) -> None:
    async with Life(stage) as connector:
        assert isinstance(connector, OpensThreads) and connector.abilities.binds_threads
        root = await connector.open_thread(GROUP, "Research")
        other = await connector.open_thread(GROUP, "")
        assert root != other
        await connector.send(reply(to=GROUP, thread_id=root))
        stage.server.faults = [Fault("/send/", 403, {"errcode": "M_FORBIDDEN", "error": "no"})]
        with pytest.raises(NotSent, match="may not write"):
            await connector.open_thread(GROUP, "x")
        with pytest.raises(NotSent):
            await connector.open_thread(BOB, "x")
    assert stage.server.sent[0][1]["body"] == "Research"
    assert stage.server.sent[2][1]["m.relates_to"]["event_id"] == root
