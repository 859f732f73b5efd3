import asyncio, time
import pytest
from tests.integration.conftest import *
from tests.integration.test_engine_recovery import DeafTool, KEY, OK
from tests.fakes.openai_server import FakeCall, FakeReply
@pytest.mark.parametrize("how", ["stop","new","abort"])
async def test_deaf(house, how, monkeypatch):
    monkeypatch.setattr("openclaw.engine.commands.stopping.PATIENCE_S", 0.2)
    tool = DeafTool()
    house.model.script(FakeReply(calls=(FakeCall("session_status"),)), OK)
    async with house.gateway() as gateway, client_of(gateway) as client:
        gateway.services.workers._services.tools._tools["session_status"] = tool
        await client.call("chat.send", {"sessionKey": KEY, "message": "hi", "idempotencyKey": "run-1"})
        await tool.began.wait()
        try:
            if how=="abort":
                r=await asyncio.wait_for(client.call("chat.abort", {"sessionKey": KEY}), 4)
            else:
                r=await asyncio.wait_for(client.say(KEY, "/"+how, "cmd-1"), 4)
            print(how, "ANSWERED", r)
        except asyncio.TimeoutError:
            print(how, "HANGS")
        tool.let_go.set()
@pytest.mark.parametrize("mode", ["queue","steer-backlog"])
async def test_modes(house, mode):
    house.config["messages"]={"queue":{"mode":mode}}
    slow = FakeCall("exec", ('{"command": "sleep 0.4; echo first"}',), "call_1")
    slow2 = FakeCall("exec", ('{"command": "sleep 0.1; echo first"}',), "call_2")
    house.model.script(FakeReply(calls=(slow,)), FakeReply(calls=(slow2,)), OK, OK, OK)
    async with house.gateway() as gateway, client_of(gateway) as client:
        for n,t in enumerate(("a","b","c")):
            await client.call("chat.send", {"sessionKey": KEY, "message": t, "idempotencyKey": f"r{n}"})
            if n==0: await house.model.wait_for_requests(1)
        for n in range(3): await client.ended(f"r{n}")
        for r in house.model.requests:
            print(mode,[ (m["role"], m["content"] if m["role"]=="user" else "") for m in r.body["messages"]][2:])
