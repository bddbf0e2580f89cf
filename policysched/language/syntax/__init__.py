"""Texts and syntax trees: grammar, parser, syntax errors, and the canonical text of a tree.

In comes the text of one field or of one case, out comes a tree or the diagnostic of its first error. Limits of size
and nesting are measured before anything recursive sees a text.
"""
