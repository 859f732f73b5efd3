"""What model calls cost: the most is set aside before a call, the real figure is kept after it.

One purse per run, and one per call outside a run. A call that failed before it
said anything cost nothing; one that was cut off counts with what was set aside.
"""

from __future__ import annotations

from datetime import datetime, time

from msgspec import Struct

from openclaw.domain.budget import BudgetLimits, TooExpensive, most_it_can_cost
from openclaw.domain.tokens import messages_tokens, text_tokens, tool_tokens
from openclaw.engine.ports import Clock, ModelDone, ModelFailure, ModelRequest, ModelTarget
from openclaw.engine.settings import AgentSettings
from openclaw.store.budgets import Budgets, Payer, SpendRequest
from openclaw.store.records import SessionRow, UsageRow


class Account(Struct, frozen=True):
    """Who pays, under which limits. `prefix` makes the ids of calls unique."""

    payer: Payer
    limits: BudgetLimits
    session_since: int
    tree_key: str | None
    prefix: str


def account_of(session: SessionRow, agent: AgentSettings, run_id: str, prefix: str) -> Account:
    """The account of a session's calls. Without a limit on the tree nobody pays for looking it up."""
    root = session.entry.spawn_root or session.session_key
    tree_key = root if agent.budget.per_tree_usd is not None else None
    payer = Payer(session.session_key, session.agent_id, run_id)
    return Account(payer, agent.budget, session.entry.session_started_at or 0, tree_key, prefix)


class Purse:
    def __init__(self, account: Account, agent: AgentSettings, budgets: Budgets, clock: Clock) -> None:
        self._account = account
        self._zone = agent.zone
        self._budgets = budgets
        self._clock = clock
        self._calls = 0
        self._reserved = False
        self._unused: list[str] = []
        self._usage: list[UsageRow] = []
        self.last_usage: UsageRow | None = None
        self.paid: list[UsageRow] = []  # every call of this account, committed or not

    async def reserve(self, request: ModelRequest) -> ModelFailure | None:
        """Set the most that the call can cost aside; the refusal when that is too much."""
        self._calls += 1
        account = self._account
        if not account.limits.any:
            return None
        await self._release_unused()
        target, now_ms = request.target, self._clock.now_ms()
        today = datetime.fromtimestamp(now_ms / 1000, self._zone).date()
        midnight = datetime.combine(today, time(), self._zone)
        asked = SpendRequest(
            self._call_id(), account.payer, account.tree_key or account.payer.session_key, target.provider,
            target.model, _most(request), account.session_since, int(midnight.timestamp() * 1000),
        )  # fmt: skip
        self._reserved = True  # before the commit: who is stopped meanwhile has reserved all the same
        decided = await self._budgets.reserve(asked, account.limits, now_ms=now_ms)
        if isinstance(decided, TooExpensive):
            return ModelFailure("budget", decided.message, False)
        return None

    def pay(self, done: ModelDone, target: ModelTarget) -> None:
        """A call came to its end: remember what it used."""
        used = done.message.usage
        if used is None:
            if done.failure is not None:
                self._unused.append(self._call_id())
            return
        priced = target.price.input is not None and target.price.output is not None
        row = UsageRow(
            self._call_id(), target.provider, target.model, used.input, used.output, used.cache_read,
            used.cache_write, used.cost.total if priced else None, self._account.tree_key,
        )  # fmt: skip
        self._usage.append(row)
        self.paid.append(row)
        self.last_usage = row

    def take_usage(self) -> tuple[UsageRow, ...]:
        """What calls used since the last commit; the caller commits it."""
        taken, self._usage = tuple(self._usage), []
        return taken

    async def settle(self) -> None:
        """Nobody calls any more: keep what is left, release what cost nothing, close what was cut off."""
        left = self.take_usage()
        await self._budgets.record(self._account.payer, left, now_ms=self._clock.now_ms())
        if self._reserved:
            await self._release_unused()
            await self._budgets.settle_run(self._account.payer.run_id)

    async def _release_unused(self) -> None:
        unused, self._unused = self._unused, []
        for call_id in unused:
            await self._budgets.release(call_id)

    def _call_id(self) -> str:
        return f"{self._account.prefix}:{self._calls}"


def _most(request: ModelRequest) -> float | None:
    """The most that a call can cost: the whole prompt at full price and every token it may answer with."""
    target = request.target
    prompt = text_tokens(request.system) + messages_tokens(request.messages)
    prompt += sum(tool_tokens(tool.name, tool.description, tool.parameters) for tool in request.tools)
    return most_it_can_cost(
        input_price=target.price.input,
        output_price=target.price.output,
        prompt_tokens=prompt,
        max_tokens=request.max_tokens or target.max_tokens,
    )
