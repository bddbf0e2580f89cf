"""`fmt`: policies in files with their expressions in canonical form, everything else byte for byte as it was.

Comes in: files or texts. Goes out: texts. `scalars` puts another text in the place of a YAML or JSON scalar and spreads
a long expression over lines.
"""
