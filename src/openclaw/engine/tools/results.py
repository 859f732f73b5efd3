"""What a tool said, made fit to be kept: cleaned, masked and bounded (TRX-10, TRX-11).

Whatever a tool returns, the transcript takes only so much of it, and the cost of
getting there does not grow with what is thrown away. Pure functions of values;
who calls them, and on which thread, is the registry's business.
"""

from __future__ import annotations

from typing import Any

from msgspec import Struct

from openclaw.domain.doortext import clean_text, cut
from openclaw.domain.redaction import KNOWN_SECRET_MIN_CHARS, mask_machine_text
from openclaw.domain.transcript import ImageBlock, TextBlock, UserBlock
from openclaw.engine.ports import ToolOutcome

MAX_RESULT_CHARS = 200_000
MAX_BLOCKS = 32
MAX_IMAGE_CHARS = 8_388_608  # 6 MiB in base64
MAX_DETAILS_CHARS = 65_536
MAX_DETAILS_DEPTH = 16
DETAILS_CUT = "persistedDetailsTruncated"
# No secret is longer. Cutting this far behind the end of what is kept never leaves half of one.
_MARGIN_CHARS = 16_384


class SettledText(Struct, frozen=True):
    """`left_out` counts the characters that were cut."""

    text: str
    masked: int = 0
    left_out: int = 0


def settle_text(
    text: str, limit: int, secrets: frozenset[str], total_chars: int | None = None
) -> SettledText:
    """At most about `limit` characters of machine-made text, with secrets masked, saying what was done.

    Masking comes before the cut, so that no half of a secret is left at the end;
    what lies far behind the cut is never looked at. `total_chars` is given when
    `text` is only the beginning of something longer.
    """
    total = len(text) if total_chars is None else total_chars
    near = clean_text(text[: limit + _MARGIN_CHARS])
    masked = mask_machine_text(near, secrets)
    body, note = masked.text, ""
    if masked.count:
        body, mark, words = masked.text.rpartition("\n[")
        note = mark + words
    is_partial = len(text) > limit + _MARGIN_CHARS
    keep = min(limit, len(body) - _MARGIN_CHARS) if is_partial else limit
    if len(body) <= keep and total <= len(text):
        return SettledText(masked.text, masked.count)
    kept = cut(body, keep)
    # Characters that masking took out are not missed by anybody; the count is of the original text.
    left_out = max(total - len(kept), 1)
    return SettledText(f"{kept}\n[cut: {left_out} more characters]{note}", masked.count, left_out)


def text_chars(outcome: ToolOutcome) -> int:
    """How much text an outcome carries, for deciding where to settle it."""
    return sum(len(block.text) for block in outcome.content if isinstance(block, TextBlock))


def settle_outcome(outcome: ToolOutcome, secrets: frozenset[str]) -> ToolOutcome:
    """An outcome as it may be stored and shown to a model."""
    content: list[UserBlock] = []
    room = MAX_RESULT_CHARS
    for block in outcome.content[:MAX_BLOCKS]:
        if isinstance(block, ImageBlock):
            content.append(_settle_image(block))
            continue
        settled = settle_text(block.text, max(room, 0), secrets)
        room -= len(settled.text)
        content.append(TextBlock(settled.text))
    if len(outcome.content) > MAX_BLOCKS:
        content.append(TextBlock(f"[cut: {len(outcome.content) - MAX_BLOCKS} more blocks]"))
    details = None if outcome.details is None else bound_details(outcome.details, secrets)
    return ToolOutcome(tuple(content), outcome.is_error, details)


def _settle_image(block: ImageBlock) -> UserBlock:
    if len(block.data) <= MAX_IMAGE_CHARS:
        return block
    return TextBlock(f"[an image of {len(block.data)} characters was left out: too large]")


# -- details -----------------------------------------------------------------------------------


def bound_details(details: dict[str, Any], secrets: frozenset[str]) -> dict[str, Any]:
    """A copy with secrets masked and at most about 64 Ki characters; a mark says when it was cut (TRX-10)."""
    copy = _Copy(None)
    kept = copy.value(details, 1)
    # One look at all of it is far cheaper than one at each string, and nearly always enough.
    if mask_machine_text("\n".join(copy.seen), secrets).count:
        copy = _Copy(secrets)
        kept = copy.value(details, 1)
    if copy.cut:
        return {**kept, DETAILS_CUT: True}
    return kept if isinstance(kept, dict) else {}


class _Copy:
    """Copies values until its room is used up; the work ends there too. Masks unless `secrets` is None."""

    def __init__(self, secrets: frozenset[str] | None) -> None:
        self._secrets = secrets
        self._room = MAX_DETAILS_CHARS
        self.cut = False
        # Every text that was looked at, with what lies just behind a cut.
        self.seen: list[str] = []

    def value(self, value: Any, depth: int) -> Any:
        if isinstance(value, str):
            return self._text(value)
        self._room -= 8
        if isinstance(value, dict | list | tuple):
            if depth > MAX_DETAILS_DEPTH:
                self.cut = True
                return None
            return self._object(value, depth) if isinstance(value, dict) else self._list(value, depth)
        if value is None or isinstance(value, bool | int | float):
            return value
        return self._text(str(value))

    def _object(self, value: dict[Any, Any], depth: int) -> dict[str, Any]:
        kept: dict[str, Any] = {}
        for name, item in value.items():
            if self._is_full():
                break
            known = self._text(str(name))  # before its value takes all the room
            kept[known] = self.value(item, depth + 1)
        return kept

    def _list(self, value: list[Any] | tuple[Any, ...], depth: int) -> list[Any]:
        kept: list[Any] = []
        for item in value:
            if self._is_full():
                break
            kept.append(self.value(item, depth + 1))
        return kept

    def _is_full(self) -> bool:
        self.cut = self.cut or self._room <= 0
        return self._room <= 0

    def _text(self, text: str) -> str:
        """Masked without the sentence about it: a path or a name must stay one."""
        room = max(self._room, 0)
        near = clean_text(text[: room + _MARGIN_CHARS])
        body = near
        self.seen.append(near)
        if self._secrets is not None and len(near) >= KNOWN_SECRET_MIN_CHARS:  # no secret is shorter
            masked = mask_machine_text(near, self._secrets)
            body = masked.text.rpartition("\n[")[0] if masked.count else near
        if len(text) > room + _MARGIN_CHARS:
            body = cut(body, max(len(body) - _MARGIN_CHARS, 0))
        kept = cut(body, room)
        self.cut = self.cut or len(kept) < len(body) or len(text) > room + _MARGIN_CHARS
        self._room -= len(kept) + 4
        return kept
