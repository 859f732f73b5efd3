"""/btw: a question over the current context, answered beside the conversation (CMD-16).

The model reads what the next turn would read, then the question, without tools. Nothing
is written to the transcript; what the call costs is for whoever makes it to account for.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence

from openclaw.domain.context import make_valid
from openclaw.domain.transcript import Message, UserMessage, text_of
from openclaw.engine.ports import Clock, ModelDone, ModelRequest, ModelTarget
from openclaw.engine.settings import EngineSettings
from openclaw.errors import InvalidRequest
from openclaw.store.records import SessionRow
from openclaw.store.store import Store

LONGEST_ANSWER_S = 120.0
_LEAD = (
    "A question on the side. Answer it briefly and by itself; the conversation does not go on from it.\n\n"
)

MakeRequest = Callable[[ModelTarget], Awaitable[ModelRequest]]
# Makes the call, with its fallbacks, budget and accounting.
AskModels = Callable[[SessionRow, Sequence[ModelTarget], MakeRequest], Awaitable[ModelDone]]


class SideQuestions:
    """The power behind the command."""

    def __init__(
        self,
        store: Store,
        context: Callable[[SessionRow], Awaitable[Sequence[Message]]],
        settings: Callable[[], EngineSettings],
        system_prompt: Callable[[SessionRow], Awaitable[str]],
        ask_models: AskModels,
        clock: Clock,
    ) -> None:
        self._store = store
        self._context = context
        self._settings = settings
        self._system_prompt = system_prompt
        self._ask_models = ask_models
        self._clock = clock

    async def ask(self, session_key: str, question: str) -> str:
        """The answer in words. A model that cannot answer is told as InvalidRequest."""
        session = await self._store.session(session_key)
        if session is None:
            raise InvalidRequest("There is no conversation to ask about yet.")
        targets = self._settings().agent(session.agent_id).choose_models(session.entry, None)
        context = await self._context(session)
        system = await self._system_prompt(session)
        asked = (*context, UserMessage(f"{_LEAD}{question}", self._clock.now_ms()))

        async def make_request(target: ModelTarget) -> ModelRequest:
            messages = tuple(make_valid(asked, target.dialect))
            return ModelRequest(target, system, messages, now_ms=self._clock.now_ms(), cache=False)

        try:
            async with asyncio.timeout(LONGEST_ANSWER_S):
                done = await self._ask_models(session, targets, make_request)
        except TimeoutError:
            raise InvalidRequest(f"No answer came within {LONGEST_ANSWER_S:g} s.")
        if done.failure is not None:
            raise InvalidRequest(done.failure.message)
        return text_of(done.message).strip() or "The model had nothing to say."
