"""POST /dry-run: what a pod would get on the live state.

Comes in: pods as YAML or JSON. Goes out: their decision records, written in pieces. The scheduler's loop decides,
between its own cycles; the port's thread reads and writes.
"""
