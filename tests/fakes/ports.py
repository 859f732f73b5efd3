"""Ports for servers that are started under a number that must be known before."""

from __future__ import annotations

import socket
import sys

# Held until the process ends: whoever asks the kernel for any port is not given one of these meanwhile.
_held: list[int] = []


def free_port() -> int:
    """A port of this machine on which nobody listens, and that is nobody's but the caller's.

    It stays bound here. A server that allows its address to be used again, as all servers of these tests do,
    can listen on it, as often as it is started; a client that comes too early is refused. Only Linux allows
    the second bind; elsewhere the port is merely one that was free a moment ago.
    """
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        probe.bind(("127.0.0.1", 0))
        port = int(probe.getsockname()[1])
        if sys.platform == "linux":
            _held.append(probe.detach())
        return port
