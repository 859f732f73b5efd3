"""The composition root: the only room that chooses implementations and wires them together."""

from openclaw.app.gateway import Announcement, Gateway
from openclaw.app.running import run_gateway

__all__ = ["Announcement", "Gateway", "run_gateway"]
