"""The dry-run command: one scheduling cycle for given objects, with an explanation.

`inputs` and `live_cluster` read pod and cluster from files or an API server. `dry_run` runs the scheduler's engine,
`group` decides about all pods of a pod group, `with_extenders` calls extenders, `template_claims` makes resource
claims. The result is a record, as JSON or as tables.
"""
