"""One account on a small homeserver: what is received, what is refused, and that nothing appears twice."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Callable
from typing import Any

import aiohttp
import pytest

from openclaw.app.system import SystemClock
from openclaw.channels.base import (
    Answer,
    Complains,
    Down,
    Message,
    Outgoing,
)
from openclaw.channels.matrix import connector as connecting
from openclaw.channels.matrix.connector import MatrixConnector
from openclaw.channels.registry import Ground
from openclaw.domain.routing import Envelope
from openclaw.errors import OpenClawError
from openclaw.store.connectors import ConnectorNotes
from openclaw.store.sqlite import SqliteDatabase
from tests.channels.suite import until
from tests.fakes.matrix_fake_platform import text_of
from tests.fakes.matrix_server import HOUSE, TOKEN, FakeMatrix, Fault, Json, Requests

ANN, BOB = "@Ann:Fake.Test", "@Bob:Fake.Test"
DIRECT, GROUP = "!Dm:Fake.Test", "!Gr:Fake.Test"


class Hall:
    """A door that keeps what was handed in; `broken` refuses so many times first."""

    def __init__(self) -> None:
        self.messages: list[Message] = []
        self.broken = 0
        self.wants = True

    async def wants_files(self, envelope: Envelope) -> bool:
        return self.wants

    async def accept(self, message: Message) -> Answer:
        if self.broken:
            self.broken -= 1
            raise OpenClawError("the disk is full")
        self.messages.append(message)
        return Answer("taken")

    @property
    def texts(self) -> list[str]:
        return [message.envelope.text for message in self.messages]


class Stage:
    """A homeserver, a database and as many lives of the connector as a test wants."""

    def __init__(self, server: FakeMatrix, database: SqliteDatabase, http: aiohttp.ClientSession) -> None:
        self.server, self.database, self.http = server, database, http
        self.hall = Hall()
        self.options: Json = {"homeserver": server.root, "userId": HOUSE, "accessToken": TOKEN}
        self.welcome: Callable[[str, str, bool], bool] = lambda inviter, room, direct: True

    async def build(self) -> MatrixConnector:
        async def welcomes(inviter: str, room_id: str, direct: bool) -> bool:
            return self.welcome(inviter, room_id, direct)

        notes = ConnectorNotes(self.database, "matrix", "default")
        return await connecting.build(
            Ground("matrix", "default", self.options, self.http, SystemClock(), notes, welcomes=welcomes)
        )


class Life:
    """The connector while it runs."""

    def __init__(self, stage: Stage) -> None:
        self._stage = stage

    async def __aenter__(self) -> MatrixConnector:
        self.connector = await self._stage.build()
        self._task = asyncio.create_task(self.connector.run(self._stage.hall))
        await until(lambda: self.connector.credentials_refreshed_at or self._task.done(), "an introduction")
        return self.connector

    async def __aexit__(self, *_: object) -> None:
        self._task.cancel()
        await asyncio.wait({self._task})


@pytest.fixture
async def stage(tmp_path: Any, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Stage]:
    async def requests() -> Requests:
        return Requests()

    monkeypatch.setattr(connecting, "load_requests", requests)
    monkeypatch.setattr(connecting, "HICCUP_PAUSES_S", (0.02, 0.02))
    monkeypatch.setattr("openclaw.channels.fetching.PAUSES_S", (0.01,))
    database = await SqliteDatabase.open(tmp_path / "notes.sqlite")
    async with FakeMatrix() as server, aiohttp.ClientSession() as http:
        server.room(DIRECT, {ANN: "Ann"})
        server.room(GROUP, {ANN: "Ann", BOB: "Bob"}, name="The house")
        yield Stage(server, database, http)
    await database.close()


async def run_down(stage: Stage) -> Down:
    connector = await stage.build()
    with pytest.raises(Down) as caught:
        async with asyncio.timeout(60):
            await connector.run(stage.hall)
    return caught.value


# -- receiving -------------------------------------------------------------------------------------


@pytest.mark.spec("GROW-6")
async def test_a_message_that_was_not_kept_comes_again_and_the_place_is_kept_after_it(stage: Stage) -> None:
    async with Life(stage):
        await stage.server.says(ANN, DIRECT, text_of("one"))
        await until(lambda: stage.hall.texts and stage.server.is_followed, "one")
    stage.hall.broken = 1
    await stage.server.says(ANN, DIRECT, text_of("two"))
    with pytest.raises(OpenClawError, match="disk"):
        await (await stage.build()).run(stage.hall)
    async with Life(stage):
        await until(lambda: len(stage.hall.texts) == 2, "two")
        await stage.server.says(ANN, DIRECT, text_of("three"))
        await until(lambda: len(stage.hall.texts) == 3, "three")
    assert stage.hall.texts == ["one", "two", "three"]


async def test_history_is_left_alone_and_what_is_fresh_is_taken(stage: Stage) -> None:
    await stage.server.says(ANN, DIRECT, text_of("long ago"), unsigned={"age": 300_001})
    await stage.server.says(ANN, DIRECT, text_of("just now"), unsigned={"age": 300_000})
    stage.server.room("!New:Fake.Test", {BOB: "Bob"}, invited=BOB)
    async with Life(stage):
        await until(lambda: HOUSE in stage.server.rooms["!New:Fake.Test"].members, "joining")
        await stage.server.says(BOB, "!New:Fake.Test", text_of("welcome"))
        await until(lambda: "welcome" in stage.hall.texts, "a word in the new room")
    assert stage.hall.texts == ["just now", "welcome"]
    assert stage.hall.messages[-1].envelope.peer_kind == "direct"


async def test_a_long_absence_is_read_page_by_page_in_order(
    stage: Stage, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr("openclaw.channels.matrix.intake.PAGE", 4)
    async with Life(stage):
        await stage.server.says(ANN, DIRECT, text_of("hello"))
        await until(lambda: stage.hall.texts and stage.server.is_followed, "hello")
    stage.server.sync_limit = 3
    said = [str(number) for number in range(15)]
    for text in said:
        await stage.server.says(ANN, DIRECT, text_of(text))
    async with Life(stage):
        await until(lambda: len(stage.hall.texts) == 16 and stage.server.is_followed, "everything")
    assert stage.hall.texts[1:] == said
    monkeypatch.setattr("openclaw.channels.matrix.intake.MOST_PAGES", 1)
    for text in said:
        await stage.server.says(ANN, DIRECT, text_of(text))
    caplog.set_level(logging.WARNING, "openclaw.channels")
    async with Life(stage):
        await until(lambda: len(stage.hall.texts) == 23, "what is still read")
    assert "were missed" in caplog.text


@pytest.mark.spec("ROUTE-3")
async def test_what_is_answered_is_looked_up(stage: Stage) -> None:
    async with Life(stage) as connector:
        sent = await connector.send(Outgoing(key="r:reply", to=GROUP, text="my words"))
        relation = {"m.relates_to": {"m.in_reply_to": {"event_id": sent.message_ids[0]}}}
        await stage.server.says(BOB, GROUP, text_of("why?") | relation)
        gone = {"m.relates_to": {"m.in_reply_to": {"event_id": "$gone"}}}
        await stage.server.says(BOB, GROUP, text_of("and this?") | gone)
        await until(lambda: len(stage.hall.messages) == 2, "two replies")
    first, second = stage.hall.messages
    assert first.envelope.replied_to_us and (first.quoted, first.quoted_sender) == ("my words", "House")
    assert not second.envelope.replied_to_us and second.quoted is None


async def test_files_come_with_their_bytes_or_with_the_reason(stage: Stage) -> None:
    stage.options["mediaMaxMb"] = 0.001
    stage.server.files |= {"ok": b"PNG", "large": b"x" * 2000}
    async with Life(stage):
        for name in ("ok", "large", "missing", "shaky"):
            content = {"msgtype": "m.file", "body": name, "url": f"mxc://fake.test/{name}"}
            if name == "shaky":
                stage.server.files[name] = b"late"
                stage.server.faults.append(Fault("/shaky", 502, b"bad gateway"))
            await stage.server.says(ANN, DIRECT, content)
        await until(lambda: len(stage.hall.messages) == 4, "four files")
    ok, large, missing, shaky = (message.attachments[0] for message in stage.hall.messages)
    assert (ok.data, ok.problem, shaky.data) == (b"PNG", None, b"late")
    assert large.problem is not None and "more than 1048 bytes" in large.problem
    assert missing.problem is not None and "M_NOT_FOUND" in missing.problem


async def test_a_room_nobody_told_about_is_asked_for(stage: Stage) -> None:
    async with Life(stage):
        await stage.server.says(ANN, DIRECT, text_of("x"))
        await until(lambda: stage.hall.texts, "x")
        stage.server.room("!Late:Fake.Test", {ANN: "Ann", BOB: "Bob"})
        await stage.server.says(BOB, "!Late:Fake.Test", text_of("here"))
        await until(lambda: len(stage.hall.texts) == 2, "here")
    envelope = stage.hall.messages[1].envelope
    assert (envelope.peer_kind, envelope.sender_name) == ("channel", "Bob")


async def test_rooms_marked_as_direct_are_direct(stage: Stage) -> None:
    stage.server.direct = {BOB: [GROUP]}
    async with Life(stage) as connector:
        await stage.server.says(BOB, GROUP, text_of("between us"))
        await until(lambda: stage.hall.texts, "a message")
        await connector.send(Outgoing(key="r:reply", to=BOB, text="to Bob"))
        await connector.send(Outgoing(key="s:reply", to=f"user:{ANN}", text="to Ann"))
    assert stage.hall.messages[0].envelope.peer_kind == "direct"
    assert [room for room, _ in stage.server.sent] == [GROUP, DIRECT]


@pytest.mark.parametrize(("auto_join", "joins"), [("always", True), ("off", False), ("allowlist", False)])
async def test_invitations_follow_the_setting(
    stage: Stage, auto_join: str, joins: bool, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.WARNING, "openclaw.channels")
    stage.options["autoJoin"] = auto_join
    asked: list[tuple[str, str, bool]] = []

    def welcome(*about: Any) -> bool:
        asked.append(about)
        return False

    stage.welcome = welcome
    room = stage.server.room("!Inv:Fake.Test", {BOB: "Bob"}, invited=BOB)

    def is_member() -> bool:
        return HOUSE in room.members

    for _ in range(2):
        async with Life(stage):
            await stage.server.says(ANN, DIRECT, text_of("x"))
            await until(lambda: len(stage.hall.texts), "x")
            await until(lambda: is_member() if joins else caplog.text, "a decision")
    assert is_member() is joins
    assert caplog.text.count("was not taken up") == (0 if joins else 1), "told once, also after a restart"
    if auto_join == "allowlist":
        assert set(asked) == {(BOB, "!Inv:Fake.Test", True)}
        stage.welcome = lambda inviter, room, direct: True
        async with Life(stage):
            await until(lambda: HOUSE in stage.server.rooms["!Inv:Fake.Test"].members, "joining in the end")


async def test_encrypted_messages_are_told_once(stage: Stage, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.WARNING, "openclaw.channels")
    async with Life(stage) as connector:
        assert isinstance(connector, Complains) and connector.complaint is None
        for _ in range(2):
            await stage.server.says(ANN, DIRECT, {"ciphertext": "x"}, type="m.room.encrypted")
        await stage.server.says(ANN, DIRECT, text_of("plain"))
        await until(lambda: stage.hall.texts, "plain")
        assert connector.complaint is not None and DIRECT in connector.complaint
    assert caplog.text.count("cannot be read") == 1 and stage.hall.texts == ["plain"]


async def test_a_room_that_cannot_be_joined_does_not_stop_the_others(stage: Stage) -> None:
    stage.server.room("!Shut:Fake.Test", {BOB: "Bob"}, invited=BOB)
    stage.server.room("!Open:Fake.Test", {BOB: "Bob"}, invited=BOB)
    stage.server.faults = [
        Fault("/join/!Shut", 403, {"errcode": "M_FORBIDDEN", "error": "banned"}),
        Fault("/join/!Open", 429, {"errcode": "M_LIMIT_EXCEEDED", "retry_after_ms": 1}),
    ]
    async with Life(stage):
        await until(lambda: stage.server.faults == [], "two refusals")
        await stage.server.says(ANN, DIRECT, text_of("x"))
        await until(lambda: HOUSE in stage.server.rooms["!Open:Fake.Test"].members, "the second try")
        assert HOUSE not in stage.server.rooms["!Shut:Fake.Test"].members
    stage.server.room("!Third:Fake.Test", {BOB: "Bob"}, invited=BOB)
    stage.server.faults = [Fault("/join/", 401, {"errcode": "M_UNKNOWN_TOKEN"})]
    assert (await run_down(stage)).wait_s == 300


async def test_a_large_sync_and_an_odd_event_are_read(stage: Stage) -> None:
    async with Life(stage):
        await stage.server.says(ANN, DIRECT, text_of("x" * 70_000))
        await stage.server.says(ANN, DIRECT, text_of("after"))
        await until(lambda: len(stage.hall.texts) == 2, "both")
    assert len(stage.hall.texts[0]) == 70_000 and stage.hall.texts[1] == "after"


async def test_an_answered_event_that_makes_no_sense_comes_again(stage: Stage) -> None:
    relation = {"m.relates_to": {"m.in_reply_to": {"event_id": "$odd"}}}
    async with Life(stage):
        await until(lambda: stage.server.is_followed, "a place")
    await stage.server.says(BOB, GROUP, text_of("why?") | relation)
    stage.server.faults = [Fault("/event/", 200, b"[]")]
    assert "cannot be read" in (await run_down(stage)).message
    async with Life(stage):
        await until(lambda: stage.hall.texts, "why?")
    assert stage.hall.texts == ["why?"]


# -- when things go wrong --------------------------------------------------------------------------


async def test_a_wrong_token_waits_long_and_says_what_to_change(stage: Stage) -> None:
    stage.server.token = "another"
    down = await run_down(stage)
    assert down.wait_s == 300 and "channels.matrix.accessToken" in down.message and HOUSE in down.message
    del stage.options["accessToken"]
    stage.options["password"] = "wrong"
    stage.server.faults = [Fault("/login", 403, {"errcode": "M_FORBIDDEN", "error": "Invalid"})]
    down = await run_down(stage)
    assert down.wait_s == 300 and "channels.matrix.password" in down.message


async def test_a_token_of_another_account_is_refused(stage: Stage) -> None:
    stage.options["userId"] = "@other:Fake.Test"
    down = await run_down(stage)
    assert HOUSE in down.message and "@other:Fake.Test" in down.message and down.wait_s == 300


async def test_a_password_logs_in_once_and_again_when_the_login_was_ended(stage: Stage) -> None:
    del stage.options["accessToken"]
    stage.options |= {"password": "secret", "deviceName": "kitchen"}
    for _ in range(2):
        async with Life(stage):
            pass
    assert [login["device"] for login in stage.server.logins] == ["kitchen"]
    stage.server.token = "renewed"
    down = await run_down(stage)
    assert "logging in again" in down.message and down.wait_s == 0
    async with Life(stage) as connector:
        assert connector.credentials_refreshed_at
    assert len(stage.server.logins) == 2


@pytest.mark.parametrize(
    ("fault", "words"),
    [
        (Fault("/sync", 502, b"<html>"), "failed"),
        (Fault("/sync", 200, b"no json"), "cannot be read"),
        (Fault("/sync", 200, {"rooms": {}}), "cannot be read"),
        (Fault("/sync", 0), "no answer"),
        (Fault("/sync", 404, b"<html>"), "check channels.matrix.homeserver"),
        (Fault("/sync", 403, {"errcode": "M_GUEST_ACCESS_FORBIDDEN", "error": "no"}), "no"),
    ],
)
async def test_an_answer_that_is_none_is_told(stage: Stage, fault: Fault, words: str) -> None:
    stage.server.faults = [fault] * 4
    assert words in (await run_down(stage)).message


async def test_a_homeserver_that_is_away_is_told(stage: Stage) -> None:
    await stage.server.go_away()
    assert "cannot be reached" in (await run_down(stage)).message


async def test_hiccups_and_limits_are_waited_out(stage: Stage) -> None:
    limit = {"errcode": "M_LIMIT_EXCEEDED", "retry_after_ms": 10}
    async with Life(stage):
        await until(
            lambda: sum("/sync" in path for _, path in stage.server.requests) >= 2, "a sync that waits"
        )
        stage.server.faults = [Fault("/sync", 502, b""), Fault("/sync", 0), Fault("/sync", 429, limit)]
        await stage.server.says(ANN, DIRECT, text_of("one"))
        await until(lambda: stage.hall.texts, "one")
        await stage.server.says(ANN, DIRECT, text_of("two"))
        await until(lambda: len(stage.hall.texts) == 2, "two")
    assert stage.hall.texts == ["one", "two"] and stage.server.faults == []


async def test_a_place_that_the_homeserver_forgot_is_left(stage: Stage) -> None:
    async with Life(stage):
        await stage.server.says(ANN, DIRECT, text_of("one"))
        await until(lambda: stage.hall.texts and stage.server.is_followed, "one")
    connector = await stage.build()
    stage.server.faults = [
        Fault("/sync", 200, {"next_batch": "1"}),
        Fault("/sync", 400, {"errcode": "M_UNKNOWN_POS"}),
    ]
    with pytest.raises(Down, match="does not know where we were"):
        await connector.run(stage.hall)
    await stage.server.says(ANN, DIRECT, text_of("two"), unsigned={"age": 10})
    async with Life(stage):
        await until(lambda: "two" in stage.hall.texts, "two")
