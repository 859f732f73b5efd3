"""A cheap estimate of how many tokens text and messages cost, without any provider's tokeniser.

Every estimate is a function of one message or text alone, so that a growing
context pays for what is new only. It decides nothing: pruning, compaction and
the memory flush have their own rooms.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from typing import Any

from openclaw.domain.transcript import (
    ImageBlock,
    Message,
    TextBlock,
    ThinkingBlock,
    ToolCallBlock,
    ToolResultMessage,
)

CHARS_PER_TOKEN = 4
DEFAULT_WINDOW = 200_000
IMAGE_TOKENS = 1600  # what a picture of common size costs with the large providers, rounded up
MESSAGE_TOKENS = 4  # role and separators
TOOL_TOKENS = 8  # the frame around one tool's description

# Scripts in which one character is about one token: Thai to Khmer, Chinese, Japanese, Korean, and everything
# beyond the basic plane.
_DENSE = re.compile(
    "[\u0e00-\u0eff\u1000-\u109f\u1100-\u11ff\u1780-\u17ff\u2e80-\ua4cf\uac00-\ud7ff\uf900-\ufaff"
    "\uff00-\uffef\U00010000-\U0010ffff]+"
)


def text_weight(text: str) -> int:
    """The text in quarters of a token: a Latin letter 1, other alphabets 2, dense scripts 4."""
    length = len(text)
    if text.isascii():
        return length
    plain = len(text.encode("ascii", "ignore"))
    dense = length - len(_DENSE.sub("", text))
    return plain + 2 * (length - plain - dense) + 4 * dense


def text_tokens(text: str) -> int:
    """Tokens of a text, rounded up."""
    return _whole(text_weight(text))


def message_weight(message: Message) -> int:
    """A message in quarters of a token. `details` of a result cost nothing: no model sees them (TRX-10)."""
    frame = CHARS_PER_TOKEN * MESSAGE_TOKENS
    content = message.content
    if isinstance(content, str):
        return frame + text_weight(content)
    named = len(message.tool_name) if isinstance(message, ToolResultMessage) else 0
    return frame + named + sum(_block_weight(block) for block in content)


def message_tokens(message: Message) -> int:
    """Tokens of one message, rounded up."""
    return _whole(message_weight(message))


def messages_tokens(messages: Iterable[Message]) -> int:
    """The sum over messages; adding a message adds exactly its own tokens."""
    return sum(message_tokens(message) for message in messages)


def tool_tokens(name: str, description: str, parameters: dict[str, Any]) -> int:
    """Tokens of one tool as a model is told about it."""
    weight = text_weight(name) + text_weight(description) + text_weight(compact_json(parameters))
    return TOOL_TOKENS + _whole(weight)


def context_window(
    *, configured: int | None = None, of_model: int | None = None, cap: int | None = None
) -> int:
    """The window in tokens: what is configured, else what the model has, else 200,000; `cap` is a ceiling.

    `cap` is `contextTokens` of the agent (PRUNE-5). Zero and less count as unknown.
    """
    known = next((size for size in (configured, of_model) if size is not None and size > 0), DEFAULT_WINDOW)
    return min(known, cap) if cap is not None and cap > 0 else known


def clip_to_tokens(text: str, limit: int) -> str:
    """The longest beginning of the text that costs at most `limit` tokens."""
    if text_tokens(text) <= limit:
        return text
    low, high = 0, min(len(text), max(limit, 0) * CHARS_PER_TOKEN)
    while low < high:  # the weight grows with the length, so half of the text is looked at in each step
        middle = (low + high + 1) // 2
        if text_tokens(text[:middle]) <= limit:
            low = middle
        else:
            high = middle - 1
    return text[:low]


def compact_json(value: Any) -> str:
    """A value as short JSON; total, also for text that no encoder of bytes would take."""
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"), default=str)


def _block_weight(block: TextBlock | ImageBlock | ThinkingBlock | ToolCallBlock) -> int:
    if isinstance(block, TextBlock):
        return text_weight(block.text)
    if isinstance(block, ImageBlock):
        return CHARS_PER_TOKEN * IMAGE_TOKENS
    if isinstance(block, ThinkingBlock):
        return text_weight(block.thinking)
    return text_weight(block.name) + text_weight(compact_json(block.arguments))


def _whole(weight: int) -> int:
    return -(-weight // CHARS_PER_TOKEN)
