"""`explain`, `security.audit` and the outbox over a real socket, from the config and the rows in force."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from openclaw.app import Gateway
from openclaw.domain.entry import DeliveryContext
from openclaw.store import conversations, outbox, senders
from openclaw.store.conversations import ConversationRef
from openclaw.store.records import DeliveryDraft
from openclaw.store.senders import SenderRef
from tests.fakes.openai_server import FakeReply
from tests.fakes.wire_client import RefusedError, WireClient
from tests.integration.conftest import House, client_of

Json = dict[str, Any]


async def refused(client: WireClient, method: str, params: Json) -> Json:
    with pytest.raises(RefusedError) as refusal:
        await client.call(method, params)
    return refusal.value.error


def decided(told: Json) -> list[str]:
    return [one["question"] for one in told["steps"] if one.get("decided")]


# -- explain -------------------------------------------------------------------------------------------


@pytest.mark.spec("ROUTE-1", "KEY-6", "KEY-7")
async def test_a_route_is_explained_from_the_config_in_force(house: House) -> None:
    house.config["session"] = {"dmScope": "per-channel-peer", "identityLinks": {"alice": ["telegram:42"]}}
    house.config["channels"] = {"telegram": {"enabled": False, "allowFrom": ["42"]}}
    house.config["bindings"] = [
        {"agentId": "bob", "match": {"channel": "telegram", "peer": {"kind": "dm", "id": "42"}}},
        {"agentId": "main", "match": {"channel": "telegram"}},
    ]
    async with house.gateway() as gateway, client_of(gateway) as client:
        asked = {"kind": "route", "channel": "Telegram", "peerKind": "dm", "peerId": "42"}
        told = await client.call("explain", asked)
        key = "agent:bob:telegram:dm:alice"
        assert told["facts"]["sessionKey"] == key and told["facts"]["exists"] is False
        assert told["decidedBy"] == "bindings[0]" and decided(told) == ["bindings[0] for bob", "key"]
        house.model.script(FakeReply(texts=("Hello",)))
        await client.say(key, "hi", "r1")
        again = await client.call("explain", asked)
        assert again["facts"]["exists"] is True and again["facts"]["sessionId"]
        named = await client.call("explain", asked | {"agentId": "main"})
        assert named["facts"]["sessionKey"] == "agent:main:telegram:dm:alice"
        stranger = await client.call("explain", asked | {"peerId": "7"})
        assert (stranger["facts"]["taken"], stranger["facts"]["gate"]) == (False, "asked_to_pair")
        who = SenderRef("telegram", "default", "7")
        keep: Any = gateway.services.keep
        await keep(lambda tx: senders.admit(tx, who, "Zoe", False, 1))
        assert (await client.call("explain", asked | {"peerId": "7"}))["facts"]["gate"] == "paired"
        inside = await client.call("explain", asked | {"channel": "webchat"})
        assert (inside["facts"]["taken"], inside["facts"]["gate"]) == (True, "direct")
        group = {"kind": "route", "channel": "telegram", "peerKind": "group", "peerId": "-1", "senderId": "7"}
        assert (await client.call("explain", group))["facts"]["gate"] == "sender_not_listed"


async def test_what_is_missing_or_wrong_is_named(client: WireClient) -> None:
    for params, words in (
        ({"kind": "route", "channel": "telegram"}, "name a channel and a peer"),
        ({"kind": "reset"}, "name the session with key"),
        ({"kind": "send"}, "name the session with key"),
        ({"kind": "visibility", "fromKey": "main"}, "fromKey and toKey"),
        ({"kind": "route", "channel": "t", "peerKind": "dm", "peerId": "1", "agentId": "nobody"}, "nobody"),
        ({"kind": "why"}, "kind"),
        ({"kind": "reset", "key": "main", "colour": 1}, "colour"),
        ({"kind": "route", "channel": "t", "peerKind": "group", "peerId": "a\nb"}, "key"),
        ({"kind": "reset", "key": "a\u0000b"}, "NUL"),
        ({"kind": "reset", "key": "x" * 600}, "key"),
    ):
        error = await refused(client, "explain", params)
        assert error["code"] == "INVALID_REQUEST", params
        assert words in error["message"], (params, error["message"])


@pytest.mark.spec("LIFE-6", "LIFE-7", "SEND-6", "VIS-1", "VIS-4")
async def test_reset_send_and_visibility_read_the_rows(house: House) -> None:
    house.config["session"] = {
        "resetByType": {"direct": {"mode": "idle", "idleMinutes": 45}},
        "sendPolicy": {"rules": [{"action": "deny", "match": {"keyPrefix": "hook:"}}]},
    }
    house.model.script(FakeReply(texts=("Hello",)), FakeReply(texts=("Hello",)))
    async with house.gateway() as gateway, client_of(gateway) as client:
        for key in ("agent:main:main", "agent:bob:main"):
            await client.say(key, "hi", key)
        told = await client.call("explain", {"kind": "reset", "key": "main"})
        row = await gateway.services.store.session("agent:main:main")
        assert row is not None and row.entry.last_interaction_at is not None
        assert told["facts"]["lastInteractionAt"] == row.entry.last_interaction_at
        assert told["facts"]["nextResetAt"] == row.entry.last_interaction_at + 45 * 60_000 + 1
        assert told["decidedBy"] == "session.resetByType.direct" and told["facts"]["zone"] == "UTC"
        absent = await client.call("explain", {"kind": "reset", "key": "agent:main:telegram:group:-1"})
        assert absent["facts"]["exists"] is False and absent["facts"]["channel"] == "telegram"
        assert absent["facts"]["sessionType"] == "group" and absent["facts"]["origin"] == "default"
        denied = await client.call("explain", {"kind": "send", "key": "hook:1"})
        assert denied["facts"]["action"] == "deny" and denied["decidedBy"] == "session.sendPolicy.rules[0]"
        await client.call("sessions.patch", {"key": "main", "sendPolicy": "deny"})
        override = await client.call("explain", {"kind": "send", "key": "main"})
        assert override["facts"]["source"] == "override" and "/send inherit" in override["fix"]
        across = await client.call(
            "explain", {"kind": "visibility", "fromKey": "main", "toKey": "agent:bob:main"}
        )
        assert across["facts"]["visible"] is False and across["decidedBy"] == "tools.sessions.visibility"
        nothing = await client.call("explain", {"kind": "visibility", "fromKey": "main", "toKey": "nowhere"})
        assert nothing["facts"]["reason"] == "not-found"
        reserved = await client.call("explain", {"kind": "visibility", "fromKey": "main", "toKey": "global"})
        assert reserved["facts"]["reason"] == "not-found"


@pytest.mark.spec("VIS-2", "RPC-3")
async def test_a_sandboxed_agent_is_clamped_and_a_reader_may_ask(house: House) -> None:
    house.config["agents"]["list"][1]["sandbox"] = {"mode": "all"}
    house.config["tools"] = {"sessions": {"visibility": "all"}, "agentToAgent": {"enabled": True}}
    house.model.script(FakeReply(texts=("Hello",)))
    async with house.gateway() as gateway, client_of(gateway, scopes=("operator.read",)) as reader:
        async with client_of(gateway) as client:
            await client.say("main", "hi", "r")
        asked = {"kind": "visibility", "fromKey": "agent:bob:main", "toKey": "agent:main:main"}
        told = await reader.call("explain", asked)
        assert (told["facts"]["sandboxed"], told["facts"]["effectiveLevel"]) == (True, "tree")
        assert told["decidedBy"] == "agents.defaults.sandbox.mode"
        back = {"kind": "visibility", "fromKey": "agent:main:main", "toKey": "agent:main:main"}
        assert (await reader.call("explain", back))["facts"]["reason"] == "own"
        for method in ("security.audit", "outbox.list"):
            assert "operator.admin" in (await refused(reader, method, {}))["message"]


# -- the audit -----------------------------------------------------------------------------------------


def found(report: Json, check: str) -> list[Json]:
    return [one for one in report["findings"] if one["check"] == check]


@pytest.mark.spec("CLI-14", "KEY-3")
async def test_people_who_share_the_main_session_are_found(house: House) -> None:
    house.config["channels"] = {"telegram": {"allowFrom": ["1"], "dmPolicy": "allowlist"}}
    async with house.gateway() as gateway, client_of(gateway) as client:
        assert found(await client.call("security.audit", {}), "session.dmScope") == []
        for key, peer in (("agent:main:main", "1"), ("agent:main:main", "2"), ("agent:main:own", "3")):
            await link(gateway, key, peer)
        (warning,) = found(await client.call("security.audit", {}), "session.dmScope")
        assert (
            warning["severity"] == "warn"
            and "agent:main:main: 2 people share one session" in warning["detail"]
        )
        assert "telegram:2" in warning["detail"] and "telegram:1" not in warning["detail"]
        assert warning["fix"] == "openclaw config set session.dmScope per-channel-peer"


@pytest.mark.spec("CLI-14")
@pytest.mark.parametrize(("scope", "severity"), [("main", "info"), ("per-peer", None)])
async def test_a_scope_that_was_chosen_weighs_less(house: House, scope: str, severity: str | None) -> None:
    house.config["session"] = {"dmScope": scope}
    async with house.gateway() as gateway, client_of(gateway) as client:
        for peer in ("1", "2"):
            await link(gateway, "agent:main:main", peer)
        told = found(await client.call("security.audit", {}), "session.dmScope")
        assert [one["severity"] for one in told] == ([severity] if severity else [])


async def link(gateway: Gateway, key: str, peer: str) -> None:
    place = ConversationRef("telegram", "default", "direct", peer)
    keep: Any = gateway.services.keep
    await keep(lambda tx: conversations.link(tx, key, place, 1))


def open_up(state: Path) -> tuple[Path, Path]:
    """A state directory that others may read, with a config that others may write; config and a deep file."""
    state.chmod(0o755)
    config, deep = state / "openclaw.json", state / "cron" / "jobs.json"
    config.chmod(0o666)
    deep.parent.mkdir(mode=0o700)
    deep.write_text("{}")
    deep.chmod(0o640)
    (state / "link").symlink_to("/etc/passwd")
    (state / "workspace-x").mkdir()
    (state / "workspace-x").chmod(0o755)
    return config, deep


def modes(*paths: Path) -> list[int]:
    return [path.stat().st_mode & 0o777 for path in paths]


async def test_open_files_are_found_and_closed(house: House) -> None:
    async with house.gateway() as gateway, client_of(gateway) as client:
        state = house.home / "state"
        config, deep = open_up(state)
        report = await client.call("security.audit", {})
        told = {one["path"]: one for one in found(report, "files.mode")}
        assert told[str(config)]["severity"] == "critical" and "(0666)" in told[str(config)]["detail"]
        assert told[str(state)]["severity"] == "warn" and told[str(state)]["fix"] == f"chmod 0700 {state}"
        assert str(deep) not in told and report["ok"] is False and report["counts"]["critical"] == 1
        fixed = await client.call("security.audit", {"deep": True, "fix": True})
        closed = {one["path"] for one in found(fixed, "files.mode") if one["fixed"]}
        assert closed >= {str(config), str(state), str(deep)}
        assert fixed["ok"] is True and fixed["deep"] is True and fixed["counts"]["critical"] == 0
        assert modes(state, config, deep) == [0o700, 0o600, 0o600]
        assert modes(state / "workspace-x") == [0o755], "workspaces belong to the agents"
        assert found(await client.call("security.audit", {"deep": True}), "files.mode") == []


# -- the outbox ----------------------------------------------------------------------------------------


@pytest.mark.spec("REST-7")
async def test_deliveries_are_looked_after_over_the_wire(gateway: Gateway, client: WireClient) -> None:
    keep: Any = gateway.services.keep
    route = DeliveryContext(channel="telegram", to="42", thread_id="7")
    now_ms = gateway.services.clock.now_ms()
    for name, key in (("one", "agent:main:main"), ("two", "agent:bob:main")):
        draft = DeliveryDraft(name, route, b'{"text":"hello"}', now_ms + 60_000)
        await keep(lambda tx, draft=draft, key=key: outbox.prepare(tx, draft, key, None, now_ms))
    listed = await client.call("outbox.list", {})
    two, one = listed["deliveries"]
    assert (one["sessionKey"], one["state"], one["text"], one["threadId"]) == (
        "agent:main:main", "prepared", "hello", "7",
    )  # fmt: skip
    assert listed["states"] == {"prepared": 2} and "before" not in listed and listed["ts"] >= now_ms
    page = await client.call("outbox.list", {"limit": 1})
    assert page["before"] == two["deliveryNo"]
    rest = await client.call("outbox.list", {"limit": 1, "before": page["before"]})
    assert [row["deliveryNo"] for row in rest["deliveries"]] == [one["deliveryNo"]]
    mine = await client.call(
        "outbox.list", {"sessionKey": "main", "channel": "telegram", "state": "prepared"}
    )
    assert [row["deliveryNo"] for row in mine["deliveries"]] == [one["deliveryNo"]]
    number = {"deliveryNo": one["deliveryNo"]}
    assert (await client.call("outbox.get", number))["delivery"]["text"] == "hello"
    assert "only failed and unknown" in (await refused(client, "outbox.retry", number))["message"]
    store = gateway.services.store
    await store.start_delivery(one["deliveryNo"], now_ms=now_ms)
    await store.settle_delivery(one["deliveryNo"], "failed", error="no route", now_ms=now_ms)
    assert (await client.call("outbox.retry", number))["delivery"]["state"] == "prepared"
    assert (await client.call("outbox.drop", number))["ok"] is True
    assert "no delivery" in (await refused(client, "outbox.get", number))["message"]
    for params, word in (
        ({"limit": 0}, "limit"),
        ({"state": "lost"}, "state"),
        ({"deliveryNo": 1}, "deliveryNo"),
    ):
        assert word in (await refused(client, "outbox.list", params))["message"]
    assert "deliveryNo" in (await refused(client, "outbox.drop", {"deliveryNo": 0}))["message"]
