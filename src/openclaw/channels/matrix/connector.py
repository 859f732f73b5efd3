"""One account on one homeserver: known by its token, receiving by sync, sending what it is given.

The sync token is kept only when the door has answered for everything before it. Which session a
message belongs to and who may write is not decided here; whether an invitation is taken up
follows `autoJoin` and the account's own rules.
"""

from __future__ import annotations

import logging
from typing import Any

from openclaw.channels.base import Abilities, Door, Down, Outgoing, Sent
from openclaw.channels.matrix.api import NO_TOKEN, Homeserver, MatrixError, Refused, Unclear, load_requests
from openclaw.channels.matrix.intake import Intake, rooms_named
from openclaw.channels.matrix.memory import Memory
from openclaw.channels.matrix.options import Options, read_options
from openclaw.channels.matrix.reading import Me
from openclaw.channels.matrix.rooms import Invitation, RoomTable, invitations
from openclaw.channels.matrix.sending import Sender
from openclaw.channels.matrix.wire import Sync
from openclaw.channels.matrix.writing import LONGEST, transaction_id
from openclaw.channels.registry import Ground

log = logging.getLogger("openclaw.channels")
WAIT_S = 30.0
WRONG_TOKEN_WAIT_S = 300.0
HICCUP_PAUSES_S: tuple[float, ...] = (0.5, 1.0, 2.0)  # failures in a row that are not worth a restart
_LOST_PLACE = ("M_UNKNOWN_POS", "M_INVALID_PARAM", "M_UNKNOWN")
# The names of those who speak come with their words, also when the homeserver has told them before.
_SPEAKERS = {"lazy_load_members": True, "include_redundant_members": True}
WANTED: dict[str, Any] = {
    "presence": {"not_types": ["*"]},
    "account_data": {"types": ["m.direct"]},
    "room": {
        "account_data": {"not_types": ["*"]},
        "ephemeral": {"not_types": ["*"]},
        "state": _SPEAKERS,
        "timeline": {"limit": 50, **_SPEAKERS},
    },
}


class MatrixConnector:
    abilities = Abilities(
        longest_text=LONGEST,
        threads=True,
        editing=True,
        typing=True,
        media=True,
        case_sensitive_ids=True,
        idempotent=True,
        binds_threads=True,
    )

    def __init__(self, ground: Ground, options: Options, requests: Any) -> None:
        self.channel, self.account_id = ground.channel, ground.account_id
        self.credentials_refreshed_at: int | None = None
        self._ground = ground
        self._options = options
        self._clock = ground.clock
        self._server = Homeserver(ground.http, options.homeserver, requests)
        self._memory = Memory(ground.notes, ground.clock)
        self._rooms = RoomTable()
        self._sender = Sender(self._server, self._memory, self._rooms, options.user_id)
        self._intake: Intake | None = None

    @property
    def complaint(self) -> str | None:
        """What does not work although the connector runs."""
        unreadable = self._intake.unreadable if self._intake is not None else ()
        if not unreadable:
            return None
        return f"encrypted messages cannot be read in {rooms_named(unreadable)}; use rooms without encryption"

    # -- receiving -----------------------------------------------------------------------------

    async def run(self, door: Door) -> None:
        try:
            await self._introduce()
            name = await self._server.name_of(self._options.user_id)
            me = Me(self._options.user_id, self.channel, self.account_id, name)
            intake = Intake(
                self._server, self._rooms, me, door, self._clock, largest_file=self._options.largest_file
            )
            self._intake = intake
            await self._survey(intake)
            await self._follow(intake)
        except Refused as refused:
            raise await self._down(refused) from None
        except MatrixError as error:
            raise Down(error.message) from None

    async def _introduce(self) -> None:
        """Learn that the credential is good and whose it is."""
        self._server.access_token = self._options.access_token or await self._log_in()
        found = await self._server.who_am_i()
        if found.user_id != self._options.user_id:
            raise Down(
                f"the access token belongs to {found.user_id[:200]}, not to {self._options.user_id}; "
                f"change channels.{self.channel}.userId or the token",
                wait_s=WRONG_TOKEN_WAIT_S,
            )
        self.credentials_refreshed_at = self._clock.now_ms()

    async def _log_in(self) -> str:
        """The token of our own device: the one from before, or a new one for the password."""
        options, known = self._options, self._memory.login
        if known is not None and known.user_id == options.user_id and known.access_token:
            return known.access_token
        device_id = known.device_id if known is not None else ""
        login = await self._server.log_in(
            options.user_id, options.password or "", options.device_name, device_id
        )
        await self._memory.note_login(login)
        return login.access_token

    async def _survey(self, intake: Intake) -> None:
        """Learn which rooms there are. The very first time, this is also where receiving begins."""
        # Homeservers keep their answers to a first sync for minutes, and an old one knows rooms as they
        # were; a wait that is never the same asks for a new one. Nothing is waited for in a first sync.
        first = await self._server.sync(None, self._clock.now_ms() % 9973 / 1000, WANTED)
        self._rooms.take(first, first=True)
        if self._memory.token is None:
            await intake.take(first, None)
            await self._memory.go_on_from(first.next_batch)
        await self._answer_invitations(first)

    async def _follow(self, intake: Intake) -> None:
        hiccups = 0
        while True:
            since = self._memory.token
            try:
                sync = await self._server.sync(since, WAIT_S, WANTED)
            except Unclear:
                if hiccups >= len(HICCUP_PAUSES_S):
                    raise
                await self._clock.sleep(HICCUP_PAUSES_S[hiccups])
                hiccups += 1
                continue
            except Refused as refused:
                if refused.retry_after_s is not None:
                    await self._clock.sleep(refused.retry_after_s)
                    continue
                if refused.status == 400 and refused.errcode in _LOST_PLACE:
                    await self._memory.go_on_from(None)
                    raise Down("the homeserver does not know where we were; going on from now") from None
                raise
            hiccups = 0
            self._rooms.take(sync)
            await intake.take(sync, since)
            await self._memory.go_on_from(sync.next_batch)
            await self._answer_invitations(sync)

    # -- invitations ---------------------------------------------------------------------------

    async def _answer_invitations(self, sync: Sync) -> None:
        """Take up what may be taken up; the others wait until somebody lets them in or takes them back."""
        waiting = dict(self._memory.invitations)
        for invitation in invitations(sync, self._options.user_id):
            waiting[invitation.room_id] = invitation
        for room_id in (*sync.rooms.leave, *sync.rooms.join):
            waiting.pop(room_id, None)
        for invitation in tuple(waiting.values()):
            if await self._is_welcome(invitation) and await self._join(invitation):
                del waiting[invitation.room_id]
        fresh = [one for one in waiting.values() if one.room_id not in self._memory.invitations]
        await self._memory.note_invitations(waiting)
        for one in fresh:
            log.warning(
                "%s (%s): the invitation of %s to %s was not taken up: let the person in, or list the room "
                "under channels.%s.groups, or set autoJoin to always",
                self.channel, self.account_id, one.inviter, one.room_id, self.channel,
            )  # fmt: skip

    async def _is_welcome(self, invitation: Invitation) -> bool:
        if self._options.auto_join != "allowlist":
            return self._options.auto_join == "always"
        return await self._ground.welcomes(invitation.inviter, invitation.room_id, invitation.direct)

    async def _join(self, invitation: Invitation) -> bool:
        """Go in. False when it should be tried again."""
        try:
            await self._server.join(invitation.room_id)
        except Refused as refused:
            if refused.errcode == NO_TOKEN:
                raise
            log.warning("%s: joining %s failed: %s", self.channel, invitation.room_id, refused.message)
            return refused.retry_after_s is None
        return True

    async def _down(self, refused: Refused) -> Down:
        if refused.errcode in (NO_TOKEN, "M_MISSING_TOKEN", "M_FORBIDDEN", "M_USER_DEACTIVATED"):
            login = self._memory.login
            if self._options.access_token is None and refused.errcode == NO_TOKEN and login is not None:
                # The token that the password once got has been taken away; the next try gets another.
                await self._memory.note_login(None)
                return Down("the homeserver has ended this login; logging in again")
            key = "accessToken" if self._options.access_token else "password"
            return Down(
                f"the homeserver does not accept this account; check channels.{self.channel}.{key} "
                f"of {self._options.user_id} ({refused.errcode})",
                wait_s=WRONG_TOKEN_WAIT_S,
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
        """A thread for a helper: below a message that names it (BIND-1)."""
        transaction = transaction_id(f"thread {to}", f"{self._clock.now_ms()} {title}")
        return await self._sender.open_thread(to, title, transaction)

    async def recall(self) -> None:
        await self._memory.recall()


async def build(ground: Ground) -> MatrixConnector:
    """The connector of one account. Raises InvalidRequest about its options or a missing library."""
    options = read_options(ground.options, ground.channel, ground.account_id)
    connector = MatrixConnector(ground, options, await load_requests())
    await connector.recall()
    return connector
