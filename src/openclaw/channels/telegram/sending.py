"""One reply on its way out: text in pieces, then files; a draft that stands there is completed.

What a failure means for the reply is decided here. Before anything of it can be seen, a refusal
is a `NotSent`. Behind the first piece there is no way back: what can be waited for is waited
for, and everything else leaves the reply half said and its fate unknown.
"""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable

import msgspec
from msgspec import Struct

from openclaw.channels.base import Attachment, NotSent, Outgoing, Sent
from openclaw.channels.telegram.api import BotApi, Refused, TelegramError, Unclear, Unreachable, Upload
from openclaw.channels.telegram.memory import Memory
from openclaw.channels.telegram.wire import NewTopic, SentMessage
from openclaw.channels.telegram.writing import Piece, pieces_of
from openclaw.engine.ports import Clock

WAIT_S = 5.0  # after a connection that failed, or a refusal that names no time
CREDENTIAL_WAIT_S = 60.0
FINISH_WITHIN_S = 100.0  # the whole reply, waits included; below what the postman allows
UPLOAD_WITHIN_S = 60.0
LARGEST_PHOTO = 10 * 1024 * 1024
MOST_PIECES = 12
PHOTO_TYPES = ("image/jpeg", "image/png", "image/webp")
_CHAT = re.compile(r"-?[0-9]{1,20}|@[A-Za-z0-9_]{4,64}")
_decode_sent = msgspec.json.Decoder(SentMessage).decode
_decode_topic = msgspec.json.Decoder(NewTopic).decode

# The form cannot be read, or shows nothing (an empty quotation): the text as it was written will do.
_FORM_REFUSED = ("can't parse entities", "message text is empty", "text must be non-empty")
_REASONS = (
    ("blocked by the user", "the person has blocked the bot"),
    ("user is deactivated", "the person's account is gone"),
    ("bot was kicked", "the bot was removed from the group"),
    ("chat not found", "Telegram knows no such chat: the person must write to the bot first"),
    ("message thread not found", "the topic is gone"),
    ("not enough rights", "the bot may not write there"),
)


class PartlySent(TelegramError):
    """A part of the reply can be seen, the rest could not be sent."""


class Place(Struct, frozen=True):
    """Where a reply goes, in Telegram's words."""

    chat_id: str
    thread_id: int | None = None


class Sender:
    """Sends for one bot."""

    def __init__(self, api: BotApi, memory: Memory, clock: Clock) -> None:
        self._api = api
        self._memory = memory
        self._clock = clock
        self._no_drafts_before: dict[str, float] = {}

    # -- a whole reply -------------------------------------------------------------------------

    async def send(self, outgoing: Outgoing) -> Sent:
        reply = reply_name(outgoing.key)
        draft_id = outgoing.draft_id or self._memory.draft(reply) or None
        if outgoing.draft_id and self._memory.draft(reply) != outgoing.draft_id:
            await self._memory.note_draft(reply, outgoing.draft_id)
        place = self.place_of(outgoing)
        delivery = _Delivery(self, place, self._clock)
        pieces, media = _parts(outgoing)
        for number, piece in enumerate(pieces):
            await delivery.step(_text_step(self, piece, draft_id if number == 0 else None))
        for attachment in media:
            await delivery.step(_file_step(self, attachment))
        await self._memory.drop_draft(reply)
        return Sent(tuple(delivery.message_ids))

    def place_of(self, outgoing: Outgoing) -> Place:
        """Where it goes; NotSent when the address is not one of Telegram's."""
        chat_id = outgoing.to.removeprefix("telegram:")
        if _CHAT.fullmatch(chat_id) is None:
            raise NotSent(f"{outgoing.to[:80]!r} is not a chat of Telegram; use the number of the chat")
        thread = outgoing.thread_id
        if thread is not None and not (thread.isascii() and thread.isdigit()):
            raise NotSent(f"{thread[:80]!r} is not a topic of Telegram; use the number of the topic")
        return Place(self._memory.now_called(chat_id), None if thread is None else int(thread))

    async def move(self, place: Place, new_id: str) -> Place:
        await self._memory.note_move(place.chat_id, new_id)
        return Place(new_id, place.thread_id)

    # -- single messages -----------------------------------------------------------------------

    async def write(self, place: Place, piece: Piece) -> str:
        """Send one text message, without its form where Telegram cannot read it."""
        params = {"chat_id": place.chat_id, "message_thread_id": place.thread_id}
        try:
            data = await self._api.call("sendMessage", params | {"text": piece.html, "parse_mode": "HTML"})
        except Refused as refused:
            if not refused.says(*_FORM_REFUSED):
                raise
            data = await self._api.call("sendMessage", params | {"text": piece.plain})
        return _message_id(data)

    async def rewrite(self, place: Place, message_id: str, piece: Piece) -> str:
        """Change a message; one that is gone is sent anew. Doing this twice shows it once."""
        params = {"chat_id": place.chat_id, "message_id": int(message_id)}
        try:
            try:
                await self._api.call("editMessageText", params | {"text": piece.html, "parse_mode": "HTML"})
            except Refused as refused:
                if not refused.says(*_FORM_REFUSED):
                    raise
                await self._api.call("editMessageText", params | {"text": piece.plain})
        except Refused as refused:
            if refused.says("message is not modified"):
                return message_id
            if refused.says("message to edit not found", "message can't be edited"):
                return await self.write(place, piece)
            raise
        except Unclear as unclear:
            # Nothing new was to appear, so trying again later cannot show it twice.
            raise NotSent(unclear.message, retry_after_s=WAIT_S) from None
        return message_id

    async def put_file(self, place: Place, file: Attachment) -> str:
        """Send a file, as a photo where Telegram takes it as one."""
        params = {"chat_id": place.chat_id, "message_thread_id": place.thread_id}
        if file.mime in PHOTO_TYPES and len(file.data) <= LARGEST_PHOTO:
            upload = Upload("photo", file.name, file.mime, file.data)
            try:
                return _message_id(
                    await self._api.upload("sendPhoto", params, upload, within_s=UPLOAD_WITHIN_S)
                )
            except Refused as refused:
                if refused.status != 400 or not refused.says("photo", "image"):
                    raise
        upload = Upload("document", file.name, file.mime, file.data)
        return _message_id(await self._api.upload("sendDocument", params, upload, within_s=UPLOAD_WITHIN_S))

    # -- while it is written -------------------------------------------------------------------

    async def draft(self, outgoing: Outgoing) -> str | None:
        """Show the beginning of a reply, or more of it. Errors are the caller's to overlook."""
        reply, place = reply_name(outgoing.key), self.place_of(outgoing)
        standing = outgoing.draft_id or self._memory.draft(reply)
        pieces = pieces_of(outgoing.text)
        if standing == "" or not pieces:
            return None
        if self._no_drafts_before.get(place.chat_id, 0.0) > self._clock.monotonic():
            return standing
        try:
            if standing is not None:
                return await self.rewrite(place, standing, pieces[0])
            message_id = await self.write(place, pieces[0])
        except Refused as refused:
            wait_s = refused.retry_after_s or WAIT_S
            self._no_drafts_before = {place.chat_id: self._clock.monotonic() + wait_s}
            return standing
        except Unclear:
            if standing is None:  # it may stand there under an id that we never learn: no second one
                await self._memory.note_draft(reply, "")
            raise
        await self._memory.note_draft(reply, message_id)
        return message_id

    async def show_typing(self, to: str, thread_id: str | None) -> None:
        place = self.place_of(Outgoing(key="", to=to, thread_id=thread_id))
        params = {"chat_id": place.chat_id, "message_thread_id": place.thread_id, "action": "typing"}
        await self._api.call("sendChatAction", params)

    async def open_thread(self, to: str, title: str) -> str:
        """A new topic of a forum group; its number. Other chats have no topics (BIND-1)."""
        place = self.place_of(Outgoing(key="", to=to))
        try:
            made = await self._api.call("createForumTopic", {"chat_id": place.chat_id, "name": title[:128]})
            return str(_decode_topic(made).message_thread_id)
        except Refused as refused:
            if refused.says("not a forum", "supergroup is needed"):
                raise NotSent("this chat has no topics; only a forum group has them") from None
            raise _not_sent(refused) from None
        except msgspec.MsgspecError:
            raise NotSent("Telegram's answer about the new topic cannot be read") from None


Step = Callable[[Place], Awaitable[str]]


class _Delivery:
    """The steps of one reply, and what has become visible of it."""

    def __init__(self, sender: Sender, place: Place, clock: Clock) -> None:
        self._sender = sender
        self._place = place
        self._clock = clock
        self._until_s = clock.monotonic() + FINISH_WITHIN_S
        self.message_ids: list[str] = []

    async def step(self, step: Step) -> None:
        while True:
            try:
                self.message_ids.append(await step(self._place))
                return
            except Refused as refused:
                if refused.migrated_to is not None and refused.migrated_to != self._place.chat_id:
                    self._place = await self._sender.move(self._place, refused.migrated_to)
                    continue
                problem = _not_sent(refused)
            except Unreachable as error:
                problem = NotSent(error.message, retry_after_s=WAIT_S)
            except NotSent as error:
                problem = error
            await self._wait_or_give_up(problem)

    async def _wait_or_give_up(self, problem: NotSent) -> None:
        """Behind the first message the rest is waited for; nothing may be sent from the beginning again."""
        if not self.message_ids:
            raise problem
        wait_s = problem.retry_after_s
        if wait_s is None or self._clock.monotonic() + wait_s > self._until_s:
            shown = len(self.message_ids)
            raise PartlySent(f"the first {shown} messages of this reply were sent, then: {problem.message}")
        await self._clock.sleep(wait_s)


def reply_name(key: str) -> str:
    """What a draft and the reply that it becomes have in common."""
    return key.rpartition(":")[0] or key


def _parts(outgoing: Outgoing) -> tuple[list[Piece], tuple[Attachment, ...]]:
    """The messages of a reply. One that would flood a chat comes as its beginning and a file."""
    pieces = pieces_of(outgoing.text)
    media = tuple(file for file in outgoing.media if file.data)
    if len(pieces) <= MOST_PIECES:
        return pieces, media
    whole = Attachment(name="reply.md", mime="text/markdown", data=outgoing.text.encode("utf-8", "replace"))
    return pieces[:1], (whole, *media)


def _text_step(sender: Sender, piece: Piece, draft_id: str | None) -> Step:
    async def step(place: Place) -> str:
        if draft_id is not None and draft_id.isdigit():
            return await sender.rewrite(place, draft_id, piece)
        return await sender.write(place, piece)

    return step


def _file_step(sender: Sender, file: Attachment) -> Step:
    async def step(place: Place) -> str:
        return await sender.put_file(place, file)

    return step


def _not_sent(refused: Refused) -> NotSent:
    """What a refusal means for the reply: when to try again, or why that is useless."""
    if refused.status == 429 or refused.retry_after_s is not None:
        return NotSent(refused.message, retry_after_s=refused.retry_after_s or WAIT_S)
    if refused.status in (401, 404):
        return NotSent("Telegram does not accept the bot token", retry_after_s=CREDENTIAL_WAIT_S)
    for words, reason in _REASONS:
        if refused.says(words):
            return NotSent(f"{reason} ({refused.words})")
    return NotSent(refused.message)


def _message_id(data: bytes) -> str:
    """The id of what was sent. It can be seen by now, so an answer without one is no failure."""
    try:
        return str(_decode_sent(data).message_id)
    except msgspec.MsgspecError:
        return ""
