"""Tokens, parser, literals and macros of CEL: a text becomes a syntax tree, or cel-go's errors.

`parser` has the grammar, `recovery` continues after an error as ANTLR does.
"""
