"""The gateway's wire, version 4, without I/O.

Bytes in, values out; values in, bytes out. Frames, parameters, events, scopes
and the handshake live here. Nothing in this package opens a socket, reads a
clock, logs or waits: time, ids and the shared secret's digest are arguments.
"""
