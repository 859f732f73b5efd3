"""The pure core: what can be decided with values in hand.

No I/O, no clock, no randomness, no logging: time and ids are arguments. Most of
the specification lives here, tested by example and by property.
"""
