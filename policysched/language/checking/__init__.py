"""Compiles expressions: names, types, units, cost limits.

The result is a program or diagnostics. Only constants are evaluated. It imports no NumPy.
"""
