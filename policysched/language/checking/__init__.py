"""Compile one expression: name resolution, type and unit checks, cost limits; gives a program.

In come the texts of a policy and what they may name, out come programs and diagnostics. It evaluates nothing but
constants, with the scalar interpreter, and imports no numpy.
"""
