"""The work between the wire and the screen: opens sessions, sends, stops, and keeps both up to date.

Knows no widget: it tells a `View` that something has changed. Everything that a person
writes is kept on this machine until the gateway has acknowledged it, and goes out in order.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Coroutine
from typing import Any, Final, Literal, Protocol

from openclaw.api.failures import GatewayGone
from openclaw.errors import OpenClawError
from openclaw.protocol.scopes import ADMIN, READ, WRITE
from openclaw.tui.composing import SlashCommand, read_commands
from openclaw.tui.identity import Introduction
from openclaw.tui.memory import ClientMemory, Unsent
from openclaw.tui.opening import TuiOptions, agent_of, choose_session
from openclaw.tui.outbox import Outbox
from openclaw.tui.rows import short_key, title_of
from openclaw.tui.talk import Talk
from openclaw.tui.text import safe_line, safe_text
from openclaw.tui.wire import Link, Outlook

Json = dict[str, Any]
# Not begun yet, so that a screen that closes may leave it.
Work = Callable[[], Coroutine[Any, Any, None]]
Severity = Literal["information", "warning", "error"]

SCOPES: Final = (ADMIN, WRITE, READ)
LISTED: Final = 200
LOOK_PAUSE_S: Final = 0.15
RETRY_S: Final = 5.0
MAX_LIMIT: Final = 1000


class View(Protocol):
    """What the desk tells the screen. All on the event loop."""

    def start(self, work: Work) -> None: ...

    def conversation_opened(self) -> None: ...

    def conversation_changed(self) -> None: ...

    def sessions_changed(self) -> None: ...

    def tree_changed(self) -> None: ...

    def state_changed(self) -> None: ...

    def tell(self, text: str, severity: Severity = "information") -> None: ...

    def leave(self, reason: str) -> None: ...


class Desk:
    """One gateway, one open conversation, the list around it."""

    def __init__(self, options: TuiOptions, memory: ClientMemory, view: View) -> None:
        self.options = options
        self.talk = Talk("")
        self.rows: dict[str, Json] = {}
        self.found: list[Json] | None = None
        self.tree: list[Json] | None = None
        self.commands: list[SlashCommand] = []
        self.connection = "connecting …"
        self._memory = memory
        self._view = view
        introduction = Introduction(memory, options.gateway)
        self._link = Link(options.address, SCOPES, self, introduction)
        manner: Json = {"deliver": True} if options.deliver else {}
        manner |= {"thinking": options.thinking} if options.thinking else {}
        self._outbox = Outbox(memory, options.gateway, self._link, manner, self)
        self._looking = False
        self._older = False
        self._was_connected = False
        self._to_say = options.message
        self._words: dict[str, str] = {}

    async def run(self) -> None:
        await self._link.run()

    @property
    def is_connected(self) -> bool:
        return self._link.is_up

    # -- the connection ------------------------------------------------------------------------

    async def on_connected(self, hello: Json) -> None:
        """First follow, then look: what is said in between comes as an event, or is in the history."""
        self.connection = ""
        listed = await self._call("sessions.subscribe", _listing())
        self.rows = {str(row["key"]): row for row in (listed.get("list") or {}).get("sessions") or []}
        self.commands = read_commands((await self._call("commands.list", {})).get("commands") or [])
        if self._was_connected:
            await self._resume()
        else:
            self._was_connected = True
            await self.open(await choose_session(self._link, self._memory, self.options, hello))
            if self._to_say:
                said, self._to_say = self._to_say, None
                await self.send(said)
        self._view.sessions_changed()
        self._view.state_changed()
        await self._outbox.flush()
        if self.tree is not None:
            await self.load_tree()

    def on_event(self, name: str, payload: Json) -> None:
        if name == "sessions.changed":
            self._take_row(payload)
        change = self.talk.event(name, payload)
        if change == "reload":
            self._view.start(self._reload)
        elif change == "look":
            self._look_soon()
        if change != "nothing":
            self._view.conversation_changed()

    def on_lost(self, why: OpenClawError, outlook: Outlook) -> None:
        reason = safe_line(why.message, 300)
        if outlook == "over" or (not self._was_connected and outlook == "waiting"):
            self._view.leave(reason)
            return
        self.connection = (
            f"waiting for approval — {reason}" if outlook == "approval" else "offline, trying again …"
        )
        self._view.state_changed()

    async def _call(self, method: str, params: Json) -> Any:
        return await self._link.call(method, params)

    def _take_row(self, payload: Json) -> None:
        key, row = str(payload.get("sessionKey")), payload.get("session")
        if isinstance(row, dict):
            # A change tells no derived title; the one that is known stays.
            self.rows[key] = {"derivedTitle": self.rows.get(key, {}).get("derivedTitle")} | row
        elif payload.get("reason") == "delete" or ("session" in payload and row is None):
            self.rows.pop(key, None)
        self._view.sessions_changed()
        if self.tree is not None:
            self._view.start(self.load_tree)

    # -- the open conversation -----------------------------------------------------------------

    async def open(self, key: str) -> None:
        """Show another session, and remember it for the next time."""
        if key != self.talk.session_key:
            if self.talk.session_key:
                await self._call("sessions.messages.unsubscribe", {"key": self.talk.session_key})
            self.talk = Talk(key)
            await self._call("sessions.messages.subscribe", {"key": key})
        talk = self.talk
        history = await self._call("chat.history", self._page(key, self.options.history_limit))
        if talk is not self.talk:
            return  # the person has gone on to another one meanwhile
        talk.load(history)
        self._show_unsent(talk)
        self._memory.remember_session(self.options.gateway, agent_of(key), key, _now_ms())
        self._view.conversation_opened()
        self._view.sessions_changed()
        await self._mark_read()

    async def _resume(self) -> None:
        """After a break: what came since, each message once (RPC-11)."""
        talk = self.talk
        await self._call("sessions.messages.subscribe", {"key": talk.session_key})
        if talk.cursor is not None:
            params = self._page(talk.session_key, self.options.history_limit) | {"cursor": talk.cursor}
            answer = await self._call("chat.history", params)
            if answer.get("kind") == "delta":
                talk.catch_up(answer)
                self._view.conversation_changed()
                return
        await self._reload()

    async def _reload(self) -> None:
        talk = self.talk
        try:
            talk.load(
                await self._call("chat.history", self._page(talk.session_key, self.options.history_limit))
            )
        except OpenClawError as refusal:
            self._say_refused(refusal)
        self._show_unsent(talk)
        self._view.conversation_changed()

    async def load_older(self) -> None:
        """One more page before what is shown; the screen asks when its beginning is in sight."""
        talk, offset = self.talk, self.talk.next_offset
        if offset is None or self._older:
            return
        self._older = True
        try:
            page = await self._call(
                "chat.history",
                self._page(talk.session_key, self.options.history_limit) | {"offset": offset},
            )
            if talk is self.talk and talk.prepend(page):
                self._view.conversation_changed()
        except OpenClawError as refusal:
            self._say_refused(refusal)
        finally:
            self._older = False

    def _page(self, key: str, limit: int) -> Json:
        return {"sessionKey": key, "limit": max(1, min(limit, MAX_LIMIT))}

    def _look_soon(self) -> None:
        """Ask what waits and what runs, once for all events that come together."""
        if not self._looking:
            self._looking = True
            self._view.start(self._look)

    async def _look(self) -> None:
        await asyncio.sleep(LOOK_PAUSE_S)
        self._looking = False
        talk = self.talk
        try:
            answer = await self._call("chat.history", self._page(talk.session_key, 1))
            if talk is self.talk:
                talk.look(answer)
                talk.row = answer.get("sessionInfo") or talk.row
                await self._mark_read()
        except OpenClawError:
            return  # the next event, or the next connection, asks again
        self._view.conversation_changed()

    async def _mark_read(self) -> None:
        if self.talk.row.get("unread"):
            self.talk.row = self.talk.row | {"unread": False}
            await self._call("sessions.patch", {"key": self.talk.session_key, "unread": False})

    # -- what a person does --------------------------------------------------------------------

    async def send(self, text: str) -> None:
        """Keep it, show it, send it; without a connection it goes out when there is one."""
        unsent = self._outbox.keep(self.talk.session_key, text)
        self._words[unsent.run_id] = safe_line(text, 60)
        self.talk.say(unsent.run_id, text, "unsent")
        self._view.conversation_changed()
        await self._outbox.flush()

    def on_accepted(self, unsent: Unsent, answer: Json) -> None:
        if unsent.session_key == self.talk.session_key:
            self.talk.accepted(unsent.run_id)
            self._look_soon()
            self._view.conversation_changed()
        if answer.get("aborted"):
            self._view.tell("Stopped.")

    def on_refused(self, unsent: Unsent, reason: str) -> None:
        if unsent.session_key == self.talk.session_key:
            self.talk.refused(unsent.run_id, safe_text(reason))
            self._view.conversation_changed()
        else:
            self._view.tell(f"Not sent to {short_key(unsent.session_key)}: {safe_line(reason)}", "error")

    def on_postponed(self, reason: str) -> None:
        self._view.tell(f"Not sent yet: {safe_line(reason)}", "warning")
        self._view.start(self._flush_later)

    async def _flush_later(self) -> None:
        await asyncio.sleep(RETRY_S)
        await self._outbox.flush()

    def _show_unsent(self, talk: Talk) -> None:
        for unsent in self._outbox.waiting(talk.session_key):
            talk.say(unsent.run_id, unsent.message, "unsent")

    async def stop(self) -> None:
        """End the running turn; without one, drop what waits. Says what was stopped (RPC-13)."""
        talk = self.talk
        if talk.running is None and not talk.queue:
            self._view.tell("Nothing runs here.")
            return
        params: Json = {"sessionKey": talk.session_key}
        params |= {"runId": talk.running} if talk.running else {}
        seconds = max(_now_ms() - talk.running_since_ms, 0) // 1000 if talk.running_since_ms else 0
        try:
            stopped = await self._call("chat.abort", params)
        except OpenClawError as refusal:
            self._say_refused(refusal)
            return
        run_ids = stopped.get("runIds") or []
        if not stopped.get("aborted"):
            self._view.tell("It had ended already.")
            return
        words = ", ".join(f"“{self._words[run]}”" for run in run_ids if run in self._words)
        what = words or ("the running turn" if talk.running else f"{len(run_ids)} waiting")
        self._view.tell(f"Stopped {what}" + (f" after {seconds} s" if talk.running else ""))
        self._look_soon()

    async def create(self, label: str) -> None:
        """A new session of the same agent, opened at once."""
        params = {"agentId": agent_of(self.talk.session_key)} | ({"label": label} if label else {})
        created = await self._try("sessions.create", params)
        if created is not None:
            await self.open(str(created["key"]))

    async def rename(self, label: str) -> None:
        patched = await self._try("sessions.patch", {"key": self.talk.session_key, "label": label or None})
        if patched is not None:
            self._view.tell(f"Now called “{safe_line(label)}”." if label else "The name is gone.")

    async def search(self, wanted: str) -> None:
        """Sessions whose title or key fits, also those that the list has not loaded."""
        listed = await self._try("sessions.list", _listing() | {"search": wanted}) if wanted else None
        self.found = None if listed is None else listed.get("sessions") or []
        self._view.sessions_changed()

    async def load_tree(self) -> None:
        answer = await self._try("sessions.tree", {"limit": 500})
        if answer is not None:
            self.tree = answer.get("nodes") or []
            self._view.tree_changed()

    async def try_open(self, key: str) -> None:
        try:
            await self.open(key)
        except OpenClawError as refusal:
            self._say_refused(refusal)

    async def _try(self, method: str, params: Json) -> Any:
        """The answer, or None when it was refused and that was said."""
        try:
            return await self._call(method, params)
        except OpenClawError as refusal:
            self._say_refused(refusal)
            return None

    def _say_refused(self, refusal: OpenClawError) -> None:
        if isinstance(refusal, GatewayGone):
            self._view.tell("No connection; try again when it is back.", "warning")
        else:
            self._view.tell(safe_line(refusal.message, 300), "error")

    @property
    def title(self) -> str:
        return title_of(
            self.rows.get(self.talk.session_key) or self.talk.row or {"key": self.talk.session_key}
        )


def _listing() -> Json:
    return {"limit": LISTED, "includeDerivedTitles": True}


def _now_ms() -> int:
    return time.time_ns() // 1_000_000
