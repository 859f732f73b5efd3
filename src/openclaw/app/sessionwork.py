"""The works on whole sessions, with what they take from engine and configuration.

Part of the composition root.
"""

from __future__ import annotations

from openclaw.app.commands import EnginePowers
from openclaw.app.engine import Engine
from openclaw.app.engine import Ground as EngineGround
from openclaw.app.upkeep import archive_place
from openclaw.config import views
from openclaw.engine.sessionwork import Ground, SessionWork
from openclaw.engine.trimming import Trimmer
from openclaw.store.archiving import Archives
from openclaw.store.commands import CommandStore
from openclaw.store.compactions import Compactions
from openclaw.store.endings import Endings
from openclaw.store.spawns import Spawns


def build_session_work(engine: Engine, ground: EngineGround) -> SessionWork:
    database, powers = ground.database, EnginePowers(engine, ground)
    archives = Archives(database, lambda key: archive_place(ground.in_force().config, ground.env, key))
    endings = Endings(database, lambda: views.retention(ground.in_force().config).reset_archive_ms)
    trimmer = Trimmer(
        engine.store, endings, Compactions(database), engine.contexts, archives, powers.overhead_tokens,
        ground.clock, ground.emit,
    )  # fmt: skip
    return SessionWork(
        Ground(
            store=engine.store,
            endings=endings,
            commands=CommandStore(database),
            spawns=Spawns(database),
            archives=archives,
            turns=engine.turns,
            workers=engine.workers,
            trimmer=trimmer,
            compact=powers.compact_session,
            clock=ground.clock,
            ids=ground.ids,
            emit=ground.emit,
        )
    )
