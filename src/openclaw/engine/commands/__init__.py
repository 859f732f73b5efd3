"""Chat commands carried out: one file per group of commands, `handling` takes a message through."""
