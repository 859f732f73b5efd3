"""Tools that work in the agent's own directory: files, search, commands and notes."""
