"""What clients may read of an exception."""

from __future__ import annotations

import msgspec
import pytest

from openclaw import errors
from openclaw.protocol.errors import ErrorShape, clip, wire_error


@pytest.mark.spec("RPC-2")
class TestWireError:
    @pytest.mark.parametrize(
        ("error", "code"),
        [
            (errors.InvalidRequest("m"), "INVALID_REQUEST"),
            (errors.SessionNotFound("m"), "INVALID_REQUEST"),
            (errors.SendDenied("m"), "INVALID_REQUEST"),
            (errors.ConfigInvalid("m"), "INVALID_REQUEST"),
            (errors.Forbidden("m"), "FORBIDDEN"),
        ],
    )
    def test_refusals_keep_their_message(self, error: errors.OpenClawError, code: str) -> None:
        assert wire_error(error) == ErrorShape(code, "m")

    def test_fields_become_details_in_camel_case(self) -> None:
        error = errors.InvalidRequest("m", session_key="k", reason="r", found=["a", {"b": 1.5}], raw=object())
        assert wire_error(error).details == {"sessionKey": "k", "reason": "r", "found": ["a", {"b": 1.5}]}

    def test_unprintable_fields_are_left_out(self) -> None:
        loop: list[object] = []
        loop.append(loop)
        error = errors.InvalidRequest("m", path={1: "x"}, blob=b"x", loop=loop, tuple_=(1, None))
        encoded = msgspec.json.encode(wire_error(error))
        assert msgspec.json.decode(encoded)["details"] == {"tuple": [1, None]}

    def test_a_conflict_says_that_the_session_changed(self) -> None:
        shape = wire_error(errors.VersionConflict("Session k changed before reset. Retry."))
        assert shape == ErrorShape(
            "INVALID_REQUEST",
            "Session k changed before reset. Retry.",
            details={"reason": "session-changed"},
            retryable=True,
        )

    def test_overload_can_be_retried_when_told(self) -> None:
        shape = wire_error(errors.Overloaded("full", retry_after_ms=250))
        assert shape == ErrorShape("UNAVAILABLE", "full", retryable=True, retry_after_ms=250)
        assert wire_error(errors.Unavailable("x", retry_after_ms="soon")).retry_after_ms is None

    @pytest.mark.parametrize(
        ("error", "message", "retryable"),
        [
            (
                errors.StoreFull("/home/me/x.sqlite", path="/home/me"),
                errors.StoreFull.default_message(),
                True,
            ),
            (errors.StoreBusy("SELECT 1"), errors.StoreBusy.default_message(), True),
            (errors.StoreCorrupt("page 7"), errors.StoreCorrupt.default_message(), False),
            (errors.StoreError("secret"), "The store could not do this.", False),
        ],
    )
    def test_store_errors_say_only_their_own_sentence(
        self, error: errors.StoreError, message: str, retryable: bool
    ) -> None:
        assert wire_error(error) == ErrorShape("UNAVAILABLE", message, retryable=retryable)

    @pytest.mark.parametrize(
        "error",
        [ValueError("/etc/passwd"), KeyError("k"), errors.OpenClawError("inside"), KeyboardInterrupt()],
    )
    def test_unknown_exceptions_say_nothing(self, error: BaseException) -> None:
        assert wire_error(error) == ErrorShape("UNAVAILABLE", "internal error", retryable=False)

    def test_long_messages_are_clipped(self) -> None:
        assert len(wire_error(errors.InvalidRequest("x" * 5000)).message) == 1000
        assert wire_error(errors.InvalidRequest("x" * 1000)).message == "x" * 1000
        assert (clip("abcd", 4), clip("abcde", 4)) == ("abcd", "abc…")
