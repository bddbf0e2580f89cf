"""Grammar, parser, syntax errors and formatter of the language.

The text of a field becomes a syntax tree, or a diagnostic of the first error. Size and nesting are checked before any
recursive function runs.
"""
