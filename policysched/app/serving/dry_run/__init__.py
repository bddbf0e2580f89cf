"""POST /dry-run: reads pods, asks the scheduler's loop, writes decision records.

Comes in: pods as YAML or JSON. Goes out: their decision records, written in pieces. The scheduler's loop decides,
between its own cycles; the port's thread reads and writes.
"""
