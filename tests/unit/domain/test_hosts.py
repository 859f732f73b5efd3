"""Which names and addresses mean this machine."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from openclaw.domain.hosts import is_loopback


@pytest.mark.parametrize("host", ["localhost", "127.0.0.1", "127.8.9.10", "::1", "::1%lo"])
def test_this_machine(host: str) -> None:
    assert is_loopback(host)


@pytest.mark.parametrize(
    "host",
    ["", "0.0.0.0", "::", "10.0.0.1", "128.0.0.1", "localhost.evil.example", "127.0.0.1.evil.example",
     "fe80::1%lo", "LOCALHOST ", "0x7f.0.0.1", "2130706433"],
)  # fmt: skip
def test_another_machine_or_nobody_knows(host: str) -> None:
    assert not is_loopback(host)


@given(st.text(max_size=60))
@settings(max_examples=200, deadline=None)
def test_any_text_is_answered(host: str) -> None:
    assert is_loopback(host) in (True, False)
