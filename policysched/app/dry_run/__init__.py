"""What would happen to a pod: one scheduling cycle over given objects, explained; nothing is changed.

Comes in: a pod or a workload's template, and a cluster from files or a server (`inputs`, `live`). Goes out: a decision
record, as tables or JSON. `dry_run` runs the engine that the scheduler runs.
"""
