"""What becomes of a reply: every way in which Telegram can take it, refuse it, or not answer."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
from aiohttp import web

from openclaw.channels.base import Attachment, NotSent, Outgoing
from openclaw.channels.telegram.api import Unclear
from openclaw.channels.telegram.sending import MOST_PIECES, PartlySent
from tests.channels.telegram_bench import CHAT, Bench, bench
from tests.fakes.telegram_server import FakeTelegram, Fault

__all__ = ["bench"]
PNG = b"\x89PNG\r\n\x1a\n" + b"0" * 100
LONG = "word " * 1000  # two messages


def reply(text: str = "hello", **more: Any) -> Outgoing:
    return msgspec.structs.replace(Outgoing(key="run-1:reply", to=CHAT, text=text), **more)


def shown(bench: Bench) -> list[str]:
    return [post.text for post in bench.server.posts]


async def test_form_arrives_as_form(bench: Bench) -> None:
    connector = await bench.connector()
    sent = await connector.send(reply("**bold** & `a<b`"))
    (post,) = bench.server.posts
    assert sent.message_ids == (str(post.message_id),)
    assert post.text == "bold & a<b" and [one["type"] for one in post.entities] == ["b", "code"]


async def test_form_that_telegram_does_not_read_arrives_as_plain_text(bench: Bench) -> None:
    bench.server.fail_next(Fault("sendMessage", 400, "can't parse entities: unsupported start tag"))
    await (await bench.connector()).send(reply("**bold**"))
    assert shown(bench) == ["**bold**"]
    assert "parse_mode" not in bench.server.calls[-1][1]


@pytest.mark.parametrize("text", [">", "```\n```"])
async def test_form_without_anything_inside_arrives_as_it_was_written(bench: Bench, text: str) -> None:
    await (await bench.connector()).send(reply(text))
    assert shown(bench) == [text]


@pytest.mark.spec("KEY-10", "ROUTE-2")
async def test_a_topic_gets_its_reply(bench: Bench) -> None:
    bench.server.chats.add("-1001")
    bench.server.topics["-1001"] = {7}
    await (await bench.connector()).send(reply(to="-1001", thread_id="7"))
    (post,) = bench.server.posts
    assert (post.chat_id, post.thread) == ("-1001", 7)


@pytest.mark.parametrize(
    ("fault", "retry_after_s"),
    [
        (Fault("sendMessage", 429, "retry after 7", {"retry_after": 7}), 7.0),
        (Fault("sendMessage", 429, "slow down"), 5.0),
        (Fault("sendMessage", 401, "Unauthorized"), 60.0),
    ],
)
async def test_a_refusal_that_is_worth_another_try(bench: Bench, fault: Fault, retry_after_s: float) -> None:
    bench.server.fail_next(fault)
    with pytest.raises(NotSent) as refused:
        await (await bench.connector()).send(reply())
    assert refused.value.retry_after_s == retry_after_s and shown(bench) == []


@pytest.mark.parametrize(
    ("to", "thread", "words"),
    [
        ("555", None, "must write to the bot first"),
        ("666", None, "has blocked the bot"),
        (CHAT, "9", "the topic is gone"),
        ("Ann", None, "not a chat of Telegram"),
        ("10 1", None, "not a chat of Telegram"),
        (CHAT, "general", "not a topic of Telegram"),
    ],
)
async def test_a_refusal_for_good_says_why(bench: Bench, to: str, thread: str | None, words: str) -> None:
    bench.server.blocked.add("666")
    with pytest.raises(NotSent, match=words) as refused:
        await (await bench.connector()).send(reply(to=to, thread_id=thread))
    assert refused.value.retry_after_s is None and shown(bench) == []


async def test_a_platform_that_cannot_be_reached_saw_nothing(bench: Bench) -> None:
    connector = await bench.connector()
    await bench.server.go_away()
    with pytest.raises(NotSent) as refused:
        await connector.send(reply())
    assert refused.value.retry_after_s == 5.0
    assert "7000:" not in refused.value.message


@pytest.mark.parametrize(
    "fault",
    [
        Fault("sendMessage", cut="after"),
        Fault("sendMessage", cut="before"),
        Fault("sendMessage", 500, "restart"),
        Fault("sendMessage", raw=b"<html>Bad Gateway</html>"),
    ],
    ids=["answer lost", "connection cut", "500", "somebody in between"],
)
async def test_a_message_without_an_answer_is_unknown(bench: Bench, fault: Fault) -> None:
    bench.server.fail_next(fault)
    with pytest.raises(Unclear) as unclear:
        await (await bench.connector()).send(reply())
    assert "7000:" not in str(unclear.value) and "http" not in str(unclear.value)


async def test_behind_the_first_piece_a_refusal_is_waited_for(bench: Bench) -> None:
    connector = await bench.connector()
    bench.server.fail_next(
        Fault("sendMessage"),  # the first piece goes through
        Fault("sendMessage", 429, "retry after 3", {"retry_after": 3}),
    )
    sent = await connector.send(reply(LONG))
    assert len(sent.message_ids) == 2 and " ".join(shown(bench)) == LONG.strip()
    assert bench.clock.slept == [3]


@pytest.mark.parametrize(
    "fault",
    [
        Fault("sendMessage", 400, "chat not found"),
        Fault("sendMessage", 429, "retry after 500", {"retry_after": 500}),
    ],
)
async def test_half_a_reply_is_never_begun_again(bench: Bench, fault: Fault) -> None:
    bench.server.fail_next(Fault("sendMessage"), fault)
    with pytest.raises(PartlySent, match="first 1 messages"):
        await (await bench.connector()).send(reply(LONG))
    assert len(shown(bench)) == 1


async def test_a_group_that_moved_gets_its_reply_at_the_new_place(bench: Bench) -> None:
    bench.server.migrated["-1001"] = "-1002"
    bench.server.chats.add("-1002")
    await (await bench.connector()).send(reply(to="-1001"))
    await (await bench.connector()).send(reply("again", to="-1001"))  # remembered across a restart
    assert [(post.chat_id, post.text) for post in bench.server.posts] == [
        ("-1002", "hello"),
        ("-1002", "again"),
    ]
    assert [params["chat_id"] for method, params in bench.server.calls] == ["-1001", "-1002", "-1002"]


@pytest.mark.parametrize(
    ("body", "status", "refused"),
    [(b"<html>", 413, True), (b"<html>", 429, True), (b"<html>", 200, False), (b"", 502, False)],
)
async def test_somebody_in_between_answers(
    bench: Bench, monkeypatch: pytest.MonkeyPatch, body: bytes, status: int, refused: bool
) -> None:
    async def answer(_self: object, _request: web.Request) -> web.Response:
        return web.Response(body=body, status=status)

    monkeypatch.setattr(FakeTelegram, "_answer", answer)
    await bench.server.go_away()
    await bench.server.come_back()
    with pytest.raises(NotSent if refused else Unclear) as found:
        await (await bench.connector()).send(reply())
    if isinstance(found.value, NotSent):
        assert (found.value.retry_after_s is not None) is (status == 429)


async def test_an_answer_without_end_is_not_read(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("openclaw.channels.telegram.api.LARGEST_ANSWER", 20)
    with pytest.raises(Unclear, match="too long an answer"):
        await (await bench.connector()).send(reply())
    assert shown(bench) == ["hello"]


async def test_an_answer_without_a_number_is_still_an_answer(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def odd(_params: object) -> bool:
        return True

    monkeypatch.setattr(bench.server, "_do_send_message", odd)
    assert (await (await bench.connector()).send(reply())).message_ids == ("",)


async def test_a_refusal_without_a_known_reason_says_telegrams_words(bench: Bench) -> None:
    bench.server.fail_next(Fault("sendMessage", 400, "the moon is full"))
    with pytest.raises(NotSent, match="the moon is full") as refused:
        await (await bench.connector()).send(reply())
    assert refused.value.retry_after_s is None


# -- files -----------------------------------------------------------------------------------------


async def test_files_follow_the_text(bench: Bench) -> None:
    media = (
        Attachment(name="cat.png", mime="image/png", data=PNG),
        Attachment(name="plan.pdf", mime="application/pdf", data=b"%PDF-1"),
        Attachment(name="none", problem="gone"),
    )
    await (await bench.connector()).send(reply("look", media=media))
    found = [(post.method, post.file_name, post.file, post.text) for post in bench.server.posts]
    assert found == [
        ("sendMessage", "", None, "look"),
        ("sendPhoto", "cat.png", PNG, ""),
        ("sendDocument", "plan.pdf", b"%PDF-1", ""),
    ]


async def test_a_picture_that_telegram_does_not_take_as_a_photo_is_a_document(bench: Bench) -> None:
    media = (Attachment(name="odd.png", mime="image/png", data=b"odd"),)
    sent = await (await bench.connector()).send(reply("", media=media))
    assert [(post.method, post.file) for post in bench.server.posts] == [("sendDocument", b"odd")]
    assert len(sent.message_ids) == 1


async def test_a_photo_that_is_refused_for_another_reason(bench: Bench) -> None:
    bench.server.fail_next(Fault("sendPhoto", 403, "bot was blocked by the user"))
    media = (Attachment(name="cat.png", mime="image/png", data=PNG),)
    with pytest.raises(NotSent, match="has blocked the bot"):
        await (await bench.connector()).send(reply("", media=media))
    assert bench.server.posts == []


async def test_a_reply_that_would_flood_a_chat_comes_as_a_file(bench: Bench) -> None:
    text = "word " * (820 * (MOST_PIECES + 1))
    await (await bench.connector()).send(reply(text))
    first, file = bench.server.posts
    assert text.startswith(first.text) and file.file == text.encode() and file.file_name == "reply.md"


async def test_nothing_to_say_sends_nothing(bench: Bench) -> None:
    assert (await (await bench.connector()).send(reply(" \n "))).message_ids == ()
    assert bench.server.calls == []


# -- a reply that grows ----------------------------------------------------------------------------


def draft(text: str, draft_id: str | None = None) -> Outgoing:
    return Outgoing(key="run-1:draft", to=CHAT, text=text, draft_id=draft_id)


async def test_a_draft_grows_and_becomes_the_reply(bench: Bench) -> None:
    connector = await bench.connector()
    first = await connector.draft(draft("The beginning"))
    assert first is not None
    assert await connector.draft(draft("The beginning of", first)) == first
    await connector.send(reply("The beginning of **it**.", draft_id=first))
    (post,) = bench.server.posts
    assert (post.text, post.edits) == ("The beginning of it.", 2)


async def test_a_draft_of_a_long_reply_is_its_first_piece(bench: Bench) -> None:
    connector = await bench.connector()
    first = await connector.draft(draft("word word"))
    await connector.send(reply(LONG, draft_id=first))
    assert len(bench.server.posts) == 2 and " ".join(shown(bench)) == LONG.strip()
    assert bench.server.posts[0].message_id == int(first or 0)


async def test_after_a_restart_the_reply_still_completes_its_draft(bench: Bench) -> None:
    first = await (await bench.connector()).draft(draft("The beginning"))
    again = await bench.connector()
    assert await again.draft(draft("The beginning, again")) == first
    bench.server.fail_next(Fault("editMessageText", 429, "slow", {"retry_after": 1}))
    with pytest.raises(NotSent):
        await again.send(reply("The whole"))
    await again.send(reply("The whole"))
    await again.send(reply("The whole", key="run-2:reply"))
    assert shown(bench) == ["The whole", "The whole"]


async def test_an_unchanged_draft_and_one_that_is_gone(bench: Bench) -> None:
    connector = await bench.connector()
    first = await connector.draft(draft("All of it"))
    await connector.send(reply("All of it", draft_id=first))
    assert shown(bench) == ["All of it"]
    second = await connector.draft(Outgoing(key="run-2:draft", to=CHAT, text="More"))
    bench.server.posts.pop()
    await connector.send(reply("More of it", key="run-2:reply", draft_id=second))
    assert shown(bench) == ["All of it", "More of it"]


async def test_a_draft_that_may_stand_there_gets_no_second_one(bench: Bench) -> None:
    connector = await bench.connector()
    bench.server.fail_next(Fault("sendMessage", cut="after"))
    with pytest.raises(Unclear):
        await connector.draft(draft("The beginning"))
    assert await connector.draft(draft("The beginning of")) is None
    await connector.send(reply("The whole"))
    assert shown(bench) == ["The beginning", "The whole"]


async def test_an_edit_without_an_answer_is_done_again(bench: Bench) -> None:
    connector = await bench.connector()
    first = await connector.draft(draft("The beginning"))
    bench.server.fail_next(Fault("editMessageText", cut="after"))
    with pytest.raises(NotSent) as refused:
        await connector.send(reply("The whole", draft_id=first))
    assert refused.value.retry_after_s == 5.0
    await connector.send(reply("The whole"))
    assert shown(bench) == ["The whole"]


async def test_a_draft_whose_form_cannot_be_read_and_one_that_only_the_postman_knows(bench: Bench) -> None:
    connector = await bench.connector()
    first = await connector.draft(draft("The beginning"))
    bench.server.fail_next(Fault("editMessageText", 400, "can't parse entities: odd"))
    await connector.send(reply("**The whole**", key="run-9:reply", draft_id=first))
    assert shown(bench) == ["**The whole**"]


async def test_drafts_pause_when_telegram_asks_for_it(bench: Bench) -> None:
    connector = await bench.connector()
    first = await connector.draft(draft("The beginning"))
    bench.server.fail_next(Fault("editMessageText", 429, "slow", {"retry_after": 9}))
    assert await connector.draft(draft("The beginning of", first)) == first
    calls = len(bench.server.calls)
    assert await connector.draft(draft("The beginning of it", first)) == first
    assert len(bench.server.calls) == calls
    await bench.clock.sleep(9)
    await connector.draft(draft("The beginning of it", first))
    assert shown(bench) == ["The beginning of it"]


async def test_typing_is_shown_where_the_answer_will_stand(bench: Bench) -> None:
    bench.server.chats.add("-1001")
    bench.server.topics["-1001"] = {7}
    await (await bench.connector()).show_typing("-1001", "7")
    assert bench.server.actions == [{"chat_id": "-1001", "message_thread_id": 7, "action": "typing"}]
