"""Configuration: JSON5 text to one typed `Config`, and back without losing a comment.

`load` reads and validates, `views` answers the questions the rest of the product
asks, `write` changes the file safely, `reload` says what a change means. Nothing
here starts work, opens a database or talks to a network.
"""
