"""The fmt command: write expressions in canonical form and keep all other bytes of a file.

`scalars` replaces a YAML or JSON scalar and breaks long expressions into lines.
"""
