"""Who may give commands: operators by scope, senders by list."""

from __future__ import annotations

from typing import Any

import pytest

from openclaw.domain.commandcallers import operator_caller, sender_caller
from openclaw.domain.commands import CommandCaller
from openclaw.protocol.scopes import ADMIN, ALL_SCOPES, READ, WRITE


def ask(**fields: Any) -> tuple[bool, bool]:
    given = {"channel": "telegram", "sender_id": "42", "admitted": False, **fields}
    caller = sender_caller(**given)
    return caller.authorised, caller.owner


@pytest.mark.spec("CMD-13")
@pytest.mark.parametrize(
    ("scopes", "authorised", "owner"),
    [
        (ALL_SCOPES, True, True),
        ((ADMIN,), True, True),
        ((WRITE,), True, False),
        ((READ,), False, False),
        ((), False, False),
    ],
)
def test_an_operator_with_admin_scope_is_an_owner(
    scopes: tuple[str, ...], authorised: bool, owner: bool
) -> None:
    caller = operator_caller(scopes, channel="webchat")
    assert caller == CommandCaller(authorised=authorised, owner=owner, sender="operator", channel="webchat")


@pytest.mark.spec("CMD-13")
@pytest.mark.parametrize(
    ("fields", "rights"),
    [
        ({}, (False, False)),
        ({"admitted": True}, (True, False)),
        ({"connector_owner": True}, (True, True)),
        ({"allow_from": ("42",)}, (True, False)),
        ({"allow_from": (" Telegram:42 ",)}, (True, False)),
        ({"allow_from": ("discord:42",)}, (False, False)),
        ({"allow_from": ("*",)}, (True, False)),
        ({"allow_from": ()}, (False, False)),
        ({"allow_from": {"telegram": ("42",)}}, (True, False)),
        ({"allow_from": {" Telegram": ("*",)}}, (True, False)),
        ({"allow_from": {"discord": ("42",)}}, (False, False)),
        ({"allow_from": {"*": ("42",)}}, (True, False)),
        ({"allow_from": {"*": ("42",), "telegram": ()}}, (False, False)),
        ({"owner_allow_from": ("42",)}, (True, True)),
        ({"owner_allow_from": ("telegram:42",)}, (True, True)),
        ({"owner_allow_from": ("*",)}, (False, False)),
        ({"owner_allow_from": ("*",), "admitted": True}, (True, False)),
        ({"sender_id": "ABC", "owner_allow_from": ("abc",)}, (True, True)),
        ({"sender_id": " ", "allow_from": ("", "telegram:")}, (False, False)),
    ],
)
def test_a_sender_is_authorised_or_an_owner_by_what_is_known(
    fields: dict[str, Any], rights: tuple[bool, bool]
) -> None:
    assert ask(**fields) == rights


@pytest.mark.spec("CMD-13")
def test_the_caller_says_who_and_where() -> None:
    caller = sender_caller(channel="telegram", sender_id="42", admitted=True, in_group=True)
    assert caller == CommandCaller(
        authorised=True, owner=False, in_group=True, sender="telegram:42", channel="telegram"
    )
