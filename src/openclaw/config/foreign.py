"""Settings that other implementations of this product know and this one does not.

A file that was written for one of them shall start here: each such key gives one
warning and is ignored. Keys that restrict what an agent may do are left out on purpose
(`tools.exec`, `tools.fs`, `tools.elevated`): a limit must never be dropped in passing.
A key in neither our schema nor this table is a mistake. Paths use `*` for any one key
or list index.
"""

from __future__ import annotations

from openclaw.config.nodes import Path

_SECTIONS = (
    "accessGroups acp approvals audio auth broadcast browser canvasHost cli cloudWorkers"
    " commitments crestodian diagnostics discovery env mcp media memory meta nodeHost plugins"
    " proxy secrets security skills surfaces talk telemetry transcripts tts ui update web wizard"
    " worktrees"
)

_HEARTBEAT = (
    "directPolicy includeReasoning includeSystemPromptSection isolatedSession lightContext skipWhenBusy"
)
_SANDBOX = "backend browser docker perSession prune ssh workspaceRoot"
_TOOLS = "codeMode experimental links loopDetection media toolSearch web"

_KEYS = {
    "session": "parentForkMaxTokens typingIntervalSeconds typingMode notifyOnCreate",
    "session.maintenance": "pruneDays rotateBytes",
    "session.threadBindings": "spawnAcpSessions spawnSubagentSessions",
    "agents.defaults": (
        "blockStreamingBreak blockStreamingChunk blockStreamingCoalesce blockStreamingDefault"
        " bootstrapMaxChars bootstrapTotalMaxChars bootstrapPromptTruncationWarning cliBackends"
        " contextInjection elevatedDefault embeddedPi envelopeElapsed envelopeTimestamp envelopeTimezone"
        " fastModeDefault humanDelay imageGenerationModel imageMaxDimensionPx imageModel llm mediaMaxMb"
        " memorySearch musicGenerationModel params pdfMaxBytesMb pdfMaxPages pdfModel reasoningDefault"
        " repoRoot skills skipBootstrap startupContext systemPromptOverride timeFormat"
        " typingIntervalSeconds typingMode userTimezone videoGenerationModel agentRuntime"
    ),
    "agents.defaults.heartbeat": _HEARTBEAT + " suppressToolErrorWarnings timeoutSeconds",
    "agents.defaults.sandbox": _SANDBOX,
    "agents.defaults.compaction": (
        "customInstructions maxHistoryShare midTurnPrecheck postCompactionSections postIndexSync provider"
        " qualityGuard recentTurnsPreserve truncateAfterCompaction"
    ),
    "agents.defaults.compaction.memoryFlush": "forceFlushTranscriptBytes",
    "agents.list.*": (
        "agentDir agentRuntime fastModeDefault humanDelay memorySearch params reasoningDefault runtime"
        " skills skillsLimits systemPromptOverride embeddedPi"
    ),
    "agents.list.*.heartbeat": _HEARTBEAT + " suppressToolErrorWarnings timeoutSeconds",
    "agents.list.*.sandbox": _SANDBOX,
    "agents.list.*.tools": _TOOLS,
    "agents.list.*.groupChat": "unmentionedInbound visibleReplies",
    "tools": _TOOLS,
    "models": "bedrockDiscovery mode pricing",
    "models.providers.*": "auth authHeader headers injectNumCtxForOpenAICompat request timeoutSeconds",
    "models.providers.*.models.*": "api compat contextTokens headers params thinkingLevelMap",
    "messages": (
        "ackReaction ackReactionScope messagePrefix removeAckAfterReply responsePrefix statusReactions"
        " suppressToolErrors tts usageTemplate visibleReplies"
    ),
    "messages.groupChat": "unmentionedInbound visibleReplies",
    "commands": "bashForegroundMs mcp nativeSkills ownerDisplay ownerDisplaySecret plugins",
    "channels": "modelByChannel",
    "gateway": (
        "allowRealIpFallback auditLog channelHealthCheckMinutes channelMaxRestartsPerHour"
        " channelStaleEventThresholdMinutes handshakeTimeoutMs nodes push tailscale tls trustedProxies"
        " webchat"
    ),
    "gateway.auth": "allowTailscale trustedProxy",
    "gateway.remote": "sshIdentity sshTarget tlsFingerprint transport enabled",
    "gateway.reload": "deferralTimeoutMs",
    "gateway.controlUi": (
        "allowExternalEmbedUrls allowInsecureAuth basePath chatMessageMaxWidth"
        " dangerouslyAllowHostHeaderOriginFallback dangerouslyDisableDeviceAuth embedSandbox root"
    ),
    "gateway.http": "securityHeaders",
    "gateway.http.endpoints.chatCompletions": "images maxBodyBytes maxImageParts maxTotalImageBytes",
    "gateway.http.endpoints.responses": "files images maxBodyBytes maxUrlParts",
    "cron": "failureAlert failureDestination retry runLog store webhook",
    "hooks": "gmail mappings presets transformsDir",
    "hooks.internal": "handlers installs load",
    "hooks.internal.entries.*": "env messages",
    "logging": "consoleLevel consoleStyle file maxFileBytes redactPatterns redactSensitive",
}


def _patterns() -> dict[tuple[str, ...], frozenset[str]]:
    table = {tuple(where.split(".")): frozenset(names.split()) for where, names in _KEYS.items()}
    table[()] = frozenset(_SECTIONS.split())
    return table


FOREIGN_KEYS = _patterns()


def is_foreign(parent: Path, key: str) -> bool:
    """Whether other implementations know this key at this place."""
    return any(key in names and _matches(pattern, parent) for pattern, names in FOREIGN_KEYS.items())


def foreign_reason(parent: Path, key: str) -> str:
    """What to tell the owner of the file about an ignored key."""
    if not parent and key == "env":
        return "ignored: set these variables in the environment of the gateway instead"
    return "ignored: this setting belongs to another implementation"


def _matches(pattern: tuple[str, ...], path: Path) -> bool:
    return len(pattern) == len(path) and all(
        expected in ("*", step) for expected, step in zip(pattern, path, strict=True)
    )
