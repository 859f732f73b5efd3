"""Data for protocol tests: patch fields by the scope they need, and requests recorded from real clients."""

from __future__ import annotations

import json
from typing import Any

KEY = "agent:main:proj1"
SEND = {"sessionKey": KEY, "message": "hi", "idempotencyKey": "k"}

PATCH_WITH_WRITE: dict[str, Any] = json.loads("""{
  "label": "l", "icon": "i", "color": "c", "category": "g", "pinned": true, "archived": true, "unread": true,
  "model": "p/m", "thinkingLevel": "off", "fastMode": true
}""")
PATCH_WITH_ADMIN: dict[str, Any] = json.loads("""{
  "contextWindow": 1, "verboseLevel": "on", "traceLevel": "on", "reasoningLevel": "on",
  "responseUsage": "off", "elevatedLevel": "full", "execHost": "h", "execSecurity": "s", "execAsk": "a",
  "execNode": "n", "sendPolicy": "deny", "groupActivation": "always", "permissionMode": "full",
  "statusNote": "n", "attention": true, "toolOverrides": {}, "agentRuntime": "auto",
  "spawnedBy": "agent:main:main", "spawnedWorkspaceDir": "/w", "spawnDepth": 1, "subagentRole": "leaf",
  "subagentControlScope": "none"
}""")

# One request a paragraph, as the CLI, the TUI and the Control UI sent them (ids and cursors shortened).
_RECORDED = """
health {}

health {"probe":true}

status {"includeChannelSummary":false,"includeCliProjection":true}

agents.list {}

models.list {"agentId":"main","includeDetails":true}

models.list {"view":"all"}

sessions.subscribe {}

sessions.subscribe {"limit":10}

sessions.list {"limit":200,"archived":"all","includeGlobal":true,"includeUnknown":true,
 "configuredAgentsOnly":true}

sessions.list {"limit":50,"activeMinutes":10080,"includeGlobal":false,"includeUnknown":false,
 "includeDerivedTitles":true,"includeLastMessage":true,"agentId":"main"}

sessions.list {"includeGlobal":true,"includeUnknown":true,"configuredAgentsOnly":true,"limit":200,
 "includeDerivedTitles":true,"includeLastMessage":true,"ownerFirst":true,"agentId":"main"}

sessions.list {"limit":10000,"spawnedBy":"agent:main:main"}

sessions.messages.subscribe {"key":"agent:main:main","includeApprovals":true}

sessions.messages.unsubscribe {"key":"agent:main:proj1"}

sessions.describe {"key":"agent:main:main","agentId":"main"}

sessions.resolve {"key":"agent:main:none","allowMissing":true}

sessions.create {"key":"agent:main:proj1","label":"Project One"}

sessions.create {}

sessions.patch {"key":"agent:main:cli-test","expectedSessionId":"9029f91c","archived":true}

sessions.patch {"key":"agent:main:main","agentId":"main","expectedMarkedUnreadAt":null,"unread":false}

sessions.patch {"key":"agent:main:proj1","sendPolicy":null,"verboseLevel":null}

chat.send {"sessionKey":"agent:main:main","sessionId":"3de8cb20","message":"hello control ui","deliver":false,
 "expectedLeafEntryId":"92c5d4cb","idempotencyKey":"91295d4b"}

chat.send {"sessionKey":"agent:main:proj2","message":"second","idempotencyKey":"3a9a","queueMode":"followup"}

chat.history {"sessionKey":"agent:main:main","cursor":"eyJhZ2VudElkIjoi","limit":80,"maxBytes":262144}

chat.abort {"sessionKey":"agent:main:proj1","runId":"ff3bd441"}

chat.inject {"sessionKey":"agent:main:proj1","message":"injected note","label":"Note"}

agent {"message":"hi from cli","agentId":"main","sessionKey":"agent:main:cli-test","deliver":false,
 "timeout":600,"idempotencyKey":"7954dc2b"}

agent.wait {"runId":"nope","timeoutMs":300}
"""


def _parse(paragraph: str) -> tuple[str, dict[str, Any]]:
    method, _, params = paragraph.strip().partition(" ")
    return method, json.loads(params)


RECORDED = [_parse(paragraph) for paragraph in _RECORDED.split("\n\n")]
