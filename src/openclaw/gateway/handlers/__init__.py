"""Method handlers, one file per family; `table` lists them all."""
