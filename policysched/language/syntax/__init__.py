"""The grammar, parser, syntax errors and formatter of the language.

The parser converts the text of a field into a syntax tree, or a diagnostic of the first error. Size and nesting are
checked before any recursive function runs.
"""
