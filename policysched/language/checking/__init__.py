"""From texts to programs: names, types, units, value ranges, cost limits and warnings.

In come the texts of a policy and what they may name, out come programs and diagnostics. It evaluates nothing but
constants, with the scalar interpreter, and imports no numpy.
"""
