"""Topics of a forum group as threads of helpers: opened, written to, refused where there are none."""

from __future__ import annotations

import msgspec
import pytest

from openclaw.channels.base import NotSent, OpensThreads, Outgoing
from tests.channels.telegram_bench import CHAT, Bench, bench
from tests.fakes.telegram_server import Fault

__all__ = ["bench"]
FORUM = "-1001"


@pytest.mark.spec("BIND-1")
async def test_a_topic_is_opened_and_takes_replies(bench: Bench) -> None:
    bench.server.chats.add(FORUM)
    bench.server.topics[FORUM] = {7}
    connector = await bench.connector()
    assert isinstance(connector, OpensThreads)
    assert connector.abilities.binds_threads
    topic = await connector.open_thread(FORUM, "Counting sheep " * 20)
    assert int(topic) in bench.server.topics[FORUM] and topic != "7"
    assert len(bench.server.calls[-1][1]["name"]) == 128
    await connector.send(Outgoing(key="run-1:reply", to=FORUM, thread_id=topic, text="42"))
    (post,) = bench.server.posts
    assert (post.chat_id, post.thread, post.text) == (FORUM, int(topic), "42")


@pytest.mark.spec("BIND-2")
async def test_where_there_are_no_topics_the_reason_is_told(bench: Bench) -> None:
    connector = await bench.connector()
    with pytest.raises(NotSent, match="only a forum group"):
        await connector.open_thread(CHAT, "x")
    with pytest.raises(NotSent, match="not a chat of Telegram"):
        await connector.open_thread("somebody else", "x")
    bench.server.topics[CHAT] = set()
    bench.server.fail_next(Fault("createForumTopic", 400, "not enough rights to create a topic"))
    with pytest.raises(NotSent, match="not enough rights"):
        await connector.open_thread(CHAT, "x")
    assert bench.server.topics[CHAT] == set()
    assert msgspec.json.encode(bench.server.posts) == b"[]"
