"""Parameters: what real clients send is accepted, and refusals use the sentences they know."""

from __future__ import annotations

import json
from typing import Annotated, Any, Literal

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec import UNSET, Raw

from openclaw.errors import InvalidRequest
from openclaw.protocol import params
from openclaw.protocol.methods import METHODS, decode_params
from openclaw.protocol.violations import describe_violation
from tests.unit.protocol.cases import KEY, PATCH_WITH_ADMIN, PATCH_WITH_WRITE, RECORDED, SEND


def decode(method: str, value: object) -> Any:
    return decode_params(method, Raw(msgspec.json.encode(value)))


def refusal(method: str, value: object) -> str:
    with pytest.raises(InvalidRequest) as caught:
        decode(method, value)
    return caught.value.message


@pytest.mark.spec("RPC-2")
class TestSentences:
    @pytest.mark.parametrize(
        ("method", "value", "sentence"),
        [
            ("agent", {"message": "x"}, "must have required property 'idempotencyKey'"),
            ("sessions.list", {"limit": "x"}, "at /limit: must be integer"),
            ("sessions.list", {"limit": 1.5}, "at /limit: must be integer"),
            ("sessions.list", {"kinds": ["main"]}, "at root: unexpected property 'kinds'"),
            ("sessions.list", {"limit": 0}, "at /limit: must be >= 1"),
            ("sessions.list", {"limit": 2**53}, "numbers must lie within 53 bits; use a smaller one"),
            ("sessions.list", {"archived": 3}, "at /archived: must be boolean or string"),
            ("sessions.list", {"search": False}, "at /search: must be string"),
            ("chat.history", {"sessionKey": KEY, "limit": 1001}, "at /limit: must be <= 1000"),
            ("chat.history", {"sessionKey": KEY, "maxBytes": 1023}, "at /maxBytes: must be >= 1024"),
            (
                "chat.history",
                {"sessionKey": KEY, "inputRunIds": ["a", 5]},
                "at /inputRunIds/1: must be string",
            ),
            ("chat.history", {"sessionKey": KEY, "inputRunIds": "a"}, "at /inputRunIds: must be array"),
            (
                "chat.send",
                {**SEND, "sessionKey": ""},
                "at /sessionKey: must NOT have fewer than 1 characters",
            ),
            (
                "chat.send",
                {**SEND, "sessionKey": "k" * 513},
                "at /sessionKey: must NOT have more than 512 characters",
            ),
            (
                "chat.send",
                {**SEND, "attachments": [{}] * 65},
                "at /attachments: must NOT have more than 64 items",
            ),
            ("chat.send", {**SEND, "attachments": [{}, 1]}, "at /attachments/1: must be object"),
            (
                "chat.inject",
                {"sessionKey": KEY, "message": "m", "label": "l" * 101},
                "at /label: must NOT have more than 100 characters",
            ),
            (
                "sessions.resolve",
                {"reference": {"slug": "s"}},
                "at /reference: must have required property 'key'",
            ),
            (
                "sessions.resolve",
                {"reference": {"key": "k", "q": 1}},
                "at /reference: unexpected property 'q'",
            ),
            ("health", [], "must be object"),
            ("health", "x", "must be object"),
            (
                "sessions.messages.subscribe",
                {"key": KEY, "includeApprovals": False},
                "includeApprovals must be true or left out",
            ),
        ],
    )
    def test_first_problem(self, method: str, value: object, sentence: str) -> None:
        assert refusal(method, value) == f"invalid {method} params: {sentence}"

    @pytest.mark.spec("RPC-7")
    @pytest.mark.parametrize(
        ("method", "value", "where", "allowed"),
        [
            ("sessions.patch", {"key": KEY, "sendPolicy": "maybe"}, "/sendPolicy", "allow, deny"),
            ("sessions.patch", {"key": KEY, "reasoningLevel": "x"}, "/reasoningLevel", "on, off, stream"),
            ("sessions.patch", {"key": KEY, "responseUsage": "x"}, "/responseUsage", "off, tokens, full, on"),
            ("sessions.patch", {"key": KEY, "groupActivation": "x"}, "/groupActivation", "mention, always"),
            ("sessions.patch", {"key": KEY, "elevatedLevel": "x"}, "/elevatedLevel", "on, off, ask, full"),
            ("sessions.list", {"archived": "none"}, "/archived", "all, true, false"),
            ("models.list", {"view": "x"}, "/view", "default, configured, all, provider-config"),
            (
                "agent",
                {"message": "m", "idempotencyKey": "k", "inputProvenance": {"kind": "x"}},
                "/inputProvenance/kind",
                "external_user, inter_session, internal_system",
            ),
        ],
    )
    def test_a_wrong_word_is_answered_with_the_right_ones(
        self, method: str, value: object, where: str, allowed: str
    ) -> None:
        expected = (
            f"invalid {method} params: at {where}: must be equal to one of the allowed values: {allowed}"
        )
        assert refusal(method, value) == expected

    def test_unknown_method_and_long_names_stay_short(self) -> None:
        assert refusal("no.such.method", {}) == "unknown method: no.such.method"
        assert len(refusal("m" * 10_000, {})) < 120
        assert len(refusal("health", {"p" * 10_000: 1})) < 150

    def test_nul_is_refused_with_the_fix(self) -> None:
        message = "invalid chat.send params: text must not contain NUL characters; remove them"
        assert refusal("chat.send", {**SEND, "message": "a\0b"}) == message
        assert decode("chat.send", {**SEND, "message": "a\\u0000b"}).message == "a\\u0000b"

    def test_a_property_name_made_to_look_like_a_complaint_is_harmless(self) -> None:
        for name in ("x` - at `$.limit", "` - at `", "$", "", "a\nb"):
            assert "unexpected property '" in refusal("sessions.list", {name: 1})

    @pytest.mark.parametrize("raw", [b"", b"null", b" null ", b"{}", b" {} "])
    def test_absent_params_count_as_empty(self, raw: bytes) -> None:
        assert decode_params("sessions.list", Raw(raw)) == params.SessionsListParams()

    @pytest.mark.parametrize("raw", [b"{", b"{} x", b'{"label":"\xff"}'])
    def test_raw_text_that_is_no_json(self, raw: bytes) -> None:
        with pytest.raises(InvalidRequest, match=r"invalid sessions.list params: must be JSON"):
            decode_params("sessions.list", Raw(raw))

    @settings(max_examples=300, deadline=None)
    @given(
        st.sampled_from(sorted(METHODS)),
        st.dictionaries(
            st.sampled_from(
                ["key", "sessionKey", "message", "limit", "label", "x", "runId", "idempotencyKey"]
            ),
            st.recursive(
                st.one_of(
                    st.none(), st.booleans(), st.integers(), st.floats(allow_nan=False), st.text(max_size=5)
                ),
                lambda inner: st.one_of(
                    st.lists(inner, max_size=3), st.dictionaries(st.text(max_size=3), inner)
                ),
                max_leaves=5,
            ),
        ),
    )
    def test_anything_else_is_a_clear_refusal(self, method: str, value: object) -> None:
        try:
            assert isinstance(decode(method, value), METHODS[method].params)
        except InvalidRequest as error:
            assert error.message.startswith(f"invalid {method} params: ")


@pytest.mark.spec("RPC-2")
def test_other_rules_of_the_decoder_are_told_as_they_are() -> None:
    class Odd(msgspec.Struct):
        numbers: dict[str, int]

    with pytest.raises(msgspec.ValidationError) as caught:
        msgspec.json.decode(b'{"numbers":{"a":"b"}}', type=Odd)
    assert describe_violation(caught.value) == "at /numbers/*: must be integer"
    assert describe_violation(msgspec.ValidationError("Number out of range")) == "Number out of range"
    assert describe_violation(msgspec.ValidationError("Expected `null`, got `int`")) == "must be null"
    unknown_place = msgspec.ValidationError("Invalid enum value 'x' - at `$.nowhere[0]`")
    sentence = "at /nowhere/0: must be equal to one of the allowed values"
    assert (describe_violation(unknown_place), describe_violation(unknown_place, Odd)) == (sentence, sentence)


@pytest.mark.spec("RPC-2")
def test_allowed_words_are_found_inside_bounded_lists() -> None:
    words = Annotated[tuple[Literal["a", "b"], ...], msgspec.Meta(max_length=3)]
    lists = msgspec.defstruct("lists", [("words", words), ("table", dict[str, Literal["c"]], {})])
    for text, sentence in (
        (b'{"words":["a","x"]}', "at /words/1: must be equal to one of the allowed values: a, b"),
        (b'{"words":[],"table":{"k":"x"}}', "at /table/*: must be equal to one of the allowed values: c"),
    ):
        with pytest.raises(msgspec.ValidationError) as caught:
            msgspec.json.decode(text, type=lists)
        assert describe_violation(caught.value, lists) == sentence


class TestShapes:
    @pytest.mark.spec("RPC-5")
    def test_sessions_list(self) -> None:
        defaults = decode("sessions.list", {})
        assert (defaults.limit, defaults.offset, defaults.archived, defaults.include_global) == (
            100,
            0,
            False,
            False,
        )
        given_ = json.loads("""{
            "limit": 1, "activeMinutes": 1, "includeGlobal": true, "includeUnknown": true,
            "includeDerivedTitles": true, "includeLastMessage": true, "label": "L",
            "spawnedBy": "agent:main:proj1", "agentId": "main", "search": "proj", "configuredAgentsOnly": true
        }""")
        decoded = decode("sessions.list", given_)
        assert (decoded.limit, decoded.active_minutes, decoded.label, decoded.search) == (1, 1, "L", "proj")
        assert (decoded.spawned_by, decoded.agent_id, decoded.configured_agents_only) == (KEY, "main", True)
        assert "must be >= 1" in refusal("sessions.list", {"activeMinutes": 0})

    @pytest.mark.spec("RPC-6")
    def test_sessions_resolve_takes_exactly_one_name(self) -> None:
        for one in (
            {"key": "k"},
            {"sessionId": "s"},
            {"label": "l"},
            {"shortId": "x"},
            {"reference": {"key": "k"}},
        ):
            assert (
                decode("sessions.resolve", one | {"agentId": "main", "spawnedBy": KEY}).allow_missing is False
            )
        for wrong in ({}, {"key": "k", "label": "l"}):
            assert "give exactly one of key, sessionId, label" in refusal("sessions.resolve", wrong)

    @pytest.mark.spec("RPC-7")
    def test_sessions_patch_tells_absent_from_null(self) -> None:
        patch = decode("sessions.patch", {"key": KEY, "label": None, "sendPolicy": "deny", "model": None})
        assert patch.changes() == {"label": None, "send_policy": "deny", "model": None}
        assert patch.thinking_level is UNSET

    @pytest.mark.spec("RPC-7")
    def test_sessions_patch_guards_are_no_changes(self) -> None:
        patch = decode(
            "sessions.patch",
            {
                "key": KEY,
                "agentId": "main",
                "unread": False,
                "expectedMarkedUnreadAt": None,
                "expectedSessionId": "s",
            },
        )
        assert patch.changes() == {"unread": False}
        assert (patch.expected_marked_unread_at, patch.expected_session_id) == (None, "s")
        assert patch.expected_lifecycle_revision is UNSET
        assert "at /expectedSessionId: must be string" in refusal(
            "sessions.patch", {"key": KEY, "expectedSessionId": None}
        )

    @pytest.mark.spec("RPC-7")
    def test_sessions_patch_knows_every_field(self) -> None:
        fields = PATCH_WITH_WRITE | PATCH_WITH_ADMIN
        assert len(decode("sessions.patch", {"key": KEY} | fields).changes()) == len(fields)
        cleared = decode("sessions.patch", {"key": KEY} | dict.fromkeys(fields)).changes()
        assert set(cleared.values()) == {None} and len(cleared) == len(fields)
        assert "/label: must NOT have more than 512" in refusal(
            "sessions.patch", {"key": KEY, "label": "l" * 513}
        )

    @pytest.mark.spec("RPC-11")
    def test_chat_history(self) -> None:
        assert decode("chat.history", {"sessionKey": KEY}).limit == 200
        assert decode("chat.history", {"sessionKey": KEY, "limit": 1000, "maxChars": 1}).max_chars == 1
        assert "/limit: must be >= 1" in refusal("chat.history", {"sessionKey": KEY, "limit": 0})

    @pytest.mark.spec("RPC-12")
    def test_chat_send(self) -> None:
        full = SEND | {"thinking": "off", "deliver": False, "attachments": [{"a": 1}], "timeoutMs": 0}
        sent = decode("chat.send", full)
        assert (sent.thinking, sent.deliver, sent.attachments, sent.timeout_ms) == (
            "off",
            False,
            ({"a": 1},),
            0,
        )
        assert decode("chat.send", SEND | {"message": ""}).message == ""
        for name in SEND:
            without = {key: value for key, value in SEND.items() if key != name}
            assert refusal("chat.send", without).endswith(f"must have required property '{name}'")
        assert sent.expected_leaf_entry_id is UNSET
        assert decode("chat.send", SEND | {"expectedLeafEntryId": None}).expected_leaf_entry_id is None

    @pytest.mark.spec("RPC-13")
    def test_chat_abort_and_inject(self) -> None:
        assert decode("chat.abort", {"sessionKey": KEY}).run_id is None
        assert decode("chat.abort", {"sessionKey": KEY, "runId": "r"}).run_id == "r"
        assert (
            decode("chat.inject", {"sessionKey": KEY, "message": "m", "label": "l" * 100}).label == "l" * 100
        )
        assert "fewer than 1" in refusal("chat.inject", {"sessionKey": KEY, "message": ""})

    @pytest.mark.spec("RPC-15")
    def test_agent(self) -> None:
        fields: dict[str, Any] = json.loads("""{
            "message": "m", "idempotencyKey": "k", "sessionKey": "main", "sessionId": "s", "agentId": "main",
            "to": "+1", "deliver": true, "channel": "telegram", "replyTo": "x", "replyChannel": "c",
            "accountId": "a", "threadId": 7, "timeout": 600, "lane": "main", "thinking": "off", "model": "m",
            "extraSystemPrompt": "e", "label": "l", "bestEffortDeliver": true, "provider": "p",
            "inputProvenance": {"kind": "inter_session", "sourceSessionKey": "agent:main:proj1"}
        }""")
        decoded = decode("agent", fields)
        assert (decoded.timeout, decoded.thread_id, decoded.reply_to) == (600, 7, "x")
        assert decoded.input_provenance.source_session_key == KEY
        assert refusal("agent", {"idempotencyKey": "k"}).endswith("must have required property 'message'")

    @pytest.mark.spec("RPC-17")
    def test_agent_wait(self) -> None:
        assert decode("agent.wait", {"runId": "r"}).timeout_ms == 30_000
        assert decode("agent.wait", {"runId": "r", "timeoutMs": 0}).timeout_ms == 0
        assert "must be >= 0" in refusal("agent.wait", {"runId": "r", "timeoutMs": -1})


@pytest.mark.spec("RPC-4")
@pytest.mark.parametrize(("method", "value"), RECORDED)
def test_what_real_clients_send_is_accepted(method: str, value: dict[str, Any]) -> None:
    decoded = decode(method, value)
    assert isinstance(decoded, METHODS[method].params)
    kept = msgspec.to_builtins(decoded)
    assert {name: kept[name] for name in value} == value
