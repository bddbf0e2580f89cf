"""The dry-run command: one scheduling cycle over objects from files or listed once, explained.

Comes in: a pod or a workload's template, and a cluster from files or a server (`inputs`, `live_cluster`). Goes out: a
decision record, as JSON or `tables`. `dry_run` runs the engine that the scheduler runs, `with_extenders` asks extenders
in the same cycle, `template_claims` makes the resource claims that the pod would get.
"""
