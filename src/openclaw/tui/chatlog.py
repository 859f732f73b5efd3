"""The conversation on the screen: lines are made when they are looked at, however long it is.

Only what is near the window is drawn; the height of the rest is estimated from its text
and corrected when it comes into view. So ten thousand messages cost what a few do.
"""

from __future__ import annotations

from bisect import bisect_right
from collections import OrderedDict
from collections.abc import Sequence
from itertools import accumulate
from typing import ClassVar, Final

from msgspec import Struct
from rich.console import Console
from textual import events
from textual.binding import Binding, BindingType
from textual.geometry import Size
from textual.message import Message
from textual.scroll_view import ScrollView
from textual.strip import Strip

from openclaw.tui.drawing import Palette, draw, lines_of, palette_of
from openclaw.tui.items import Item

KEPT_DRAWN: Final = 400
# So close to the beginning the next older page is asked for.
NEAR_TOP: Final = 3


class _Drawn(Struct, frozen=True):
    item: Item
    unfolded: bool
    lines: list[Strip]


class ChatLog(ScrollView, can_focus=True):
    """Shows items; says when older ones are wanted."""

    DEFAULT_CSS = """
    ChatLog { height: 1fr; padding: 0 0 0 1; background: $background; }
    ChatLog { overflow-x: hidden; overflow-y: scroll; scrollbar-size-vertical: 1; }
    ChatLog { scrollbar-background: $background; }
    """
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("o", "unfold", "Tool calls", tooltip="Show or hide what tools were asked and answered"),
        Binding("home", "scroll_home", show=False),
        Binding("end,G", "scroll_end", show=False),
        Binding("up,k", "scroll_up", show=False),
        Binding("down,j", "scroll_down", show=False),
        Binding("pageup", "page_up", show=False),
        Binding("pagedown", "page_down", show=False),
    ]

    class OlderWanted(Message):
        """The beginning of what is shown is in sight."""

    def __init__(self, *, id: str | None = None) -> None:
        super().__init__(id=id)
        self.items: list[Item] = []
        self.answerer = "agent"
        self._heights: list[int] = []
        self._ends: list[int] = []
        self._drawn: OrderedDict[str, _Drawn] = OrderedDict()
        self._unfolded: set[str] = set()
        self._all_unfolded = False
        self._width = 0
        self._palette: Palette | None = None
        self._follows = True
        # Never writes anywhere: it only turns what Rich knows into segments.
        self._segmenter = Console(
            width=80, force_terminal=True, color_system="truecolor", legacy_windows=False
        )

    # -- content -------------------------------------------------------------------------------

    def show(self, items: Sequence[Item], *, follow: bool | None = None) -> None:
        """Show these items. Who reads further up keeps the place; who is at the end stays there."""
        anchor = self._anchor()
        if follow is not None:
            self._follows = follow
        self.items = list(items)
        self._measure()
        if self._follows:
            self._go_to_end()
        elif anchor is not None:
            self._return_to(*anchor)
        if self.items and 0 < self.virtual_size.height <= self.size.height:
            self.post_message(self.OlderWanted())  # there is room, and no way to scroll
        self.refresh()

    def begin(self) -> None:
        """Forget what belongs to the conversation that was shown before."""
        self._unfolded.clear()
        self._drawn.clear()
        self.items = []
        self._all_unfolded = False

    def restyle(self) -> None:
        """The theme has changed."""
        self._palette = None
        self._drawn.clear()
        self._measure()
        self.refresh()

    def action_scroll_home(self) -> None:
        self._follows = False
        self.scroll_to(y=0, animate=False, immediate=True)
        self.post_message(self.OlderWanted())

    def action_scroll_end(self) -> None:
        self._follows = True
        self._go_to_end()

    def action_unfold(self) -> None:
        self._all_unfolded = not self._all_unfolded
        self._unfolded.clear()
        self._measure()
        self.refresh()

    # -- measuring -----------------------------------------------------------------------------

    def _measure(self) -> None:
        width = self._width
        if width <= 0:
            return
        self._heights = [self._height(item, width) for item in self.items]
        self._settle()

    def _settle(self) -> None:
        self._ends = list(accumulate(self._heights))
        self.virtual_size = Size(0, self._ends[-1] if self._ends else 0)

    def _height(self, item: Item, width: int) -> int:
        drawn = self._drawn.get(item.item_id)
        if drawn is not None and drawn.item == item and drawn.unfolded == self._is_unfolded(item):
            return len(drawn.lines)
        return _estimate(item, width, self._is_unfolded(item))

    def _is_unfolded(self, item: Item) -> bool:
        return item.kind == "tool" and ((item.item_id in self._unfolded) != self._all_unfolded)

    def _lines(self, index: int) -> list[Strip]:
        item = self.items[index]
        unfolded = self._is_unfolded(item)
        drawn = self._drawn.get(item.item_id)
        if drawn is None or drawn.item != item or drawn.unfolded != unfolded:
            renderable = draw(item, self._colours(), unfolded=unfolded, title=self.answerer)
            drawn = _Drawn(
                item, unfolded, lines_of(renderable, self._segmenter, self._width, self.rich_style)
            )
            self._drawn[item.item_id] = drawn
            while len(self._drawn) > KEPT_DRAWN:
                self._drawn.popitem(last=False)
        self._drawn.move_to_end(item.item_id)
        return drawn.lines

    def _colours(self) -> Palette:
        if self._palette is None:
            self._palette = palette_of(self.app.theme_variables, dark=self.app.current_theme.dark)
        return self._palette

    def _make_exact(self, first_line: int, last_line: int) -> bool:
        """Draw what stands between two lines; True when something was taller or shorter than thought."""
        changed = False
        index = self._index_at(first_line)
        at = self._ends[index - 1] if index else 0
        while index < len(self.items) and at <= last_line:
            height = len(self._lines(index))
            if height != self._heights[index]:
                self._heights[index] = height
                changed = True
            at += height
            index += 1
        if changed:
            self._settle()
        return changed

    def _index_at(self, line: int) -> int:
        return bisect_right(self._ends, line)

    # -- places --------------------------------------------------------------------------------

    def _anchor(self) -> tuple[str, int] | None:
        """The item at the top of the window, and how much of it is above."""
        top = self.scroll_offset.y
        index = self._index_at(top)
        if index >= len(self.items):
            return None
        return self.items[index].item_id, top - (self._ends[index - 1] if index else 0)

    def _return_to(self, item_id: str, inside: int) -> None:
        for index, item in enumerate(self.items):
            if item.item_id == item_id:
                start = self._ends[index - 1] if index else 0
                self.scroll_to(y=start + inside, animate=False, immediate=True)
                return

    def _go_to_end(self) -> None:
        # Drawing the last window may change its height, and with that where the end is.
        height = max(self.scrollable_content_region.height, 1)
        for _ in range(3):
            total = self._ends[-1] if self._ends else 0
            if not self.items or not self._make_exact(max(total - height, 0), total):
                break
        self.scroll_to(
            y=max((self._ends[-1] if self._ends else 0) - height, 0), animate=False, immediate=True
        )

    def on_resize(self, _event: events.Resize) -> None:
        width = self.scrollable_content_region.width
        if width == self._width:
            if self._follows:
                self._go_to_end()
            return
        anchor, follows = self._anchor(), self._follows
        self._width = width
        self._drawn.clear()
        self._measure()
        if follows:
            self._go_to_end()
        elif anchor is not None:
            self._return_to(*anchor)

    def watch_scroll_y(self, old_value: float, new_value: float) -> None:
        super().watch_scroll_y(old_value, new_value)
        self._follows = self.is_vertical_scroll_end
        if new_value <= NEAR_TOP and new_value < old_value and self.items:
            self.post_message(self.OlderWanted())

    # -- drawing -------------------------------------------------------------------------------

    def render_line(self, y: int) -> Strip:
        line = self.scroll_offset.y + y
        width = self.scrollable_content_region.width
        index = self._index_at(line)
        if index >= len(self.items):
            return Strip.blank(width, self.rich_style)
        lines = self._lines(index)
        if len(lines) != self._heights[index]:
            # Taller or shorter than estimated: this frame is right for what fits, the next for all of it.
            self._heights[index] = len(lines)
            self.call_after_refresh(self._resettle)
        inside = line - (self._ends[index - 1] if index else 0)
        return lines[inside] if inside < len(lines) else Strip.blank(width, self.rich_style)

    def _resettle(self) -> None:
        anchor, follows = self._anchor(), self._follows
        self._settle()
        if follows:
            self._go_to_end()
        elif anchor is not None:
            self._return_to(*anchor)
        self.refresh()

    def on_click(self, event: events.Click) -> None:
        """A tool call unfolds where it is clicked."""
        offset = event.get_content_offset(self)
        if offset is None:
            return
        index = self._index_at(self.scroll_offset.y + offset.y)
        if index < len(self.items) and self.items[index].kind == "tool":
            self._unfolded ^= {self.items[index].item_id}
            self.show(self.items, follow=False)


def _estimate(item: Item, width: int, unfolded: bool) -> int:
    """About how many lines an item takes. Cheap: it looks at lengths only."""
    if item.kind == "tool":
        return 1 if not unfolded or not item.details else 1 + _wrapped(item.details, max(width - 6, 1))
    head = 1 if item.kind in ("person", "agent") else 0
    return head + 1 + _wrapped(item.text, max(width - 2, 1))


def _wrapped(text: str, width: int) -> int:
    return text.count("\n") + 1 + len(text) // width
