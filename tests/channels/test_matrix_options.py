"""The keys of `channels.matrix`: what is refused, and with which words."""

from __future__ import annotations

import logging

import pytest

from openclaw.errors import InvalidRequest
from tests.channels.test_matrix_connector import Stage, stage
from tests.fakes.matrix_server import Json

__all__ = ["stage"]


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"homeserver": ""}, "homeserver is missing"),
        ({"homeserver": "matrix.org"}, "must be an address"),
        ({"homeserver": "http://[x"}, "must be an address"),
        ({"homeserver": "https://u:p@h.org"}, "must be an address"),
        ({"homeserver": "https://h.org?x=1"}, "must be an address"),
        ({"userId": None}, "userId is missing"),
        ({"userId": "house"}, "whole id"),
        ({"accessToken": ""}, "an accessToken or a password"),
        ({"autoJoin": "maybe"}, "autoJoin"),
        ({"mediaMaxMb": 0}, "mediaMaxMb"),
        ({"accessToken": 7}, "accessToken"),
    ],
)
async def test_options_are_refused_with_the_fix(stage: Stage, change: Json, words: str) -> None:
    stage.options |= change
    with pytest.raises(InvalidRequest, match=words):
        await stage.build()


async def test_unknown_options_are_told_and_do_nothing(
    stage: Stage, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.WARNING, "openclaw.channels")
    stage.options |= {"encryption": True, "streaming": "partial"}
    await stage.build()
    assert "do nothing: encryption" in caplog.text
