"""A long reply as messages of a platform's size: cut where a reader would, code blocks kept whole."""

from __future__ import annotations

from collections.abc import Callable, Iterator

_FENCE = "```"
_LEAST = 16


def split_text(text: str, longest: int, *, size: Callable[[str], int] = len) -> list[str]:
    """The pieces of a text, none larger than `longest` as `size` counts it, nothing lost but blank edges.

    Cuts fall at a blank line, else at a line, else at a space, else between characters. A code block
    that is cut is closed in one piece and opened again in the next.
    """
    if longest < _LEAST:
        raise ValueError(f"pieces of {longest} are too small")
    pieces = []
    rest, fence = text.strip("\n"), ""
    while rest:
        head = f"{fence}\n" if fence else ""
        if size(head + rest) <= longest:
            pieces.append(head + rest)
            break
        room = longest - size(head) - len(_FENCE) - 1
        cut = _cut(rest, max(1, room), size)
        piece, rest = rest[:cut].rstrip("\n "), rest[cut:].lstrip("\n")
        fence = _open_fence(head + piece)
        shown = f"{head}{piece}\n{_FENCE}" if fence else head + piece
        if shown.strip():
            pieces.append(shown)
    return pieces


def _cut(text: str, room: int, size: Callable[[str], int]) -> int:
    """How many characters fit, ended at the best place in their second half."""
    fits = _fitting(text, room, size)
    if fits >= len(text):
        return len(text)
    for mark in ("\n\n", "\n", " "):
        at = text.rfind(mark, 0, fits)
        if at >= fits // 2 and at > 0:
            return at + len(mark)
    return fits


def _fitting(text: str, room: int, size: Callable[[str], int]) -> int:
    """The longest beginning that fits, by halving; at least one character, so that it always ends."""
    low, high = 1, min(len(text), room)
    while low < high:
        middle = (low + high + 1) // 2
        if size(text[:middle]) <= room:
            low = middle
        else:
            high = middle - 1
    return low


def _open_fence(piece: str) -> str:
    """The opening line of a code block that this piece leaves open, else nothing."""
    opened = ""
    for line in _fence_lines(piece):
        opened = "" if opened else line[:64]
    return opened


def _fence_lines(piece: str) -> Iterator[str]:
    return (line.strip() for line in piece.split("\n") if line.lstrip().startswith(_FENCE))
