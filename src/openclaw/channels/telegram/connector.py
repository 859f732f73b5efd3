"""One bot on Telegram: introduced, receiving by long polling or by webhook, sending what it is given.

It confirms an update only when the door has answered, and keeps the number to go on from.
Which session a message belongs to and who may write is not decided here.
"""

from __future__ import annotations

import logging
import re

import msgspec

from openclaw.channels.base import Abilities, Door, Down, Outgoing, Sent
from openclaw.channels.registry import Ground
from openclaw.channels.telegram.api import BotApi, Refused, TelegramError, Unclear, Unreachable
from openclaw.channels.telegram.intake import Intake
from openclaw.channels.telegram.memory import Memory
from openclaw.channels.telegram.options import Options, read_options
from openclaw.channels.telegram.reading import Me, Moved
from openclaw.channels.telegram.sending import Sender
from openclaw.channels.telegram.webhook import Posts, Turnstile
from openclaw.channels.telegram.wire import User
from openclaw.channels.telegram.writing import LONGEST
from openclaw.domain.doortext import cut

log = logging.getLogger("openclaw.channels")
POLL_S = 30
BATCH = 100
SPARE_S = 15.0  # how much longer than the poll itself an answer may take
HICCUP_PAUSES_S: tuple[float, ...] = (0.5, 1.0, 2.0)  # failures in a row that are not worth a restart
WRONG_TOKEN_WAIT_S = 60.0
CONFLICT_WAIT_S = 15.0
LOOK_AFTER_S = 300.0
POSTS_AT_ONCE = 8
MOST_COMMANDS = 100
_MENU_NAME = re.compile(r"[a-z0-9_]{1,32}")
_decode_user = msgspec.json.Decoder(User).decode
_decode_batch = msgspec.json.Decoder(list[msgspec.Raw]).decode
_decode_webhook = msgspec.json.Decoder(dict[str, object]).decode
_ALLOWED = ["message"]


class TelegramConnector:
    abilities = Abilities(
        longest_text=LONGEST, topics=True, editing=True, typing=True, media=True, binds_threads=True
    )

    def __init__(self, ground: Ground, options: Options) -> None:
        self.channel, self.account_id = ground.channel, ground.account_id
        self.credentials_refreshed_at: int | None = None
        self._ground = ground
        self._options = options
        self._clock = ground.clock
        self._api = BotApi(ground.http, options.api_root, options.bot_token)
        self._memory = Memory(ground.notes, ground.clock)
        self._sender = Sender(self._api, self._memory, ground.clock)

    # -- receiving -----------------------------------------------------------------------------

    async def run(self, door: Door) -> None:
        try:
            intake = await self._introduce(door)
            if self._options.webhook_url is None:
                await self._poll(intake)
            else:
                await self._listen(intake, self._options.webhook_url)
        except Refused as refused:
            raise self._down(refused) from None
        except TelegramError as error:
            raise Down(error.message) from None

    async def _introduce(self, door: Door) -> Intake:
        """Learn our own name, which proves the token, and show the menu of commands."""
        user = _decode_user(await self._api.call("getMe"))
        self.credentials_refreshed_at = self._clock.now_ms()
        await self._show_menu()
        me = Me(user.id, user.username, self.channel, self.account_id)
        return Intake(
            self._api,
            me,
            door,
            self._clock,
            largest_file=self._options.largest_file,
            moved=self._note_move,
            old_id=self._memory.once_called,
        )

    async def _show_menu(self) -> None:
        """Best effort: a bot without a menu works as well."""
        shown = [
            {"command": name, "description": cut(" ".join(told.split()), 256) or name}
            for name, told in self._ground.commands
            if _MENU_NAME.fullmatch(name)
        ][:MOST_COMMANDS]
        encoded = msgspec.json.encode(shown)
        if not shown or self._memory.menu_is(encoded):
            return
        try:
            await self._api.call("setMyCommands", {"commands": shown})
        except Refused as refused:
            if refused.status in (401, 404):
                raise
            log.warning("%s (%s): the menu was not shown: %s", self.channel, self.account_id, refused.words)
            return
        await self._memory.note_menu(encoded)

    async def _note_move(self, moved: Moved) -> None:
        log.warning(
            "%s (%s): the group %s is now %s; use the new number in channels.%s.groups",
            self.channel, self.account_id, moved.old, moved.new, self.channel,
        )  # fmt: skip
        await self._memory.note_move(moved.old, moved.new)

    async def _poll(self, intake: Intake) -> None:
        await self._api.call("deleteWebhook", {"drop_pending_updates": False})
        hiccups = 0
        while True:
            try:
                data = await self._ask_for_updates()
            except (Unreachable, Unclear):
                if hiccups >= len(HICCUP_PAUSES_S):
                    raise
                await self._clock.sleep(HICCUP_PAUSES_S[hiccups])
                hiccups += 1
                continue
            except Refused as refused:
                if refused.retry_after_s is None:
                    raise
                await self._clock.sleep(refused.retry_after_s)
                continue
            hiccups = 0
            try:
                batch = [bytes(raw) for raw in _decode_batch(data)]
            except msgspec.MsgspecError:
                raise Down("Telegram's list of updates cannot be read") from None
            offset = await intake.take(batch)
            if offset is not None:
                await self._memory.go_on_from(offset)

    async def _ask_for_updates(self) -> bytes:
        asked = {
            "offset": self._memory.offset,
            "timeout": POLL_S,
            "limit": BATCH,
            "allowed_updates": _ALLOWED,
        }
        return await self._api.call("getUpdates", asked, within_s=POLL_S + SPARE_S)

    async def _listen(self, intake: Intake, url: str) -> None:
        """Have updates posted to the gateway, and look now and then whether they still are."""
        secret = self._options.webhook_secret or ""

        async def take(body: bytes) -> None:
            await intake.take([body])

        posts = Posts(secret, Turnstile(self._memory.offset, self._clock), take, self._memory.go_on_from)
        webhooks = self._ground.webhooks
        webhooks.open(self.channel, self.account_id, posts)
        try:
            await self._api.call(
                "setWebhook",
                {
                    "url": url,
                    "secret_token": secret,
                    "allowed_updates": _ALLOWED,
                    "max_connections": POSTS_AT_ONCE,
                },
            )
            while True:
                await self._clock.sleep(LOOK_AFTER_S)
                await self._look_after_webhook(url)
        finally:
            webhooks.close(self.channel, self.account_id, posts)

    async def _look_after_webhook(self, url: str) -> None:
        info = _decode_webhook(await self._api.call("getWebhookInfo"))
        if info.get("url") != url:
            raise Down("the webhook was changed by somebody else; is another program using this bot?")
        problem = info.get("last_error_message")
        if problem and info.get("pending_update_count"):
            log.warning(
                "%s (%s): Telegram cannot post updates: %.300s", self.channel, self.account_id, problem
            )

    def _down(self, refused: Refused) -> Down:
        if refused.status in (401, 404):
            return Down(
                "Telegram does not accept the bot token; check channels.telegram.botToken "
                "(@BotFather shows it under /mybots)",
                wait_s=WRONG_TOKEN_WAIT_S,
            )
        if refused.status == 409:
            return Down(
                f"another program receives for this bot; stop it, or give this gateway a bot of its own "
                f"({refused.words})",
                wait_s=CONFLICT_WAIT_S,
            )
        return Down(refused.message, wait_s=refused.retry_after_s or 0.0)

    # -- sending -------------------------------------------------------------------------------

    async def send(self, outgoing: Outgoing) -> Sent:
        return await self._sender.send(outgoing)

    async def show_typing(self, to: str, thread_id: str | None) -> None:
        await self._sender.show_typing(to, thread_id)

    async def draft(self, outgoing: Outgoing) -> str | None:
        return await self._sender.draft(outgoing)

    async def open_thread(self, to: str, title: str) -> str:
        return await self._sender.open_thread(to, title)

    async def recall(self) -> None:
        await self._memory.recall()


async def build(ground: Ground) -> TelegramConnector:
    """The connector of one account. Raises InvalidRequest about its options."""
    options = read_options(ground.options, ground.channel, ground.account_id)
    connector = TelegramConnector(ground, options)
    await connector.recall()
    return connector
