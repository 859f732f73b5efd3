"""The table of methods: name, parameters, answer, least scope. What has no row is denied (RPC-3).

Handlers live in the gateway. This room decides whether a call is well formed and
allowed, in that order of questions which tells a stranger least: role, name,
scope, parameters, and once more scope where it depends on the parameters.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from functools import cache
from typing import Final

import msgspec
from msgspec import Raw, Struct

from openclaw.errors import InvalidRequest
from openclaw.protocol import params, params_tools, params_upkeep, results, results_tools, results_upkeep
from openclaw.protocol.connect import OPERATOR, ClosedObject, Role
from openclaw.protocol.errors import clip
from openclaw.protocol.frames import Request
from openclaw.protocol.intake import contains_nul
from openclaw.protocol.scopes import ADMIN, READ, WRITE, check_scope
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
    result: type[results.Answer]
    scope: str
    scope_for: Callable[[ClosedObject], str] | None = None
    second_result: type[results.Answer] | None = None


_PATCH = MethodSpec(params.SessionsPatchParams, results.SessionPatched, WRITE, patch_scope)
_MESSAGES = MethodSpec(params.SessionsMessagesParams, results.MessagesSubscribed, READ)
_AGENT = MethodSpec(params.AgentParams, results.AgentAccepted, WRITE, second_result=results.AgentFinished)

METHODS: Final[Mapping[str, MethodSpec]] = {
    "health": MethodSpec(params.HealthParams, results.Health, READ),
    "status": MethodSpec(params.StatusParams, results.Status, READ),
    "agents.list": MethodSpec(params.AgentsListParams, results.AgentsList, READ),
    "models.list": MethodSpec(params.ModelsListParams, results.ModelsList, READ),
    "sessions.list": MethodSpec(params.SessionsListParams, results.SessionsList, READ),
    "sessions.subscribe": MethodSpec(params.SessionsSubscribeParams, results.SessionsSubscribed, READ),
    "sessions.messages.subscribe": _MESSAGES,
    "sessions.messages.unsubscribe": _MESSAGES,
    "sessions.describe": MethodSpec(params.SessionsDescribeParams, results.SessionDescribed, READ),
    "sessions.resolve": MethodSpec(params.SessionsResolveParams, results.SessionResolved, READ),
    "sessions.create": MethodSpec(params.SessionsCreateParams, results.SessionCreated, WRITE),
    "sessions.patch": _PATCH,
    # The whole store, or the whole of a transcript with what is hidden: for the owner.
    "sessions.cleanup": MethodSpec(
        params_upkeep.SessionsCleanupParams, results_upkeep.SessionsCleanup, ADMIN
    ),
    "sessions.erase": MethodSpec(params_upkeep.SessionsEraseParams, results_upkeep.SessionsErased, ADMIN),
    "sessions.export": MethodSpec(params_upkeep.SessionsExportParams, results_upkeep.SessionsExported, ADMIN),
    "backup.create": MethodSpec(params_upkeep.BackupCreateParams, results_upkeep.BackupCreated, ADMIN),
    "chat.history": MethodSpec(params.ChatHistoryParams, results.ChatHistory, READ),
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
        return _decoder(kind).decode(b"{}" if text in (b"", b"null") else text)
    except msgspec.ValidationError as error:
        raise InvalidRequest(f"invalid {method} params: {describe_violation(error, kind)}")
    except (msgspec.DecodeError, UnicodeDecodeError):
        raise InvalidRequest(f"invalid {method} params: must be JSON")


@cache
def _decoder(kind: type[ClosedObject]) -> msgspec.json.Decoder[ClosedObject]:
    return msgspec.json.Decoder(kind)


# Large frames are read on a thread, and msgspec must not learn a type on two threads: it learns here.
for _spec in METHODS.values():
    _decoder(_spec.params)


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
        raise InvalidRequest(f"unauthorized role: {role}")
    spec = find_method(request.method, methods)
    check_scope(scopes, spec.scope)
    call_params = _decode(request.method, spec.params, request.params)
    if spec.scope_for is not None:
        check_scope(scopes, spec.scope_for(call_params))
    return call_params
