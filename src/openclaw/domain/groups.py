"""Ids and chats as people and platforms spell them (KEY-12, KEY-13, KEY-20, KEY-21, ENT-9).

This room stands below `keys`: it folds and recognises single words, ids and loose
inbound contexts. It knows no session key and never decides where a message goes.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Set as AbstractSet
from functools import lru_cache
from typing import Literal, NamedTuple

from msgspec import Struct

from openclaw.domain.entry import ChatType
from openclaw.errors import InvalidRequest, InvalidSessionKey

GroupKind = Literal["group", "channel"]
SessionKind = Literal["main", "group", "cron", "hook", "node", "other"]

DEFAULT_AGENT_ID = "main"
DEFAULT_ACCOUNT_ID = "default"

# Channels that a `From` may begin with. The set is open (AMB-23): connectors pass their own ids as well.
KNOWN_CHANNELS = frozenset(
    {
        "whatsapp",
        "telegram",
        "discord",
        "signal",
        "imessage",
        "webchat",
        "slack",
        "matrix",
        "msteams",
        "googlechat",
        "mattermost",
        "irc",
        "line",
    }
)
DEFAULT_CASE_SENSITIVE_CHANNELS = frozenset({"matrix", "signal"})

# Ids of clients that people see in a title bar and mistake for a key (KEY-18, KEY-19).
CLIENT_LABELS = frozenset(
    {
        "openclaw-tui",
        "openclaw-control-ui",
        "openclaw-browser-copilot",
        "openclaw-macos",
        "openclaw-linux",
        "openclaw-ios",
        "openclaw-watchos",
        "openclaw-android",
        "webchat",
        "webchat-ui",
        "cli",
        "gateway-client",
    }
)

# Every spelling of a chat type; older and newer words are equal everywhere (AMB-8, AMB-21).
CHAT_WORDS: dict[str, ChatType] = {
    "dm": "direct",
    "direct": "direct",
    "group": "group",
    "channel": "channel",
    "room": "channel",
}

_ID = re.compile(r"[a-z0-9][a-z0-9_-]{0,63}")
_NOT_ID_CHARS = re.compile(r"[^a-z0-9_-]+")
_CHANNEL_ID = re.compile(r"[a-z0-9][a-z0-9._-]{0,63}")
_LINE_BREAKING = frozenset({"Cc", "Cs", "Zl", "Zp"})
_WHATSAPP_GROUP_SUFFIX = "@g.us"
_SHORT_ID_CHARS = 14


# -- words ----------------------------------------------------------------------------------------


def fold_word(text: str) -> str:
    """Lower case, compatibility forms resolved (NFKC), trimmed. Applying it twice changes nothing."""
    if text.isascii():
        return text.strip().lower()
    lowered = unicodedata.normalize("NFKC", text).lower()
    return unicodedata.normalize("NFKC", lowered).strip()


def fold_peer(
    peer_id: str,
    channel: str | None,
    case_sensitive_channels: AbstractSet[str] = DEFAULT_CASE_SENSITIVE_CHANNELS,
) -> str:
    """A platform id as it stands in a key of that channel: byte-exact, or trimmed lower case (KEY-20).

    Only blanks are trimmed: a line break in an id stays, so that the key is refused for it.
    """
    return peer_id if channel in case_sensitive_channels else peer_id.strip(" ").lower()


class Segment(NamedTuple):
    """One `:`-separated piece of a text: its folded word and its place."""

    word: str
    start: int
    end: int


@lru_cache(1024)  # the same key is looked at many times in a turn
def split_segments(text: str) -> tuple[Segment, ...]:
    """The segments of a text that are not empty (KEY-22)."""
    found = []
    start = 0
    for piece in text.split(":"):
        end = start + len(piece)
        if word := fold_word(piece):
            found.append(Segment(word, start, end))
        start = end + 1
    return tuple(found)


def valid_agent_id(text: str) -> bool:
    """Whether an id fits the grammar of agent and account ids as it stands, in any casing (KEY-21)."""
    return _ID.fullmatch(text.lower()) is not None and text.isascii()


def normalise_agent_id(text: str | None) -> str:
    """Any text as an agent id: folded, other characters as `-`, at most 64 of them, else `main` (KEY-21)."""
    return _normalise_id(text) or DEFAULT_AGENT_ID


def normalise_account_id(text: str | None) -> str:
    """Like `normalise_agent_id`, with `default` for an account that has no name (KEY-6, KEY-21)."""
    return _normalise_id(text) or DEFAULT_ACCOUNT_ID


def _normalise_id(text: str | None) -> str:
    return _NOT_ID_CHARS.sub("-", fold_word(text or "")).lstrip("-_").rstrip("-")[:64]


def require_agent_id(text: str) -> str:
    """The agent id that a caller chose, e.g. to spawn: never rewritten, InvalidRequest instead (KEY-21)."""
    chosen = text.strip()
    if not valid_agent_id(chosen):
        raise InvalidRequest(
            f"agent id {text[:80]!r} is not valid. Use at most 64 of a-z, 0-9, `_` and `-`, a letter or "
            "digit first; `agents_list` shows the ids you may use."
        )
    return chosen.lower()


def fold_listed_peer(
    text: str,
    channel: str | None,
    case_sensitive_channels: AbstractSet[str] = DEFAULT_CASE_SENSITIVE_CHANNELS,
) -> str | None:
    """An id as people list it, bare or as `<channel>:<id>`, folded for comparison on that channel.

    None when it names another channel: somebody who calls himself `telegram:123` elsewhere is not listed.
    """
    prefix, separator, rest = text.partition(":")
    named = fold_word(prefix) if separator else ""
    if named != channel and named in KNOWN_CHANNELS:
        return None
    bare = rest if separator and named == channel else text
    return fold_peer(bare.strip(), channel, case_sensitive_channels)


def is_channel_id(word: str) -> bool:
    """Whether a folded word can stand as a channel in a key."""
    return _CHANNEL_ID.fullmatch(word) is not None


def fold_channel(text: str) -> str:
    """A channel id as it stands in keys. Raises InvalidSessionKey when it cannot stand in one."""
    channel = fold_word(text)
    if not is_channel_id(channel):
        raise InvalidSessionKey(
            f"{text[:60]!r} is not a channel id. Use letters, digits, `.`, `_` and `-`, e.g. `telegram`."
        )
    return channel


def normalise_chat_type(text: str | None) -> ChatType | None:
    """`dm` and `room` are old spellings of `direct` and `channel`; anything unknown is unset (ENT-11)."""
    return CHAT_WORDS.get(fold_word(text)) if text else None


def has_unsafe_text(text: str) -> bool:
    """Whether a text holds NUL, another control character, a line break or a lone surrogate."""
    return not text.isprintable() and any(unicodedata.category(char) in _LINE_BREAKING for char in text)


def has_invisible_text(text: str) -> bool:
    """Whether a text holds formatting characters that nobody sees, such as a zero-width space."""
    return not text.isprintable() and any(unicodedata.category(char) == "Cf" for char in text)


# -- channels of rows and clients -----------------------------------------------------------------


def row_channel(kind: SessionKind, entry_channel: str | None, last_channel: str | None) -> str:
    """The `channel` field of a list row (LIST-6)."""
    if kind in ("cron", "hook", "node"):
        return "internal"
    first, second = (entry_channel, last_channel) if kind == "group" else (last_channel, entry_channel)
    return first or second or "unknown"


def channel_of_client(mode: str | None, client_id: str | None = None) -> Literal["webchat", "internal"]:
    """The channel of a session that is reached over RPC only (AMB-37). No external route gives way to it."""
    spelling = fold_word(mode or client_id or "")
    return "webchat" if spelling in ("webchat", "ui", "webchat-ui", "openclaw-control-ui") else "internal"


# -- group resolution (KEY-13) --------------------------------------------------------------------


class GroupRef(Struct, frozen=True):
    """The group that a loose inbound context speaks of."""

    channel: str
    kind: GroupKind
    group_id: str  # byte-exact, as the platform wrote it
    key: str  # `<channel>:<kind>:<id>`, the part of a session key behind the agent


def resolve_group(
    *,
    from_: str | None,
    provider: str | None = None,
    chat_type: str | None = None,
    known_channels: AbstractSet[str] = KNOWN_CHANNELS,
    case_sensitive_channels: AbstractSet[str] = DEFAULT_CASE_SENSITIVE_CHANNELS,
) -> GroupRef | None:
    """Which group a context with `From`, `Provider` and `ChatType` belongs to; None when it is no group.

    A `From` of the old form `group:<id>` takes its channel from `Provider` (KEY-12).
    """
    sender = (from_ or "").strip().lstrip(":")
    declared = normalise_chat_type(chat_type)
    words = [segment.word for segment in split_segments(sender)]
    is_whatsapp_group = sender.lower().endswith(_WHATSAPP_GROUP_SUFFIX)
    named_kinds = {CHAT_WORDS.get(word) for word in words[:-1]} & {"group", "channel"}
    if declared not in ("group", "channel") and not named_kinds and not is_whatsapp_group:
        return None

    hint = fold_channel(provider) if provider and provider.strip() else None
    head = words[0] if words else ""
    head_is_channel = head in known_channels or head == hint
    channel = head if head_is_channel else hint or ("whatsapp" if is_whatsapp_group else None)
    kind, group_id = _split_kind(sender, head_is_channel)
    if kind is None:
        kind = "channel" if declared == "channel" or "channel" in named_kinds else "group"
    if channel is None or not group_id.strip():
        return None
    folded = fold_peer(group_id, channel, case_sensitive_channels)
    return GroupRef(channel, kind, group_id, f"{channel}:{kind}:{folded}")


def _split_kind(sender: str, head_is_channel: bool) -> tuple[GroupKind | None, str]:
    """`<x>:<kind>:<id>` and `<kind>:<id>` name the kind; otherwise only a channel in front is cut off."""
    head, _, rest = sender.partition(":")
    rest = rest.lstrip(":")
    if not head_is_channel and (kind := _group_kind(head)) and rest:
        return kind, rest
    second, _, tail = rest.partition(":")
    if (kind := _group_kind(second)) and tail:
        return kind, tail
    return None, rest if head_is_channel else sender


def _group_kind(segment: str) -> GroupKind | None:
    chat_type = normalise_chat_type(segment)
    return None if chat_type == "direct" else chat_type


def complete_legacy_group(text: str, provider: str | None) -> str | None:
    """`group:<id>` with the channel it lacked: `<provider>:group:<id>` (KEY-12).

    Text of any other form comes back unchanged. None when the form is the old one and no provider is known.
    """
    head, _, rest = text.partition(":")
    if _group_kind(head) is None or not rest.strip(": "):
        return text
    return f"{fold_channel(provider)}:{text}" if provider else None


# -- display name (ENT-9) -------------------------------------------------------------------------


def group_display_name(
    *,
    channel: str,
    group_id: str,
    subject: str | None = None,
    room: str | None = None,
    space: str | None = None,
    thread_label: str | None = None,
) -> str:
    """What lists call a group: the thread label, else `<channel>:` and a short readable token."""
    if thread_label and thread_label.strip():
        return thread_label.strip()
    room_name = _slug(room).lstrip("#")
    space_name = _slug(space)
    if room_name:
        token = f"{space_name}#{room_name}"
    else:
        name = (_slug(subject) or space_name).lstrip("#") or _slug(_shorten(group_id.strip()))
        token = name if name.startswith("g-") or not name else f"g-{name}"
    return f"{fold_word(channel)}:{token}" if token else fold_word(channel)


def _slug(text: str | None) -> str:
    """Lower case; letters, digits and `#@+._-` stay, everything between them becomes one `-`."""
    kept = []
    for char in (text or "").lower():
        if char in "#@+._" or unicodedata.category(char)[0] in "LMN":
            kept.append(char)
        elif kept and kept[-1] != "-":
            kept.append("-")
    return "".join(kept).strip("-.")


def _shorten(group_id: str) -> str:
    return group_id if len(group_id) <= _SHORT_ID_CHARS else f"{group_id[:6]}...{group_id[-4:]}"
