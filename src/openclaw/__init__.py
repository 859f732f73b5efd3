"""OpenClaw: a session system for AI agents.

The package root stays empty of work: importing it loads no server library, no
database and no provider. Names of the public API are added here lazily.
"""

__version__ = "0.1.0"
__all__ = ["__version__"]
