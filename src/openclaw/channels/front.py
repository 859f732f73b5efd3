"""Everything between platforms and sessions, in one value: the door, the post, and who keeps them going."""

from __future__ import annotations

from msgspec import Struct

from openclaw.channels.live import LiveReplies
from openclaw.channels.postman import Postman, Spawn
from openclaw.channels.reception import Reception
from openclaw.channels.supervisor import Supervisor
from openclaw.channels.webhooks import Webhooks
from openclaw.config.schema import Config
from openclaw.engine.events import CommandAnswered, EngineEvent, RunEnded, SessionChanged, SideNotePosted
from openclaw.store.senders import Senders


class Channels(Struct, frozen=True):
    reception: Reception
    postman: Postman
    supervisor: Supervisor
    live: LiveReplies
    senders: Senders
    webhooks: Webhooks

    def observe(self, event: EngineEvent) -> None:
        """Part of the event sink: replies may have been written to the outbox."""
        self.live.observe(event)
        if isinstance(event, RunEnded | SideNotePosted | CommandAnswered | SessionChanged):
            self.postman.wake()

    async def start(self, config: Config, spawn: Spawn) -> None:
        spawn(self.postman.run_forever())
        await self.supervisor.follow(config)
