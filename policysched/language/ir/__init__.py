"""Intermediate representations: syntax trees, types, typed graphs, programs, and the table of fields.

Data alone: nothing here parses, checks or evaluates. In comes nothing; the parser makes trees, the checker graphs and
programs, and evaluation reads them.
"""
