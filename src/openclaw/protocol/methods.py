"""The table of methods: name, parameters, answer, least scope. What has no row is denied (RPC-3).

Handlers live in the gateway. This room decides whether a call is well formed and
allowed, in that order of questions which tells a stranger least: role, name,
scope, parameters, and once more scope where it depends on the parameters.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from functools import cache
from typing import Any, Final

import msgspec
from msgspec import Raw, Struct

from openclaw.errors import InvalidRequest
from openclaw.protocol import (
    params,
    params_channels,
    params_cron,
    params_dashboard,
    params_devices,
    params_insight,
    params_outbox,
    params_sessions,
    params_system,
    params_tools,
    params_upkeep,
    results,
    results_channels,
    results_cron,
    results_dashboard,
    results_devices,
    results_insight,
    results_outbox,
    results_sessions,
    results_system,
    results_tools,
    results_upkeep,
)
from openclaw.protocol.connect import OPERATOR, ClosedObject, Role
from openclaw.protocol.errors import clip
from openclaw.protocol.frames import Request
from openclaw.protocol.intake import contains_nul, holds_huge_number
from openclaw.protocol.nodes import NODE_METHODS
from openclaw.protocol.scopes import ADMIN, PAIRING, READ, WRITE, check_scope
from openclaw.protocol.violations import MAX_NAME_CHARS, describe_violation

# Patch fields that arrange a person's own list or choose the model; any other field needs admin.
WRITE_PATCH_FIELDS: Final = frozenset(
    {
        "label",
        "icon",
        "color",
        "category",
        "pinned",
        "archived",
        "unread",
        "model",
        "thinking_level",
        "fast_mode",
    }
)


def patch_scope(patch: ClosedObject) -> str:
    """The scope that a `sessions.patch` needs for exactly the fields it sets."""
    assert isinstance(patch, params.SessionsPatchParams)
    return WRITE if patch.changes().keys() <= WRITE_PATCH_FIELDS else ADMIN


class MethodSpec(Struct, frozen=True):
    """One row. `scope` is the least scope; `scope_for` may ask for more once the parameters are known.

    A method with a `second_result` answers twice under the same request id.
    """

    params: type[ClosedObject]
    result: Any  # an Answer, or a list of them
    scope: str
    scope_for: Callable[[ClosedObject], str] | None = None
    second_result: type[results.Answer] | None = None


_PATCH = MethodSpec(params.SessionsPatchParams, results.SessionPatched, WRITE, patch_scope)
_MESSAGES = MethodSpec(params.SessionsMessagesParams, results.MessagesSubscribed, READ)
_AGENT = MethodSpec(params.AgentParams, results.AgentAccepted, WRITE, second_result=results.AgentFinished)
_NOTHING = params_system.NoParams
_CONFIG_WRITE = MethodSpec(params_system.ConfigWriteParams, results_system.ConfigChanged, ADMIN)
_DELIVERY = MethodSpec(params_outbox.OutboxItemParams, results_outbox.OutboxItem, ADMIN)

_NO_LIST = params_sessions.NothingListedParams
_APPROVALS = MethodSpec(_NO_LIST, list[results_sessions.Approval], READ)
_SEND = MethodSpec(params_sessions.SessionsSendParams, results.ChatSent, WRITE)

METHODS: Final[Mapping[str, MethodSpec]] = {
    "health": MethodSpec(params.HealthParams, results.Health, READ),
    "status": MethodSpec(params.StatusParams, results.Status, READ),
    "agents.list": MethodSpec(params.AgentsListParams, results.AgentsList, READ),
    "agent.identity.get": MethodSpec(
        params_sessions.AgentIdentityParams, results_sessions.AgentIdentity, READ
    ),
    "models.list": MethodSpec(params.ModelsListParams, results.ModelsList, READ),
    "commands.list": MethodSpec(params_sessions.CommandsListParams, results_sessions.CommandsList, READ),
    "taskSuggestions.list": MethodSpec(_NO_LIST, results_sessions.TaskSuggestions, READ),
    "exec.approval.list": _APPROVALS,
    "plugin.approval.list": _APPROVALS,
    "system-presence": MethodSpec(_NOTHING, results_system.PresenceEntry, READ),
    "channels.status": MethodSpec(params_system.ChannelsStatusParams, results_system.ChannelsStatus, READ),
    "node.list": MethodSpec(_NOTHING, results_system.NodeList, READ),
    "node.pair.list": MethodSpec(_NOTHING, results_system.NodePairs, PAIRING),
    "question.list": MethodSpec(_NOTHING, results_system.QuestionList, READ),
    "logs.tail": MethodSpec(params_system.LogsTailParams, results_system.LogsTail, READ),
    "diagnostics.list": MethodSpec(
        params_system.DiagnosticsListParams, results_system.DiagnosticsList, ADMIN
    ),
    "usage.status": MethodSpec(_NOTHING, results_system.UsageStatus, READ),
    "usage.cost": MethodSpec(params_system.UsageCostParams, results_system.UsageCost, READ),
    "wake": MethodSpec(params_system.WakeParams, results_system.EventTaken, WRITE),
    "system-event": MethodSpec(params_system.SystemEventParams, results_system.EventTaken, WRITE),
    "last-heartbeat": MethodSpec(_NOTHING, results_system.LastHeartbeat, READ),
    # The file that says who may do what: for the owner, also to look at.
    "config.get": MethodSpec(_NOTHING, results_system.ConfigRead, ADMIN),
    "config.schema": MethodSpec(_NOTHING, results_system.ConfigSchema, ADMIN),
    "config.set": _CONFIG_WRITE,
    "config.patch": _CONFIG_WRITE,
    "config.apply": _CONFIG_WRITE,
    "sessions.list": MethodSpec(params.SessionsListParams, results.SessionsList, READ),
    "sessions.subscribe": MethodSpec(params.SessionsSubscribeParams, results.SessionsSubscribed, READ),
    "sessions.messages.subscribe": _MESSAGES,
    "sessions.messages.unsubscribe": _MESSAGES,
    "sessions.describe": MethodSpec(params.SessionsDescribeParams, results.SessionDescribed, READ),
    "sessions.resolve": MethodSpec(params.SessionsResolveParams, results.SessionResolved, READ),
    "sessions.create": MethodSpec(params.SessionsCreateParams, results.SessionCreated, WRITE),
    "sessions.patch": _PATCH,
    # What ends a conversation or rewrites its context is for the owner; removing one key is not more
    # than a writer may do (PROTOCOL §2).
    "sessions.reset": MethodSpec(params_sessions.SessionsResetParams, results_sessions.SessionReset, ADMIN),
    "sessions.delete": MethodSpec(
        params_sessions.SessionsDeleteParams, results_sessions.SessionDeleted, WRITE
    ),
    "sessions.restore": MethodSpec(
        params_sessions.SessionsRestoreParams, results_sessions.SessionRestored, ADMIN
    ),
    "sessions.compact": MethodSpec(
        params_sessions.SessionsCompactParams, results_sessions.SessionCompacted, ADMIN
    ),
    "sessions.send": _SEND,
    "sessions.steer": _SEND,
    "sessions.abort": MethodSpec(params_sessions.SessionsAbortParams, results_sessions.SessionAborted, WRITE),
    "sessions.preview": MethodSpec(
        params_sessions.SessionsPreviewParams, results_sessions.SessionsPreviewed, READ
    ),
    "sessions.get": MethodSpec(params_sessions.SessionsGetParams, results_sessions.SessionMessages, READ),
    "sessions.usage": MethodSpec(params_sessions.SessionsUsageParams, results_sessions.SessionsUsage, READ),
    "sessions.search": MethodSpec(params_sessions.SessionsSearchParams, results_sessions.SearchHits, READ),
    "sessions.windows": MethodSpec(
        params_sessions.SessionsWindowsParams, results_sessions.SessionWindows, READ
    ),
    "sessions.tree": MethodSpec(params_sessions.SessionsTreeParams, results_sessions.SessionsTree, READ),
    # The whole store, or the whole of a transcript with what is hidden: for the owner.
    "sessions.cleanup": MethodSpec(
        params_upkeep.SessionsCleanupParams, results_upkeep.SessionsCleanup, ADMIN
    ),
    "sessions.erase": MethodSpec(params_upkeep.SessionsEraseParams, results_upkeep.SessionsErased, ADMIN),
    "sessions.export": MethodSpec(params_upkeep.SessionsExportParams, results_upkeep.SessionsExported, ADMIN),
    "backup.create": MethodSpec(params_upkeep.BackupCreateParams, results_upkeep.BackupCreated, ADMIN),
    "outbox.list": MethodSpec(params_outbox.OutboxListParams, results_outbox.OutboxList, ADMIN),
    "outbox.get": _DELIVERY,
    "outbox.retry": _DELIVERY,
    "outbox.drop": _DELIVERY,
    "explain": MethodSpec(params_insight.ExplainParams, results_insight.Explained, READ),
    "security.audit": MethodSpec(params_insight.SecurityAuditParams, results_insight.SecurityAudited, ADMIN),
    "device.pair.list": MethodSpec(
        params_devices.DevicePairListParams, results_devices.DevicePairList, PAIRING
    ),
    "device.pair.approve": MethodSpec(
        params_devices.DevicePairRequestParams, results_devices.DevicePairApproved, PAIRING
    ),
    "device.pair.reject": MethodSpec(
        params_devices.DevicePairRequestParams, results_devices.DevicePairRejected, PAIRING
    ),
    "device.pair.remove": MethodSpec(
        params_devices.DevicePairRemoveParams, results_devices.DevicePairRemoved, PAIRING
    ),
    "device.token.rotate": MethodSpec(
        params_devices.DeviceTokenRotateParams, results_devices.DeviceTokenRotated, PAIRING
    ),
    "device.token.revoke": MethodSpec(
        params_devices.DeviceTokenRevokeParams, results_devices.DeviceTokenRevoked, PAIRING
    ),
    # A browser that is signed in has the owner's rights.
    "dashboard.link": MethodSpec(
        params_dashboard.DashboardLinkParams, results_dashboard.DashboardLink, ADMIN
    ),
    "dashboard.signout": MethodSpec(
        params_dashboard.DashboardSignoutParams, results_dashboard.DashboardSignedOut, ADMIN
    ),
    "cron.list": MethodSpec(params_cron.CronListParams, results_cron.CronList, READ),
    "cron.status": MethodSpec(params_cron.CronStatusParams, results_cron.CronStatus, READ),
    "cron.runs": MethodSpec(params_cron.CronRunsParams, results_cron.CronRuns, READ),
    # A job acts again and again without anybody: for the owner.
    "cron.add": MethodSpec(params_cron.CronAddParams, results.Json, ADMIN),
    "cron.update": MethodSpec(params_cron.CronUpdateParams, results.Json, ADMIN),
    "cron.remove": MethodSpec(params_cron.CronJobParams, results_cron.CronRemoved, ADMIN),
    "cron.run": MethodSpec(params_cron.CronRunParams, results_cron.CronRan, ADMIN),
    # A connector speaks for everybody on its platform, and who is let in may use an agent's tools.
    "channels.attach": MethodSpec(
        params_channels.ChannelsAttachParams, results_channels.ChannelAttached, ADMIN
    ),
    "channels.detach": MethodSpec(
        params_channels.ChannelsDetachParams, results_channels.ChannelAttached, ADMIN
    ),
    "channels.settle": MethodSpec(
        params_channels.ChannelsSettleParams, results_channels.ChannelSettled, ADMIN
    ),
    "channels.inbound": MethodSpec(
        params_channels.ChannelsInboundParams, results_channels.ChannelInbound, ADMIN
    ),
    "pairing.list": MethodSpec(params_channels.PairingListParams, results_channels.PairingList, PAIRING),
    "pairing.approve": MethodSpec(
        params_channels.PairingApproveParams, results_channels.PairingApproved, ADMIN
    ),
    "pairing.remove": MethodSpec(params_channels.PairingRemoveParams, results_channels.PairingRemoved, ADMIN),
    "chat.history": MethodSpec(params.ChatHistoryParams, results.ChatHistory, READ),
    "chat.startup": MethodSpec(params_sessions.ChatStartupParams, results.ChatStarted, READ),
    "chat.message.get": MethodSpec(params_sessions.ChatMessageGetParams, results.ChatMessage, READ),
    "chat.metadata": MethodSpec(params_sessions.ChatMetadataParams, results.ChatMetadata, READ),
    "chat.send": MethodSpec(params.ChatSendParams, results.ChatSent, WRITE),
    "chat.abort": MethodSpec(params.ChatAbortParams, results.ChatAborted, WRITE),
    # Words put into the assistant's mouth: not for every writer.
    "chat.inject": MethodSpec(params.ChatInjectParams, results.ChatInjected, ADMIN),
    "agent": _AGENT,
    "agent.wait": MethodSpec(params.AgentWaitParams, results.AgentWaited, READ),
    "tools.catalog": MethodSpec(params_tools.ToolsCatalogParams, results_tools.ToolsCatalog, READ),
    "tools.effective": MethodSpec(params_tools.ToolsEffectiveParams, results_tools.ToolsEffective, READ),
    "tools.invoke": MethodSpec(params_tools.ToolsInvokeParams, results_tools.ToolsInvoked, WRITE),
}


def find_method(method: str, methods: Mapping[str, MethodSpec] = METHODS) -> MethodSpec:
    spec = methods.get(method)
    if spec is None:
        raise InvalidRequest(f"unknown method: {clip(method, MAX_NAME_CHARS)}")
    return spec


def decode_params(method: str, raw: Raw, methods: Mapping[str, MethodSpec] = METHODS) -> ClosedObject:
    """The typed parameters, or InvalidRequest with the sentence clients know (RPC-2).

    Absent parameters and `null` count as an empty object.
    """
    return _decode(method, find_method(method, methods).params, raw)


def _decode(method: str, kind: type[ClosedObject], raw: Raw) -> ClosedObject:
    text = bytes(raw).strip()
    if contains_nul(text):
        raise InvalidRequest(f"invalid {method} params: text must not contain NUL characters; remove them")
    try:
        if holds_huge_number(text):
            raise InvalidRequest(
                f"invalid {method} params: numbers must lie within 53 bits; use a smaller one"
            )
        return _decoder(kind).decode(b"{}" if text in (b"", b"null") else text)
    except msgspec.ValidationError as error:
        raise InvalidRequest(f"invalid {method} params: {describe_violation(error, kind)}")
    except (msgspec.DecodeError, UnicodeDecodeError):
        raise InvalidRequest(f"invalid {method} params: must be JSON")


@cache
def _decoder(kind: type[ClosedObject]) -> msgspec.json.Decoder[ClosedObject]:
    return msgspec.json.Decoder(kind)


# Large frames are read on a thread, and msgspec must not learn a type on two threads: it learns here.
for _kind in (*(spec.params for spec in METHODS.values()), *(spec.params for spec in NODE_METHODS.values())):
    _decoder(_kind)


def required_scope(
    method: str, call_params: ClosedObject | None = None, methods: Mapping[str, MethodSpec] = METHODS
) -> str:
    """The scope this call needs; without parameters, the least that any call of the method needs."""
    spec = find_method(method, methods)
    if call_params is None or spec.scope_for is None:
        return spec.scope
    return spec.scope_for(call_params)


def admit_call(
    request: Request, role: Role, scopes: Collection[str], methods: Mapping[str, MethodSpec] = METHODS
) -> ClosedObject:
    """The parameters of a call that may go ahead; InvalidRequest or Forbidden otherwise (RPC-3)."""
    if role != OPERATOR:
        own = NODE_METHODS.get(request.method)
        if own is None:
            raise InvalidRequest(f"unauthorized role: {role}")
        return _decode(request.method, own.params, request.params)
    spec = find_method(request.method, methods)
    check_scope(scopes, spec.scope)
    call_params = _decode(request.method, spec.params, request.params)
    if spec.scope_for is not None:
        check_scope(scopes, spec.scope_for(call_params))
    return call_params
