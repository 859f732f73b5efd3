"""Full-text search over 100,000 messages in 1,000 sessions of 5 agents, as the session tools ask it.

    python -m benchmarks.search [--quick]

Every search goes through the visibility of its caller: the scope that narrows it and
the judge that decides about each session before anything is counted. Times are of the
whole call on the event loop; snippets are made of what was found.
"""

from __future__ import annotations

import argparse
import asyncio
import random
import shutil
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable
from functools import partial
from pathlib import Path
from typing import Any

import msgspec
import uvloop

from benchmarks.measuring import Figure, at_least, at_most, median, percentile, show
from openclaw.domain.searchtext import index_text, query_terms, searchable_text, snippet
from openclaw.domain.visibility import (
    SessionCaller,
    TargetFacts,
    VisibilityLevel,
    VisibilityPolicy,
    Visible,
    decide_visibility,
    visibility_scope,
)
from openclaw.store import search, sessions, transcript
from openclaw.store.database import Transaction
from openclaw.store.records import EntryDraft, SessionSeed
from openclaw.store.search import Hit
from openclaw.store.sqlite import SqliteDatabase
from openclaw.store.store import Store

AGENTS, SESSIONS, TREE = 5, 1000, 8
RARE_EVERY = 10_000
COMMON = "shipment"
VOCABULARY = [
    f"{first}{second}" for first in "bcdfghklmnprst" for second in ("alo", "enta", "irun", "ovik", "usca")
]
# What is said in each language, and a word of it as a person would type it.
LANGUAGES = {
    "Thai": ("พรุ่งนี้ฝนจะตกหนักที่กรุงเทพมหานคร", "ฝนจะตก"),
    "Chinese": ("明天北京的天气很好我们去公园散步", "天气"),
    "Spanish": ("Mañana el camión llegará a la estación de Málaga", "camion"),
    "Hindi": ("कल दिल्ली में मौसम बहुत अच्छा रहेगा", "मौसम"),
}

_decode: Any = msgspec.json.Decoder().decode
_encode = msgspec.json.Encoder().encode


def key(number: int) -> str:
    return f"agent:a{number % AGENTS}:s{number}"


def seed(number: int) -> SessionSeed:
    """Every tree of helpers hangs on the first session of its agent."""
    root = key(number % AGENTS)
    helper = AGENTS <= number < AGENTS * TREE
    return SessionSeed(key(number), f"a{number % AGENTS}", spawned_by=root if helper else None)


def said(number: int, chance: random.Random) -> str:
    words = [COMMON, *chance.choices(VOCABULARY, k=30)]
    if number % RARE_EVERY == 77:
        words.insert(9, "quasar")
    languages = list(LANGUAGES.values())
    return " ".join(words) + (f" {languages[number // 500 % 4][0]}" if number % 500 == 3 else "")


def create(tx: Transaction) -> None:
    for number in range(SESSIONS):
        sessions.create(tx, seed(number), f"w{number}", 1)


def fill(tx: Transaction, first: int, last: int) -> None:
    chance = random.Random(first)
    for number in range(first, last):
        text = said(number, chance)
        body = _encode({"role": "user", "content": text, "timestamp": number})
        draft = EntryDraft("message", body, "user", text=text, words=index_text(text))
        transcript.append(tx, key(chance.randrange(SESSIONS)), [draft], number)


class Searcher:
    """A session that searches, with the visibility that the tools would give it."""

    def __init__(self, store: Store, session_key: str, level: VisibilityLevel) -> None:
        self._store = store
        policy = VisibilityPolicy(level=level, agent_to_agent_enabled=True)
        caller = SessionCaller(session_key=session_key, agent_id=session_key.split(":")[1])
        self._scope = visibility_scope(policy, caller)
        self._judge = partial(_sees, policy, caller)

    async def find(self, text: str, limit: int = 20) -> tuple[Hit, ...]:
        return await self._store.search(query_terms(text), limit=limit, scope=self._scope, judge=self._judge)

    async def find_and_show(self, text: str) -> list[str]:
        terms = query_terms(text)
        hits = await self.find(text)
        return [snippet(searchable_text(_decode(hit.body)), terms) for hit in hits]


def _sees(policy: VisibilityPolicy, caller: SessionCaller, facts: TargetFacts) -> bool:
    return isinstance(decide_visibility(policy, caller, facts), Visible)


async def timed_ms(work: Callable[[], Awaitable[object]], repeats: int) -> list[float]:
    taken = []
    for _ in range(repeats):
        began = time.perf_counter()
        await work()
        taken.append((time.perf_counter() - began) * 1e3)
    return taken


async def measure(store: Store, repeats: int) -> list[Figure]:
    figures: list[Figure] = []
    levels: tuple[VisibilityLevel, ...] = ("tree", "agent", "all")
    for level in levels:
        who = Searcher(store, key(2), level)
        rare = await timed_ms(partial(who.find, "quasar"), repeats)
        common = await timed_ms(partial(who.find, COMMON), repeats)
        nothing = await timed_ms(partial(who.find, f"{COMMON} nowhere"), repeats)
        figures += [
            at_most(f"rare word, caller sees `{level}`, p50", median(rare), 3, "ms"),
            Figure("  p99", percentile(rare, 0.99), "ms"),
            at_most(f"word in every message, caller sees `{level}`, p50", median(common), 80, "ms"),
            Figure("  p99", percentile(common, 0.99), "ms"),
            Figure("  with a word that is nowhere", median(nothing), "ms"),
        ]
    lonely = Searcher(store, key(900), "self")
    figures.append(
        at_most("word in every message, caller sees itself, p50",
                median(await timed_ms(partial(lonely.find, COMMON), repeats)), 80, "ms")
    )  # fmt: skip
    everybody = Searcher(store, key(2), "all")
    shown = await timed_ms(partial(everybody.find_and_show, COMMON), repeats)
    figures.append(Figure("word in every message, 20 snippets made, p50", median(shown), "ms"))
    return figures


async def check(store: Store, total: int) -> list[Figure]:
    """That what is fast is also right."""
    everybody, tree = Searcher(store, key(2), "all"), Searcher(store, key(2), "tree")
    figures = [
        at_least("rare word: messages found", len(await everybody.find("quasar")), total // RARE_EVERY, "")
    ]
    for name, (_, word) in LANGUAGES.items():
        hits = await everybody.find(word, limit=1000)
        figures.append(at_least(f"{name} word `{word}`: messages found", len(hits), total // 2000, ""))
        shown = await everybody.find_and_show(word)
        figures.append(at_least("  with the word in their snippets", _showing(shown, word), len(shown), ""))
    seen = {hit.session_key for hit in await tree.find(COMMON, limit=2000)}
    allowed = {key(2)} | {key(number) for number in range(AGENTS, AGENTS * TREE) if number % AGENTS == 2}
    figures.append(at_most("sessions found outside the caller's tree", len(seen - allowed), 0, ""))
    figures.append(at_least("sessions found inside it", len(seen), len(allowed), ""))
    return figures


def _showing(snippets: list[str], word: str) -> int:
    wanted = query_terms(word)[0]
    return sum(" ".join(wanted) in index_text(shown) for shown in snippets)


async def run(folder: Path, total: int, repeats: int) -> bool:
    database = await SqliteDatabase.open(folder / "openclaw.sqlite")
    store = Store(database)
    await database.write(create)
    for start in range(0, total, 500):
        await database.write(partial(fill, first=start, last=min(total, start + 500)))
    await database.write(search.fold)
    await asyncio.sleep(0)
    figures = await measure(store, repeats) + await check(store, total)
    await store.close()
    return show(f"search in {total:,} messages of {SESSIONS:,} sessions", figures)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--quick", action="store_true", help="a fifth of the messages, fewer repeats")
    options = parser.parse_args()
    folder = Path(tempfile.mkdtemp(prefix="openclaw-bench-"))
    try:
        total, repeats = (20_000, 15) if options.quick else (100_000, 60)
        return 0 if uvloop.run(run(folder, total, repeats)) else 1
    finally:
        shutil.rmtree(folder, ignore_errors=True)


if __name__ == "__main__":
    sys.exit(main())
