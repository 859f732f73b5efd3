"""Clients that other people wrote, against this gateway. Run with `scripts/interop`."""
