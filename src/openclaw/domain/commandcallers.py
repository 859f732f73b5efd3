"""Who may give commands: from what a surface knows about a sender to a `CommandCaller` (CMD-13).

Lists and facts in, rights out. Admitting a sender to a channel, pairing and scopes are
decided by others before this is asked.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

from openclaw.domain.commands import CommandCaller

ADMIN_SCOPE = "operator.admin"
WRITE_SCOPE = "operator.write"
EVERYBODY = "*"

AllowFrom = Sequence[str] | Mapping[str, Sequence[str]] | None


def operator_caller(
    scopes: Collection[str], *, sender: str = "operator", channel: str | None = None
) -> CommandCaller:
    """An operator of the Gateway: with admin scope an owner, with write scope authorised."""
    is_owner = ADMIN_SCOPE in scopes
    return CommandCaller(
        authorised=is_owner or WRITE_SCOPE in scopes, owner=is_owner, sender=sender, channel=channel
    )


def sender_caller(
    *,
    channel: str,
    sender_id: str,
    admitted: bool,
    in_group: bool = False,
    connector_owner: bool = False,
    allow_from: AllowFrom = None,
    owner_allow_from: Sequence[str] = (),
) -> CommandCaller:
    """Somebody on a platform.

    `admitted`: on the channel's allowlist or paired. `allow_from` is `commands.allowFrom`: one list, or
    one per channel, where `*` stands for everybody and as a channel for every channel. Owners are named
    one by one; `*` never makes everybody an owner.
    """
    is_owner = connector_owner or _listed(owner_allow_from, channel, sender_id, wildcard=False)
    listed = _listed(_of_channel(allow_from, channel), channel, sender_id, wildcard=True)
    return CommandCaller(
        authorised=is_owner or admitted or listed,
        owner=is_owner,
        in_group=in_group,
        sender=f"{channel}:{sender_id}",
        channel=channel,
    )


def _of_channel(allow_from: AllowFrom, channel: str) -> Sequence[str]:
    if isinstance(allow_from, Mapping):
        by_channel = {name.strip().lower(): ids for name, ids in allow_from.items()}
        own = by_channel.get(channel.strip().lower())
        return own if own is not None else by_channel.get(EVERYBODY, ())
    return allow_from or ()


def _listed(ids: Sequence[str], channel: str, sender_id: str, *, wildcard: bool) -> bool:
    """Whether a sender is on a list, by the bare id or with the channel before it (KEY-8)."""
    bare = sender_id.strip().lower()
    wanted = {bare, f"{channel.strip().lower()}:{bare}"} if bare else set()
    listed = {one.strip().lower() for one in ids}
    return bool(listed & wanted) or (wildcard and EVERYBODY in listed)
