"""The command line: it prints and asks, and talks to a running gateway through `protocol` alone.

One file per command. It never opens the database, and a command loads only the
libraries that it needs: nothing of the server, and `rich` only to draw on a terminal.
"""
