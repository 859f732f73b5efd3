"""The lists beside the conversation: sessions with a search, and the tree of who asked whom."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, ClassVar, Final

from rich.text import Text
from textual import events
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical
from textual.content import Content
from textual.message import Message
from textual.widgets import Input, OptionList, Static
from textual.widgets.option_list import Option

from openclaw.tui.rows import (
    QUIET,
    RUNNING,
    UNREAD,
    Branch,
    age_of,
    branch_words,
    branches_of,
    fits,
    mark_of,
    newest_first,
    title_of,
)

Json = dict[str, Any]
MARK_STYLES: Final = {RUNNING: "bold $text-success", UNREAD: "bold $text-warning", QUIET: ""}


class Chosen(Message):
    """A person wants to open a session."""

    def __init__(self, session_key: str) -> None:
        super().__init__()
        self.session_key = session_key


class Rows(OptionList):
    """A list that is moved through like a page of text."""

    DEFAULT_CSS = "Rows { text-wrap: nowrap; text-overflow: ellipsis; }"
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("j", "cursor_down", show=False),
        Binding("k", "cursor_up", show=False),
    ]


class SessionsPane(Vertical):
    """Every session, the last used first; `/` looks for one."""

    DEFAULT_CSS = """
    SessionsPane { width: 30; border-right: solid $panel; }
    SessionsPane Input { display: none; height: 1; border: none; padding: 0 1; background: $panel; }
    SessionsPane.searching Input { display: block; }
    SessionsPane OptionList { height: 1fr; border: none; padding: 0; background: $background; }
    SessionsPane OptionList { scrollbar-size-vertical: 1; }
    SessionsPane OptionList:focus { border: none; }
    SessionsPane .heading { height: 1; padding: 0 1; color: $text-muted; }
    """

    class Searched(Message):
        """A person looks for something; an empty text ends it."""

        def __init__(self, wanted: str) -> None:
            super().__init__()
            self.wanted = wanted

    def compose(self) -> ComposeResult:
        yield Static("Sessions", classes="heading", markup=False)
        yield Input(placeholder="find a session", id="search", compact=True)
        yield Rows(id="session-list")

    @property
    def rows(self) -> Rows:
        return self.query_one(Rows)

    def show(self, rows: Iterable[Json], open_key: str, now_ms: int) -> None:
        """Show these rows in place of what is there; who moves through the list keeps the place."""
        wanted = self.query_one(Input).value if self.has_class("searching") else ""
        listed = [row for row in newest_first(rows) if fits(row, wanted)]
        chosen = self.rows.highlighted_option
        keep = chosen.id if chosen is not None and self.rows.has_focus else open_key
        width = max(self.size.width - 2, 10)
        self.rows.set_options(
            [Option(_row_line(row, open_key, now_ms, width), id=str(row.get("key"))) for row in listed]
        )
        self.query_one(".heading", Static).update(f"Sessions {len(listed) or ''}".rstrip())
        places = {str(row.get("key")): place for place, row in enumerate(listed)}
        self.rows.highlighted = places.get(str(keep), 0 if listed else None)

    def search(self) -> None:
        self.add_class("searching")
        self.query_one(Input).focus()

    def end_search(self) -> None:
        self.remove_class("searching")
        self.query_one(Input).value = ""
        self.post_message(self.Searched(""))

    def on_input_changed(self, event: Input.Changed) -> None:
        event.stop()
        self.post_message(self.Searched(event.value))

    def on_input_submitted(self, event: Input.Submitted) -> None:
        """Enter opens the first that fits."""
        event.stop()
        if self.rows.option_count:
            option = self.rows.get_option_at_index(self.rows.highlighted or 0)
            self.end_search()
            self.post_message(Chosen(str(option.id)))

    def on_key(self, event: events.Key) -> None:
        if not self.query_one(Input).has_focus:
            return
        if event.key == "escape":
            event.stop()
            self.end_search()
            self.rows.focus()
        elif event.key in ("down", "up"):
            event.stop()
            self.rows.action_cursor_down() if event.key == "down" else self.rows.action_cursor_up()

    def on_option_list_option_selected(self, event: OptionList.OptionSelected) -> None:
        event.stop()
        self.post_message(Chosen(str(event.option.id)))


class TreePane(Vertical):
    """Who asked whom for help, and how far they are."""

    DEFAULT_CSS = """
    TreePane { width: 36; border-left: solid $panel; display: none; }
    TreePane.open { display: block; }
    TreePane OptionList { height: 1fr; border: none; padding: 0; background: $background; }
    TreePane OptionList:focus { border: none; }
    TreePane .heading { height: 1; padding: 0 1; color: $text-muted; }
    """

    def compose(self) -> ComposeResult:
        yield Static("Tree", classes="heading", markup=False)
        yield Rows(id="tree-list")

    def show(self, nodes: Sequence[Json], open_key: str) -> None:
        rows = self.query_one(Rows)
        branches = branches_of(nodes)
        chosen = rows.highlighted_option
        keep = chosen.id if chosen is not None and rows.has_focus else open_key
        rows.set_options([Option(_branch_line(branch, open_key), id=branch.key) for branch in branches])
        if not branches:
            rows.add_option(Option("nobody has asked for help yet", disabled=True))
        places = {branch.key: place for place, branch in enumerate(branches)}
        rows.highlighted = places.get(str(keep), 0 if branches else None)

    def on_option_list_option_selected(self, event: OptionList.OptionSelected) -> None:
        event.stop()
        self.post_message(Chosen(str(event.option.id)))


def _row_line(row: Json, open_key: str, now_ms: int, width: int) -> Content:
    mark, age = mark_of(row, open_key), age_of(row, now_ms)
    title = Text(title_of(row))
    title.truncate(max(width - len(age) - 3, 4), overflow="ellipsis", pad=True)
    stands_out = row.get("key") == open_key or mark != QUIET
    return Content.assemble(
        (f"{mark} ", MARK_STYLES[mark]), (title.plain, "bold" if stands_out else ""), (f" {age}", "dim")
    )


def _branch_line(branch: Branch, open_key: str) -> Content:
    mark = mark_of(branch.row, open_key)
    guide = "  " * (min(branch.depth, 8) - 1) + "└ " if branch.depth else ""
    return Content.assemble(
        (guide, "dim"),
        (f"{mark} ", MARK_STYLES[mark]),
        (title_of(branch.row), "bold" if branch.key == open_key else ""),
        (f"  {branch_words(branch.row)}", "dim"),
    )
