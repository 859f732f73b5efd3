"""Whether an invitation to a room may be taken up, by the account's own rules for people and groups.

For platforms where somebody else brings the agent into a room. The rules are the ones that the
reception goes by afterwards; nothing is changed or remembered here.
"""

from __future__ import annotations

from openclaw.channels.inbound import direct_rules
from openclaw.config import views
from openclaw.config.schema import Config
from openclaw.domain.admission import Admit, AskToPair, admit_direct
from openclaw.domain.groups import fold_channel, normalise_account_id
from openclaw.domain.routing import Envelope
from openclaw.store.senders import SenderRef, Senders


async def welcomes(
    senders: Senders, config: Config, channel: str, account_id: str, invitation: tuple[str, str, bool]
) -> bool:
    """Whether to go where `(inviter, room, direct)` says.

    Yes when the room is listed by its id, or when the inviter would be let in for a direct
    chat. A stranger who opens a direct chat is met where strangers may ask for a pairing code.
    """
    inviter, room_id, direct = invitation
    if _is_listed_room(config, channel, account_id, room_id):
        return True
    envelope = Envelope(
        channel=channel, account_id=account_id, peer_kind="direct", peer_id=inviter, sender_id=inviter
    )
    who = SenderRef(fold_channel(channel), normalise_account_id(account_id), inviter)
    standing = await senders.standing(who)
    decision = admit_direct(envelope, direct_rules(config, envelope), standing, views.key_settings(config))
    return isinstance(decision, Admit) or (direct and isinstance(decision, AskToPair))


def _is_listed_room(config: Config, channel: str, account_id: str, room_id: str) -> bool:
    section = views.channel(config, channel)
    account = section.accounts.get(account_id)
    groups = account.groups if account is not None and account.groups is not None else section.groups
    found = groups.get(room_id)
    return found is not None and found.enabled is not False
