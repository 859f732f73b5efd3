"""The terminal UI (CLI-13): puts the panes together and gives each key its meaning.

What is shown comes from `desk`, which speaks to the gateway. Nothing here blocks: long
work is a worker, and the screen is redrawn at most so often as an eye can follow.
"""

from __future__ import annotations

import time
from collections.abc import Iterable
from functools import partial
from typing import Any, ClassVar, Final

from rich.text import Text
from textual import events, on
from textual.app import App, ComposeResult, SystemCommand
from textual.binding import Binding, BindingType
from textual.containers import Horizontal, Vertical
from textual.screen import Screen
from textual.widgets import Footer, Static
from textual.worker import Worker

from openclaw.tui.chatlog import ChatLog
from openclaw.tui.composer import Composer
from openclaw.tui.composing import Recall
from openclaw.tui.desk import Desk, Severity, Work
from openclaw.tui.memory import ClientMemory
from openclaw.tui.opening import TuiOptions, agent_of
from openclaw.tui.panes import Chosen, SessionsPane, TreePane
from openclaw.tui.rows import facts_of, title_of
from openclaw.tui.screens import Help, Question
from openclaw.tui.text import safe_line

DRAW_S: Final = 0.06
CLOCK_S: Final = 1.0
NARROW: Final = 70
SMALL: Final = 110
THEME: Final = "theme"
GOODBYES: Final = ("/exit", "/quit")
SHOWN_QUEUE: Final = 3


class TerminalApp(App[None]):
    """`await app.run_async()`; what it returns is None, or ended with `leaving` set to the reason."""

    TITLE = "OpenClaw"
    COMMAND_PALETTE_BINDING = "ctrl+k"
    CSS = """
    #head { height: 1; padding: 0 1; background: $panel; }
    #queue { height: auto; max-height: 4; padding: 0 2; color: $text-muted; display: none; }
    #queue.waiting { display: block; }
    #status { height: 1; padding: 0 1; background: $panel; color: $text-muted; }
    #status.offline { color: $text-warning; }
    """
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("ctrl+q", "quit", "Quit", priority=True),
        Binding("escape", "stop_or_write", "Stop", key_display="esc"),
        Binding("ctrl+x", "stop", "Stop", show=False, priority=True),
        Binding("ctrl+n", "new_session", "New", priority=True),
        Binding("ctrl+r", "rename", "Rename", priority=True),
        Binding("ctrl+k", "command_palette", "Palette", priority=True),
        Binding("ctrl+b", "toggle_list", "List", show=False, priority=True),
        Binding("f1", "help", "Help", priority=True),
        Binding("f2", "tree", "Tree", priority=True),
        Binding("t", "tree", "Tree", show=False),
        Binding("slash", "search", "Find", show=False),
    ]

    def __init__(self, options: TuiOptions, memory: ClientMemory, *, dark: bool = True) -> None:
        super().__init__()
        self.leaving: str | None = None
        self._memory = memory
        self._dark = dark
        self._stale: set[str] = set()
        self._list_wanted: bool | None = None
        # Held here: a query would ask the window on top, such as the help, and find none of them.
        self.chat = ChatLog(id="chat")
        self.composer = Composer(id="composer")
        self.sessions_pane = SessionsPane(id="sessions")
        self.tree_pane = TreePane(id="tree")
        self._head = Static(id="head", markup=False)
        self._queue = Static(id="queue", markup=False)
        self._status = Static(id="status", markup=False)
        self.desk = Desk(options, memory, self)

    def compose(self) -> ComposeResult:
        with Horizontal():
            yield self.sessions_pane
            with Vertical(id="main"):
                yield self._head
                yield self.chat
                yield self._queue
                yield self.composer
            yield self.tree_pane
        yield self._status
        yield Footer(show_command_palette=False)

    def on_mount(self) -> None:
        chosen = self._memory.choice(THEME)
        default = "textual-dark" if self._dark else "textual-light"
        self.theme = chosen if chosen in self.available_themes else default
        self.theme_changed_signal.subscribe(self, lambda theme: self._theme_changed(theme.name))
        self.composer.recall = Recall(self._memory.typed_lines())
        self.composer.writing.focus()
        self.set_interval(DRAW_S, self._draw_stale)
        self.set_interval(CLOCK_S, self._draw_status)
        self._draw_status()
        self._work(self.desk.run, "link")

    # -- what the desk tells -------------------------------------------------------------------

    def start(self, work: Work) -> None:
        self._work(work)

    def _work(self, work: Work, group: str = "default", *, alone: bool = False) -> Worker[None]:
        """`alone`: what is still under way in the group is given up."""
        worker: Worker[None] = self.run_worker(work, group=group, exclusive=alone, exit_on_error=True)
        return worker

    def conversation_opened(self) -> None:
        self.chat.begin()
        self.chat.answerer = safe_line(agent_of(self.desk.talk.session_key), 30)
        self.chat.show(self.desk.talk.items, follow=True)
        self._stale |= {"chat", "tree"}

    def conversation_changed(self) -> None:
        self._stale.add("chat")

    def sessions_changed(self) -> None:
        self._stale.add("sessions")

    def tree_changed(self) -> None:
        self._stale.add("tree")

    def state_changed(self) -> None:
        self._stale.add("state")

    def tell(self, text: str, severity: Severity = "information") -> None:
        self.notify(text, severity=severity, markup=False, timeout=6)

    def leave(self, reason: str) -> None:
        self.leaving = reason
        self.exit()

    # -- drawing -------------------------------------------------------------------------------

    def _draw_stale(self) -> None:
        """Draw what has changed since the last time: a burst of events costs one drawing."""
        stale, self._stale = self._stale, set()
        if not stale or not self.is_running:
            return
        if "chat" in stale:
            self.chat.show(self.desk.talk.items)
            self.composer.commands = self.desk.commands
        if "sessions" in stale:
            rows = self.desk.found if self.desk.found is not None else self.desk.rows.values()
            self.sessions_pane.show(rows, self.desk.talk.session_key, _now_ms())
        if "tree" in stale and self.desk.tree is not None:
            self.tree_pane.show(self.desk.tree, self.desk.talk.session_key)
        self._draw_status()

    def _draw_status(self) -> None:
        desk, talk = self.desk, self.desk.talk
        row = desk.rows.get(talk.session_key) or talk.row
        head = Text(desk.title, style="bold", no_wrap=True, overflow="ellipsis")
        facts = facts_of(row)
        self._head.update(head.append(f"  {facts}", style="not bold dim") if facts else head)
        status = self._status
        status.update(Text(self._status_words(), no_wrap=True, overflow="ellipsis"))
        status.set_class(not desk.is_connected, "offline")
        queue = self._queue
        queue.set_class(bool(talk.queue), "waiting")
        queue.update(self._queue_lines())

    def _status_words(self) -> str:
        desk, talk = self.desk, self.desk.talk
        if desk.connection:
            return desk.connection
        if talk.running is None:
            return f"{desk.options.gateway} · ready"
        seconds = max(_now_ms() - talk.running_since_ms, 0) // 1000 if talk.running_since_ms else 0
        doing = talk.activity or "working"
        return f"● {doing} · {seconds} s · Esc stops"

    def _queue_lines(self) -> Text:
        queue = self.desk.talk.queue
        lines = [f"{place}. {item.text}" for place, item in enumerate(queue[:SHOWN_QUEUE], 1)]
        if len(queue) > SHOWN_QUEUE:
            lines.append(f"… and {len(queue) - SHOWN_QUEUE} more in the queue")
        return Text("\n".join(lines), no_wrap=True, overflow="ellipsis")

    def _theme_changed(self, name: str) -> None:
        self._memory.remember_choice(THEME, name)
        self.chat.restyle()

    def on_resize(self, event: events.Resize) -> None:
        self._arrange(event.size.width)

    def _arrange(self, width: int) -> None:
        """Three panes where there is room; the conversation first where there is not."""
        tree_open = self.tree_pane.has_class("open")
        room = width >= NARROW and not (tree_open and width < SMALL)
        pane = self.sessions_pane
        pane.display = room if self._list_wanted is None else self._list_wanted
        pane.styles.width = 24 if width < SMALL else 32
        self._stale.add("sessions")

    # -- what a person does --------------------------------------------------------------------

    @on(Composer.Sent)
    def _send(self, event: Composer.Sent) -> None:
        if event.text.strip() in GOODBYES:
            self.exit()
            return
        self.chat.show(self.desk.talk.items, follow=True)
        self.start(partial(self.desk.send, event.text))

    @on(Chosen)
    def _open(self, event: Chosen) -> None:
        self.composer.writing.focus()
        self.start(partial(self.desk.try_open, event.session_key))

    @on(ChatLog.OlderWanted)
    def _load_older(self) -> None:
        self.start(self.desk.load_older)

    @on(SessionsPane.Searched)
    def _search(self, event: SessionsPane.Searched) -> None:
        self._stale.add("sessions")
        self._work(partial(self.desk.search, event.wanted), "search", alone=True)

    def action_stop(self) -> None:
        self.start(self.desk.stop)

    def action_stop_or_write(self) -> None:
        """Esc: stop what runs; with nothing to stop, back to writing."""
        if self.desk.talk.running is None and not self.composer.writing.has_focus:
            self.composer.writing.focus()
        else:
            self.action_stop()

    def action_search(self) -> None:
        self._list_wanted = True
        self._arrange(self.size.width)
        self.sessions_pane.search()

    def action_toggle_list(self) -> None:
        self._list_wanted = not self.sessions_pane.display
        self._arrange(self.size.width)

    def action_tree(self) -> None:
        pane = self.tree_pane
        pane.toggle_class("open")
        if pane.has_class("open"):
            self.start(self.desk.load_tree)
        else:
            self.desk.tree = None
            self.composer.writing.focus()
        self._arrange(self.size.width)

    def action_help(self) -> None:
        if not isinstance(self.screen, Help):
            self.push_screen(Help())

    def action_new_session(self) -> None:
        def answered(label: str | None) -> None:
            if label is not None:
                self.start(partial(self.desk.create, label))

        self.push_screen(Question("Name of the new session (may stay empty):"), answered)

    def action_rename(self) -> None:
        def answered(label: str | None) -> None:
            if label is not None:
                self.start(partial(self.desk.rename, label))

        row = self.desk.rows.get(self.desk.talk.session_key) or self.desk.talk.row
        self.push_screen(Question("Name of this session:", safe_line(str(row.get("label") or ""))), answered)

    def get_system_commands(self, screen: Screen[Any]) -> Iterable[SystemCommand]:
        """What Ctrl-K offers."""
        yield SystemCommand("New session", "Begin a conversation", self.action_new_session)
        yield SystemCommand("Rename", "Give this session a name", self.action_rename)
        yield SystemCommand("Stop", "End the running turn", self.action_stop)
        yield SystemCommand("Tree", "Who asked whom for help", self.action_tree)
        yield SystemCommand("Find", "Look for a session", self.action_search)
        yield SystemCommand("Theme", "Colours for a light or dark terminal", self.action_change_theme)
        yield SystemCommand("Help", "The keys", self.action_help)
        yield SystemCommand("Quit", "Leave; everything stays as it is", self.action_quit)
        for key, row in list(self.desk.rows.items()):
            yield SystemCommand(
                f"Open {title_of(row)}",
                safe_line(key),
                lambda key=key: self.start(partial(self.desk.try_open, key)),
            )


def _now_ms() -> int:
    return time.time_ns() // 1_000_000
