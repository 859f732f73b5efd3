"""Small windows over the conversation: a question with one line to answer, and the help."""

from __future__ import annotations

from typing import ClassVar, Final

from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical, VerticalScroll
from textual.screen import ModalScreen
from textual.widgets import Input, Static

HELP: Final = """\
Write, and press Enter. The gateway keeps everything that is said.

 Enter        send                    Ctrl-J      another line
 Up, Down     earlier inputs          Tab         complete a /command
 Esc, Ctrl-X  stop the running turn   Ctrl-Q      leave
 Ctrl-N       new session             Ctrl-R      rename this one
 Ctrl-K       commands, sessions      Ctrl-B      show the list or not
 F2           tree of helpers         Shift-Tab   to the other panes

In the lists and in the conversation:

 /            find a session          t           tree of helpers
 j, k         down and up             Enter       open
 o            unfold tool calls       PgUp, PgDn  read back

 ● something runs there               ◆ something new is there

/status, /new, /model, /help and others are commands of the gateway.
Without a connection messages wait here and go out when it is back.
Esc closes this help."""


class Help(ModalScreen[None]):
    """The keys."""

    DEFAULT_CSS = """
    Help { align: center middle; }
    Help VerticalScroll { width: 78; max-width: 100%; height: auto; max-height: 100%; padding: 0 2; }
    Help VerticalScroll { background: $surface; border: round $primary; }
    """
    BINDINGS: ClassVar[list[BindingType]] = [Binding("escape,f1,q,enter", "dismiss", show=False)]

    def compose(self) -> ComposeResult:
        with VerticalScroll():
            yield Static(HELP, markup=False)


class Question(ModalScreen[str | None]):
    """One line from a person; None when it was put away with Esc."""

    DEFAULT_CSS = """
    Question { align: center middle; }
    Question Vertical { width: 60; max-width: 100%; height: auto; padding: 1 2; }
    Question Vertical { background: $surface; border: round $primary; }
    """
    BINDINGS: ClassVar[list[BindingType]] = [Binding("escape", "dismiss(None)", show=False)]

    def __init__(self, question: str, value: str = "") -> None:
        super().__init__()
        self._question = question
        self._value = value

    def compose(self) -> ComposeResult:
        with Vertical():
            yield Static(self._question, markup=False)
            yield Input(self._value, max_length=200, select_on_focus=False)

    def on_input_submitted(self, event: Input.Submitted) -> None:
        self.dismiss(event.value.strip())
