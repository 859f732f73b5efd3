"""The exception tree of the whole product. Imports nothing of ours.

Every leaf has a stable `code` (what goes on the wire and into `--json`), a
docstring that is its default message, and free `fields` for machines. Inside a
run failure is data; these are for refusing a request and for broken ground.

    OpenClawError
    ├── InvalidRequest              INVALID_REQUEST
    │   ├── InvalidSessionKey
    │   ├── SessionNotFound
    │   ├── IdempotencyConflict
    │   ├── LabelInUse
    │   ├── LineageImmutable
    │   └── SendDenied
    ├── Forbidden                   FORBIDDEN
    ├── VersionConflict             CONFLICT
    ├── ConfigInvalid               CONFIG_INVALID
    ├── Unavailable                 UNAVAILABLE
    │   └── Overloaded
    └── StoreError                  STORE_ERROR
        ├── StoreLocked             another process owns the state directory
        ├── StoreTooNew
        ├── StoreCorrupt
        ├── StoreReadOnly
        ├── StoreFull
        ├── StoreBusy
        └── StoreClosed
"""

from __future__ import annotations

from typing import ClassVar


class OpenClawError(Exception):
    """Something went wrong in OpenClaw."""

    code: ClassVar[str] = "INTERNAL"
    retryable: ClassVar[bool] = False

    def __init__(self, message: str | None = None, **fields: object) -> None:
        self.message = message or self.default_message()
        self.fields = fields
        super().__init__(self.message)

    @classmethod
    def default_message(cls) -> str:
        return " ".join((cls.__doc__ or cls.__name__).split())


class InvalidRequest(OpenClawError):
    """The request cannot be carried out as it was sent."""

    code = "INVALID_REQUEST"


class InvalidSessionKey(InvalidRequest):
    """The session key is malformed."""


class SessionNotFound(InvalidRequest):
    """No such session."""


class IdempotencyConflict(InvalidRequest):
    """idempotency key already used"""


class LabelInUse(InvalidRequest):
    """label already in use"""


class LineageImmutable(InvalidRequest):
    """Lineage fields are set once, on sub-agent sessions only."""


class SendDenied(InvalidRequest):
    """send blocked by session policy"""


class Forbidden(OpenClawError):
    """Not allowed."""

    code = "FORBIDDEN"


class VersionConflict(OpenClawError):
    """The session changed in the meantime. Read it again and retry."""

    code = "CONFLICT"
    retryable = True


class ConfigInvalid(OpenClawError):
    """The configuration file is not valid."""

    code = "CONFIG_INVALID"


class Unavailable(OpenClawError):
    """Not available right now."""

    code = "UNAVAILABLE"
    retryable = True


class Overloaded(Unavailable):
    """Too much work is waiting. Nothing was stored; try again shortly."""


class StoreError(OpenClawError):
    """The store could not do this."""

    code = "STORE_ERROR"


class StoreLocked(StoreError):
    """Another gateway owns this state directory."""

    code = "STORE_LOCKED"


class StoreTooNew(StoreError):
    """The database was written by a newer version. Upgrade openclaw; nothing was changed."""

    code = "STORE_TOO_NEW"


class StoreCorrupt(StoreError):
    """The database file is damaged or not a database. It was not changed."""

    code = "STORE_CORRUPT"


class StoreReadOnly(StoreError):
    """The state directory or the database cannot be written."""

    code = "STORE_READ_ONLY"


class StoreFull(StoreError):
    """The disk is full. Nothing of this request was stored."""

    code = "STORE_FULL"
    retryable = True


class StoreBusy(StoreError):
    """session busy: the store did not get to this write in time"""

    code = "STORE_BUSY"
    retryable = True


class StoreClosed(StoreError):
    """The store is closed."""

    code = "STORE_CLOSED"
