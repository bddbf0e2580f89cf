"""The data types of the language: syntax trees, types, typed graphs, programs, table of fields.

The package has no parser, checker or evaluator.
"""
