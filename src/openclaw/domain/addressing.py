"""From a conversation to the session key it belongs to (KEY-1..11, KEY-14, KEY-25).

A conversation is what a connector saw: channel, account, kind, peer, thread, all
byte-exact. Which key that gives depends on the configuration alone. Nothing here
reads a key to find out where to send something; that is the conversation's job.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Literal

import msgspec
from msgspec import Struct

from openclaw.domain.entry import ChatType
from openclaw.domain.groups import (
    fold_channel,
    fold_listed_peer,
    fold_peer,
    fold_word,
    normalise_account_id,
    normalise_agent_id,
)
from openclaw.domain.keys import (
    KeySettings,
    KeyShape,
    SessionKey,
    ThreadKind,
    canonical_key,
    format_key,
    main_session_key,
    parse_key,
    verify_key,
)
from openclaw.errors import InvalidSessionKey

DmScope = Literal["main", "per-peer", "per-channel-peer", "per-account-channel-peer"]


class AddressSettings(Struct, frozen=True):
    """The configuration that maps conversations to sessions."""

    keys: KeySettings = KeySettings()
    dm_scope: DmScope = "main"
    # Canonical name -> ids such as `telegram:123`, in the order of the file (KEY-7).
    identity_links: Mapping[str, Sequence[str]] = {}


class Conversation(Struct, frozen=True):
    """One place where people and an agent talk; the unique tuple of a conversation row."""

    channel: str
    kind: ChatType
    peer_id: str
    account_id: str = "default"
    # Set only where the thread is a session of its own. A thread id without a kind is a reply detail.
    thread_kind: ThreadKind | None = None
    thread_id: str | None = None


# -- chats ----------------------------------------------------------------------------------------


def session_key_for(conversation: Conversation, *, agent_id: str, settings: AddressSettings) -> SessionKey:
    """The session that a message in this conversation belongs to.

    Under `session.scope: global` every chat is `global` (KEY-16). Otherwise direct chats follow
    `dmScope`; groups and rooms always have keys of their own and never fall back to the main
    session (KEY-25). Raises InvalidSessionKey when an id is missing or cannot stand in a key.
    """
    if settings.keys.scope == "global":
        return main_session_key(agent_id, settings.keys)
    channel = fold_channel(conversation.channel)
    agent = normalise_agent_id(agent_id)
    if conversation.kind == "direct":
        base = _direct_key(conversation, channel, agent, settings)
    else:
        peer_id = fold_peer(conversation.peer_id, channel, settings.keys.case_sensitive_channels)
        base = SessionKey(KeyShape(conversation.kind), agent, channel=channel, peer_id=peer_id)
    return verify_key(_with_thread(base, conversation, channel, settings.keys), settings.keys)


def _direct_key(
    conversation: Conversation, channel: str, agent_id: str, settings: AddressSettings
) -> SessionKey:
    scope = settings.dm_scope
    if scope == "main":
        return main_session_key(agent_id, settings.keys)
    key_channel = None if scope == "per-peer" else channel
    # The canonical name replaces the peer only; channel and account segments stay (AMB-14).
    linked = linked_identity(channel, conversation.peer_id, settings)
    return SessionKey(
        KeyShape.direct,
        agent_id,
        channel=key_channel,
        account_id=normalise_account_id(conversation.account_id)
        if scope == "per-account-channel-peer"
        else None,
        peer_id=linked or _opaque_id(conversation.peer_id, channel, key_channel, settings.keys),
    )


def _with_thread(
    base: SessionKey, conversation: Conversation, channel: str, settings: KeySettings
) -> SessionKey:
    if conversation.thread_kind is None or not (conversation.thread_id or "").strip():
        return base
    # `topic` is a suffix of chats that the key names; below `main` every thread is a `thread` (KEY-24).
    kind = "thread" if base.shape is KeyShape.main else conversation.thread_kind
    thread_id = _opaque_id(conversation.thread_id or "", channel, base.channel, settings)
    return msgspec.structs.replace(base, thread_kind=kind, thread_id=thread_id)


def _opaque_id(raw: str, channel: str, key_channel: str | None, settings: KeySettings) -> str:
    """An id as it stands in a key that names its channel, or in one that does not.

    A key without a channel is folded when it is read. Capitals of a case-sensitive channel are
    therefore written with an escape there, or two people would share a session (KEY-20).
    """
    if key_channel is not None or channel not in settings.case_sensitive_channels:
        return fold_peer(raw, key_channel, settings.case_sensitive_channels)
    return "".join(map(_escape_capital, raw))


def _escape_capital(char: str) -> str:
    if char == "^":
        return "^^"
    if char == char.lower():
        return char
    return f"^{char.lower()}" if char.isascii() else f"^({ord(char):x})"


def linked_identity(channel: str, peer_id: str, settings: AddressSettings) -> str | None:
    """The canonical name of a person whose id is linked, folded; None without a link (KEY-7, KEY-8).

    A link is `<channel>:<peerId>` or a bare peer id. The first match in file order wins.
    """
    case_sensitive = settings.keys.case_sensitive_channels
    own_channel = fold_word(channel)
    peer = fold_peer(peer_id, own_channel, case_sensitive)
    if not peer.strip():
        return None
    for name, links in settings.identity_links.items():
        canonical = fold_word(name)
        for link in links if canonical else ():
            listed = fold_listed_peer(link, own_channel, case_sensitive)
            if listed is not None and peer in (listed, fold_peer(link.strip(), own_channel, case_sensitive)):
                return canonical
    return None


# -- machine-made sessions (KEY-14) ---------------------------------------------------------------


def subagent_key(agent_id: str, child_id: str, settings: KeySettings) -> SessionKey:
    """The key of a new sub-agent session; nested children have the same flat shape."""
    return _named_key(KeyShape.subagent, agent_id, child_id, settings)


def cron_key(
    agent_id: str, job_id: str, settings: KeySettings, run_session_id: str | None = None
) -> SessionKey:
    """The key of a cron job, or of one run of it."""
    if run_session_id is None:
        return _named_key(KeyShape.cron, agent_id, job_id, settings)
    key = _named_key(KeyShape.cron_run, agent_id, job_id, settings, run_session_id)
    if key.run_id != fold_word(run_session_id):
        raise InvalidSessionKey(
            f"{run_session_id[:80]!r} cannot be the session id of a cron run. Use a UUID."
        )
    return key


def hook_key(agent_id: str, hook_id: str, settings: KeySettings, explicit: str | None = None) -> SessionKey:
    """The key of a webhook session: a fresh id, or the key that the hook's configuration names."""
    if explicit and explicit.strip():
        return canonical_key(explicit, agent_id=agent_id, settings=settings)
    return _named_key(KeyShape.hook, agent_id, hook_id, settings)


def node_key(agent_id: str, node_id: str, settings: KeySettings, explicit: str | None = None) -> SessionKey:
    """The key of a node's session, unless the configuration names another one."""
    if explicit and explicit.strip():
        return canonical_key(explicit, agent_id=agent_id, settings=settings)
    return _named_key(KeyShape.node, agent_id, node_id, settings)


def slash_key(agent_id: str, channel: str, user_id: str, settings: KeySettings) -> SessionKey:
    """The key of a platform's native slash-command surface for one user."""
    channel = fold_channel(channel)
    peer_id = fold_peer(user_id, channel, settings.case_sensitive_channels)
    key = SessionKey(KeyShape.slash, normalise_agent_id(agent_id), channel=channel, peer_id=peer_id)
    return verify_key(key, settings)


def named_key(agent_id: str, name: str, settings: KeySettings) -> SessionKey:
    """The key of a session with a free name, such as `dashboard:<uuid>`."""
    return _named_key(KeyShape.other, agent_id, name, settings)


def _named_key(
    shape: KeyShape, agent_id: str, name: str, settings: KeySettings, run_id: str | None = None
) -> SessionKey:
    """Write the raw name into its place and read it, so that it is folded and checked like typed text."""
    key = parse_key(format_key(SessionKey(shape, normalise_agent_id(agent_id), name, run_id)), settings)
    if key.shape is not shape or key.thread_kind is not None:
        raise InvalidSessionKey(
            f"{name[:80]!r} cannot name a {shape} session: it is empty or means something else."
        )
    return key


def moved_main_key(stored: str, *, previous_main_key: str, settings: KeySettings) -> SessionKey | None:
    """The new key of a stored main row when `session.mainKey` has changed; None for other rows (AMB-24)."""
    key = parse_key(stored, settings)
    if key.shape is KeyShape.other and key.name == fold_word(previous_main_key):
        return msgspec.structs.replace(key, shape=KeyShape.main, name=settings.main_key)
    return key if key.shape is KeyShape.main and format_key(key) != stored else None


# -- several people in one session (KEY-3) --------------------------------------------------------


class Sender(Struct, frozen=True):
    """Someone whose message reached a session."""

    channel: str
    sender_id: str
    is_operator: bool = False  # came in through the Gateway with an operator's credential


class SharedInboxWarning(Struct, frozen=True):
    """People who do not know of one another share a session, and nobody chose that."""

    strangers: tuple[str, ...]  # `<channel>:<id>` of everyone who is not a named owner, sorted
    people: int
    text: str


def shared_inbox_warning(
    *,
    dm_scope_is_set: bool,
    owners: Iterable[str],
    senders: Iterable[Sender],
    settings: AddressSettings,
) -> SharedInboxWarning | None:
    """Whether to warn that direct messages of several people meet in one session (KEY-3).

    `owners` are the ids of `commands.ownerAllowFrom` and of the channels' `allowFrom`, with or
    without a channel; `*` names nobody. Two ids that are linked to one person count once.
    """
    if dm_scope_is_set:
        return None
    owner_ids = tuple(owners)
    owners_on: dict[str, frozenset[str | None]] = {}
    people: set[str] = set()
    strangers: set[str] = set()
    for sender in senders:
        if sender.is_operator:
            people.add("operator")
            continue
        channel = fold_word(sender.channel)
        peer = fold_peer(sender.sender_id, channel, settings.keys.case_sensitive_channels)
        people.add(linked_identity(channel, peer, settings) or f"{channel}:{peer}")
        if channel not in owners_on:
            owners_on[channel] = _ids_on(channel, owner_ids, settings.keys)
        if peer not in owners_on[channel]:
            strangers.add(f"{channel}:{peer}")
    if len(people) < 2 or not strangers:
        return None
    return SharedInboxWarning(tuple(sorted(strangers)), len(people), _warning_text(len(people), strangers))


def _ids_on(channel: str, ids: Sequence[str], settings: KeySettings) -> frozenset[str | None]:
    return frozenset(fold_listed_peer(text, channel, settings.case_sensitive_channels) for text in ids)


def _warning_text(people: int, strangers: set[str]) -> str:
    # Ids are chosen by strangers and the text goes into logs: no line breaks, no endless ids.
    shown = ", ".join(repr(stranger[:80])[1:-1] for stranger in sorted(strangers)[:3])
    more = f" and {len(strangers) - 3} more" if len(strangers) > 3 else ""
    return (
        f"{people} people share one session, and not all of them are named owners ({shown}{more}). "
        "What one of them says can be seen by the others. Set session.dmScope to "
        '"per-channel-peer" to give each person a session, or to "main" to keep it as it is.'
    )
