"""The tools that agents may call: one tool per file, listed in `registry`."""
