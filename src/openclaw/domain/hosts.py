"""Names and addresses of machines: which of them mean this very machine (pure; nothing is looked up)."""

from __future__ import annotations

import ipaddress


def is_loopback(host: str) -> bool:
    """Whether a name or an address, with or without the zone of IPv6, is that of this machine itself."""
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host.partition("%")[0]).is_loopback
    except ValueError:
        return False
