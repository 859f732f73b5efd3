"""A connector in a hundred lines: a folder is the platform, a file is a message.

`people/<name>/` are direct chats and `groups/<name>/` are groups. Whoever drops `<id>.<sender>.txt` into
such a folder has said its text; the answer appears beside it as `reply-<number>.txt`. A file `CLOSED` at
the top means that the platform is away, and `key.txt` holds the password of the agent's account.

Offer it to a gateway by an entry point of the package that holds it:

    [project.entry-points."openclaw.channels"]
    folder = "folder_connector:build"

and configure it with `channels: {folder: {path: "/srv/post", key: "sesame"}}`.
"""

from __future__ import annotations

import asyncio
from pathlib import Path

from openclaw.channels.base import Abilities, Door, Down, Message, NotSent, Outgoing, Sent
from openclaw.channels.pieces import split_text
from openclaw.channels.registry import Ground
from openclaw.domain.routing import Envelope
from openclaw.errors import InvalidRequest

LONGEST = 500
LOOK_EVERY_S = 0.05


class FolderConnector:
    # What the rest of the product may expect of this platform.
    abilities = Abilities(longest_text=LONGEST, threads=False)
    credentials_refreshed_at: int | None = None

    def __init__(self, ground: Ground, root: Path, key: str) -> None:
        self.channel, self.account_id = ground.channel, ground.account_id
        self._clock = ground.clock
        self._root = root
        self._key = key

    async def run(self, door: Door) -> None:
        """Look for new files until cancelled. What ends this is told in `openclaw channels status`."""
        if await asyncio.to_thread((self._root / "key.txt").read_text) != self._key:
            raise Down("the key is not the one in key.txt", wait_s=60)
        self.credentials_refreshed_at = self._clock.now_ms()
        while True:
            if (self._root / "CLOSED").exists():
                raise Down("the folder is closed")
            for path in await asyncio.to_thread(self._waiting):
                text = await asyncio.to_thread(path.read_text, encoding="utf-8", errors="replace")
                await door.accept(Message(envelope=self._envelope(path, text)))
                # Only now is the message safe, so only now may it be put away.
                path.rename(path.with_suffix(".read"))
            await asyncio.sleep(LOOK_EVERY_S)

    def _waiting(self) -> list[Path]:
        """What nobody has read, oldest first. A file that came twice has one id, and is answered once."""
        found = [*self._root.glob("people/*/*.*.txt"), *self._root.glob("groups/*/*.*.txt")]
        return sorted(found, key=lambda path: path.name)

    def _envelope(self, path: Path, text: str) -> Envelope:
        message_id, sender = path.stem.split(".", 1)
        is_group = path.parent.parent.name == "groups"
        return Envelope(
            channel=self.channel,
            account_id=self.account_id,
            peer_kind="group" if is_group else "direct",
            peer_id=path.parent.name,
            sender_id=sender,
            sender_name=sender.capitalize(),
            message_id=message_id,
            text=text.replace("@agent", "").strip(),
            was_mentioned="@agent" in text,
            group_subject=path.parent.name if is_group else None,
        )

    async def send(self, outgoing: Outgoing) -> Sent:
        """Write the reply. `NotSent` promises that nobody saw it; with a time, it is tried again."""
        if (self._root / "CLOSED").exists():
            raise NotSent("the folder is closed", retry_after_s=0.1)
        return await asyncio.to_thread(self._write, outgoing)

    def _write(self, outgoing: Outgoing) -> Sent:
        kinds = ("people", "groups")
        chats = [
            self._root / kind / outgoing.to for kind in kinds if (self._root / kind / outgoing.to).is_dir()
        ]
        if not chats or "/" in outgoing.to:
            raise NotSent(f"there is no chat {outgoing.to!r}")
        written = []
        for piece in split_text(outgoing.text, LONGEST):
            path = chats[0] / f"reply-{len(list(chats[0].glob('reply-*.txt'))):06d}.txt"
            path.write_text(piece, encoding="utf-8")
            written.append(path.name)
        return Sent(tuple(written))

    async def show_typing(self, to: str, thread_id: str | None) -> None:
        """Folders show no typing; `abilities.typing` is false, so this is never asked."""

    async def draft(self, outgoing: Outgoing) -> str | None:
        """Nor do they show a reply that grows."""
        return None


async def build(ground: Ground) -> FolderConnector:
    path, key = ground.options.get("path"), ground.options.get("key")
    if not isinstance(path, str) or not isinstance(key, str):
        raise InvalidRequest('channels.folder needs "path" and "key"')
    return FolderConnector(ground, Path(path), key)
