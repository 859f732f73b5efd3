"""Several people in one session that nobody chose to share: who finds out, and how often (KEY-3)."""

from __future__ import annotations

import logging
from collections.abc import Callable

import msgspec

from openclaw.config import views
from openclaw.config.schema import Config
from openclaw.domain.admission import is_listed, sender_of
from openclaw.domain.entry import DeliveryContext
from openclaw.domain.groups import fold_word
from openclaw.domain.routing import Envelope
from openclaw.engine.ports import Clock
from openclaw.errors import OpenClawError
from openclaw.store import outbox
from openclaw.store.database import Database
from openclaw.store.records import DeliveryDraft
from openclaw.store.senders import Senders

log = logging.getLogger("openclaw.channels")
NOTICE_TTL_MS = 24 * 60 * 60 * 1000


class SharingWatch:
    """Warns once per session and process in the log, and once for ever to the owner."""

    def __init__(self, database: Database, clock: Clock, post: Callable[[str], None]) -> None:
        self._database = database
        self._senders = Senders(database)
        self._clock = clock
        self._post = post
        self._warned: set[str] = set()

    async def look(self, envelope: Envelope, config: Config, session_key: str) -> None:
        """Called for each message that was taken. An explicit `dmScope` silences it."""
        if envelope.peer_kind != "direct" or views.dm_scope_is_set(config) or session_key in self._warned:
            return
        sender, keys = sender_of(envelope), views.key_settings(config)
        if is_listed(sender, views.owner_ids(config), envelope.channel, keys):
            return
        others = await self._senders.other_people(session_key, fold_word(envelope.channel), envelope.peer_id)
        if not others:
            return
        self._warned.add(session_key)
        warning = (
            f"{others + 1} people share the session {session_key}: each of them is answered with what the "
            'others said. Set session.dmScope to "per-channel-peer" to keep them apart, or to "main" if '
            "this is what you want."
        )
        log.warning("%s", warning)
        await self._tell_owner(warning)

    async def _tell_owner(self, text: str) -> None:
        """To the first owner whom a person let in; without one the log and `openclaw status` have it."""
        owners = await self._senders.owners(1)
        if not owners:
            return
        owner, now_ms = owners[0], self._clock.now_ms()
        route = DeliveryContext(owner.channel, owner.sender_id, owner.account_id)
        body = msgspec.json.encode({"text": text})
        draft = DeliveryDraft("warning:dm-scope", route, body, now_ms + NOTICE_TTL_MS)
        try:
            await self._database.write(lambda tx: outbox.prepare(tx, draft, "", None, now_ms))
        except OpenClawError as error:
            log.error("the owner could not be warned: %s", error)
            return
        self._post(owner.channel)
