"""Intermediate representations: syntax trees, types, typed graphs, programs, and the names that can be read.

Data alone: nothing here parses, checks or evaluates. In comes nothing; the parser makes trees, the checker graphs and
programs, and evaluation reads them.
"""
