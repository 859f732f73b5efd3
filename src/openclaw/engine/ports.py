"""The powers that the engine is given: models, tools, time, ids, and a place for events.

Narrow signatures only; implementations live in `models`, `engine.tools` and
`app`. A model never raises for a provider's failure: failure is a final message
with a stop reason, so that the run loop has one path.
"""

from __future__ import annotations

from asyncio.subprocess import Process
from collections.abc import AsyncGenerator, Callable
from typing import Any, Literal, Protocol

from msgspec import Struct

from openclaw.domain.context import Dialect
from openclaw.domain.entry import DeliveryContext
from openclaw.domain.transcript import AssistantMessage, Message, UserBlock
from openclaw.store.database import Transaction


class ModelPrice(Struct, frozen=True):
    """US dollars per million tokens; None where the price is unknown."""

    input: float | None = None
    output: float | None = None
    cache_read: float | None = None
    cache_write: float | None = None


class ModelTarget(Struct, frozen=True):
    """One model as configured: where it is and what it can do."""

    provider: str
    model: str
    api: str
    base_url: str = ""
    api_key: str = ""
    context_window: int = 200_000
    max_tokens: int = 8192
    reasoning: bool = False
    price: ModelPrice = ModelPrice()
    # False: the model reads text only, so images are named instead of sent.
    images: bool = True
    # How long the provider shall keep what requests begin with; None: as it does by itself.
    cache_ttl_ms: int | None = None

    @property
    def dialect(self) -> Dialect:
        """Whose rules a message list must obey."""
        return "anthropic" if self.api.startswith("anthropic") else "openai"

    def __repr__(self) -> str:
        # A key must not reach a log by way of a traceback.
        return f"ModelTarget({self.provider}/{self.model}, api={self.api!r})"


class ToolSpec(Struct, frozen=True):
    """What a model is told about a tool. `parameters` is a JSON Schema object."""

    name: str
    description: str
    parameters: dict[str, Any]
    # False: it changes things, so it runs alone and in the order of the calls.
    parallel: bool = True
    # True: what it does is kept with its result, so a call that a crash cut off is simply made again.
    repeatable: bool = False


class ModelRequest(Struct, frozen=True):
    target: ModelTarget
    system: str
    messages: tuple[Message, ...]
    tools: tuple[ToolSpec, ...] = ()
    thinking: str | None = None
    max_tokens: int | None = None
    now_ms: int = 0
    # False for a single question: what nobody asks again is not worth writing to the provider's cache.
    cache: bool = True


class TextDelta(Struct, frozen=True):
    text: str


class ThinkingDelta(Struct, frozen=True):
    text: str


class ModelFailure(Struct, frozen=True):
    """Why a call failed, for retries and messages. `status` is the HTTP status, 0 when there was none.

    `entry` is the position in the request's messages of one that the provider refused, when it said which.
    """

    kind: str
    message: str
    retryable: bool
    status: int = 0
    retry_after_s: float | None = None
    entry: int | None = None


class ModelDone(Struct, frozen=True):
    """The last event of every stream: the whole message; `failure` is set when it went wrong."""

    message: AssistantMessage
    failure: ModelFailure | None = None


ModelEvent = TextDelta | ThinkingDelta | ModelDone


class Model(Protocol):
    """Streams one answer. Ends with exactly one ModelDone. Raises nothing but cancellation."""

    def stream(self, request: ModelRequest) -> AsyncGenerator[ModelEvent, None]: ...


class ToolContext(Struct, frozen=True):
    """Who calls a tool, on whose behalf. Explicit, never ambient (PITFALLS G4)."""

    session_key: str
    session_id: str
    agent_id: str
    run_id: str
    tool_call_id: str
    now_ms: int
    # Whether the person behind this turn is an owner (AMB-35); nobody is unless the run says so.
    owner: bool = False
    # The agent's directory; empty when it has none.
    workspace: str = ""
    workspace_access: Literal["rw", "ro", "none"] = "rw"
    # A policy fact, whether or not a sandbox is installed (AMB-34).
    sandboxed: bool = False
    # Inside the sandbox: whether a command reaches the network, and whose folder it works in when the
    # workspace is not for it. Empty: there is no such folder.
    network: bool = False
    scratch: str = ""
    # Whether commands of this turn run on the machine itself although its session is sandboxed (CMD-10).
    elevated: bool = False
    # How many sessions handed the cause of this turn on to one another.
    hops: int = 0
    # Where the words that began this turn came from, and where its answer goes; None: nowhere (ROUTE-2).
    route: DeliveryContext | None = None


class ToolOutcome(Struct, frozen=True):
    """What a tool answers. With an `effect` the answer is made in the commit that keeps it.

    An effect changes our own store: it runs in the transaction of the step, so that it and its result
    stand or fall together (docs/topics/design.md). It may be run again; `after` is called once it is kept.
    """

    content: tuple[UserBlock, ...] = ()
    is_error: bool = False
    details: dict[str, Any] | None = None
    effect: Callable[[Transaction], ToolOutcome] | None = None
    after: Callable[[], None] | None = None
    ends_turn: bool = False


class Tool(Protocol):
    @property
    def spec(self) -> ToolSpec: ...

    async def call(self, arguments: dict[str, Any], context: ToolContext) -> ToolOutcome: ...


class ConfinedCommand(Struct, frozen=True):
    """A shell command, and all of the machine that it gets to see: one directory, below `/workspace`.

    `cwd` is a path below that directory. `mark` is one variable of its environment, by which all that it
    starts is found again.
    """

    command: str
    directory: str
    cwd: str
    mark: tuple[str, str]
    writable: bool = False
    network: bool = False


class Sandbox(Protocol):
    """Runs commands apart from the machine. It never runs one outside, whatever goes wrong."""

    async def problem(self) -> str | None:
        """Why no command can run in it now, and what would help; None when it is ready."""
        ...

    async def start(self, confined: ConfinedCommand, output: int) -> Process:
        """Start a command that writes to the descriptor `output`, as the head of a new process group."""
        ...


class Clock(Protocol):
    def now_ms(self) -> int:
        """UTC epoch milliseconds."""
        ...

    def monotonic(self) -> float:
        """Seconds, for durations only."""
        ...

    async def sleep(self, seconds: float) -> None: ...


class Ids(Protocol):
    def uuid(self) -> str: ...
