"""Session keys: read, write and classify them (SPEC §3).

A key is read once into a `SessionKey`; afterwards code looks at fields, never at
the text again. Structural words are folded before they are compared, so that
look-alike spellings cannot pass for something else; platform ids are opaque
data. A key is never a path, a secret or a delivery route.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from enum import StrEnum
from functools import lru_cache
from typing import Literal

import msgspec
from msgspec import Struct

from openclaw.domain.entry import ChatType
from openclaw.domain.groups import (
    CHAT_WORDS,
    CLIENT_LABELS,
    DEFAULT_CASE_SENSITIVE_CHANNELS,
    Segment,
    complete_legacy_group,
    fold_peer,
    fold_word,
    has_invisible_text,
    has_unsafe_text,
    is_channel_id,
    split_segments,
)
from openclaw.domain.groups import SessionKind as SessionKind
from openclaw.domain.groups import channel_of_client as channel_of_client
from openclaw.domain.groups import normalise_account_id as normalise_account_id
from openclaw.domain.groups import normalise_agent_id as normalise_agent_id
from openclaw.domain.groups import require_agent_id as require_agent_id
from openclaw.domain.groups import row_channel as row_channel
from openclaw.domain.groups import valid_agent_id as valid_agent_id
from openclaw.errors import InvalidSessionKey

MAX_KEY_CHARS = 512

ThreadKind = Literal["topic", "thread"]

_UUID = re.compile(r"[0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}")
_RESERVED = frozenset({"global", "unknown"})
_HOW_TO_WRITE = "Write `main` or a full key such as `agent:main:telegram:group:<id>`."


class KeySettings(Struct, frozen=True):
    """The part of the configuration that decides how keys are read. Spellings are folded on creation."""

    main_key: str = "main"
    scope: Literal["per-sender", "global"] = "per-sender"
    case_sensitive_channels: frozenset[str] = DEFAULT_CASE_SENSITIVE_CHANNELS

    def __post_init__(self) -> None:
        name = fold_word(self.main_key) or "main"
        is_taken = name in _RESERVED or name in ("current", "agent") or name.startswith("node-")
        is_unfit = ":" in name or len(name) > 64 or has_unsafe_text(name) or has_invisible_text(name)
        if is_taken or is_unfit:
            raise _refusal(self.main_key, "cannot be session.mainKey. Use one short plain word, e.g. `main`.")
        channels = frozenset(fold_word(channel) for channel in self.case_sensitive_channels)
        msgspec.structs.force_setattr(self, "main_key", name)
        msgspec.structs.force_setattr(self, "case_sensitive_channels", channels)


DEFAULT_KEY_SETTINGS = KeySettings()


class KeyShape(StrEnum):
    """Which row of the table of SPEC §3.1 a key belongs to."""

    main = "main"
    direct = "direct"
    group = "group"
    channel = "channel"
    subagent = "subagent"
    cron = "cron"
    cron_run = "cron_run"
    hook = "hook"
    node = "node"
    slash = "slash"
    global_ = "global"
    unknown = "unknown"
    other = "other"


class SessionKey(Struct, frozen=True):
    """A session key, taken apart. Made by `parse_key`, `canonical_key` and the builders of `addressing`."""

    shape: KeyShape
    agent_id: str = ""  # empty for the reserved keys only
    name: str = ""  # main key, free name, job id, hook id, node id, or the path below `subagent:`
    run_id: str | None = None  # the session id of one cron run
    channel: str | None = None
    account_id: str | None = None
    peer_id: str | None = None  # byte-exact on case-sensitive channels, lower case otherwise (KEY-20)
    thread_kind: ThreadKind | None = None
    thread_id: str | None = None


class ThreadSplit(Struct, frozen=True):
    base: str
    thread_kind: ThreadKind | None = None
    thread_id: str | None = None


# -- refusing -------------------------------------------------------------------------------------


def _refusal(text: str, problem: str) -> InvalidSessionKey:
    return InvalidSessionKey(f"session key {text[:80]!r} {problem}")


def _checked(text: str) -> str:
    if len(text) > MAX_KEY_CHARS:
        raise _refusal(text, f"is longer than {MAX_KEY_CHARS} characters. {_HOW_TO_WRITE}")
    if has_unsafe_text(text):
        raise _refusal(text, "holds a control character or half of a character. Remove it.")
    if not text.replace(":", " ").strip():
        raise _refusal(text, f"is empty. {_HOW_TO_WRITE}")
    return text.strip()


def _join_name(words: Sequence[str]) -> str:
    name = ":".join(words)
    if any(":" in word for word in words):  # would become structure after all checks
        raise _refusal(name, "holds a look-alike of `:`. Type a plain `:`.")
    if has_invisible_text(name):
        raise _refusal(name, "holds an invisible formatting character. Type the name again without it.")
    return name


# -- reading --------------------------------------------------------------------------------------


@lru_cache(2048)  # a turn reads its key several times
def parse_key(text: str, settings: KeySettings) -> SessionKey:
    """Read an agent-scoped or reserved key, in any casing. Raises InvalidSessionKey.

    `parse_key(format_key(key), settings) == key` holds for every key made under these settings.
    """
    checked = _checked(text)
    parts = split_segments(checked)
    if len(parts) == 1 and parts[0].word in _RESERVED:
        return SessionKey(KeyShape(parts[0].word))
    if parts[0].word != "agent" or len(parts) < 3:
        raise _refusal(text, "is incomplete. Write `agent:<agentId>:<name>`.")
    if not valid_agent_id(parts[1].word):
        raise _refusal(text, "names no valid agent. Use a-z, 0-9, `_` and `-`, at most 64 of them.")
    key = _read_rest(parts[1].word, checked, parts[2:], settings)
    if len(format_key(key)) > MAX_KEY_CHARS:
        raise _refusal(text, f"is longer than {MAX_KEY_CHARS} characters when written in full.")
    return key


def _read_rest(agent_id: str, text: str, parts: Sequence[Segment], settings: KeySettings) -> SessionKey:
    marker = _thread_marker(parts)
    if marker is None:
        return _read_base(agent_id, text, parts, settings)
    base = _read_base(agent_id, text[: parts[marker].start - 1], parts[:marker], settings)
    if not base.agent_id:
        raise _refusal(text, f"names a thread of `{base.shape}`, which has none.")
    return msgspec.structs.replace(
        base,
        thread_kind=parts[marker].word,
        thread_id=fold_peer(text[parts[marker].end + 1 :], base.channel, settings.case_sensitive_channels),
    )


def _thread_marker(parts: Sequence[Segment]) -> int | None:
    """The place of the last `thread` or `topic` that has something before and after it (KEY-24).

    `topic` counts only below a chat: a free name such as `notes:topic:rust` is no thread.
    """
    words = [part.word for part in parts]
    chat_at = next((i for i, word in enumerate(words[:3]) if word in CHAT_WORDS), len(words))
    for i in range(len(words) - 2, 0, -1):
        if words[i] == "thread" or (words[i] == "topic" and chat_at < i and not _is_machine_word(words[0])):
            return i
    return None


def _is_machine_word(head: str) -> bool:
    return head in ("agent", "cron", "hook", "node", "subagent") or head.startswith("node-")


def _read_base(agent_id: str, text: str, parts: Sequence[Segment], settings: KeySettings) -> SessionKey:
    words = [part.word for part in parts]
    head, rest = words[0], words[1:]
    if head == "agent":
        raise _refusal(text, "names an agent twice. Write `agent:<agentId>:` once.")
    if head == "cron" and rest:
        return _read_cron(agent_id, rest)
    if head in ("subagent", "hook", "node") and rest:
        return SessionKey(KeyShape(head), agent_id, _join_name(rest))
    if head.startswith("node-"):
        name = _join_name([word for word in (head[5:].strip(), *rest) if word])
        if not name:
            raise _refusal(text, "names no node. Write `node-<nodeId>`.")
        return SessionKey(KeyShape.node, agent_id, name)
    return _read_chat(agent_id, text, parts, settings) or _read_name(agent_id, text, words, settings)


def _read_cron(agent_id: str, rest: list[str]) -> SessionKey:
    for i in range(len(rest) - 2, 0, -1):
        if rest[i] == "run":
            job_id, run_id = _join_name(rest[:i]), _join_name(rest[i + 1 :])
            return SessionKey(KeyShape.cron_run, agent_id, job_id, run_id)
    return SessionKey(KeyShape.cron, agent_id, _join_name(rest))


def _read_chat(
    agent_id: str, text: str, parts: Sequence[Segment], settings: KeySettings
) -> SessionKey | None:
    """`[<channel>:[<account>:]]<chat word>:<peer>`; the peer is the raw text behind the word."""
    for i, part in enumerate(parts[: min(3, len(parts) - 1)]):
        shape = "slash" if part.word == "slash" and i == 1 else CHAT_WORDS.get(part.word)
        if shape is None:
            continue
        channel = parts[0].word if i > 0 else None
        account_id = parts[1].word if i > 1 else None
        if (channel and not is_channel_id(channel)) or (account_id and not valid_agent_id(account_id)):
            break
        peer_id = fold_peer(text[part.end + 1 :], channel, settings.case_sensitive_channels)
        return SessionKey(KeyShape(shape), agent_id, "", None, channel, account_id, peer_id)
    return None


def _read_name(agent_id: str, text: str, words: list[str], settings: KeySettings) -> SessionKey:
    name = _join_name(words)
    if name in ("main", settings.main_key):
        return SessionKey(KeyShape.main, agent_id, settings.main_key)  # KEY-23, AMB-24
    if name in _RESERVED:
        return SessionKey(KeyShape(name))
    if name == "current":
        raise _refusal(text, "uses `current`, which means your own session and is written alone.")
    return SessionKey(KeyShape.other, agent_id, name)


# -- writing --------------------------------------------------------------------------------------


def format_key(key: SessionKey) -> str:
    """The canonical text: what is stored and what RPC shows. Direct chats are written `dm` (AMB-8)."""
    shape = key.shape
    if shape.value in _RESERVED:
        return shape.value
    if key.peer_id is not None:
        word = "dm" if shape is KeyShape.direct else shape.value
        rest = ":".join(part for part in (key.channel, key.account_id, word, key.peer_id) if part is not None)
    elif shape is KeyShape.cron_run:
        rest = f"cron:{key.name}:run:{key.run_id}"
    elif shape is KeyShape.node:
        rest = f"node-{key.name}"
    elif shape in (KeyShape.main, KeyShape.other):
        rest = key.name
    else:
        rest = f"{shape}:{key.name}"
    thread = f":{key.thread_kind}:{key.thread_id}" if key.thread_kind is not None else ""
    return f"agent:{key.agent_id}:{rest}{thread}"


def verify_key(key: SessionKey, settings: KeySettings) -> SessionKey:
    """Return a key that was built from parts; refuse it when its text would be read as another key.

    Two conversations can thus never share a text: a peer id that holds `:thread:` is an error.
    """
    text = format_key(key)
    if parse_key(text, settings) != key:
        raise _refusal(text, "is ambiguous: an id in it is empty or holds a structural word.")
    return key


def main_session_key(agent_id: str, settings: KeySettings) -> SessionKey:
    """The agent's primary direct session, or `global` under `session.scope: global` (KEY-1, KEY-16)."""
    return _scoped(SessionKey(KeyShape.main, normalise_agent_id(agent_id), settings.main_key), settings)


def _scoped(key: SessionKey, settings: KeySettings) -> SessionKey:
    is_main = key.shape is KeyShape.main and key.thread_kind is None
    return SessionKey(KeyShape.global_) if is_main and settings.scope == "global" else key


def canonical_key(
    text: str,
    *,
    agent_id: str,
    settings: KeySettings,
    current: str | None = None,
    provider: str | None = None,
) -> SessionKey:
    """What a request, a tool or a command line typed, as the key it means. Raises InvalidSessionKey.

    `current` is the caller's own key, where there is one; `provider` is the channel of the
    context, which completes a legacy `group:<id>` (KEY-12).
    """
    checked = _checked(text)
    parts = split_segments(checked)
    word = parts[0].word if len(parts) == 1 else ""
    if word == "current" or word in CLIENT_LABELS:
        if current is None:
            raise _refusal(
                checked, f"stands for the session of the caller, and here is none. {_HOW_TO_WRITE}"
            )
        return _scoped(parse_key(current, settings), settings)
    if word in _RESERVED or (parts[0].word == "agent" and len(parts) < 3):
        return parse_key(checked, settings)
    is_scoped = parts[0].word == "agent"
    prefix, rest = f"agent:{normalise_agent_id(agent_id)}:", checked
    if is_scoped:
        prefix, rest = checked[: parts[2].start], checked[parts[2].start :]
    completed = complete_legacy_group(rest, provider)
    if completed is None and not is_scoped:
        raise _refusal(checked, f"names no channel. Write `<channel>:{checked[:60]}`.")
    return _scoped(parse_key(prefix + (completed or rest), settings), settings)


def display_key(key: SessionKey, *, agent_id: str, settings: KeySettings) -> str:
    """How tools spell a key: the caller's own main session is `main` (KEY-2, KEY-16)."""
    is_own_main = main_session_key(agent_id, settings) == key
    return "main" if is_own_main or key.shape is KeyShape.global_ else format_key(key)


# -- looking at text ------------------------------------------------------------------------------


def strip_agent(text: str) -> str:
    """The key without `agent:<agentId>:`; any other text as it is."""
    parts = split_segments(text)
    return text[parts[2].start :] if len(parts) > 2 and parts[0].word == "agent" else text


def split_thread(text: str) -> ThreadSplit:
    """Base key and thread of any key text, by the rule that `parse_key` uses (KEY-24)."""
    parts = split_segments(text)
    if len(parts) > 2 and parts[0].word == "agent":
        parts = parts[2:]
    marker = _thread_marker(parts)
    if marker is None:
        return ThreadSplit(text)
    kind: ThreadKind = "topic" if parts[marker].word == "topic" else "thread"
    return ThreadSplit(text[: parts[marker].start - 1], kind, text[parts[marker].end + 1 :])


def looks_like_session_id(text: str, settings: KeySettings = DEFAULT_KEY_SETTINGS) -> bool:
    """Whether a `sessionKey` argument is meant as a session id (KEY-26)."""
    if _UUID.fullmatch(text.strip()):
        return True
    words = [part.word for part in split_segments(text)]
    if not words or len(text) > MAX_KEY_CHARS or has_unsafe_text(text):
        return False
    if len(words) == 1:
        names = _RESERVED | CLIENT_LABELS | {"main", "current", settings.main_key}
        return words[0] not in names and not words[0].startswith("node-")
    return not _is_machine_word(words[0]) and CHAT_WORDS.keys().isdisjoint(words[:-1])


# -- looking at keys ------------------------------------------------------------------------------


def chat_type_of_key(key: SessionKey | str) -> ChatType | None:
    """The chat type that the shape tells; read once, when a row has no connector context (SEND-7, AMB-38)."""
    shape = _read_loosely(key).shape
    return "direct" if shape is KeyShape.main else CHAT_WORDS.get(shape.value)


def channel_of_key(key: SessionKey | str) -> str | None:
    """The channel that the key names, if it names one (SEND-7)."""
    return _read_loosely(key).channel


def _read_loosely(key: SessionKey | str) -> SessionKey:
    """A key or its text, with or without the agent; a text that is no key is `unknown`."""
    if isinstance(key, SessionKey):
        return key
    try:
        return parse_key(f"agent:a:{strip_agent(key)}", DEFAULT_KEY_SETTINGS)
    except InvalidSessionKey:
        return SessionKey(KeyShape.unknown)


def session_kind(key: SessionKey, chat_type: ChatType | None, settings: KeySettings) -> SessionKind:
    """The `kind` of a list row (LIST-7). A stored chat type says "group" even where the shape does not."""
    if _scoped(key, settings) == main_session_key(key.agent_id, settings):
        return "main"
    if key.shape in (KeyShape.cron, KeyShape.cron_run):
        return "cron"
    if key.shape in (KeyShape.hook, KeyShape.node):
        return "hook" if key.shape is KeyShape.hook else "node"
    is_group = chat_type in ("group", "channel") or key.shape in (KeyShape.group, KeyShape.channel)
    return "group" if is_group else "other"


def is_listed(key: SessionKey, settings: KeySettings = DEFAULT_KEY_SETTINGS) -> bool:
    """Reserved keys are hidden, except `global` where it is the main session (KEY-15, LIST-8)."""
    return key.shape.value not in _RESERVED or key == main_session_key("", settings)
