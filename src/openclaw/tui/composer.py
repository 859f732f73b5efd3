"""Where a person writes: several lines, earlier inputs, and commands that complete themselves."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from textual import events
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical
from textual.content import Content
from textual.message import Message
from textual.widgets import OptionList, TextArea
from textual.widgets.option_list import Option

from openclaw.tui.composing import Recall, SlashCommand, Suggestion, is_command, suggest


class Writing(TextArea):
    """The text itself. What a key means besides writing is decided by the composer around it."""

    BINDINGS: ClassVar[list[BindingType]] = [Binding("shift+enter,alt+enter", "newline", show=False)]

    async def _on_key(self, event: events.Key) -> None:
        composer = self.parent
        if isinstance(composer, Composer) and composer.take_key(event.key):
            event.stop()
            event.prevent_default()
            return
        await super()._on_key(event)

    def action_newline(self) -> None:
        self.insert("\n")


class Composer(Vertical):
    """A text area with suggestions above it. Enter sends, Ctrl-J begins another line."""

    DEFAULT_CSS = """
    Composer { height: auto; }
    Composer OptionList { display: none; height: auto; max-height: 8; padding: 0 1; }
    Composer OptionList { border: none; background: $panel; text-wrap: nowrap; text-overflow: ellipsis; }
    Composer.suggesting OptionList { display: block; }
    Composer TextArea { height: auto; min-height: 3; max-height: 10; padding: 0 1; }
    Composer TextArea { border: round $primary 50%; background: $background; }
    Composer TextArea:focus { border: round $accent; }
    """

    class Sent(Message):
        """A person has finished a message."""

        def __init__(self, text: str) -> None:
            super().__init__()
            self.text = text

    def __init__(self, *, id: str | None = None) -> None:
        super().__init__(id=id)
        self.commands: Sequence[SlashCommand] = ()
        self.recall = Recall(())
        self._suggestions: list[Suggestion] = []
        self._recalled: str | None = None
        self._dismissed = ""

    def compose(self) -> ComposeResult:
        suggestions = OptionList(id="suggestions")
        suggestions.can_focus = False
        yield suggestions
        yield Writing(
            id="writing",
            show_line_numbers=False,
            soft_wrap=True,
            tab_behavior="focus",
            highlight_cursor_line=False,
            placeholder="Write a message. / for commands, F1 for keys",
        )

    @property
    def writing(self) -> Writing:
        return self.query_one(Writing)

    @property
    def _list(self) -> OptionList:
        return self.query_one(OptionList)

    # -- keys ----------------------------------------------------------------------------------

    def take_key(self, key: str) -> bool:
        """Whether a key was meant for the composer and not for the text."""
        if key == "ctrl+j":
            self.writing.insert("\n")
            return True
        if self._suggestions and self._take_suggestion_key(key):
            return True
        if key == "enter":
            self._send()
            return True
        if key in ("up", "down"):
            return self._recall(key)
        return False

    def _take_suggestion_key(self, key: str) -> bool:
        if key in ("up", "down"):
            self._list.action_cursor_up() if key == "up" else self._list.action_cursor_down()
            return True
        if key == "escape":
            self._dismissed = self.writing.text
            self._offer([])
            return True
        if key == "tab" or (key == "enter" and not is_command(self.writing.text, self.commands)):
            self._accept(self._list.highlighted or 0)
            return True
        return False

    def _accept(self, index: int) -> None:
        if index < len(self._suggestions):
            self.put(self._suggestions[index].text)

    def _send(self) -> None:
        text = self.writing.text
        if text.strip():
            self.recall.add(text)
            self.put("")
            self.post_message(self.Sent(text))

    def _recall(self, key: str) -> bool:
        """Up on the first line and down on the last walk through what was written before."""
        row, _column = self.writing.cursor_location
        at_edge = row == 0 if key == "up" else row == self.writing.document.line_count - 1
        # Inside a text that is being written the keys move the cursor.
        if not at_edge or (self.writing.text and self.writing.text != self._recalled):
            return False
        found = self.recall.earlier(self.writing.text) if key == "up" else self.recall.later()
        if found is None:
            return bool(self._recalled)
        self._recalled = found
        self.put(found)
        return True

    def put(self, text: str) -> None:
        """Replace what is written, with the cursor at its end."""
        self.writing.load_text(text)
        self.writing.move_cursor(self.writing.document.end)

    # -- suggestions ---------------------------------------------------------------------------

    def on_text_area_changed(self, _event: TextArea.Changed) -> None:
        text = self.writing.text
        if text != self._dismissed:
            self._dismissed = ""
        self._offer([] if self._dismissed else suggest(text, self.commands))

    def _offer(self, suggestions: list[Suggestion]) -> None:
        if len(suggestions) == 1 and suggestions[0].text.strip() == self.writing.text.strip():
            suggestions = []
        self._suggestions = suggestions
        self.set_class(bool(suggestions), "suggesting")
        self._list.set_options([Option(_line(one)) for one in suggestions])
        if suggestions:
            self._list.highlighted = 0

    def on_option_list_option_selected(self, event: OptionList.OptionSelected) -> None:
        event.stop()
        self._accept(event.option_index)
        self.writing.focus()


def _line(suggestion: Suggestion) -> Content:
    return Content.assemble((suggestion.label.ljust(14), "bold"), (f" {suggestion.help}", "dim"))
