"""A config without its secrets, and the way back."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from openclaw.config.credentials import redacted_text
from openclaw.config.json5 import Json5Error, parse
from openclaw.config.load import check_text
from openclaw.config.nodes import plain
from openclaw.config.shown import Unrestorable, find_placeholder, restore_secrets, shown_values
from openclaw.config.values import REDACTED

SECRET = "s3cret-s3cret-s3cret"
STORED = """{
  // who may come in
  gateway: { auth: { token: 's3cret-s3cret-s3cret' }, port: 19000 },
  models: { providers: {
    a: { baseUrl: "http://u:pw@h/v1", apiKey: "key-a", models: [{ id: "one" }] },
  } },
  store: { url: "postgresql://me:hunter2@db/claw" },
  channels: { telegram: { enabled: false, botToken: "123:abc" } },
}
"""


def values_of(text: str) -> dict[str, Any]:
    checked = check_text(text, {}, "openclaw.json")
    assert checked.problems == ()
    return shown_values(checked.config)


@pytest.mark.spec("TRX-11")
def test_no_secret_is_left_in_the_shown_values() -> None:
    shown = values_of(STORED)
    text = json.dumps(shown)
    for secret in (SECRET, "key-a", "hunter2", "123:abc", "u:pw"):
        assert secret not in text
    assert shown["gateway"]["auth"]["token"] == REDACTED
    assert shown["gateway"]["port"] == 19000
    assert shown["gateway"]["bind"] == "loopback"  # a default stands with the rest
    assert shown["store"]["url"] == REDACTED
    assert shown["channels"]["telegram"]["botToken"] == REDACTED
    assert shown["channels"]["telegram"]["enabled"] is False
    assert shown["models"]["providers"]["a"]["apiKey"] == REDACTED
    assert "extra" not in shown["channels"]["telegram"]


def test_a_secret_that_is_not_set_is_not_shown_as_one() -> None:
    shown = values_of("{}")
    assert "token" not in shown["gateway"]["auth"]
    assert REDACTED not in json.dumps(shown)


def test_what_was_shown_comes_back_as_it_was() -> None:
    shown = redacted_text(STORED)
    assert SECRET not in shown and "// who may come in" in shown
    assert restore_secrets(shown, STORED) == STORED
    changed = restore_secrets(shown.replace("19000", "19001"), STORED)
    assert changed == STORED.replace("19000", "19001")


def test_a_placeholder_without_a_stored_secret_is_refused_by_its_place() -> None:
    text = f'{{ hooks: {{ token: "{REDACTED}" }} }}'
    with pytest.raises(Unrestorable, match=r"hooks\.token: no secret is stored here; send its value"):
        restore_secrets(text, STORED)
    with pytest.raises(Unrestorable, match=r"hooks\.token"):
        restore_secrets(text, "")
    with pytest.raises(Unrestorable, match=r"gateway\.auth"):
        restore_secrets(f'{{ gateway: {{ auth: "{REDACTED}" }} }}', STORED)
    with pytest.raises(Unrestorable, match=r"gateway\.port"):
        restore_secrets(f'{{ gateway: {{ port: "{REDACTED}" }} }}', STORED)
    with pytest.raises(Json5Error):
        restore_secrets("{", STORED)


def test_items_of_a_list_are_known_by_their_id() -> None:
    stored = '{ list: [{ id: "a", token: "TA" }, { id: "b", token: "TB" }] }'
    turned = f'{{ list: [{{ id: "b", token: "{REDACTED}" }}, {{ id: "a", token: "{REDACTED}" }}] }}'
    assert plain(parse(restore_secrets(turned, stored)).root) == {
        "list": [{"id": "b", "token": "TB"}, {"id": "a", "token": "TA"}]
    }
    fewer = f'{{ list: [{{ id: "b", token: "{REDACTED}" }}] }}'
    assert "TB" in restore_secrets(fewer, stored)
    with pytest.raises(Unrestorable, match=r"list\[0\]\.token"):
        restore_secrets(f'{{ list: [{{ id: "c", token: "{REDACTED}" }}] }}', stored)


def test_items_without_an_id_are_known_by_their_number_only_in_a_list_of_the_same_length() -> None:
    stored = '{ keys: ["K0", "K1"] }'
    assert "K1" in restore_secrets(f'{{ keys: ["new", "{REDACTED}"] }}', stored)
    with pytest.raises(Unrestorable, match=r"keys\[0\]"):
        restore_secrets(f'{{ keys: ["{REDACTED}"] }}', stored)
    with pytest.raises(Unrestorable, match=r"keys\[0\]"):
        restore_secrets(f'{{ keys: ["{REDACTED}"] }}', "{ keys: 3 }")


def test_the_first_placeholder_of_a_text_is_found() -> None:
    assert find_placeholder(STORED) is None
    assert find_placeholder(f'{{ a: 1, b: {{ c: ["x", "{REDACTED}"] }} }}') == "b.c[1]"


def test_a_stored_placeholder_is_no_secret() -> None:
    text = f'{{ token: "{REDACTED}" }}'
    with pytest.raises(Unrestorable):
        restore_secrets(text, text)


def test_many_members_take_no_more_than_their_number() -> None:
    stored = json.dumps({f"token{number}": f"value-{number}" for number in range(20_000)})
    assert restore_secrets(redacted_text(stored), stored) == stored


NAMES = st.sampled_from(["token", "apiKey", "port", "name", "password", "list", "id"])
TREES = st.recursive(
    st.text(max_size=6) | st.integers(0, 9) | st.booleans(),
    lambda inner: st.dictionaries(NAMES, inner, max_size=4) | st.lists(inner, max_size=3),
    max_leaves=12,
)


@settings(max_examples=200, deadline=None)
@given(st.dictionaries(NAMES, TREES, max_size=5))
def test_showing_and_taking_back_changes_nothing(tree: dict[str, Any]) -> None:
    stored = json.dumps(tree)
    ids = [item.get("id") for item in _objects_in_lists(tree)]
    if len(ids) != len(set(map(str, ids))):
        return  # two items of one name: nobody can tell which is meant
    assert restore_secrets(redacted_text(stored), stored) == stored


def _objects_in_lists(value: Any) -> list[dict[str, Any]]:
    if isinstance(value, dict):
        return [found for part in value.values() for found in _objects_in_lists(part)]
    if isinstance(value, list):
        own = [item for item in value if isinstance(item, dict) and isinstance(item.get("id"), str)]
        return own + [found for item in value for found in _objects_in_lists(item)]
    return []
