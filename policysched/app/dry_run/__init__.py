"""The dry-run command: one scheduling cycle for given objects, with an explanation.

`inputs` and `live_cluster` read pod and cluster from files or an API server. `dry_run` runs the scheduler's engine,
`with_extenders` calls extenders, `template_claims` makes the pod's resource claims. The result is a decision record, as
JSON or `tables`.
"""
