"""The parameters of cron.*: scheduled jobs. Shapes only; what fits together is `domain.jobs`'s to say."""

from __future__ import annotations

from typing import Annotated, Literal

import msgspec
from msgspec import Meta

from openclaw.domain.jobs import JobDelivery, Payload, Schedule
from openclaw.protocol.connect import ClosedObject
from openclaw.protocol.params import IdText, SessionKeyText

NameText = Annotated[str, Meta(min_length=1, max_length=200)]
TargetText = Annotated[str, Meta(min_length=1, max_length=512)]
LongText = Annotated[str, Meta(max_length=2000)]
WakeMode = Literal["now", "next-heartbeat"]


class CronListParams(ClosedObject, frozen=True, kw_only=True):
    include_disabled: bool = True
    agent_id: IdText | None = None


class CronStatusParams(ClosedObject, frozen=True, kw_only=True):
    pass


class CronAddParams(ClosedObject, frozen=True, kw_only=True):
    """`sessionKey` is what `sessionTarget: "current"` means."""

    name: NameText
    schedule: Schedule
    session_target: TargetText
    payload: Payload
    wake_mode: WakeMode = "now"
    delivery: JobDelivery | None = None
    enabled: bool = True
    delete_after_run: bool | None = None
    agent_id: IdText | None = None
    description: LongText | None = None
    session_key: SessionKeyText | None = None


class CronPatch(ClosedObject, frozen=True, kw_only=True):
    name: NameText | msgspec.UnsetType = msgspec.UNSET
    schedule: Schedule | msgspec.UnsetType = msgspec.UNSET
    session_target: TargetText | msgspec.UnsetType = msgspec.UNSET
    payload: Payload | msgspec.UnsetType = msgspec.UNSET
    wake_mode: WakeMode | msgspec.UnsetType = msgspec.UNSET
    delivery: JobDelivery | msgspec.UnsetType = msgspec.UNSET
    enabled: bool | msgspec.UnsetType = msgspec.UNSET
    delete_after_run: bool | msgspec.UnsetType = msgspec.UNSET
    agent_id: IdText | msgspec.UnsetType = msgspec.UNSET
    description: LongText | msgspec.UnsetType | None = msgspec.UNSET


class CronUpdateParams(ClosedObject, frozen=True, kw_only=True):
    id: IdText
    patch: CronPatch


class CronJobParams(ClosedObject, frozen=True, kw_only=True):
    id: IdText


class CronRunParams(ClosedObject, frozen=True, kw_only=True):
    id: IdText
    mode: Literal["force", "due"] = "force"


class CronRunsParams(ClosedObject, frozen=True, kw_only=True):
    id: IdText
    limit: Annotated[int, Meta(ge=1, le=200)] = 50
