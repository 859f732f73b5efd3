"""What a provider would say to a request: whether it is valid, and whether its beginning is the one before.

The check reads the bytes that the adapters would send, not our messages. The marks for the provider's cache
are left out: they move on by design.
"""

from __future__ import annotations

from typing import Any

import msgspec
from msgspec.structs import replace

from openclaw.engine.ports import ModelRequest
from openclaw.models import anthropic_request, openai_request

Wire = dict[str, Any]


def encoded(request: ModelRequest) -> bytes:
    bare = replace(request, cache=False)
    if request.target.dialect == "anthropic":
        return anthropic_request.encode_request(bare)
    return openai_request.encode_request(bare)


def stem(body: bytes) -> bytes:
    """The part that a longer conversation begins with: all but the closing brackets."""
    return body.rstrip(b"]}")


def problem_of(request: ModelRequest, body: bytes) -> str | None:
    """Why the provider would refuse the request, or None."""
    messages: list[Wire] = msgspec.json.decode(body)["messages"]
    if request.target.dialect == "anthropic":
        return _problem_for_anthropic(messages)
    return _problem_for_openai(messages)


def _problem_for_openai(messages: list[Wire]) -> str | None:
    used: set[str] = set()
    open_ids: list[str] = []
    for number, message in enumerate(messages):
        if message["role"] == "tool":
            if message["tool_call_id"] not in open_ids:
                return f"message {number} is the result of no open call"
            open_ids.remove(message["tool_call_id"])
            continue
        if open_ids:
            return f"message {number} comes before the results of {open_ids}"
        open_ids = [call["id"] for call in message.get("tool_calls", ())]
        if used & set(open_ids) or len(set(open_ids)) != len(open_ids):
            return f"message {number} uses the id of a call again"
        used.update(open_ids)
    return f"no result for {open_ids}" if open_ids else None


def _problem_for_anthropic(messages: list[Wire]) -> str | None:
    if not messages:
        return "no message at all"
    used: set[str] = set()
    open_ids: list[str] = []
    for number, message in enumerate(messages):
        if message["role"] != ("user", "assistant")[number % 2]:
            return f"message {number} is of the wrong side"
        blocks = message["content"]
        results = [block["tool_use_id"] for block in blocks if block["type"] == "tool_result"]
        if sorted(results) != sorted(open_ids):
            return f"message {number} has the results {results} for the calls {open_ids}"
        if any(block["type"] != "tool_result" for block in blocks[: len(results)]):
            return f"message {number} does not begin with its results"
        open_ids = [block["id"] for block in blocks if block["type"] == "tool_use"]
        if used & set(open_ids) or len(set(open_ids)) != len(open_ids):
            return f"message {number} uses the id of a call again"
        used.update(open_ids)
    return f"no result for {open_ids}" if open_ids else None
