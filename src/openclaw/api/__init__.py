"""The gateway as a library: start one inside a program, and use its sessions from Python.

A surface like the command line: it talks to its gateway through the protocol and holds
no state of its own. `import openclaw` gives `openclaw.Gateway` from here.
"""
