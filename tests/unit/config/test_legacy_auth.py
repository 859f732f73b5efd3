"""Keys of model providers in the founding layout: which one is chosen, and that none is ever shown (DB-3)."""

from __future__ import annotations

import contextlib
import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from openclaw.config.legacy_auth import MAX_BYTES, MAX_KEY_CHARS, LegacyKeys, read_keys
from openclaw.errors import InvalidRequest

ANY_JSON = st.recursive(
    st.none() | st.integers() | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=8,
)


def key(value: Any = "sk-one", provider: str = "anthropic", **more: Any) -> dict[str, Any]:
    return {"type": "api_key", "provider": provider, "key": value} | more


def read(profiles: dict[str, Any], **more: Any) -> LegacyKeys:
    return read_keys(json.dumps({"version": 1, "profiles": profiles, **more}).encode())


def values(found: LegacyKeys) -> dict[str, str]:
    return {one.provider: one.value for one in found.keys}


@pytest.mark.spec("DB-3")
class TestReading:
    def test_one_key_for_each_provider(self) -> None:
        found = read({
            "anthropic:default": key(" sk-one "),
            "openai:default": key("sk-two", "OpenAI"),
            "anthropic:sub": {"type": "token", "provider": "anthropic", "token": "sk-ant-oat-x"},
        })  # fmt: skip
        assert values(found) == {"anthropic": "sk-one", "openai": "sk-two"}
        assert found.problems == ()

    def test_what_worked_last_then_what_was_preferred_then_the_default(self) -> None:
        profiles = {name: key(f"sk-{name[-1]}") for name in ("x:a", "x:b", "x:c")}
        profiles["x:default"] = key("sk-default")
        assert values(read(profiles)) == {"anthropic": "sk-default"}
        order = {"anthropic": ["x:gone", 7, "x:b"]}
        assert values(read(profiles, order=order)) == {"anthropic": "sk-b"}
        assert values(read(profiles, order=order, lastGood={"anthropic": "x:c"})) == {"anthropic": "sk-c"}
        assert values(read(profiles, order=[1], lastGood="x")) == {"anthropic": "sk-default"}
        del profiles["x:default"]
        assert values(read(profiles)) == {"anthropic": "sk-a"}

    @pytest.mark.parametrize(
        ("profile", "told"),
        [
            ({"type": "oauth", "provider": "x", "access": "a"}, "a sign-in cannot be carried over"),
            (key("", "x"), "it holds no key that can be used"),
            (key("a" * (MAX_KEY_CHARS + 1), "x"), "it holds no key that can be used"),
            (key("${HOME}", "x"), "it holds no key that can be used"),
            (key("a\nb", "x"), "it holds no key that can be used"),
            (key("schlüssel", "x"), "it holds no key that can be used"),
            (key("sk-one", " "), "it holds no key that can be used"),
            ({"type": "token", "provider": "x", "key": "sk-one"}, "it holds no key that can be used"),
            ({"type": "api_key", "provider": "x", "keyRef": {}}, "it holds no key that can be used"),
            ({"type": "api_key", "key": "sk-one"}, "provider"),
            (7, "Expected"),
        ],
        ids=range(11),
    )
    def test_what_cannot_be_used_says_why(self, profile: Any, told: str) -> None:
        found = read({"p:1": profile})
        assert found.keys == ()
        (problem,) = found.problems
        assert problem.startswith("p:1: ") and told in problem and "sk-one" not in problem

    def test_it_does_not_matter_where_another_profile_has_a_key(self) -> None:
        oauth = {"type": "oauth", "provider": "anthropic", "access": "a"}
        found = read({"anthropic:default": oauth, "anthropic:work": key()})
        assert values(found) == {"anthropic": "sk-one"} and found.problems == ()

    def test_the_longest_key_and_no_key_in_a_repr(self) -> None:
        long = "k" * MAX_KEY_CHARS
        found = read({"p:1": key(long)})
        assert values(found) == {"anthropic": long}
        assert "kkk" not in repr(found) and repr(found.keys[0]) == "ProviderKey('p:1')"

    @pytest.mark.parametrize("data", [b"", b"[]", b"{}", b'{"profiles": 7}', b"\xff", b"[" * 5000])
    def test_what_is_no_such_file_is_refused(self, data: bytes) -> None:
        with pytest.raises(InvalidRequest, match="no list of auth profiles"):
            read_keys(data)

    def test_a_file_that_is_too_large_is_refused(self) -> None:
        whole = json.dumps({"profiles": {}}).encode()
        assert read_keys(whole + b" " * (MAX_BYTES - len(whole))) == LegacyKeys((), ())
        with pytest.raises(InvalidRequest, match="no list of auth profiles"):
            read_keys(whole + b" " * (MAX_BYTES + 1 - len(whole)))

    @given(ANY_JSON, ANY_JSON, ANY_JSON)
    @settings(max_examples=200, deadline=None)
    def test_no_file_breaks_it(self, profile: Any, order: Any, good: Any) -> None:
        for profiles in ({"a:b": profile, "a:c": key()}, profile):
            with contextlib.suppress(InvalidRequest):
                read_keys(json.dumps({"profiles": profiles, "order": order, "lastGood": good}).encode())
