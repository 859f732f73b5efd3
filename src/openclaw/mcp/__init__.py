"""The session tools for hosts of the Model Context Protocol, over standard input and output.

A surface: it talks to a gateway through the protocol and acts as one named session. Only
this room knows the `mcp` library, which is an extra of the package.
"""
