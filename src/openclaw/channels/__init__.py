"""Platform connectors, and the one door through which their messages come in and go out.

`base` is the contract. A connector knows one platform and nothing of sessions, keys or
policies; it is imported when the configuration names it.
"""
