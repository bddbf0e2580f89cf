"""Validate policies without a cluster, and explain error codes.

`check` compiles as the scheduler does, `schema` validates against the CRD, `explain` has the text of each code. Results
are findings with code, place and help.
"""
