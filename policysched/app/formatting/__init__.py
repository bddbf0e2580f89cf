"""Policies in files with their expressions in canonical form, everything else byte for byte as it was.

Comes in: texts of files. Goes out: texts. `scalars` puts another text in the place of a YAML or JSON scalar, `layout`
spreads an expression over lines.
"""
