"""Who may call what: every method with every scope on its own, written down by hand (RPC-3).

A new method needs a row in `TABLE` (x: the scope alone is enough) and, when it has required parameters,
a line in `EXAMPLES`. A new event needs a row in `EVENT_TABLE`. Nothing here may be computed from the
tables of the product: this is what they are checked against.
"""

from __future__ import annotations

import json
from typing import Any, Final

from openclaw.protocol.scopes import ADMIN, APPROVALS, PAIRING, QUESTIONS, READ, TALK, TALK_SECRETS, WRITE

COLUMNS: Final = (READ, WRITE, ADMIN, APPROVALS, QUESTIONS, PAIRING, TALK, TALK_SECRETS)

TABLE: Final = """
# read  write admin approv quest pairing talk  talk.secrets
agent                         .     x     x     .     .     .     .     .
agent.identity.get            x     x     x     .     .     .     .     .
agent.wait                    x     x     x     .     .     .     .     .
agents.list                   x     x     x     .     .     .     .     .
backup.create                 .     .     x     .     .     .     .     .
channels.attach               .     .     x     .     .     .     .     .
channels.detach               .     .     x     .     .     .     .     .
channels.inbound              .     .     x     .     .     .     .     .
channels.settle               .     .     x     .     .     .     .     .
channels.status               x     x     x     .     .     .     .     .
chat.abort                    .     x     x     .     .     .     .     .
chat.history                  x     x     x     .     .     .     .     .
chat.inject                   .     .     x     .     .     .     .     .
chat.message.get              x     x     x     .     .     .     .     .
chat.metadata                 x     x     x     .     .     .     .     .
chat.send                     .     x     x     .     .     .     .     .
chat.startup                  x     x     x     .     .     .     .     .
commands.list                 x     x     x     .     .     .     .     .
config.apply                  .     .     x     .     .     .     .     .
config.get                    .     .     x     .     .     .     .     .
config.patch                  .     .     x     .     .     .     .     .
config.schema                 .     .     x     .     .     .     .     .
config.set                    .     .     x     .     .     .     .     .
cron.add                      .     .     x     .     .     .     .     .
cron.list                     x     x     x     .     .     .     .     .
cron.remove                   .     .     x     .     .     .     .     .
cron.run                      .     .     x     .     .     .     .     .
cron.runs                     x     x     x     .     .     .     .     .
cron.status                   x     x     x     .     .     .     .     .
cron.update                   .     .     x     .     .     .     .     .
dashboard.link                .     .     x     .     .     .     .     .
dashboard.signout             .     .     x     .     .     .     .     .
device.pair.approve           .     .     x     .     .     x     .     .
device.pair.list              .     .     x     .     .     x     .     .
device.pair.reject            .     .     x     .     .     x     .     .
device.pair.remove            .     .     x     .     .     x     .     .
device.token.revoke           .     .     x     .     .     x     .     .
device.token.rotate           .     .     x     .     .     x     .     .
exec.approval.list            x     x     x     .     .     .     .     .
diagnostics.list              .     .     x     .     .     .     .     .
explain                       x     x     x     .     .     .     .     .
health                        x     x     x     .     .     .     .     .
last-heartbeat                x     x     x     .     .     .     .     .
logs.tail                     x     x     x     .     .     .     .     .
models.list                   x     x     x     .     .     .     .     .
node.list                     x     x     x     .     .     .     .     .
node.pair.list                .     .     x     .     .     x     .     .
outbox.drop                   .     .     x     .     .     .     .     .
outbox.get                    .     .     x     .     .     .     .     .
outbox.list                   .     .     x     .     .     .     .     .
outbox.retry                  .     .     x     .     .     .     .     .
pairing.approve               .     .     x     .     .     .     .     .
pairing.list                  .     .     x     .     .     x     .     .
pairing.remove                .     .     x     .     .     .     .     .
plugin.approval.list          x     x     x     .     .     .     .     .
question.list                 x     x     x     .     .     .     .     .
security.audit                .     .     x     .     .     .     .     .
sessions.abort                .     x     x     .     .     .     .     .
sessions.cleanup              .     .     x     .     .     .     .     .
sessions.compact              .     .     x     .     .     .     .     .
sessions.create               .     x     x     .     .     .     .     .
sessions.delete               .     x     x     .     .     .     .     .
sessions.describe             x     x     x     .     .     .     .     .
sessions.erase                .     .     x     .     .     .     .     .
sessions.export               .     .     x     .     .     .     .     .
sessions.get                  x     x     x     .     .     .     .     .
sessions.list                 x     x     x     .     .     .     .     .
sessions.messages.subscribe   x     x     x     .     .     .     .     .
sessions.messages.unsubscribe x     x     x     .     .     .     .     .
sessions.patch                .     x     x     .     .     .     .     .
sessions.preview              x     x     x     .     .     .     .     .
sessions.reset                .     .     x     .     .     .     .     .
sessions.resolve              x     x     x     .     .     .     .     .
sessions.restore              .     .     x     .     .     .     .     .
sessions.search               x     x     x     .     .     .     .     .
sessions.send                 .     x     x     .     .     .     .     .
sessions.steer                .     x     x     .     .     .     .     .
sessions.subscribe            x     x     x     .     .     .     .     .
sessions.tree                 x     x     x     .     .     .     .     .
sessions.usage                x     x     x     .     .     .     .     .
sessions.windows              x     x     x     .     .     .     .     .
status                        x     x     x     .     .     .     .     .
system-event                  .     x     x     .     .     .     .     .
system-presence               x     x     x     .     .     .     .     .
taskSuggestions.list          x     x     x     .     .     .     .     .
tools.catalog                 x     x     x     .     .     .     .     .
tools.effective               x     x     x     .     .     .     .     .
tools.invoke                  .     x     x     .     .     .     .     .
usage.cost                    x     x     x     .     .     .     .     .
usage.status                  x     x     x     .     .     .     .     .
wake                          .     x     x     .     .     .     .     .
"""

EVENT_TABLE: Final = """
# read  write admin approv quest pairing talk  talk.secrets
agent                         x     x     x     .     .     .     .     .
chat                          x     x     x     .     .     .     .     .
channels.outbound             .     .     x     .     .     .     .     .
connect.challenge             x     x     x     x     x     x     x     x
cron                          x     x     x     .     .     .     .     .
device.pair.requested         .     .     x     .     .     x     .     .
device.pair.resolved          .     .     x     .     .     x     .     .
health                        x     x     x     .     .     .     .     .
presence                      x     x     x     x     x     x     x     x
session.message               x     x     x     .     .     .     .     .
session.operation             x     x     x     .     .     .     .     .
sessions.changed              x     x     x     .     .     .     .     .
shutdown                      x     x     x     x     x     x     x     x
tick                          x     x     x     x     x     x     x     x
"""

# One request a line, which may go on behind a blank: the least that a call of the method must carry.
_EXAMPLES: Final = """
agent {"message": "m", "idempotencyKey": "k"}
agent.wait {"runId": "r"}
backup.create {"output": "/backups/monday"}
channels.attach {"channel": "telegram"}
channels.detach {"channel": "telegram"}
channels.inbound {"channel": "telegram", "peer": {"kind": "direct", "id": "1"}, "messageId": "1", "text": "t"}
channels.settle {"channel": "telegram", "key": "k"}
chat.abort {"sessionKey": "agent:main:main"}
chat.history {"sessionKey": "agent:main:main"}
chat.inject {"sessionKey": "agent:main:main", "message": "m"}
chat.message.get {"sessionKey": "agent:main:main", "messageId": "m"}
chat.send {"sessionKey": "agent:main:main", "message": "m", "idempotencyKey": "k"}
chat.startup {"sessionKey": "agent:main:main"}
config.apply {"raw": "{}"}
config.patch {"raw": "{}"}
config.set {"raw": "{}"}
cron.add {"name": "n", "schedule": {"kind": "every", "everyMs": 60000}, "sessionTarget": "main",
 "payload": {"kind": "systemEvent", "text": "t"}}
cron.remove {"id": "j"}
cron.run {"id": "j"}
cron.runs {"id": "j"}
cron.update {"id": "j", "patch": {"enabled": false}}
device.pair.approve {"requestId": "r"}
device.pair.reject {"requestId": "r"}
device.pair.remove {"deviceId": "d"}
device.token.revoke {"deviceId": "d"}
device.token.rotate {"deviceId": "d"}
explain {"kind": "reset", "key": "agent:main:main"}
outbox.drop {"deliveryNo": 1}
outbox.get {"deliveryNo": 1}
outbox.retry {"deliveryNo": 1}
pairing.approve {"channel": "telegram", "code": "ABCDEFGH"}
pairing.remove {"channel": "telegram", "senderId": "1"}
sessions.abort {"key": "agent:main:main"}
sessions.compact {"key": "agent:main:main"}
sessions.delete {"key": "agent:main:main"}
sessions.describe {"key": "agent:main:main"}
sessions.erase {"key": "agent:main:main", "confirm": true}
sessions.export {"key": "agent:main:main"}
sessions.get {"key": "agent:main:main"}
sessions.messages.subscribe {"key": "agent:main:main"}
sessions.messages.unsubscribe {"key": "agent:main:main"}
sessions.patch {"key": "agent:main:main"}
sessions.preview {"keys": ["agent:main:main"]}
sessions.reset {"key": "agent:main:main"}
sessions.resolve {"key": "agent:main:main"}
sessions.restore {"key": "agent:main:main"}
sessions.search {"query": "words"}
sessions.send {"key": "agent:main:main", "message": "m"}
sessions.steer {"key": "agent:main:main", "message": "m"}
sessions.windows {"key": "agent:main:main"}
system-event {"text": "t"}
tools.effective {"sessionKey": "main"}
tools.invoke {"name": "sessions_list"}
wake {"mode": "now", "text": "t"}
"""


def _read_table(text: str) -> dict[str, frozenset[str]]:
    table: dict[str, frozenset[str]] = {}
    for line in text.strip().splitlines():
        name, *cells = line.split()
        if name == "#":
            continue
        assert len(cells) == len(COLUMNS) and set(cells) <= {"x", "."}, f"{name}: one cell for each scope"
        assert name not in table, f"{name} stands in the table twice"
        table[name] = frozenset(scope for scope, cell in zip(COLUMNS, cells, strict=True) if cell == "x")
    return table


def _read_examples(text: str) -> dict[str, dict[str, Any]]:
    pairs = (line.partition(" ") for line in text.strip().replace("\n ", " ").splitlines())
    return {name: json.loads(params) for name, _, params in pairs}


ADMITTED: Final = _read_table(TABLE)
RECEIVED: Final = _read_table(EVENT_TABLE)
EXAMPLES: Final = _read_examples(_EXAMPLES)
