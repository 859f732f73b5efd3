"""A deterministic simulation of the engine: virtual time, one seed, crashes at any point."""
