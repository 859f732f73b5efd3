"""`session.*` of the founding documents: each key is parsed, refused when wrong, and has its effect.

One test per key, named after it (CFG-10, CFG-11, CFG-12).
"""

from __future__ import annotations

from pathlib import Path

import pytest

from openclaw.config import views
from openclaw.config.load import session_store_path
from openclaw.domain.addressing import Conversation, session_key_for
from openclaw.domain.entry import ChatType
from openclaw.domain.keys import format_key
from openclaw.domain.lifecycle import SessionType, resolve_reset
from openclaw.domain.policy import SendFacts, decide_send
from openclaw.domain.resets import match_trigger
from tests.unit.config.reading import config_of, problems_of


def session(body: str) -> str:
    return f"{{session: {{{body}}}}}"


def refused(body: str) -> str:
    """The one path that is refused."""
    [problem] = problems_of(session(body))
    return problem.partition(": ")[0]


def key_of_direct_chat(body: str, *, channel: str = "telegram", peer: str = "123") -> str:
    settings = views.address_settings(config_of(session(body)))
    conversation = Conversation(channel, "direct", peer, account_id="biz")
    return format_key(session_key_for(conversation, agent_id="main", settings=settings))


def policy(
    body: str, session_type: SessionType = "direct", channel: str = "telegram"
) -> tuple[str, int, int | None]:
    found = resolve_reset(
        views.reset_rules(config_of(session(body))), session_type=session_type, channel=channel
    )
    return found.mode, found.at_hour, found.idle_minutes


@pytest.mark.spec("CFG-10", "KEY-16", "KEY-17")
def test_scope() -> None:
    assert key_of_direct_chat("") == "agent:main:main"
    assert key_of_direct_chat('scope: "per-sender"') == "agent:main:main"
    assert key_of_direct_chat('scope: "global"') == "global"
    assert refused('scope: "per-room"') == "session.scope"


@pytest.mark.spec("CFG-10", "KEY-3", "KEY-4", "KEY-5", "KEY-6")
@pytest.mark.parametrize(
    ("scope", "key"),
    [
        ("main", "agent:main:main"),
        ("per-peer", "agent:main:dm:123"),
        ("per-channel-peer", "agent:main:telegram:dm:123"),
        ("per-account-channel-peer", "agent:main:telegram:biz:dm:123"),
    ],
)
def test_dm_scope(scope: str, key: str) -> None:
    body = f'dmScope: "{scope}"'
    assert key_of_direct_chat(body) == key
    assert views.dm_scope_is_set(config_of(session(body)))
    assert refused('dmScope: "per-planet"') == "session.dmScope"


@pytest.mark.spec("KEY-3")
def test_dm_scope_unset_is_main_but_not_chosen() -> None:
    config = config_of("{}")
    assert views.address_settings(config).dm_scope == "main"
    assert not views.dm_scope_is_set(config)


@pytest.mark.spec("CFG-10", "KEY-7")
def test_identity_links() -> None:
    body = 'dmScope: "per-peer", identityLinks: {alice: ["telegram:123", "discord:9"], bob: [456]}'
    assert key_of_direct_chat(body) == "agent:main:dm:alice"
    assert key_of_direct_chat(body, channel="discord", peer="9") == "agent:main:dm:alice"
    assert key_of_direct_chat(body, peer="456") == "agent:main:dm:bob"
    assert key_of_direct_chat(body, peer="9") == "agent:main:dm:9"
    assert list(config_of(session(body)).session.identity_links) == ["alice", "bob"]
    assert refused('identityLinks: {alice: "telegram:123"}') == "session.identityLinks.alice"


@pytest.mark.spec("CFG-10", "LIFE-5")
def test_reset() -> None:
    assert policy("") == ("daily", 4, None)
    assert policy('reset: {mode: "daily", atHour: 0, idleMinutes: 120}') == ("daily", 0, 120)
    assert policy('reset: {mode: "idle", idleMinutes: "2h"}') == ("idle", 4, 120)
    assert policy("reset: {atHour: 23}") == ("daily", 23, None)
    assert refused('reset: {mode: "never"}') == "session.reset.mode"
    assert refused("reset: {atHour: 24}") == "session.reset.atHour"
    assert refused("reset: {atHour: -1}") == "session.reset.atHour"
    assert refused("reset: {atHour: 4.5}") == "session.reset.atHour"
    assert refused("reset: {idleMinutes: 0}") == "session.reset.idleMinutes"
    assert refused("reset: {idleMinutes: 0.9}") == "session.reset.idleMinutes"


@pytest.mark.spec("CFG-10", "LIFE-7")
def test_reset_by_type() -> None:
    body = """resetByType: {
      direct: {mode: "idle", idleMinutes: 240}, group: {atHour: 7}, thread: {idleMinutes: 5},
    }"""
    assert policy(body, "direct") == ("idle", 4, 240)
    assert policy(body, "group") == ("daily", 7, None)
    assert policy(body, "thread") == ("daily", 4, 5)
    assert refused("resetByType: {channel: {}}") == "session.resetByType.channel"
    assert refused('resetByType: {group: {mode: "x"}}') == "session.resetByType.group.mode"


@pytest.mark.spec("CFG-11")
def test_reset_by_type_dm() -> None:
    written = session('resetByType: {dm: {mode: "idle", idleMinutes: 240}}')
    assert config_of(written) == config_of(written.replace("dm", "direct"))
    assert policy('resetByType: {dm: {mode: "idle", idleMinutes: 240}}', "direct") == ("idle", 4, 240)
    assert refused("resetByType: {dm: {atHour: 99}}") == "session.resetByType.dm.atHour"


@pytest.mark.spec("CFG-10", "LIFE-8")
def test_reset_by_channel() -> None:
    body = 'reset: {atHour: 1}, resetByChannel: {Discord: {mode: "idle", idleMinutes: 10080}}'
    assert policy(body, "group", "discord") == ("idle", 4, 10080)
    assert policy(body, "group", "telegram") == ("daily", 1, None)
    assert refused("resetByChannel: {discord: 5}") == "session.resetByChannel.discord"
    assert refused("resetByChannel: {discord: {atHour: 24}}") == "session.resetByChannel.discord.atHour"


@pytest.mark.spec("CFG-11", "LIFE-6")
def test_idle_minutes() -> None:
    assert policy("idleMinutes: 30") == ("idle", 4, 30)
    assert policy("idleMinutes: 30, reset: {atHour: 5}") == ("daily", 5, 30)
    assert policy("idleMinutes: 1.9") == ("idle", 4, 1)
    assert refused("idleMinutes: 0") == "session.idleMinutes"
    assert refused('idleMinutes: "soon"') == "session.idleMinutes"


@pytest.mark.spec("CFG-10", "LIFE-13")
def test_reset_triggers() -> None:
    config = config_of(session('resetTriggers: ["/fresh"]'))
    triggers = config.session.reset_triggers
    assert match_trigger("/fresh hello", authorised=True, extra_triggers=triggers) is not None
    assert match_trigger("/new", authorised=True, extra_triggers=triggers) is not None
    assert match_trigger("/fresh", authorised=True) is None
    assert config_of("{}").session.reset_triggers == ("/new", "/reset")
    assert config_of(session("resetTriggers: []")).session.reset_triggers == ()
    assert refused('resetTriggers: "/fresh"') == "session.resetTriggers"
    assert refused('resetTriggers: ["ok", " "]') == "session.resetTriggers[1]"


@pytest.mark.spec("CFG-10", "CFG-2")
def test_store() -> None:
    env = {"HOME": "/home/ann", "OPENCLAW_STATE_DIR": "/srv/claw"}
    config = config_of(session('store: "~/chats/{agentId}/s.json"'))
    assert session_store_path(config, "bob", env) == Path("/home/ann/chats/bob/s.json")
    default = Path("/srv/claw/agents/bob/sessions/sessions.json")
    assert session_store_path(config_of("{}"), "bob", env) == default
    assert refused('store: ""') == "session.store"


@pytest.mark.spec("CFG-10", "KEY-1")
def test_main_key() -> None:
    assert key_of_direct_chat('mainKey: "Primary"') == "agent:main:primary"
    assert views.key_settings(config_of("{}")).main_key == "main"
    assert refused('mainKey: "two words"') == "session.mainKey"
    assert refused('mainKey: "a:b"') == "session.mainKey"
    assert refused('mainKey: ""') == "session.mainKey"


@pytest.mark.spec("CFG-10", "CFG-12", "A2A-12")
def test_agent_to_agent_max_ping_pong_turns() -> None:
    assert views.ping_pong_turns(config_of("{}")) == 5
    for turns in (0, 1, 20):
        assert (
            views.ping_pong_turns(config_of(session(f"agentToAgent: {{maxPingPongTurns: {turns}}}"))) == turns
        )
    for wrong in ("-1", "21", "2.5", '"many"', "true"):
        path = refused(f"agentToAgent: {{maxPingPongTurns: {wrong}}}")
        assert path == "session.agentToAgent.maxPingPongTurns"


@pytest.mark.spec("CFG-10", "SEND-2", "SEND-7")
def test_send_policy() -> None:
    body = """sendPolicy: { default: "deny", rules: [
      { action: "allow", match: { chatType: "dm" } },
      { action: "allow", match: { channel: "slack", chatType: "room", rawKeyPrefix: "agent:main:" } },
      { action: "deny", match: { keyPrefix: "cron:" } },
    ]}"""
    policy_ = views.send_policy(config_of(session(body)))

    def decision(key: str, channel: str, chat_type: ChatType) -> str:
        return decide_send(policy_, SendFacts(key=key, channel=channel, chat_type=chat_type)).action

    assert decision("agent:main:telegram:dm:1", "telegram", "direct") == "allow"
    assert decision("agent:main:slack:channel:1", "slack", "channel") == "allow"
    assert decision("agent:bob:slack:channel:1", "slack", "channel") == "deny"
    assert decision("agent:main:cron:x", "internal", "direct") == "deny"
    assert views.send_policy(config_of("{}")) is None
    assert refused('sendPolicy: {rules: [{action: "maybe"}]}') == "session.sendPolicy.rules[0].action"
    assert refused("sendPolicy: {rules: [{match: {}}]}") == "session.sendPolicy.rules[0].action"
    assert refused('sendPolicy: {default: "no"}') == "session.sendPolicy.default"
    wrong_type = 'sendPolicy: {rules: [{action: "deny", match: {chatType: "party"}}]}'
    assert refused(wrong_type) == "session.sendPolicy.rules[0].match.chatType"
    unknown = 'sendPolicy: {rules: [{action: "deny", match: {peer: "1"}}]}'
    assert refused(unknown) == "session.sendPolicy.rules[0].match.peer"


@pytest.mark.spec("CFG-10", "CFG-20", "SPAWN-8")
def test_thread_bindings_default_spawn_context() -> None:
    assert config_of("{}").session.thread_bindings.default_spawn_context == "fork"
    body = 'threadBindings: {defaultSpawnContext: "isolated"}'
    assert config_of(session(body)).session.thread_bindings.default_spawn_context == "isolated"
    path = refused('threadBindings: {defaultSpawnContext: "copy"}')
    assert path == "session.threadBindings.defaultSpawnContext"


@pytest.mark.spec("CFG-21", "BIND-2")
def test_thread_bindings() -> None:
    bindings = config_of("{}").session.thread_bindings
    assert (bindings.enabled, bindings.idle_hours, bindings.max_age_hours) == (True, 24, 0)
    assert bindings.spawn_sessions is True
    body = 'threadBindings: {enabled: false, idleHours: "2d", maxAgeHours: 72, spawnSessions: false}'
    bindings = config_of(session(body)).session.thread_bindings
    assert (bindings.enabled, bindings.idle_hours, bindings.max_age_hours) == (False, 48, 72)
    assert bindings.spawn_sessions is False
    assert refused("threadBindings: {idleHours: -1}") == "session.threadBindings.idleHours"


@pytest.mark.spec("CFG-21", "DB-14")
def test_write_lock_acquire_timeout_ms() -> None:
    assert config_of("{}").session.write_lock.acquire_timeout_ms == 60_000
    config = config_of(session('writeLock: {acquireTimeoutMs: "5s"}'))
    assert config.session.write_lock.acquire_timeout_ms == 5000
    assert refused('writeLock: {acquireTimeoutMs: "long"}') == "session.writeLock.acquireTimeoutMs"


DAY_MS = 86_400_000


@pytest.mark.spec("MAINT-1", "MAINT-6")
def test_maintenance() -> None:
    kept = views.retention(config_of("{}"))
    assert (kept.mode, kept.prune_after_ms, kept.max_entries) == ("enforce", 30 * DAY_MS, 5000)
    assert (kept.reset_archive_ms, kept.max_disk_bytes, kept.high_water_bytes) == (30 * DAY_MS, None, None)
    assert kept.cron_session_ms == DAY_MS
    body = """{session: {maintenance: {mode: "warn", pruneAfter: 7, maxEntries: 10,
      resetArchiveRetention: "1d", maxDiskBytes: "500mb"}}, cron: {sessionRetention: 48}}"""
    kept = views.retention(config_of(body))
    assert (kept.mode, kept.prune_after_ms, kept.max_entries) == ("warn", 7 * DAY_MS, 10)
    assert (kept.reset_archive_ms, kept.cron_session_ms) == (DAY_MS, 2 * DAY_MS)
    assert (kept.max_disk_bytes, kept.high_water_bytes) == (500 * 1024**2, 400 * 1024**2)
    body = """{session: {maintenance: {pruneAfter: 0, maxEntries: 0, resetArchiveRetention: false,
      maxDiskBytes: 1000, highWaterBytes: 10}}, cron: {sessionRetention: false}}"""
    kept = views.retention(config_of(body))
    assert (kept.prune_after_ms, kept.max_entries, kept.reset_archive_ms, kept.cron_session_ms) == (None,) * 4
    assert kept.high_water_bytes == 10
    assert refused('maintenance: {mode: "gentle"}') == "session.maintenance.mode"
    assert refused("maintenance: {maxEntries: -1}") == "session.maintenance.maxEntries"
