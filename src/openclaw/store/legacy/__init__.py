"""The founding layout: `sessions.json` and `*.jsonl` per agent, read and brought into the store (DB-2, DB-3).

Originals are opened for reading only and never changed. Nothing here runs while a
gateway serves; `doctor` is the only caller.
"""
