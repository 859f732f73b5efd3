"""What the store shall do, as plain dictionaries: the reference that every database is compared with.

`Model.apply` takes one operation and gives the outcome that a store must give, or raises `Refused` with the
name of the error. It knows no SQL, no transaction and no thread. Times, ids and handles are part of the
operation, so the same list of operations gives the same model again.
"""

from __future__ import annotations

from typing import Any

from msgspec.structs import replace

from openclaw.domain import lifecycle
from tests.conformance import operations as ops
from tests.conformance.making import RESETS
from tests.conformance.model_sessions import (
    STATUS,
    Delivery,
    Input,
    Outcome,
    Refused,
    Run,
    Session,
    SessionModel,
)
from tests.conformance.operations import Note, Operation, run_end


class Model(SessionModel):
    def apply(self, operation: Operation) -> Outcome:
        """Do it, and tell what the store must answer."""
        verb = getattr(self, "_" + type(operation).__name__.lower())
        outcome: Outcome = verb(operation)
        return outcome

    # -- inputs ----------------------------------------------------------------------------------

    def _accept(self, op: ops.Accept) -> Outcome:
        seen = self.inbox.get(op.run_id)
        if seen is not None and (seen.key, seen.text) != (op.key, op.text):
            raise Refused("IdempotencyConflict")
        if seen is None and op.message_id is not None:
            seen = next((item for item in self.inbox.values() if item.message_id == op.message_id), None)
        if seen is not None:
            return ("known", seen.run_id, seen.key, seen.state, seen.consumed_by)
        human = lifecycle.counts_as_interaction(op.source)
        # A reset empties the queue first, and in a window that is due nobody waits.
        waiting = self.queued(op.key) if op.full and human and op.reset is None else []
        over = len(waiting) - ops.QUEUE_CAP + 1
        if over > 0 and op.full == "new":
            raise Refused("Overloaded")
        session, reason = self.sessions.get(op.key), None
        created = session is None
        if session is None:
            session = self._create(op.key, op.session_id, op.at)
        else:
            reason = self._rotation_due(session, op)
            if op.reset is not None:
                self._cancel_all(op.key)
            if reason is not None:
                self._rotate(session, op.session_id, reason, op.at)
        for item in [item for item in waiting if item.human][: max(0, over)]:
            item.state = "cancelled"
        self.inbox[op.run_id] = Input(op.run_id, op.key, op.text, human, op.message_id)
        self._touch(session, human, op.at)
        claimed = None
        if op.start and len(self.queued(op.key)) == 1:
            claimed = self._begin(op.key, (op.run_id,), op.at)
        return ("accepted", session.entry.session_id, created, reason, claimed)

    def _rotation_due(self, session: Session, op: ops.Accept) -> str | None:
        if op.reset is not None:
            return op.reset
        policy = lifecycle.resolve_reset(RESETS.rules, session_type="direct", channel=None)
        verdict = lifecycle.judge_freshness(
            policy,
            last_interaction_ms=session.entry.last_interaction_at,
            now_ms=op.at,
            zone=RESETS.zone,
            run_active=session.entry.status == "running",
            inputs_waiting=bool(self.queued(op.key)),
            source=op.source,
        )
        return verdict.reason if isinstance(verdict, lifecycle.Expired) else None

    def _cancel(self, op: ops.Cancel) -> Outcome:
        if op.run_id is None:
            return tuple(sorted(self._cancel_all(op.key)))
        item = self.inbox.get(op.run_id)
        if item is None or item.key != op.key or item.state != "queued":
            return ()
        item.state = "cancelled"
        return (op.run_id,)

    def _consume(self, key: str, run_ids: tuple[str, ...], by: str) -> list[Input]:
        taken = [self.inbox[name] for name in run_ids if name in self.inbox]
        taken = [item for item in taken if item.key == key and item.state == "queued"]
        for item in taken:
            item.state, item.consumed_by = "consumed", by
        return taken

    # -- runs ------------------------------------------------------------------------------------

    def _claim(self, op: ops.Claim) -> Outcome:
        claimed = self._begin(op.key, op.run_ids, op.at)
        return ("nothing",) if claimed is None else ("claimed", claimed)

    def _begin(self, key: str, run_ids: tuple[str, ...], at: int) -> Outcome | None:
        waiting = {item.run_id for item in self.queued(key)}
        run_id = next((name for name in run_ids if name in waiting), None)
        if self.active_run(key) is not None or run_id is None:
            return None
        session = self._get(key)
        inputs = self._consume(key, run_ids, run_id)
        self.runs[run_id] = Run(run_id, key, session.entry.session_id, at, at)
        session.version += 1
        session.entry = replace(
            session.entry, status="running", started_at=at, ended_at=None, last_run_id=run_id
        )
        if any(item.human for item in inputs):
            session.entry = replace(session.entry, last_interaction_at=at)
        seqs = self._add(session, [(Note(item.text), item.run_id) for item in inputs], at)
        return (run_id, session.entry.session_id, tuple(item.run_id for item in inputs), seqs)

    def _held(self, run_id: str, fence: int) -> Run:
        run = self.runs.get(run_id)
        if run is None or run.state != "active" or run.fence != fence:
            raise Refused("RunLost")
        return run

    def _absorb(self, op: ops.Absorb) -> Outcome:
        run = self._held(op.run_id, op.fence)
        session = self._get(run.key)
        waiting = {item.run_id for item in self.queued(run.key)}
        if waiting & set(op.run_ids) and session.entry.session_id != run.window:
            raise Refused("VersionConflict")
        inputs = self._consume(run.key, op.run_ids, op.run_id)
        if not inputs:
            return ()
        run.last_progress, run.resumes = op.at, 0
        return self._add(session, [(Note(item.text), item.run_id) for item in inputs], op.at)

    def _step(self, op: ops.Step) -> Outcome:
        run = self._held(op.run_id, op.fence)
        session = self._get(run.key)
        if session.entry.session_id != run.window:
            raise Refused("VersionConflict")
        run.last_progress, run.resumes = op.at, 0
        cost = self._record(run, op.usage)
        if cost is not None:
            session.version += 1
            self._charge(session, cost)
        return self._add(session, [(note, op.run_id) for note in op.notes], op.at)

    def _record(self, run: Run, usage: tuple[ops.Call, ...]) -> float | None:
        cost = None
        for call in usage:
            if call.call_id not in self.usage:
                self.usage[call.call_id] = (run.key, run.run_id, call.cost_usd)
                if call.cost_usd is not None:
                    cost = (cost or 0.0) + call.cost_usd
        return cost

    def _charge(self, session: Session, cost: float) -> None:
        known = session.entry.estimated_cost_usd or 0.0
        session.entry = replace(session.entry, estimated_cost_usd=known + cost)

    def _finish(self, op: ops.Finish) -> Outcome:
        run = self.runs.get(op.run_id)
        session = None if run is None else self.sessions.get(run.key)
        if run is None or session is None:
            raise Refused("RunLost")
        self._held(op.run_id, op.fence)
        stays = session.entry.session_id == run.window
        seqs: Outcome = ()
        if op.notes and stays:
            seqs = self._add(session, [(note, op.run_id) for note in op.notes], op.at)
            roles = [note.role for note in op.notes]
            if "assistant" in roles:
                run.reply_seq = seqs[len(roles) - 1 - roles[::-1].index("assistant")]
        run.state, run.outcome, run.stop_reason = "ended", op.outcome, "stop"
        run.ended_at = run.last_progress = op.at
        cost = self._record(run, op.usage)
        for name in op.deliveries:
            self.outbox.setdefault(name, Delivery(run.key, run.run_id, op.at + ops.DELIVERY_LIFE_MS))
        if stays:
            self._close(session, run, op, cost)
        return ("finished", run.reply_seq, seqs, bool(self.queued(run.key)))

    def _close(self, session: Session, run: Run, op: ops.Finish, cost: float | None) -> None:
        end, changes = run_end(op), dict[str, Any]()
        if end.outcome == "ok" and end.input_tokens is not None:
            changes = {
                "input_tokens": end.input_tokens, "output_tokens": end.output_tokens,
                "total_tokens": end.input_tokens, "total_tokens_fresh": True,
            }  # fmt: skip
        session.version += 1
        session.entry = replace(
            session.entry, status=STATUS[op.outcome], ended_at=op.at, runtime_ms=op.at - run.started_at,
            aborted_last_run=op.outcome == "aborted", system_sent=True, **changes,
        )  # fmt: skip
        if cost is not None:
            self._charge(session, cost)

    def _takeover(self, op: ops.TakeOver) -> Outcome:
        run = self.runs.get(op.run_id)
        if run is None or run.state != "active":
            return ("nothing",)
        run.owner, run.last_progress = op.owner, op.at
        run.fence += 1
        run.resumes += 1
        return ("owner", run.fence)

    # -- deliveries ------------------------------------------------------------------------------

    def _deliver(self, op: ops.Deliver) -> Outcome:
        item = self.outbox[op.name]
        needed, then = ops.DELIVERY_MOVES[op.move]
        if item.state not in needed:
            return (False,)
        item.state = then
        item.attempts += op.move == "start"
        if op.move == "retry":
            item.expires_at = op.at + ops.DELIVERY_LIFE_MS
        return (True,)

    def _recover(self, op: ops.Recover) -> Outcome:
        cut_off = [item for item in self.outbox.values() if item.state == "sending"]
        for item in cut_off:
            item.state = "unknown"
        late = [i for i in self.outbox.values() if i.state == "prepared" and i.expires_at <= op.at]
        for item in late:
            item.state = "failed"
        return (len(cut_off), len(late))


def replay(operations: list[Operation]) -> Model:
    """The model after these operations; a refused one changes nothing."""
    model = Model()
    for operation in operations:
        outcome_of(model, operation)
    return model


def outcome_of(model: Model, operation: Operation) -> Outcome:
    """The outcome of an operation, an error as ("error", name)."""
    try:
        return model.apply(operation)
    except Refused as refused:
        return ("error", refused.name)
