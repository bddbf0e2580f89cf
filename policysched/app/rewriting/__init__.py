"""The commands fmt and convert: rewrite expressions or API versions in files and keep all other bytes.

`files` reads, compares and replaces files. `scalars` replaces a YAML or JSON scalar and breaks long expressions.
"""
