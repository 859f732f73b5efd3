"""What a provider's kind of credential suggests where the configuration says nothing (PRUNE-6).

Part of the composition root. It reads nothing of a key but the prefix that tells its kind.
"""

from __future__ import annotations

import msgspec

from openclaw.domain.pruning import CredentialKind, anthropic_defaults
from openclaw.engine.ports import ModelTarget

HEARTBEAT_EVERY_MS = 30 * 60_000
PRUNING_TTL_MS = 300_000
_SUBSCRIPTION_PREFIX = "sk-ant-oat"


def credential_of(target: ModelTarget) -> CredentialKind | None:
    """The kind of credential that an Anthropic model is used with; None for everybody else's models."""
    if target.provider != "anthropic" or target.dialect != "anthropic" or not target.api_key:
        return None
    return "oauth" if target.api_key.startswith(_SUBSCRIPTION_PREFIX) else "api_key"


def with_cache_ttl(target: ModelTarget, pruning_ttl_ms: int | None) -> ModelTarget:
    """The model, asked to keep beginnings as long as they are not pruned. An explicit `ttl` wins."""
    credential = credential_of(target)
    if credential is None:
        return target
    return msgspec.structs.replace(
        target, cache_ttl_ms=anthropic_defaults(credential, cache_ttl_ms=pruning_ttl_ms).cache_ttl_ms
    )


def pruning_ttl_ms(target: ModelTarget, given_ms: int | None) -> int:
    """After which pause old tool results may be pruned."""
    if given_ms is not None:
        return given_ms
    return PRUNING_TTL_MS if target.cache_ttl_ms is None else target.cache_ttl_ms


def heartbeat_every_ms(target: ModelTarget, given_ms: int | None) -> int:
    """How often a heartbeat runs whose configuration does not say it."""
    credential = credential_of(target)
    if given_ms is not None or credential is None:
        return HEARTBEAT_EVERY_MS if given_ms is None else given_ms
    return anthropic_defaults(credential).heartbeat_every_ms
