"""The config file over the wire: read without secrets, changed by compare-and-set, refused in full."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from openclaw.app import Gateway
from openclaw.config.load import load_or_raise
from openclaw.config.values import REDACTED
from tests.fakes.clock import MovableClock
from tests.fakes.wire_client import RefusedError, WireClient
from tests.integration.conftest import TOKEN, House, client_of

Json = dict[str, Any]
KEY = "sk-fake-key-000000000000"


def file_of(house: House) -> Path:
    return house.home / "state" / "openclaw.json"


async def refusal(client: WireClient, method: str, params: Json) -> Json:
    with pytest.raises(RefusedError) as refused:
        await client.call(method, params)
    return refused.value.error


@pytest.mark.spec("TRX-11")
async def test_a_config_is_shown_whole_and_without_secrets(house: House, client: WireClient) -> None:
    shown = await client.call("config.get")
    text = json.dumps(shown)
    assert TOKEN not in text and KEY not in text
    assert shown["path"] == str(file_of(house))
    assert (shown["exists"], shown["valid"], shown["issues"], shown["legacyIssues"]) == (True, True, [], [])
    assert json.loads(shown["raw"]) == shown["parsed"]
    assert shown["parsed"]["gateway"]["auth"]["token"] == REDACTED
    assert shown["parsed"]["models"]["providers"]["fake"]["apiKey"] == REDACTED
    assert shown["resolved"]["gateway"]["port"] == 18789  # defaults are filled in
    assert shown["config"] == shown["resolved"]
    assert len(shown["hash"]) == 64


async def test_a_broken_file_is_told_with_its_place_and_shows_nothing_of_itself(
    house: House, client: WireClient
) -> None:
    file_of(house).write_text('{\n  gateway: { auth: { token: "half-written-secret-0123', encoding="utf-8")
    shown = await client.call("config.get")
    assert (shown["valid"], shown["raw"], shown["parsed"]) == (False, None, {})
    assert shown["issues"][0]["line"] == 2
    assert "half-written" not in json.dumps(shown)


@pytest.mark.spec("CFG-6", "CFG-4")
async def test_a_patch_changes_one_setting_keeps_comments_and_applies_at_once(house: House) -> None:
    house.gateway()  # writes the file
    text = "// mine\n" + file_of(house).read_text(encoding="utf-8")
    file_of(house).write_text(text, encoding="utf-8")
    async with (
        Gateway(load_or_raise(file_of(house), house.env), house.env, port=0) as gateway,
        client_of(gateway) as client,
    ):
        before = await client.call("config.get")
        patch = {"agents": {"list": [{"id": "main", "default": True}, {"id": "bob"}, {"id": "eve"}]}}
        done = await client.call(
            "config.patch", {"raw": json.dumps(patch), "baseHash": before["hash"], "note": "a third one"}
        )
        assert done["ok"] is True and done["applied"] is True
        assert done["changedPaths"] == ["agents.list"]
        assert done["restartRequired"] == []
        assert [agent["id"] for agent in (await client.call("agents.list"))["agents"]] == [
            "bob", "eve", "main",
        ]  # fmt: skip
        event = await client.wait_for(lambda event: event["event"] == "health")
        assert [agent["agentId"] for agent in event["payload"]["agents"]] == ["bob", "eve", "main"]
        assert event["stateVersion"]["health"] > client.hello["snapshot"]["stateVersion"]["health"]
    written = file_of(house).read_text(encoding="utf-8")
    assert written.startswith("// mine\n")
    assert TOKEN in written and KEY in written
    assert (file_of(house).with_name("openclaw.json.bak")).read_text(encoding="utf-8") == text


@pytest.mark.spec("CFG-6")
async def test_a_text_that_was_shown_can_be_sent_back_and_keeps_the_secrets(
    house: House, client: WireClient
) -> None:
    before = await client.call("config.get")
    raw = before["raw"].replace('"contextWindow": 32000', '"contextWindow": 64000')
    done = await client.call("config.set", {"raw": raw, "baseHash": before["hash"]})
    assert done["changedPaths"] == ["models.providers.fake.models"]
    stored = json.loads(file_of(house).read_text(encoding="utf-8"))
    assert stored["gateway"]["auth"]["token"] == TOKEN
    assert stored["models"]["providers"]["fake"]["apiKey"] == KEY
    assert stored["models"]["providers"]["fake"]["models"][0]["contextWindow"] == 64000
    after = await client.call("config.get")
    assert after["hash"] == done["hash"] != before["hash"]


@pytest.mark.spec("CFG-4")
async def test_what_needs_a_restart_is_named(client: WireClient) -> None:
    before = await client.call("config.get")
    done = await client.call("config.apply", {"raw": before["raw"], "baseHash": before["hash"]})
    assert (done["changedPaths"], done["applied"]) == ([], False)
    patched = await client.call("config.patch", {"raw": "{gateway: {port: 19001}}", "baseHash": done["hash"]})
    assert patched["restartRequired"] == ["gateway.port"]
    assert "restart" in patched["reason"]


@pytest.mark.spec("CFG-6", "CFG-3")
async def test_a_refused_change_names_every_problem_and_leaves_the_file_alone(
    house: House, client: WireClient
) -> None:
    before = await client.call("config.get")
    on_disk = file_of(house).read_bytes()
    raw = json.dumps({"gateway": {"port": 70000}, "sesion": {}, "session": {"scope": "mine"}})
    error = await refusal(client, "config.patch", {"raw": raw, "baseHash": before["hash"]})
    assert error["code"] == "INVALID_REQUEST"
    assert {issue["path"] for issue in error["details"]["issues"]} == {
        "gateway.port", "sesion", "session.scope",
    }  # fmt: skip
    assert all(issue["message"] for issue in error["details"]["issues"])
    assert file_of(house).read_bytes() == on_disk
    rejected = [path for path in file_of(house).parent.iterdir() if ".rejected." in path.name]
    assert len(rejected) == 1
    assert (await client.call("config.get"))["hash"] == before["hash"]


@pytest.mark.parametrize(
    ("method", "params", "said"),
    [
        ("config.set", {"raw": "{}"}, "config base hash required"),
        ("config.set", {"raw": "{}", "baseHash": "0" * 64}, "config changed since last load"),
        ("config.set", {"raw": "{", "baseHash": "HASH"}, "not JSON5"),
        ("config.patch", {"raw": "[1]", "baseHash": "HASH"}, "must be an object"),
        ("config.patch", {"raw": "{", "baseHash": "HASH"}, "not JSON5"),
        ("config.patch", {"raw": f"{{hooks: {{token: '{REDACTED}'}}}}", "baseHash": "HASH"}, "hooks.token"),
        ("config.set", {"raw": f"{{hooks: {{token: '{REDACTED}'}}}}", "baseHash": "HASH"}, "hooks.token"),
        ("config.patch", {"raw": "{gateway: {port: {a: 1}}}", "baseHash": "HASH"}, "gateway.port"),
        ("config.patch", {"raw": "{gateway: 'x', 'a\\u0000': 1}", "baseHash": "HASH"}, ""),
        ("config.set", {"baseHash": "HASH"}, "must have required property 'raw'"),
    ],
)
@pytest.mark.spec("CFG-6")
async def test_a_change_that_cannot_be_meant_is_refused(
    house: House, client: WireClient, method: str, params: Json, said: str
) -> None:
    on_disk = file_of(house).read_bytes()
    known = (await client.call("config.get"))["hash"]
    sent = {name: known if value == "HASH" else value for name, value in params.items()}
    error = await refusal(client, method, sent)
    assert error["code"] == "INVALID_REQUEST"
    assert said in error["message"] or said in json.dumps(error["details"])
    assert file_of(house).read_bytes() == on_disk


async def test_too_many_changes_at_once_are_refused(client: WireClient) -> None:
    known = (await client.call("config.get"))["hash"]
    raw = json.dumps({"session": {f"k{number}": number for number in range(201)}})
    error = await refusal(client, "config.patch", {"raw": raw, "baseHash": known})
    assert "more than 200 changes" in error["message"]


async def test_the_second_of_two_who_read_the_same_text_is_told_to_read_again(client: WireClient) -> None:
    known = (await client.call("config.get"))["hash"]
    await client.call("config.patch", {"raw": "{session: {scope: 'global'}}", "baseHash": known})
    error = await refusal(client, "config.patch", {"raw": "{session: {scope: 'global'}}", "baseHash": known})
    assert error["details"]["reason"] == "config-changed"
    assert "re-run config.get" in error["message"]


async def test_three_changes_a_minute_and_then_a_pause(house: House) -> None:
    clock = MovableClock()
    async with house.gateway(clock) as gateway, client_of(gateway) as client:
        for number in range(3):
            known = (await client.call("config.get"))["hash"]
            raw = f"{{session: {{reset: {{mode: 'daily', atHour: {number + 1}}}}}}}"
            await client.call("config.patch", {"raw": raw, "baseHash": known})
        error = await refusal(client, "config.patch", {"raw": "{}", "baseHash": known})
        assert (error["code"], error["retryable"]) == ("UNAVAILABLE", True)
        assert error["message"].startswith("rate limit exceeded for config.patch; retry after ")
        assert 0 < error["retryAfterMs"] <= 60_000
        # Another client of the same machine is the same; another method is not.
        async with client_of(gateway) as other:
            assert (await refusal(other, "config.patch", {"raw": "{}", "baseHash": known}))[
                "code"
            ] == "UNAVAILABLE"
            shown = await other.call("config.get")
            await other.call("config.set", {"raw": shown["raw"], "baseHash": shown["hash"]})
        clock.move(61)
        known = (await client.call("config.get"))["hash"]
        assert (await client.call("config.patch", {"raw": "{}", "baseHash": known}))["ok"] is True


@pytest.mark.spec("RPC-3")
async def test_the_config_is_the_owners(gateway: Gateway) -> None:
    async with client_of(gateway, scopes=("operator.read", "operator.write")) as writer:
        for method in ("config.get", "config.schema", "config.set", "config.patch", "config.apply"):
            error = await refusal(writer, method, {"raw": "{}"} if method[7:] in ("set", "patch") else {})
            assert (error["code"], error["details"]["missingScope"]) == ("FORBIDDEN", "operator.admin")


async def test_the_schema_describes_the_file(client: WireClient) -> None:
    answer = await client.call("config.schema")
    assert "gateway" in answer["schema"]["properties"]
    assert answer["schema"]["additionalProperties"] is False
    assert answer["uiHints"] == {} and answer["version"]
