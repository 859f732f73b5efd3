"""Work in motion: lanes, runs, the agent loop, tools, recovery.

The engine orders work and calls models and tools. It reaches rows only through
the Store, and every outside power arrives through `ports`.
"""
