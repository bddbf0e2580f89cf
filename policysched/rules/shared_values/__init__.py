"""Values that many nodes share: pod counts, aggregates and values derived from them.

`context` evaluates graphs on rows, `pod_aggregates` counts the pods of each node, `aggregates` aggregates over nodes,
`derived` finds the affected rows, `what_if` evaluates a row with other pods.
"""
