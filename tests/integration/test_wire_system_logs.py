"""logs.tail over the wire, from a gateway that writes its log."""

from __future__ import annotations

import asyncio
import json
import logging
from typing import Any

import pytest

from openclaw import __version__
from openclaw.app import Gateway
from tests.fakes.wire_client import RefusedError, WireClient
from tests.integration.conftest import TOKEN, House, client_of

Json = dict[str, Any]


async def logged(client: WireClient, text: str, cursor: int | None = None) -> Json:
    """The page that holds this text, once the writer has written it."""
    params: Json = {} if cursor is None else {"cursor": cursor}
    async with asyncio.timeout(60):
        while True:
            page = await client.call("logs.tail", params)
            if any(text in line for line in page["lines"]):
                return page
            await asyncio.sleep(0.02)


@pytest.fixture(autouse=True)
def at_level_info(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, "openclaw")


@pytest.mark.spec("TRX-11")
async def test_the_log_is_followed_and_shows_no_secret(house: House, client: WireClient) -> None:
    log = logging.getLogger("openclaw.somewhere")
    log.info("before %s", TOKEN)
    page = await logged(client, "before")
    assert TOKEN not in json.dumps(page)
    assert page["file"] == str(house.home / "state" / "logs" / "gateway.log")
    assert page["cursor"] == page["size"]
    record = json.loads(next(line for line in page["lines"] if "before" in line))
    assert (record["level"], record["name"]) == ("info", "openclaw.somewhere")
    logging.getLogger("asyncio").warning("after")
    later = await logged(client, "after", page["cursor"])
    assert not any("before" in line for line in later["lines"])
    assert later["cursor"] > page["cursor"]
    assert "reset" not in later
    gone = await client.call("logs.tail", {"cursor": later["size"] + 1_000_000})
    assert gone["reset"] is True and gone["lines"]


async def test_the_log_of_a_stopped_gateway_is_complete_and_goes_on(house: House) -> None:
    log = logging.getLogger("openclaw.somewhere")
    async with house.gateway() as gateway:
        assert gateway.services.about.logs == house.home / "state" / "logs"
        log.info("the first life")
    log.info("nobody listens")
    async with house.gateway() as gateway, client_of(gateway) as client:
        log.info("the second life")
        page = await logged(client, "the second life")
        text = "\n".join(page["lines"])
        assert "the first life" in text and "nobody listens" not in text
        messages = [json.loads(line)["message"] for line in page["lines"]]
        began, ended = f"gateway {__version__} starts", f"gateway {__version__} stops"
        assert [one for one in messages if one in (began, ended)] == [began, ended, began]


@pytest.mark.spec("RPC-3")
async def test_logs_need_read_and_sensible_numbers(gateway: Gateway, client: WireClient) -> None:
    for params in ({"limit": 0}, {"limit": 5001}, {"maxBytes": 0}, {"cursor": -1}, {"file": "/etc/passwd"}):
        with pytest.raises(RefusedError, match=r"invalid logs\.tail params"):
            await client.call("logs.tail", params)
    async with client_of(gateway, scopes=()) as nobody:
        with pytest.raises(RefusedError) as refused:
            await nobody.call("logs.tail")
        assert refused.value.error["details"]["missingScope"] == "operator.read"
