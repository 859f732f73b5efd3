"""Requests of OpenAI's two endpoints, as one turn of an agent.

Shapes in, one `AskedTurn` out; pure. A request of these endpoints carries a whole conversation. The
agent gets its last message; what came before stands above it under a heading, because it is the
caller's account and not what happened in the session. What cannot be honoured is refused by name
rather than passed over.
"""

from __future__ import annotations

from typing import Any, Final

from msgspec import Struct

from openclaw.gateway.http.answers import Refusal

Json = dict[str, Any]
EARLIER: Final = "[Earlier messages of this request]"
NOW: Final = "[Current message]"
IMAGE_NOTE: Final = "[image]"
SYSTEM_ROLES: Final = ("system", "developer")
_NAMES: Final = {"user": "User", "assistant": "Assistant", "tool": "Tool", "function": "Tool"}
MOST_MESSAGES: Final = 2000
# Said when a message holds only images: a turn has words.
LOOK: Final = "Look at the attached image."


class ChatMessage(Struct, frozen=True):
    role: str
    content: str | list[Json] | None = None
    name: str | None = None


class StreamOptions(Struct, frozen=True):
    include_usage: bool = False


class ChatRequest(Struct, frozen=True):
    """`POST /v1/chat/completions`. Fields that only tune a model are passed over."""

    messages: list[ChatMessage]
    model: str = "openclaw"
    stream: bool | None = False
    stream_options: StreamOptions | None = None
    user: str | None = None
    n: int | None = None
    tools: list[Any] | None = None
    functions: list[Any] | None = None
    response_format: Json | None = None


class ResponsesRequest(Struct, frozen=True):
    """`POST /v1/responses`."""

    input: str | list[Json]
    model: str = "openclaw"
    instructions: str | None = None
    stream: bool | None = False
    user: str | None = None
    tools: list[Any] | None = None
    previous_response_id: str | None = None
    background: bool | None = False
    text: Json | None = None


class AskedTurn(Struct, frozen=True):
    """`earlier` and `message` are text; `attachments` belong to the message."""

    message: str
    earlier: str
    system: str | None
    attachments: tuple[Json, ...]

    def text(self, *, with_earlier: bool) -> str:
        """What the agent is told. A session that remembers is not told again what it said."""
        if not (self.earlier and with_earlier):
            return self.message
        return f"{EARLIER}\n{self.earlier}\n\n{NOW}\n{self.message}"


def turn_of_chat(request: ChatRequest) -> AskedTurn:
    """Raises Refusal for what this gateway does not do."""
    if request.tools or request.functions:
        raise unsupported("tools", "the agent has tools of its own; leave `tools` and `functions` out")
    if request.n not in (None, 1):
        raise unsupported("n", "one answer per request; leave `n` out")
    if (request.response_format or {}).get("type", "text") != "text":
        raise unsupported("response_format", "only text; leave `response_format` out")
    return _turn(request.messages)


def turn_of_responses(request: ResponsesRequest) -> AskedTurn:
    """Raises Refusal for what this gateway does not do."""
    if request.tools:
        raise unsupported("tools", "the agent has tools of its own; leave `tools` out")
    if request.previous_response_id is not None:
        raise unsupported("previous_response_id", "give `user`, and the gateway keeps the conversation")
    if request.background:
        raise unsupported("background", "leave it out, or use the method `agent` of the WebSocket")
    if ((request.text or {}).get("format") or {}).get("type", "text") != "text":
        raise unsupported("text.format", "only text; leave `text.format` out")
    if isinstance(request.input, str):
        messages = [ChatMessage("user", request.input)]
    else:
        messages = [_item(number, item) for number, item in enumerate(request.input, 1)]
    first = [] if request.instructions is None else [ChatMessage("system", request.instructions)]
    return _turn([*first, *messages])


def unsupported(parameter: str, advice: str) -> Refusal:
    message = f"unsupported parameter {parameter}: {advice}"
    return Refusal(400, "invalid_request_error", message, code="unsupported_parameter")


def bad(message: str) -> Refusal:
    return Refusal(400, "invalid_request_error", message)


def _item(number: int, item: Json) -> ChatMessage:
    if item.get("type", "message") != "message":
        raise bad(f"input item {number} is of type {str(item.get('type'))[:40]!r}; only messages are read")
    role, content = item.get("role"), item.get("content")
    is_content = isinstance(content, str) or (
        isinstance(content, list) and all(isinstance(part, dict) for part in content)
    )
    if not isinstance(role, str) or not is_content:
        raise bad(f"input item {number} needs a role, and content that is text or a list of parts")
    return ChatMessage(role, content)


def _turn(messages: list[ChatMessage]) -> AskedTurn:
    if len(messages) > MOST_MESSAGES:
        raise bad(f"{len(messages)} messages; at most {MOST_MESSAGES} in one request")
    system: list[str] = []
    spoken: list[ChatMessage] = []
    for message in messages:
        if message.role in SYSTEM_ROLES:
            system.append(_words(message)[0])
        elif message.role in _NAMES:
            spoken.append(message)
        else:
            raise bad(f"unknown role {message.role[:40]!r}; use system, developer, user, assistant or tool")
    if not spoken or spoken[-1].role != "user":
        raise bad("the last message must have the role user")
    *before, last = spoken
    text, images = _words(last)
    if not text.strip() and not images:
        raise bad("the last message is empty")
    earlier = "\n".join(line for message in before if (line := _line(message)))
    instructions = "\n\n".join(part for part in system if part.strip())
    return AskedTurn(text if text.strip() else LOOK, earlier, instructions or None, tuple(images))


def _line(message: ChatMessage) -> str:
    text, images = _words(message)
    said = " ".join([text, *([IMAGE_NOTE] * len(images))]).strip()
    return f"{_NAMES[message.role]}: {said}" if said else ""


def _words(message: ChatMessage) -> tuple[str, list[Json]]:
    """The text of a message, and its images as attachments."""
    content = message.content
    if content is None or isinstance(content, str):
        return content or "", []
    texts: list[str] = []
    images: list[Json] = []
    for part in content:
        kind = part.get("type")
        if kind in ("text", "input_text", "output_text") and isinstance(part.get("text"), str):
            texts.append(part["text"])
        elif kind in ("image_url", "input_image"):
            images.append(_image(part))
        else:
            raise bad(f"a content part of type {str(kind)[:40]!r} cannot be read; send text or images")
    return "\n".join(texts), images


def _image(part: Json) -> Json:
    url = part.get("image_url")
    if isinstance(url, dict):
        url = url.get("url")
    if not isinstance(url, str) or not url.startswith("data:"):
        raise bad("an image must be a data URL (data:image/png;base64,…); the gateway fetches nothing")
    return {"content": url}
