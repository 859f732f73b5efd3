"""A turn with a tool through a whole gateway, on the Anthropic wire."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.fakes.anthropic_server import FakeAnswer, FakeAnthropicServer, Said, Thought, Used
from tests.integration.conftest import House, client_of

LOOK = FakeAnswer(
    blocks=(Thought(("let me look",), "sig=="), Used("sessions_list", ("{}",), "toolu_1")),
    start_usage={"input_tokens": 100, "cache_creation_input_tokens": 50, "output_tokens": 1},
    end_usage={"output_tokens": 20},
)
DONE = FakeAnswer(
    blocks=(
        Said(
            ("All ", "seen."),
        ),
    ),
    start_usage={"input_tokens": 10, "cache_read_input_tokens": 150, "output_tokens": 1},
    end_usage={"output_tokens": 5},
)


@pytest.mark.spec("LOOP-2", "LOOP-6")
async def test_a_tool_loop_on_this_wire(tmp_path: Path) -> None:
    async with FakeAnthropicServer(LOOK, DONE, then=DONE) as model:
        house = House(tmp_path, model)
        provider = house.config["models"]["providers"]["fake"]
        provider["api"] = "anthropic-messages"
        async with house.gateway() as gateway, client_of(gateway) as client:
            await client.call("chat.send", {"sessionKey": "p", "message": "look", "idempotencyKey": "r1"})
            final = await client.ended("r1")
            assert final["message"]["content"] == [{"type": "text", "text": "All seen."}]
            await client.call("chat.send", {"sessionKey": "p", "message": "again", "idempotencyKey": "r2"})
            await client.ended("r2")
            rows = (await client.call("sessions.list"))["sessions"]
    first, second, third = (request.body for request in model.requests)
    for body in (first, second, third):
        assert (body["system"], body["tools"]) == (first["system"], first["tools"])
        assert body["system"][-1]["cache_control"] == {"type": "ephemeral"}
    assert second["messages"][-2]["content"] == [
        {"type": "thinking", "thinking": "let me look", "signature": "sig=="},
        {"type": "tool_use", "id": "toolu_1", "name": "sessions_list", "input": {}},
    ]
    (result,) = second["messages"][-1]["content"]
    assert (result["type"], result["tool_use_id"]) == ("tool_result", "toolu_1")
    # The next turn repeats the thoughts and the loop as they were, and only then goes on.
    assert [turn["role"] for turn in third["messages"]] == [
        *(turn["role"] for turn in second["messages"]),
        "assistant",
        "user",
    ]
    assert third["messages"][-4] == second["messages"][-2]
    (row,) = (row for row in rows if row["key"] == "agent:main:p")
    assert (row["modelProvider"], row["model"]) == ("fake", "one")
    assert (row["inputTokens"], row["outputTokens"]) == (10, 5)
