"""The Gateway's shell: sockets, who is calling, method handlers, event fan-out.

It translates between the sans-I/O wire (`protocol`) and the engine; it decides
nothing that values alone could decide, and it never touches rows but through
the Store.
"""
