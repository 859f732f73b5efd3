"""Model adapters: one provider wire format per file, all behind `engine.ports.Model`.

Nothing here knows sessions, stores or channels. A provider's failure becomes a
value, never an exception; only cancellation leaves an adapter.
"""
