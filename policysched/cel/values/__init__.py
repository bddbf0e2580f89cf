"""CEL values at run time: type, equality, order and text of each kind.

Python's bool, int (64 bits), float, str, bytes, list and None are CEL values; the other types have classes here. An
error is a value: operators return or absorb it.
"""
