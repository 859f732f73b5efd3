"""The session tools: see, read and find the conversations of this gateway (SPEC §12 to §16)."""
