"""The terminal UI: a surface of its own that talks to a gateway over the wire.

`openclaw.tui.app` needs the library Textual (`pip install 'openclaw[tui]'`); what decides,
reads and remembers stands in modules that do not.
"""
