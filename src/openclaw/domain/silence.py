"""Silent replies: an answer that is only the silent token is not shown to anybody (LOOP-3).

Pure text in, pure text out. Where a text goes, and whether it is stored, is
decided elsewhere; the stored message always keeps what the model wrote.
"""

from __future__ import annotations

SILENT_TOKEN = "NO_REPLY"
_LENGTH = len(SILENT_TOKEN)


def visible_reply(text: str) -> str:
    """What a person may see of a finished reply: without the token at its beginning or end, in any case."""
    start = _after_leading_tokens(text)
    return text[start : _without_closing_tokens(text, start, len(text))]


def visible_so_far(text: str) -> str:
    """What may be streamed of an unfinished reply: it only grows, and is a prefix of what will be visible.

    Nothing is shown while the text could still become the token alone; a last word that could
    become the token, and the white space before it, wait until more is known.
    """
    start, end = _after_leading_tokens(text), len(text)
    word_at = _word_start(text, start, end)
    if word_at < end and SILENT_TOKEN.startswith(text[word_at:end].upper()):
        end = word_at
    return text[start : _trimmed(text, start, _without_closing_tokens(text, start, end))]


def _without_closing_tokens(text: str, start: int, end: int) -> int:
    while (cut := _before_token(text, start, end)) is not None:
        end = cut
    return end


def _after_leading_tokens(text: str) -> int:
    """Where the text begins behind its leading tokens; 0 when it has none."""
    start = at = 0
    while True:
        while at < len(text) and text[at].isspace():
            at += 1
        if not _is_token(text, at):
            return start and at
        start = at = at + _LENGTH


def _before_token(text: str, start: int, end: int) -> int | None:
    """Where the text ends before a token that closes it, white space taken off; None when none does."""
    trimmed = _trimmed(text, start, end)
    at = trimmed - _LENGTH
    if at < start or not _is_token(text, at) or (at > start and _is_word(text[at - 1])):
        return None
    return _trimmed(text, start, at)


def _word_start(text: str, start: int, end: int) -> int:
    """Where the last word begins, as far back as a token reaches."""
    at = end
    while at > start and end - at <= _LENGTH and _is_word(text[at - 1]):
        at -= 1
    return at


def _trimmed(text: str, start: int, end: int) -> int:
    while end > start and text[end - 1].isspace():
        end -= 1
    return end


def _is_token(text: str, at: int) -> bool:
    """Whether a whole token stands here: the letters, and no word going on behind them."""
    behind = at + _LENGTH
    return text[at:behind].upper() == SILENT_TOKEN and not _is_word(text[behind : behind + 1])


def _is_word(char: str) -> bool:
    return char.isalnum() or char == "_"
