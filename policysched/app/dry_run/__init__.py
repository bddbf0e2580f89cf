"""The dry-run command: one scheduling cycle over objects from files or listed once, explained.

Comes in: a pod or a workload's template (`workload_pods`), and a cluster from files or a server (`inputs`,
`live_cluster`). Goes out: a decision record, as tables or JSON. `dry_run` runs the engine that the scheduler runs.
"""
