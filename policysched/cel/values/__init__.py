"""Values at run time, and what all of them have: a type, equality, order and a text.

Python's bool, int (64 bits), float, str, bytes, list and None are CEL's own; uint, duration, timestamp, map, optional,
quantity, version, address and the others have classes here. An error is a value too: operators hand it on or absorb it.
"""
