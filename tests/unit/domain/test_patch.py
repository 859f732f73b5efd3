"""sessions.patch as a function: the field table, null, labels, lineage, messages (RPC-7, ENT-7, ENT-8)."""

from __future__ import annotations

from typing import get_args

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from openclaw.domain.entry import SessionEntry
from openclaw.domain.patch import (
    PATCH_FIELDS,
    THINKING_LEVELS,
    PatchField,
    PatchKind,
    apply_patch,
    required_scope,
)
from openclaw.errors import InvalidRequest, LineageImmutable, OpenClawError

ENTRY = SessionEntry(session_id="s1", updated_at=1000)
NOW_MS = 5000


def patched(
    patch: dict[str, object], entry: SessionEntry = ENTRY, *, is_subagent: bool = False
) -> SessionEntry:
    return apply_patch(entry, patch, is_subagent=is_subagent, now_ms=NOW_MS)


def refusal(patch: dict[str, object], *, is_subagent: bool = False, entry: SessionEntry = ENTRY) -> str:
    with pytest.raises(InvalidRequest) as caught:
        apply_patch(entry, patch, is_subagent=is_subagent, now_ms=NOW_MS)
    assert caught.value.code == "INVALID_REQUEST"
    return caught.value.message


WORDS: dict[str, tuple[str, tuple[str, ...]]] = {
    "thinkingLevel": (
        "thinking_level",
        ("off", "minimal", "low", "medium", "high", "xhigh", "adaptive", "max"),
    ),
    "verboseLevel": ("verbose_level", ("on", "off", "full")),
    "traceLevel": ("trace_level", ("on", "off", "raw")),
    "reasoningLevel": ("reasoning_level", ("on", "off", "stream")),
    "responseUsage": ("response_usage", ("off", "tokens", "full")),
    "elevatedLevel": ("elevated_level", ("on", "off", "ask", "full")),
    "execHost": ("exec_host", ("sandbox", "gateway", "node")),
    "execSecurity": ("exec_security", ("deny", "allowlist", "full")),
    "execAsk": ("exec_ask", ("off", "on-miss", "always")),
    "sendPolicy": ("send_policy", ("allow", "deny")),
    "groupActivation": ("group_activation", ("mention", "always")),
}


@pytest.mark.spec("RPC-7", "RPC-3")
def test_the_table_of_fields_and_scopes() -> None:
    assert {name: field.scope for name, field in PATCH_FIELDS.items()} == {
        "label": "write",
        "archived": "write",
        "pinned": "write",
        "model": "write",
        "thinkingLevel": "write",
        "fastMode": "write",
        "verboseLevel": "admin",
        "traceLevel": "admin",
        "reasoningLevel": "admin",
        "responseUsage": "admin",
        "elevatedLevel": "admin",
        "execHost": "admin",
        "execSecurity": "admin",
        "execAsk": "admin",
        "execNode": "admin",
        "sendPolicy": "admin",
        "groupActivation": "admin",
        "spawnedBy": "admin",
        "spawnedWorkspaceDir": "admin",
        "spawnDepth": "admin",
        "subagentRole": "admin",
        "subagentControlScope": "admin",
    }
    assert WORDS["thinkingLevel"][1] == THINKING_LEVELS
    for name, field in PATCH_FIELDS.items():
        assert field.name == name
        assert field.kind in get_args(PatchKind)
        assert hasattr(ENTRY, field.attribute)


@pytest.mark.spec("RPC-3")
def test_the_least_scope_of_a_patch() -> None:
    assert required_scope({}) == "write"
    assert required_scope({"label": "x", "model": None, "fastMode": True, "archived": True}) == "write"
    assert required_scope({"label": "x", "sendPolicy": "deny"}) == "admin"
    assert required_scope({"spawnedBy": "x"}) == "admin"
    assert required_scope({"label": "x", "somethingNew": 1}) == "admin"


@pytest.mark.spec("RPC-7", "SEND-4")
@pytest.mark.parametrize("name", sorted(WORDS))
def test_word_fields(name: str) -> None:
    attribute, words = WORDS[name]
    assert PATCH_FIELDS[name].words == words
    for word in words:
        entry = patched({name: f" {word.upper()} "})
        assert getattr(entry, attribute) == word
        assert entry.updated_at == NOW_MS
        assert getattr(patched({name: None}, entry), attribute) is None
    choices = ", ".join(f'"{word}"' for word in words)
    message = f"invalid sessions.patch params: at /{name}: must be one of {choices}, or null to clear it"
    wrong_values: tuple[object, ...] = ("maybe", "", 1, True, [], {})
    for wrong in wrong_values:
        assert refusal({name: wrong}) == message


@pytest.mark.spec("RPC-7")
def test_the_older_word_for_response_usage() -> None:
    assert patched({"responseUsage": "On"}).response_usage == "tokens"
    assert "must be one of" in refusal({"sendPolicy": "on"})


@pytest.mark.spec("RPC-7")
def test_flags() -> None:
    assert patched({"fastMode": True}).fast_mode is True
    assert patched({"fastMode": False}).fast_mode is False
    assert patched({"fastMode": None}, patched({"fastMode": True})).fast_mode is None
    expected = "invalid sessions.patch params: at /fastMode: must be true, false or null"
    wrong_values: tuple[object, ...] = (1, 0, "true", [])
    for wrong in wrong_values:
        assert refusal({"fastMode": wrong}) == expected


@pytest.mark.spec("RPC-7")
@pytest.mark.parametrize(("name", "attribute"), [("archived", "archived_at"), ("pinned", "pinned_at")])
def test_moments(name: str, attribute: str) -> None:
    entry = patched({name: True})
    assert getattr(entry, attribute) == NOW_MS
    # Doing it again keeps the first moment and changes nothing.
    later = apply_patch(entry, {name: True}, is_subagent=False, now_ms=NOW_MS + 1)
    assert later is entry
    at_zero = apply_patch(ENTRY, {name: True}, is_subagent=False, now_ms=0)
    assert getattr(apply_patch(at_zero, {name: True}, is_subagent=False, now_ms=9), attribute) == 0
    assert getattr(patched({name: False}, entry), attribute) is None
    assert getattr(patched({name: None}, entry), attribute) is None
    assert refusal({name: 5}) == f"invalid sessions.patch params: at /{name}: must be true, false or null"


@pytest.mark.spec("RPC-7")
@pytest.mark.parametrize(
    ("value", "provider", "model"),
    [
        ("openai/gpt-5", "openai", "gpt-5"),
        (" openrouter / meta/llama ", "openrouter", "meta/llama"),
        ("gpt-5", None, "gpt-5"),
    ],
)
def test_model_override(value: str, provider: str | None, model: str) -> None:
    entry = patched({"model": value})
    assert (entry.provider_override, entry.model_override) == (provider, model)
    assert entry.model_override_source == "user"
    assert entry.model is None
    cleared = patched({"model": None}, entry)
    assert (cleared.provider_override, cleared.model_override, cleared.model_override_source) == (None,) * 3


@pytest.mark.spec("RPC-7")
@pytest.mark.parametrize("value", ["/gpt-5", "openai/", "/"])
def test_half_a_model_is_refused(value: str) -> None:
    expected = 'invalid sessions.patch params: at /model: must be "provider/model" or a model name'
    assert refusal({"model": value}) == expected


@pytest.mark.spec("ENT-7", "RPC-7")
def test_labels_are_trimmed_and_bounded() -> None:
    assert patched({"label": "  My project\t"}).label == "My project"
    assert patched({"label": "x"}).label == "x"
    assert patched({"label": "é" * 512}).label == "é" * 512
    assert patched({"label": " " + "x" * 512 + " "}).label == "x" * 512
    assert patched({"label": None}, patched({"label": "x"})).label is None
    at = "invalid sessions.patch params: at /label: "
    assert refusal({"label": "x" * 513}) == at + "must be at most 512 characters, not 513"
    for blank in ("", "  \n "):
        assert refusal({"label": blank}) == at + "must not be blank; send null to clear it"
    for wrong in (5, True, ["x"]):
        assert refusal({"label": wrong}) == at + "must be text, or null to clear it"
    for bad in ("a\x00b", "a\nb", "a\x7fb", "a\ud800b", "a\x85b"):
        assert refusal({"label": bad}) == at + "must not contain control characters or unpaired surrogates"


@pytest.mark.spec("RPC-7")
def test_free_text_fields() -> None:
    assert patched({"execNode": " node-1 "}).exec_node == "node-1"
    assert "at /execNode: must be at most 512 characters, not 600" in refusal({"execNode": "n" * 600})


@pytest.mark.spec("RPC-7", "RPC-2")
def test_unknown_fields_are_named_with_the_known_ones() -> None:
    message = refusal({"label": "x", "kinds": 1})
    assert message.startswith("invalid sessions.patch params: at root: unexpected property 'kinds'; known: ")
    assert message.endswith(", ".join(PATCH_FIELDS))
    hostile = refusal({"\x00\ud800" + "z" * 10_000: 1})
    assert len(hostile) < 600
    assert r"'\x00\ud800zzz" in hostile
    # Values of ENT-5 that no request may set directly.
    for name in ("sessionId", "updatedAt", "parentSessionKey", "session_id", "key"):
        assert "unexpected property" in refusal({name: "x"})


@pytest.mark.spec("RPC-7")
def test_all_or_nothing_and_no_change_without_a_change() -> None:
    assert patched({}) is ENTRY
    assert patched({"label": None, "sendPolicy": None}) is ENTRY
    entry = patched({"label": "x"})
    assert patched({"label": " x "}, entry) is entry
    refusal({"label": "new", "sendPolicy": "maybe"})
    assert ENTRY.label is None
    both = patched({"label": "x", "sendPolicy": "deny"})
    assert (both.label, both.send_policy, both.updated_at) == ("x", "deny", NOW_MS)
    # A clock that went back does not move updated_at back.
    old_clock = apply_patch(entry, {"label": "y"}, is_subagent=False, now_ms=10)
    assert (old_clock.label, old_clock.updated_at) == ("y", NOW_MS)


LINEAGE: list[tuple[str, str, object, object]] = [
    ("spawnedBy", "spawned_by", "agent:main:main", "agent:main:other"),
    ("spawnedWorkspaceDir", "spawned_workspace_dir", "/work", "/other"),
    ("spawnDepth", "spawn_depth", 1, 2),
    ("subagentRole", "subagent_role", "leaf", "orchestrator"),
    ("subagentControlScope", "subagent_control_scope", "children", "none"),
]


@pytest.mark.spec("ENT-8", "RPC-7")
@pytest.mark.parametrize(("name", "attribute", "value", "other"), LINEAGE)
def test_lineage_is_set_once_on_subagents(name: str, attribute: str, value: object, other: object) -> None:
    only = f"{name} can be set on sub-agent sessions only."
    fixed = f"{name} is already set and cannot be changed or cleared."
    assert refusal({name: value}) == only
    entry = patched({name: value}, is_subagent=True)
    assert getattr(entry, attribute) == value
    assert patched({name: value}, entry, is_subagent=True) is entry
    assert refusal({name: other}, is_subagent=True, entry=entry) == fixed
    assert refusal({name: None}, is_subagent=True, entry=entry) == fixed
    # Even a row that lost its sub-agent mark keeps its lineage.
    assert refusal({name: other}, entry=entry) == fixed
    assert patched({name: value}, entry) is entry
    # Clearing what was never set is no change.
    assert patched({name: None}) is ENTRY
    with pytest.raises(LineageImmutable):
        patched({name: value})


@pytest.mark.spec("ENT-8", "RPC-7")
def test_lineage_values_are_checked() -> None:
    assert patched({"spawnDepth": 0}, is_subagent=True).spawn_depth == 0
    expected = "invalid sessions.patch params: at /spawnDepth: must be an integer from 0, or null"
    for wrong in (-1, True, 1.0, "1"):
        assert refusal({"spawnDepth": wrong}, is_subagent=True) == expected
    assert 'must be one of "orchestrator", "leaf"' in refusal({"subagentRole": "boss"}, is_subagent=True)
    for name in ("subagentControlScope", "subagentRole"):
        assert "must be one of" in refusal({name: "boss"}, is_subagent=True)
    assert patched({"spawnedWorkspaceDir": "/" + "d" * 4095}, is_subagent=True).spawned_workspace_dir
    assert "at most 4096" in refusal({"spawnedWorkspaceDir": "d" * 4097}, is_subagent=True)


VALUES = (
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | st.text(max_size=20)
    | st.sampled_from(["on", "off", "deny", "leaf", "openai/gpt"])
    | st.lists(st.integers(), max_size=2)
)


@pytest.mark.spec("RPC-7", "ENT-8")
@settings(max_examples=300, deadline=None)
@given(st.dictionaries(st.sampled_from([*PATCH_FIELDS, "other"]), VALUES, max_size=5), st.booleans())
def test_any_patch_gives_a_valid_entry_or_a_refusal(patch: dict[str, object], is_subagent: bool) -> None:
    try:
        entry = apply_patch(ENTRY, patch, is_subagent=is_subagent, now_ms=NOW_MS)
    except OpenClawError as refused:
        assert isinstance(refused, InvalidRequest)
        refused.message.encode()
        return
    assert "other" not in patch
    assert (entry is ENTRY) == (entry == ENTRY)
    assert apply_patch(entry, patch, is_subagent=is_subagent, now_ms=NOW_MS) is entry
    touched = {PATCH_FIELDS[name].attribute for name in patch} | {"updated_at"}
    if "model" in patch:
        touched |= {"provider_override", "model_override_source"}
    for attribute in SessionEntry.__struct_fields__:
        if attribute not in touched:
            assert getattr(entry, attribute) == getattr(ENTRY, attribute)


@pytest.mark.spec("RPC-7")
def test_field_defaults() -> None:
    field = PatchField(name="x", attribute="label", scope="admin", kind="text")
    assert (field.words, field.longest, field.lineage) == ((), 512, False)
